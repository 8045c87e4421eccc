"""Counts and sums in one release: what reaches the sampler, what verifies, what is refused before anything is paid."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app, verify
from dphist.errors import DphistError, InputError, MechanismError, QueryError
from dphist.mechanisms import AdaptiveTree, Auto, Laplace, Marginals, Posterior, Privelet, Tree
from dphist.model.budget import Budget
from dphist.model.measure import Measure, Quantity, Sums
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.scores.boundaries import Boundaries
from dphist.publishing.account import Account
from dphist.publishing.making import release_of
from dphist.publishing.measures import plan_measures, publish_measured, signed
from dphist.release.held import stamped
from dphist.release.writing import HOW
from dphist.sources.count import count_and_sum
from dphist.testing import RecordingNoise

DOMAIN = dphist.Domain([dphist.Ordinal("age", range(8)), dphist.Nominal("sex", ["F", "M"])])
COST = Measure("cost", -20, 100, squares=True)
HOURS = Measure("hours", 0, 80)


def frame(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user": random.integers(0, 90, rows),
            "age": random.integers(0, 8, rows),
            "sex": random.choice(["F", "M"], rows),
            "cost": random.normal(30, 40, rows).round(1),
            "hours": random.integers(0, 100, rows),
        }
    )


def publish(noise: Noise, unit: Unit | None = None, **more: Any) -> dphist.Release:
    unit = unit or Unit()
    usual: dict[str, Any] = {
        "measures": (COST, HOURS),
        "mechanism": Laplace(),
        "shares": None,
        "workload": None,
    }
    told = usual | more
    budget = Budget(Fraction(3, 2))
    payer = Account(budget, unit, "test")
    return publish_measured(
        frame(), DOMAIN, budget, told["mechanism"], unit, told["workload"],
        told["measures"], told["shares"], payer.pay, noise=noise,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("unit", "steps"), [(Unit(), 1), (Unit(replace=True), 2), (Unit(rows=3, id="user"), 3)]
)
def test_the_noise_is_that_of_the_reach_times_the_unit(unit: Unit, steps: int) -> None:
    noise = RecordingNoise(seed=1)
    shares = {"count": 2, "cost": 1, "hours": 1, "cost²": 4}
    release = publish(noise, unit, shares=shares)
    budgets = [Fraction(3, 2) * Fraction(share, 8) for share in (2, 1, 1, 4)]
    # Centred: 60 of 120 either way, 40 of 80; squares lie between 0 and 3600.
    reaches = [1, 60, 40, 1800]
    assert [draw.amounts[0] for draw in noise.drawn] == [
        steps * reach / budget for reach, budget in zip(reaches, budgets, strict=True)
    ]
    assert [sums.quantity.centre for sums in release.sums] == [40, 40, 1800]
    assert release.transcript.spent() + sum(s.release.transcript.spent() for s in release.sums) == Fraction(
        3, 2
    )


def test_what_a_person_adds_up_to_bounds_the_noise() -> None:
    noise = RecordingNoise(seed=1)
    limited = (Measure("hours", 0, 80, per_person=100),)
    publish(noise, Unit(rows=5, id="user"), measures=limited)
    assert [draw.amounts[0] for draw in noise.drawn] == [
        5 / (Fraction(3, 2) * Fraction(2, 5)),
        100 / (Fraction(3, 2) * Fraction(3, 5)),
    ]


def test_a_release_comes_back_from_its_file_and_verifies(tmp_path: Path, capsys: Any) -> None:
    release = dphist.publish(frame(), DOMAIN, 1, measures=[COST, HOURS], workload="ranges")
    release.verify()
    release.save(tmp_path / "r.parquet")
    again = dphist.load(tmp_path / "r.parquet")
    again.verify()
    verify(tmp_path / "r.parquet")
    assert f"{again.questions} paid answers, spent 1 of 1" in capsys.readouterr().out
    assert again.questions > len(again.transcript)
    for name in ("cost", "hours"):
        assert again.by("sex").mean(name).value.tolist() == release.by("sex").mean(name).value.tolist()
        assert again.sum(name).high == release.sum(name).high
    written = pq.read_table(tmp_path / "r.parquet")
    assert written.column_names == ["age", "sex", "estimate", "low", "high", "sum_cost", "sum_hours"]
    assert math.isclose(written["sum_hours"].to_numpy().sum(), release.sum("hours").value, abs_tol=1e-6)
    assert "sum_cost" in release.to_pandas().columns
    assert "sums of cost, hours" in repr(release)


def _told(change: Any) -> Any:
    def forge(story: dict[str, Any], table: Any) -> Any:
        change(story["measures"][0])
        return table

    return forge


FORGERIES: dict[str, Any] = {
    "a wider reach": _told(lambda m: m["measure"].update(high=1000)),
    "a narrower reach": _told(lambda m: m["measure"].update(high=50)),
    "another centre": _told(lambda m: m.update(centre=0)),
    "a larger share": _told(lambda m: m.update(amount="1")),
    "more keys": _told(lambda m: m.update(remark="hello")),
    "other sums": _told(lambda m: m.update(estimate=m["transcript"][0]["data"])),
    "a mechanism that asked for something else": _told(
        lambda m: m.update(mechanism={"name": "h", "options": {}})
    ),
    "another column": lambda story, table: table.set_column(
        5, "sum_cost", [np.asarray(table["sum_cost"]) + 1.0]
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_is_refused(tmp_path: Path, forgery: str) -> None:
    release = dphist.publish(frame(), DOMAIN, 1, "laplace", measures=[COST, HOURS])
    path = tmp_path / "r.parquet"
    release.save(path)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    story = json.loads(metadata[b"dphist"])
    changed = FORGERIES[forgery](story, table)
    metadata[b"dphist"] = json.dumps(story).encode()
    pq.write_table(changed.replace_schema_metadata(stamped(metadata)), path, write_statistics=False, **HOW)
    with pytest.raises(DphistError):
        dphist.load(path).verify()


def test_sums_that_were_not_paid_for_are_refused() -> None:
    from dataclasses import replace

    release = dphist.publish(frame(), DOMAIN, 1, "laplace", measures=[HOURS])
    twice = replace(release, sums=release.sums * 2, known=release._estimate)
    with pytest.raises(DphistError):
        twice.verify()
    moved = replace(release.sums[0], quantity=Quantity(Measure("hours", 0, 8), centre=4))
    with pytest.raises(DphistError, match="do not belong"):
        replace(release, sums=(moved,), known=release._estimate).verify()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"measures": [Measure("hours", 0, 80, per_person=5)]}, InputError),
        ({"measures": Measure("hours", 0, 80)}, InputError),
        ({"measures": [Measure("nothing", 0, 80)]}, DphistError),
        ({"measures": [HOURS], "mechanism": "sparselaplace"}, MechanismError),
        ({"measures": [HOURS], "shares": {"count": 1}}, InputError),
        ({"shares": {"count": 1}}, InputError),
        # Parts that go by one name would each get all of its share.
        ({"measures": [Measure("count", 0, 80, column="hours")], "shares": {"count": 1}}, InputError),
        (
            {
                "measures": [
                    Measure("x", 0, 9, column="hours", squares=True),
                    Measure("x²", 0, 9, column="hours"),
                ],
                "shares": {"count": 1, "x": 1, "x²": 1},
            },
            InputError,
        ),
        ({"measures": [HOURS], "shares": {"count": 1, "hours": 0}}, DphistError),
        ({"measures": [Measure("hours", 0, 2**40)], "epsilon": "1e-9"}, DphistError),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_paid(
    tmp_path: Path, state_folder: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 10)
        usual: dict[str, Any] = {"epsilon": 1, "ledger": ledger, "dataset": "people"}
        with pytest.raises(error):
            dphist.publish(frame(), DOMAIN, **(usual | options))
        assert ledger.spent("people") == 0
        dphist.publish(frame(), DOMAIN, **usual, measures=[HOURS])
        assert ledger.spent("people") == 1


def test_scores_and_costs_are_refused_sums() -> None:
    right, _ = open_gate(Sums(DOMAIN, np.zeros((8, 2), dtype=np.int64)), 1, Unit())
    with pytest.raises(MechanismError, match="sums"):
        right.arrange(np.arange(16)).choose(Boundaries(2, "squared"))
    for mechanism in (Posterior(), AdaptiveTree(), Auto(), Privelet(threshold=True)):
        assert signed(mechanism) is None


@pytest.mark.parametrize(
    "mechanism", [Laplace(), Tree(), Privelet(), Marginals(tables=((0,), (1,), (0, 1)))], ids=str
)
def test_linear_mechanisms_are_right_about_signed_sums(mechanism: Any) -> None:
    """With next to no noise the sums come out, also below zero; and cells near 2^62 are cut alike on both sides."""
    linear = signed(mechanism)
    assert linear is not None
    cells = np.array([[-500, 3], [0, 77], [41, -900], [9, 12], [0, 0], [1, -6], [5, 5], [-3, 8]])
    right, _ = open_gate(Sums(DOMAIN, cells), 10**6, Unit())
    assert np.abs(linear.estimate(right).counts.reshape(8, 2) - cells).max() < 0.01
    far, _ = open_gate(
        Sums(DOMAIN, np.full((8, 2), -(2**62))), 1, Unit(), noise=Noise(Keystream.for_tests(1))
    )
    assert np.isfinite(linear.estimate(far).counts).all()


def test_the_plan_reads_public_facts_alone() -> None:
    money, narrow = Measure("money", 0, 1000), Measure("year", 1990, 2030)
    plan = plan_measures(DOMAIN, [money, narrow], Auto())
    assert [quantity.centre for quantity in plan.quantities] == [500, 2010]
    assert plan.share + sum(plan.shares) == 1
    line = dphist.Domain([dphist.Ordinal("x", range(512))])
    assert isinstance(plan_measures(line, [money], Auto(), dphist.Workload.all_ranges(line)).mechanism, Tree)
    assert isinstance(plan_measures(line, [money], Auto(), dphist.Workload.cells(line)).mechanism, Laplace)
    adapts = plan_measures(line, [money], Posterior())
    assert isinstance(adapts.counts, Posterior)
    assert signed(adapts.mechanism) == adapts.mechanism


def test_an_audit_of_counts_and_sums_together() -> None:
    """Every cell is a trial: one more record of the largest value in each cannot be told beyond ε."""

    def loss(reach_used: int) -> float:
        cells = 60_000
        domain = dphist.Domain([dphist.Ordinal("x", range(cells))])
        quantity, shares = Quantity(HOURS, centre=40), (Fraction(2, 5), Fraction(3, 5))
        seen = []
        for more in (0, 1):
            noise = Noise(Keystream.for_tests(5 + more))
            counts = dphist.Histogram(domain, np.full(cells, more))
            sums = Sums(domain, np.full(cells, more * quantity.reach))
            first = release_of(counts, shares[0], Laplace(), Unit(), None, noise=noise)
            moved = Unit(rows=reach_used)
            second = release_of(sums, shares[1], Laplace(), moved, None, noise=noise)
            seen.append((first.counts >= 1) & (second.counts >= quantity.reach))
        without, with_one = (float(np.mean(each)) for each in seen)
        # Three standard errors to the safe side on either.
        low = with_one - 3 * math.sqrt(with_one / cells)
        high = without + 3 * math.sqrt(without / cells)
        return math.log(low / high)

    # Three standard errors short of the exact loss, which is 1; half of the noise would lose 1.6.
    assert 0.85 < loss(Quantity(HOURS, centre=40).reach) <= 1.0
    assert loss(20) > 1.3


def test_answers_hold_as_often_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick look at coverage: sums, means and ratios of groups."""
    data = frame(20_000, seed=3)
    held: dict[str, list[bool]] = {"sum": [], "mean": [], "ratio": [], "std": []}
    measures = [Measure("cost", -20, 100, squares=True), HOURS]
    data["c"], data["h"] = np.clip(np.floor(data.cost + 0.5), -20, 100), np.clip(data.hours, 0, 80)
    groups = data.groupby(["age", "sex"])
    plan = plan_measures(DOMAIN, measures, Laplace())
    counted = count_and_sum(data, DOMAIN, Unit(), plan.quantities)
    monkeypatch.setattr("dphist.publishing.measures.count_and_sum", lambda *_: counted)
    for _ in range(30):
        release = dphist.publish(data, DOMAIN, 1, "laplace", measures=measures)
        by = release.by("age", "sex")
        for kind, table, truth in (
            ("sum", by.sum("cost"), groups.c.sum()),
            ("mean", by.mean("hours"), groups.h.mean()),
            ("ratio", by.ratio("cost", "hours"), groups.c.sum() / groups.h.sum()),
            ("std", by.std("cost"), groups.c.std(ddof=0)),
        ):
            held[kind] += ((table.low <= truth.to_numpy()) & (truth.to_numpy() <= table.high)).tolist()
    for kind, each in held.items():
        # 480 answers: the chance of fewer than nine in ten is below a millionth if the intervals hold 95 %.
        assert np.mean(each) > 0.9, kind


