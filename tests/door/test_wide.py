"""Releases of tables out of very many columns: published, asked, saved, verified, and refused where nobody measured."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dphist
from dphist.errors import NotPrivate, QueryError, TooLargeError
from dphist.inference.tables.mixture import fit_mixture
from dphist.mechanisms import Residuals
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.unit import Unit
from dphist.private.noise import Keystream, Noise
from dphist.publishing.making import release_of
from dphist.release.cells import TableCells
from dphist.sources.coded import coded
from dphist.waiting import listening

WORDS = ["no", "perhaps", "yes"]
ATTRIBUTES: list[Any] = [
    dphist.Ordinal("age", edges=[0, 20, 40, 60, 120]),
    dphist.Nominal("sex", ["F", "M"]),
    dphist.Nominal("constant", ["only"]),
] + [dphist.Nominal(f"q{i}", WORDS) for i in range(16)]
DOMAIN = dphist.Domain(ATTRIBUTES)


def people(rows: int = 3000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    taste = rng.integers(0, 3, rows)
    columns: dict[str, Any] = {
        "age": rng.integers(0, 110, rows),
        "sex": rng.choice(["F", "M"], rows),
        "constant": ["only"] * rows,
        "who": rng.integers(0, rows // 4, rows),
    }
    for i in range(16):
        columns[f"q{i}"] = np.array(WORDS)[np.where(rng.random(rows) < 0.5, taste, rng.integers(0, 3, rows))]
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def releases() -> dict[str, dphist.Release]:
    table = people()
    return {
        "epsilon": dphist.publish(table, DOMAIN, 2, "residuals", workload="marginals:2"),
        "rho": dphist.publish(table, DOMAIN, rho="1/10", mechanism="residuals"),
    }


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_a_release_of_tables_is_a_release(releases: Any, currency: str, tmp_path: Path) -> None:
    release, table = releases[currency], people()
    assert DOMAIN.size > 2**28
    release.verify()
    release.save(tmp_path / "wide.parquet")
    again = dphist.load(tmp_path / "wide.parquet")
    again.verify()
    assert again.cells.same(release.cells)
    where = {"q3": "yes", "q8": ["yes", "no"], "age": (20, 59)}
    for each in (release, again):
        one = each.answer(where={"age": (20, 59), "q8": "yes"})
        truth = ((table["age"] >= 20) & (table["age"] < 60) & (table["q8"] == "yes")).sum()
        assert one.low <= one.value <= one.high
        assert abs(one.value - truth) < 6 * (one.high - one.low)
        guess = each.answer(where=where)
        assert not guess.measured
        assert guess.method == "not measured"
        assert "not measured" in str(guess)
        # A single value bounds nothing, and bins are asked for by their own bounds.
        assert each.answer(where={"constant": "only"}).value == each.answer().value
        with pytest.raises(QueryError, match="no published table has q1, q2, age together"):
            each.project("q1", "q2", "age")
        with pytest.raises(TooLargeError, match="which nobody counted"):
            _ = each.counts
        with pytest.raises(QueryError, match="publish with the mechanism mixture"):
            each.records()
    assert "tables of up to 2 attributes" in repr(release)
    assert len(repr(release)) < 300


def test_published_tables_agree_and_are_nowhere_negative(releases: Any) -> None:
    for release in releases.values():
        tables = release.cells.tables
        total = float(tables[()])
        for axes, table in tables.items():
            assert table.min() >= 0
            assert table.sum() == pytest.approx(total, rel=1e-4)
            for place, axis in enumerate(axes):
                smaller = tables[axes[:place] + axes[place + 1 :]]
                assert np.abs(table.sum(axis=place) - smaller).max() < 1e-4 * total, (axes, axis)


def test_anybody_opens_the_file(releases: Any, tmp_path: Path) -> None:
    path, release = tmp_path / "wide.parquet", releases["rho"]
    release.save(path)
    asked = f"""SELECT sum(estimate), min(estimate - low), min(high - estimate), count(*) FROM '{path}'
                WHERE "table" = 'age, sex' AND sex = 'F' AND age_low >= 20 AND q3 IS NULL"""
    ((value, below, above, rows),) = duckdb.sql(asked).fetchall()
    assert rows == 3
    assert value == pytest.approx(release.answer("age >= 20 and sex = 'F'").value)
    assert min(below, above) >= 0
    frame = release.to_pandas()
    assert set(frame["table"]) >= {"total", "age", "age, sex", "q0, q15"}
    assert len(frame) == release.cells.numbers.size


def test_bounding_and_paying(tmp_path: Path) -> None:
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 3)
        paid: dict[str, Any] = {
            "unit": "rows=2, id=who",
            "ledger": ledger,
            "dataset": "people",
            "allow_dropped": 1,
        }
        release = dphist.publish(people(), DOMAIN, 2, "residuals", **paid)
        assert ledger.spent("people") == 2
        assert release.receipt is not None
        with pytest.raises(dphist.errors.BudgetError):
            dphist.publish(people(), DOMAIN, 2, "residuals", **paid)
    kept = coded(people(), DOMAIN, Unit(rows=2, id="who")).tables([()])[0]
    assert abs(release.answer().value - int(kept)) < 600


def test_named_tables_are_covered_and_nothing_else() -> None:
    release = dphist.publish(people(500), DOMAIN, 5, "residuals", workload="marginals:age,sex,q1;q2,q3")
    assert isinstance(release.cells, TableCells)
    assert set(release.cells.tables) >= {(0, 1), (0, 1, 4), (5, 6), ()}
    assert release.project("q1", "age", "sex").counts.shape == (3, 4, 2)
    assert not release.answer("q2 = 'yes' and sex = 'F'").measured


@pytest.mark.parametrize("budget", [Budget.of(1), Budget.of(rho="1/40")], ids=["epsilon", "rho"])
def test_intervals_hold(budget: Budget) -> None:
    """95 % of the intervals of every size of table hold, on tables far from even."""
    rng = np.random.default_rng(3)
    sizes = (2, 3, 9, 2, 17, 4, 5, 30)
    domain = dphist.Domain([dphist.Ordinal(f"x{i}", range(n)) for i, n in enumerate(sizes)])
    level = rng.random(4000)
    columns = tuple(
        np.minimum((n * level ** (1 + i % 3)).astype(np.uint8), n - 1) for i, n in enumerate(sizes)
    )
    records = CodedColumns(domain, columns)
    wanted = [axes for order in range(3) for axes in combinations(range(8), order)]
    truth = records.tables(wanted)
    held: dict[tuple[int, ...], list[float]] = {axes: [] for axes in wanted}
    for seed in range(8):
        release = release_of(
            records, budget, Residuals(), Unit(), None, noise=Noise(Keystream.for_tests(seed))
        )
        assert isinstance(release.cells, TableCells)
        low, high = release.cells.bounds(release, 0, release.cells.numbers.size, 0.95)
        for axes, counts in zip(wanted, truth, strict=True):
            here = slice(*release.cells.starts[release.cells.order.index(axes) :][:2])
            within = (low[here] <= counts.reshape(-1)) & (counts.reshape(-1) <= high[here])
            held[axes].append(float(within.mean()))
    large = [np.mean(each) for axes, each in held.items() if truth[wanted.index(axes)].size >= 60]
    assert min(large) > 0.92
    assert 0.94 < np.mean([np.mean(each) for each in held.values()]) < 0.995
    with pytest.raises(NotPrivate):
        release.save("never.parquet")


def test_auto_goes_wide_where_nobody_can_write_out_the_cells() -> None:
    auto = dphist.mechanisms.Auto()
    wide = dphist.Domain([dphist.Ordinal(f"x{i}", range(10)) for i in range(12)])
    plane = dphist.Domain([dphist.Ordinal("x", range(6000)), dphist.Ordinal("y", range(6000))])
    assert auto.goes_wide(wide, None)
    assert auto.goes_wide(wide, dphist.Workload.prefixes(wide))
    assert not auto.goes_wide(plane, None)
    assert not auto.goes_wide(dphist.Domain(wide.attributes[:6]), None)
    assert not auto.goes_wide(dphist.Domain(wide.attributes[:8]), dphist.Workload.prefixes(plane))
    # Tables alone are better measured alone; with cells among what is asked, cells are needed as long as they fit.
    small = dphist.Domain([dphist.Ordinal(f"x{i}", range(2)) for i in range(8)])
    eight = dphist.Domain(wide.attributes[:8])
    assert auto.goes_wide(eight, dphist.Workload.parse(small, "2 marginals:1 + marginals:2"))
    assert not auto.goes_wide(eight, dphist.Workload.parse(small, "3 cells + marginals:2"))
    assert auto.goes_wide(wide, dphist.Workload.parse(small, "3 cells + marginals:2"))
    release = dphist.publish(people(300), DOMAIN, 1)
    assert release.cells.form == "tables"
    assert (
        "which could all be written out, but tables measured by themselves are as good or better"
        in release.note
    )
    release.verify()
    assert release.mean("age").measured
    assert release.by("sex").mean("age").value.shape == (2,)
    assert release.sql("""select count(*) from release where "table" = 'age, sex'""").rows == [(8,)]


def test_the_explorer_shows_what_was_measured_and_says_what_was_not(releases: Any) -> None:
    import json

    from dphist.web.view import View, compare

    def never(name: str) -> Any:
        raise ValueError(name)

    release = releases["rho"]
    for asked in ({"q": "sex = 'F' and q1 = 'yes'"}, {"q": "sex = 'F' and q1 = 'yes'", "show": "age"}):
        shown = View.read(release, asked).to_json()
        json.loads(json.dumps(shown), parse_constant=never)
        assert shown["answer"]["value"] > 0
    assert all(row["estimate"] is None for row in shown["rows"])
    shown = View.read(release, {"q": "sex = 'F' and q1 = 'yes' and q2 = 'no'"}).to_json()
    json.loads(json.dumps(shown), parse_constant=never)
    assert shown["answer"]["value"] is None
    both = compare(
        "one", release, "two", releases["epsilon"], {"q": "sex = 'F' and q1 = 'yes' and q2 = 'no'"}
    )
    assert both["difference"] is None


def test_the_forecast_is_the_error() -> None:
    (told,) = dphist.planning.plan(DOMAIN, 2, "marginals:2", mechanisms=["residuals"])
    release = dphist.publish(people(), DOMAIN, 2, "residuals", workload="marginals:2")
    errors: Any = release._estimate.errors
    pairs = dphist.Workload.marginals(DOMAIN, 2).tables or ()
    cells = [np.prod([DOMAIN.shape[axis] for axis in axes]) for axes in pairs]
    variances = [errors.residuals.cell_variance(axes) for axes in pairs]
    expected = np.sqrt(np.average(variances, weights=cells))
    assert told.error == pytest.approx(expected)
    (unasked,) = dphist.planning.plan(DOMAIN, 2, "marginals:3", mechanisms=["residuals"], announced=False)
    assert unasked.error is None
    assert "would not be measured" in unasked.basis


def test_what_wide_tables_do_not_hold_is_refused_before_it_is_counted() -> None:
    huge = dphist.Domain([*DOMAIN.attributes, *(dphist.Ordinal(f"z{i}", range(100)) for i in range(20))])
    table = people(50).assign(**{f"z{i}": i for i in range(20)})
    with pytest.raises(dphist.errors.InputError, match="measures"):
        dphist.publish(table, huge, 1, "residuals", measures=[dphist.Measure("age", 0, 120)])
    with pytest.raises(TooLargeError):
        dphist.publish(table, huge, 1, "laplace")
    told = str(dphist.rehearse(table, huge))
    assert "too many to write out" in told
    assert re.search(r"tables of two attributes: (at most )?[\d,.]+", told)


def test_a_histogram_is_not_taken_for_bounded_records() -> None:
    """Whose rows were counted in it, and how many of each, nobody can say."""
    counted = dphist.Histogram(dphist.Domain([dphist.Nominal("sex", ["F", "M"])]), np.array([3, 4]))
    assert coded(counted).tables([(0,)])[0].tolist() == [3, 4]
    for domain, unit in ((None, Unit(rows=2, id="who")), (DOMAIN, Unit())):
        with pytest.raises(dphist.errors.DphistError):
            coded(counted, domain, unit)


def test_a_model_is_fitted_when_it_is_asked_for_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    shared = rng.integers(0, 3, 20_000)
    columns = {f"q{i}": np.where(rng.random(20_000) < 0.5, shared, shared[::-1]) for i in range(12)}
    domain = dphist.Domain([dphist.Ordinal(name, range(3)) for name in columns])
    dphist.publish(
        pa.table(columns), domain, epsilon=3, mechanism="mixture(classes=4,steps=10)", workload="marginals:2",
        unattended=True,
    ).save(tmp_path / "x.parquet")  # fmt: skip
    fits: list[int] = []

    def noted(*given: Any, **named: Any) -> Any:
        fits.append(1)
        return fit_mixture(*given, **named)

    monkeypatch.setattr("dphist.mechanisms.wide.fit.fit_mixture", noted)
    release = dphist.load(tmp_path / "x.parquet")
    assert release.answer("q1 = 1 and q2 = 1").measured
    assert not np.isnan(release.project("q3", "q4").low).any()
    assert not fits
    assert not release.answer("q1 = 1 and q2 = 1 and q3 = 1").measured
    # Publishing fitted it: the file holds what came of that.
    assert not fits
    said: list[str] = []
    with listening(said.append):
        release.verify()
    assert len(fits) == 1
    assert "fitting a model to the tables: 50 %" in said[len(said) // 2]


def test_an_id_may_be_an_attribute_too(tmp_path: Path) -> None:
    rows = [{"user": f"u{i % 3}", "sex": "FM"[i % 2]} for i in range(12)]
    pd.DataFrame(rows).to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    domain = dphist.Domain([dphist.Nominal("user", ["u0", "u1", "u2"]), dphist.Nominal("sex", ["F", "M"])])
    found = coded(tmp_path / "t.jsonl", domain, Unit(rows=2, id="user")).tables([(0,)])
    assert found[0].tolist() == [2, 2, 2]