def test_what_may_be_empty_is_not_known() -> None:
    release = dphist.publish(frame(0), DOMAIN, 1, "laplace", measures=[HOURS, COST], allow_dropped=1)
    by = release.by("age", "sex")
    mean, ratio = by.mean("hours"), by.ratio("cost", "hours")
    # Of sixteen empty groups one in forty looks filled.
    assert np.mean((mean.low == 0.0) & (mean.high == 80.0)) > 0.6
    assert np.mean(np.isinf(ratio.high) & np.isinf(ratio.low)) > 0.6
    with pytest.raises(QueryError, match="squares"):
        by.variance("hours")
    with pytest.raises(QueryError, match="confidence"):
        dphist.publish(frame(), DOMAIN, 1, measures=[Measure("hours", 0, 80, squares=True)]).std(
            "hours", confidence=0
        )
    with pytest.raises(QueryError, match="no measure"):
        by.variance("age")
    for ask in (release.quantiles, release.cdf):
        with pytest.raises(QueryError, match="publish it as an attribute too"):
            ask("hours")


def test_sums_under_concentrated_privacy(tmp_path: Path) -> None:
    for paid in ({"rho": "1/50"}, {"epsilon": 1, "delta": "1e-9"}):
        release = dphist.publish(frame(), DOMAIN, measures=[COST, HOURS], workload="cells", **paid)
        release.verify()
        release.save(tmp_path / "r.parquet")
        again = dphist.load(tmp_path / "r.parquet")
        again.verify()
        assert again.budget == release.budget
        amounts = [sums.release.budget.amount for sums in again.sums]
        assert sum(amounts) + again._own_budget.amount == again.budget.amount
        answer = again.sum("hours")
        assert answer.low < answer.value < answer.high
    # One step of the sum costs the squared reach: Gaussian noise of variance reach² ÷ 2ρ.
    reach, rho = 40, amounts[1]
    wide = (answer.high - answer.low) / 2
    assert wide > 1.9 * math.sqrt(16 * reach**2 / (2 * float(rho)))


def test_the_share_of_clipped_records_is_paid_for_and_told(tmp_path: Path) -> None:
    data = frame(20_000)
    measure = Measure("hours", 0, 80, clipped=True)
    release = dphist.publish(data, DOMAIN, 1, "laplace", measures=[measure])
    release.verify()
    release.save(tmp_path / "r.parquet")
    again = dphist.load(tmp_path / "r.parquet")
    again.verify()
    share = again.query("clipped hours")
    assert share.low < (data.hours > 80).mean() < share.high
    assert share.high - share.low < 0.05
    assert [sums.release.budget.amount for sums in again.sums] == [Fraction(3, 10)] * 2
    assert len(again.by("sex").clipped("hours")) == 2
    with pytest.raises(QueryError, match="clipped=True"):
        dphist.publish(data, DOMAIN, 1, "laplace", measures=[HOURS]).query("clipped hours")


def by_margins() -> dphist.Release:
    names = ("a", "b", "c")
    random = np.random.default_rng(3)
    records = pd.DataFrame(
        {name: random.integers(0, 4, 300) for name in names} | {"stars": random.uniform(0, 6, 300)}
    )
    domain = dphist.Domain([dphist.Ordinal(name, range(4)) for name in names])
    stars = [Measure("stars", 0, 6, squares=True, clipped=True), Measure("other", 0, 6)]
    return dphist.publish(
        records.assign(other=records.stars),
        domain,
        "1/5",
        "marginals",
        workload="marginals:1",
        measures=stars,
    )


def test_means_and_sums_that_were_not_measured_are_no_numbers(tmp_path: Path) -> None:
    release = by_margins()
    both, one = release.by("a", "b"), release.by("a")
    kinds = {
        "sum": lambda cube: cube.sum("stars"),
        "mean": lambda cube: cube.mean("stars"),
        "variance": lambda cube: cube.variance("stars"),
        "std": lambda cube: cube.std("stars"),
        "clipped": lambda cube: cube.clipped("stars"),
        "ratio": lambda cube: cube.ratio("stars", "other"),
    }
    for name, ask in kinds.items():
        unknown, known = ask(both), ask(one)
        assert np.isnan(unknown.value).all(), name
        assert unknown.method == "not measured", name
        assert not unknown.to_pandas()["measured"].any(), name
        assert known.to_pandas()["measured"].all(), name
    assert str(release.mean("stars", where={"a": 1, "b": 2})) == "not measured"
    release.save(tmp_path / "r.parquet")
    answered = CliRunner().invoke(
        app, ["query", str(tmp_path / "r.parquet"), "mean stars where a = 1 and b = 2", "--json"]
    )
    assert json.loads(answered.stdout)["value"] is None
    assert json.loads(answered.stdout)["measured"] is False
