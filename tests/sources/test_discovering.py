"""Keys that nobody declared: found on every engine, shown above a threshold, one's own with a chance of at most δ."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from test_bounding_by_cell import start, walk
from test_engines import Duckdb, engine, postgres  # noqa: F401 -- fixtures

from dphist import Ledger, Unit, errors, load, publish, rehearse
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.private.discovery import discover, price_of, threshold
from dphist.private.noise import Keystream, Noise
from dphist.private.noise.certified import gaussian_tail, laplace_tail, least_reach
from dphist.publishing.checking import verify_file
from dphist.sources.count import keys_of
from dphist.sources.engine import Tallied

PAGE = Domain([Nominal("page", discover=True)])
CROSSED = Domain([Ordinal("age", range(3)), Nominal("page", discover=True)])
UNITS = [Unit(), Unit(rows=2, id="user"), Unit(cells=2, per_cell=2, id="user")]


def law(kind: str, size: float, reach: int = 4000) -> dict[int, float]:
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(places) / size) if kind == "laplace" else np.exp(-(places**2) / (2 * size))
    return dict(zip(places.tolist(), (weights / weights.sum()).tolist(), strict=True))


def tail(kind: str, size: float, reach: int) -> float:
    """Pr[Z ≥ reach], summed up from the law itself."""
    return math.fsum(chance for place, chance in law(kind, size).items() if place >= reach)


# ---- thresholds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("size", ["1/3", "1", "7/2", "40"])
def test_tails_are_above_the_truth_and_close_to_it(kind: str, size: str) -> None:
    bound = laplace_tail if kind == "laplace" else gaussian_tail
    for reach in (1, 2, 5, 20, 60):
        truth, claimed = tail(kind, float(Fraction(size)), reach), float(bound(reach, Fraction(size)))
        assert claimed >= truth * (1 - 1e-12)
        far = kind == "laplace" or reach**2 > 4 * Fraction(size)
        if far and truth > 1e-100:
            assert claimed <= truth * (1 + 1e-9 if kind == "laplace" else 1.3)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_least_reach_is_the_least_by_the_bound(kind: str) -> None:
    bound = laplace_tail if kind == "laplace" else gaussian_tail
    for chance in (Fraction(1, 2), Fraction(1, 100), Fraction(1, 10**9), Fraction(1, 10**40)):
        reach = least_reach(kind, Fraction(100, 3), chance)
        assert bound(reach, Fraction(100, 3)) <= chance
        assert reach == 1 or bound(reach - 1, Fraction(100, 3)) > chance


def own_keys_shown(rows: list[list[int]], kind: str, size: float, level: int) -> float:
    """The chance that any key of one person is shown, who alone has these keys, each with so many rows in its cells."""
    missed = 1.0
    for key in rows:
        for cell in key:
            missed *= 1 - tail(kind, size, level - cell)
    return 1 - missed


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("unit", "cells", "ways"),
    [
        (Unit(), 1, [[[1]]]),
        (Unit(replace=True), 1, [[[1]]]),
        (Unit(rows=3), 1, [[[3]], [[2], [1]], [[1], [1], [1]]]),
        (Unit(rows=2), 3, [[[2, 0, 0]], [[1, 1, 0]], [[1, 0, 0], [0, 0, 1]]]),
        (Unit(cells=2, per_cell=3), 1, [[[3], [3]]]),
        (Unit(cells=2, per_cell=3), 2, [[[3, 3]], [[3, 0], [0, 3]]]),
    ],
)
def test_a_key_of_ones_own_is_shown_with_a_chance_of_at_most_delta(
    kind: Any, unit: Unit, cells: int, ways: list[list[list[int]]]
) -> None:
    size = Fraction(10)
    for delta in (Fraction(1, 10), Fraction(1, 1000)):
        level = threshold(kind, size, unit, delta, cells)
        chances = [own_keys_shown(rows, kind, float(size), level) for rows in ways]
        assert max(chances) <= float(delta)
        # And not far below it: a threshold that is too high finds nothing.
        assert max(own_keys_shown(rows, kind, float(size), level - 12) for rows in ways) > float(delta) / 3


def test_thresholds_of_many_rows_take_the_coarser_rule_and_are_no_lower() -> None:
    fine = threshold("laplace", Fraction(10), Unit(rows=200), Fraction(1, 10**9))
    coarse = threshold("laplace", Fraction(10), Unit(rows=201), Fraction(1, 10**9))
    assert fine < coarse


@pytest.mark.parametrize("budget", [Budget.of(1), Budget.of(rho="1/8")], ids=["laplace", "gaussian"])
def test_drawn_keys_of_ones_own_are_shown_as_rarely_as_promised(budget: Budget) -> None:
    """An attack: twenty thousand people, each with a key that nobody else has. At most δ of them are seen."""
    people, delta = 20_000, Fraction(1, 20)
    counts = np.ones((people, 1), dtype=np.int64)
    shown, _ = discover(counts, budget, Unit(), delta, noise=Noise(Keystream.for_tests(7)), sort=np.sort)
    assert shown.size / people <= float(delta) + 4 * math.sqrt(float(delta) / people)
    assert shown.size / people > float(delta) / 4


def test_what_is_drawn_has_the_law_of_noise_above_the_threshold() -> None:
    budget, delta = Budget.of(rho="1/8"), Fraction(1, 20)
    price = price_of(budget, Unit())
    level = threshold(price.kind, price.law.size, Unit(), delta)
    counts = np.full((30_000, 1), 5, dtype=np.int64)
    kept, transcript = discover(
        counts, budget, Unit(), delta, noise=Noise(Keystream.for_tests(3)), sort=np.sort
    )
    values = Counter(transcript[0].answer[:, 0].tolist())
    assert min(values) >= level
    expected = {
        z + 5: chance for z, chance in law("gaussian", float(price.law.size), 60).items() if z + 5 >= level
    }
    assert abs(kept.size / 30_000 - sum(expected.values())) < 4 * math.sqrt(0.25 / 30_000)
    statistic = sum((values[v] - 30_000 * p) ** 2 / (30_000 * p) for v, p in expected.items() if p > 3e-4)
    assert statistic < 40


def test_nothing_but_the_keys_that_pass_is_written_down() -> None:
    counts = np.array([[1], [500], [2], [900]], dtype=np.int64)
    kept, transcript = discover(
        counts,
        Budget.of(rho=1),
        Unit(),
        Fraction(1, 10**6),
        noise=Noise(Keystream.for_tests(1)),
        sort=np.sort,
    )
    assert kept.tolist() == [1, 3]
    (entry,) = transcript
    assert entry.answer.shape == (2, 1)
    assert entry.question == {"ask": "Identity", "noise": "gaussian"}
    with pytest.raises(errors.NotPrivate):
        discover(counts, Budget.of(rho=1), Unit(), Fraction(0), sort=np.sort)


def test_keys_leave_in_the_order_of_their_texts_and_in_no_other() -> None:
    """In which order an engine found the keys may depend on anybody's records."""
    counts = np.array([[5000], [1], [90_000], [700]], dtype=np.int64)
    kept, transcript = discover(
        counts,
        Budget.of(rho=1),
        Unit(),
        Fraction(1, 10**6),
        noise=Noise(Keystream.for_tests(1)),
        # As if the texts of 2, 3 and 0 followed each other.
        sort=lambda rows: rows[[1, 2, 0]],
    )
    assert kept.tolist() == [2, 3, 0]
    assert transcript[0].answer[:, 0].argsort().tolist() == [1, 2, 0]


# ---- engines --------------------------------------------------------------------------------------------


PAGES = [None, "", "Zürich", "a'b", "é", "page", "Page", "x" * 300, "1", "01", "😀", "b,c", "other"]


def views(rows: int = 600, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "user": pa.array(random.integers(0, 30, rows), pa.int64()),
            "age": pa.array(random.integers(0, 4, rows), pa.int64()),
            "page": pa.array([PAGES[i] for i in random.integers(0, len(PAGES), rows)], pa.string()),
        }
    )


def reference(table: pa.Table, unit: Unit, *, crossed: bool) -> dict[str, list[int]]:
    """Counts by key, each person by themselves, from the statement of the rule."""
    people: dict[Any, list[tuple[bytes, int]]] = {}
    for number, line in enumerate(table.to_pylist()):
        if line["page"] is None or (crossed and not 0 <= line["age"] < 3):
            continue
        cell = line["page"].encode(), line["age"] if crossed else 0
        people.setdefault(number if unit.id is None else line["user"], []).append(cell)
    found: dict[str, list[int]] = {}
    for person, rows in people.items():
        if unit.id is None:
            chosen = rows
        elif unit.cells is None:
            chosen = walk(sorted(rows), unit.rows, start(str(person)))
        else:
            kept = walk(sorted(set(rows)), unit.cells, start(str(person)))
            chosen = [cell for cell in kept for _ in range(min(rows.count(cell), unit.per_cell or 1))]
        for page, place in chosen:
            found.setdefault(page.decode(), [0] * (3 if crossed else 1))[place] += 1
    return found


def found(source: Any, domain: Domain, unit: Unit) -> dict[str, list[int]]:
    keys, counts = keys_of(source, domain, unit)
    listed = keys.take(np.arange(len(counts))).to_pylist()
    assert len(set(listed)) == len(listed)
    return dict(zip(listed, counts.tolist(), strict=True))


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_every_engine_keeps_the_cells_of_the_rule(engine: Any, unit: Unit) -> None:  # noqa: F811
    """In the order of the keys' texts."""
    table = views()
    put = engine.put(table)
    for domain in (PAGE, CROSSED):
        assert found(put, domain, unit) == reference(table, unit, crossed=domain is CROSSED)


@pytest.mark.parametrize("unit", UNITS[1:], ids=str)
@pytest.mark.parametrize("domain", [PAGE, CROSSED], ids=["page", "crossed"])
@pytest.mark.parametrize("ids", [pa.int64(), pa.string(), pa.float64()], ids=str)
def test_the_type_of_ids_changes_nobodys_cells(unit: Unit, domain: Domain, ids: Any) -> None:
    table = views(seed=4)
    expected = reference(table, unit, crossed=domain is CROSSED)
    table = table.set_column(0, "user", table.column("user").cast(ids))
    assert found(table, domain, unit) == expected


def test_a_key_of_which_no_row_is_kept_is_not_there() -> None:
    """That somebody with many other keys has it too may move none of the keys that are looked at."""
    unit = Unit(rows=1, id="user")
    one = pa.table({"user": [1] * 5, "page": list("abcde")})
    more = pa.table({"user": [1] * 6, "page": list("abcdef")})
    assert [len(found(table, PAGE, unit)) for table in (one, more)] == [1, 1]


def test_whole_numbers_are_keys_and_other_types_are_not() -> None:
    keys, counts = keys_of(pa.table({"page": [7, 7, 12]}), PAGE, Unit())
    assert dict(zip(keys.to_pylist(), counts[:, 0].tolist(), strict=True)) == {"7": 2, "12": 1}
    with pytest.raises(errors.SourceError, match="text or whole numbers"):
        keys_of(pa.table({"page": [0.5]}), PAGE, Unit())


# ---- releases -------------------------------------------------------------------------------------------


def popular() -> pa.Table:
    pages = ["Main"] * 900 + ["Zürich"] * 400 + ["rare"] * 2 + ["mine"]
    return pa.table(
        {"page": pages, "age": [i % 3 for i in range(len(pages))], "user": list(range(len(pages)))}
    )


@pytest.mark.parametrize(
    "how", [{"rho": "1/8"}, {"epsilon": 1}, {"epsilon": 1, "mechanism": "gaussian"}], ids=str
)
def test_a_release_lists_the_keys_that_many_have(how: dict[str, Any], tmp_path: Any) -> None:
    release = publish(popular(), PAGE, delta="1e-6", **how)
    assert release.domain == Domain([Nominal("page", ["Main", "Zürich"])])
    assert abs(release.counts - [900, 400]).max() < 60
    release.verify()
    assert "names are shown if their noisy count is" in release.guarantee.describe()
    # Noise and keys together take no more than the δ that was given.
    bought = release.budget.delta or Fraction(0)
    assert bought + release.guarantee.delta <= Fraction(1, 10**6)
    release.save(tmp_path / "out.parquet")
    again = load(tmp_path / "out.parquet")
    again.verify()
    assert again.guarantee == release.guarantee
    answer = again.answer(where={"page": "Main"})
    assert answer.low <= 900 <= answer.high or abs(answer.value - 900) < 60


def test_a_discovered_key_is_crossed_with_known_attributes() -> None:
    release = publish(popular(), CROSSED, rho=100, delta="1e-6", unit="cells=1, id=user")
    assert release.domain.names == ("age", "page")
    assert release.counts.shape == (3, 2)
    assert abs(release.project("page").counts - [900, 400]).max() < 5
    release.verify()


def test_the_ledger_is_charged_for_both(tmp_path: Any) -> None:
    with Ledger.open(tmp_path / "budget.db") as book:
        book.create("readers", rho="1/4", delta="2e-6")
        release = publish(
            popular(),
            PAGE,
            rho="1/8",
            delta="1e-6",
            ledger=book,
            dataset="readers",
            about={"purpose": "a day"},
        )
        (entry,) = book.entries("readers")
        assert (entry.rho, entry.delta, entry.purpose) == (Fraction(1, 8), Fraction(1, 10**6), "a day")
        release.save(tmp_path / "out.parquet")
        reservation = release.receipt[1]  # type: ignore[index]
        from dphist.publishing.checking import digest

        book.complete(reservation, digest(tmp_path / "out.parquet"))
        verify_file(tmp_path / "out.parquet", book)
        publish(popular(), PAGE, rho="1/8", delta="1e-6", ledger=book, dataset="readers")
        with pytest.raises(errors.BudgetExhausted):
            publish(popular(), PAGE, rho="1/8", delta="1e-6", ledger=book, dataset="readers")
        book.create("pure", 5)
        with pytest.raises(errors.BudgetExhausted, match="cannot pay for delta"):
            publish(
                popular(), PAGE, epsilon=1, delta="1e-6", ledger=book, dataset="pure", mechanism="laplace"
            )


def test_without_a_delta_it_is_refused_with_the_reason() -> None:
    hows: list[dict[str, Any]] = [{"epsilon": 1}, {"rho": 1}]
    for how in hows:
        with pytest.raises(errors.NotPrivate, match="give delta too"):
            publish(popular(), PAGE, **how)
    for wrong, message in (
        ({"rho": 1, "delta": 2}, "between 0 and 1"),
        ({"rho": 1, "delta": "1e-9", "mechanism": "posterior"}, "laplace or gaussian"),
        ({"rho": 1, "delta": "1e-9", "mechanism": "laplace"}, "gaussian noise"),
        ({"rho": 1, "delta": "1e-9", "workload": "cells"}, "no workload"),
        ({"delta": "1e-9"}, "epsilon is missing"),
    ):
        with pytest.raises(errors.DphistError, match=message):
            publish(popular(), PAGE, **wrong)
    with pytest.raises(errors.InputError, match="one attribute"):
        publish(popular(), Domain([*PAGE.attributes, Nominal("x", discover=True)]), rho=1, delta="1e-9")
    with pytest.raises(errors.MechanismError, match="no name reached"):
        publish(pa.table({"page": ["mine"]}), PAGE, rho=1, delta="1e-9")


def test_the_attribute_is_written_read_and_refused_elsewhere() -> None:
    assert Domain.from_toml(CROSSED.to_toml()) == CROSSED == Domain.from_json(CROSSED.to_json())
    assert repr(PAGE.attributes[0]) == "Nominal('page', discover=True)"
    assert Domain([Nominal("page", ["a"])]) != PAGE
    with pytest.raises(errors.DomainError, match="not known yet"):
        PAGE.shape  # noqa: B018 -- asking is the test
    for wrong in ({"categories": ["a"], "discover": True}, {"discover": True, "other": True}, {}):
        with pytest.raises(errors.DomainError):
            Nominal("page", **wrong)


def test_a_schema_whose_keys_are_discovered_is_checked(tmp_path):
    import json

    from typer.testing import CliRunner

    from dphist.cli.commands import app

    schema = tmp_path / "views.toml"
    schema.write_text('[[attribute]]\nname = "page"\nkind = "nominal"\ndiscover = true\n', encoding="utf-8")
    said = CliRunner().invoke(app, ["schema", "check", str(schema)])
    assert said.exit_code == 0
    assert "the names of page are found" in said.output
    told = CliRunner().invoke(app, ["schema", "check", str(schema), "--json"])
    assert json.loads(told.output) == {"attributes": {"page": None}, "cells": None}


# ---- what the custodian is told -------------------------------------------------------------------------


def unread() -> pa.Table:
    """1,303 rows, of which 300 have no page and 3 an age that is not declared."""
    pages = ["Main"] * 900 + [None] * 300 + ["mine"] * 103
    ages = [0, 1, 2] * 300 + [0] * 400 + [77] * 3
    return pa.table({"page": pages, "age": ages, "user": list(range(len(pages)))})


def test_every_engine_tells_how_many_rows_have_no_key(engine: Any) -> None:  # noqa: F811
    for unit in (Unit(), Unit(cells=1, id="user")):
        source = Tallied(engine.put(unread()))
        keys_of(source, CROSSED, unit)
        assert (source.tally.rows, source.tally.placed) == (1303, 1000)


def test_rows_without_a_key_stop_a_release_before_anything_is_paid(tmp_path: Any) -> None:
    with Ledger.open(tmp_path / "budget.db") as book:
        book.create("readers", rho="1/4", delta="2e-6")
    paid = {"rho": "1/8", "delta": "1e-6", "ledger": tmp_path / "budget.db", "dataset": "readers"}
    with pytest.raises(errors.DroppedRows, match="nothing was spent"):
        publish(unread(), CROSSED, **paid)
    with Ledger.open(tmp_path / "budget.db") as book:
        assert book.spent("readers") == 0
    assert publish(unread(), CROSSED, allow_dropped=0.25, **paid).domain.names == ("age", "page")
    # Where others see whether a run succeeds, nothing of the records may stop it.
    publish(unread(), CROSSED, allow_dropped=1, rho="1/8", delta="1e-6")


def test_keys_that_are_discovered_are_rehearsed() -> None:
    told = rehearse(unread(), CROSSED, "cells=1, id=user", delta="1e-6")
    assert (told.rows, told.dropped, told.cells) == (1303, 303, 3)
    assert told.keys is not None
    assert (told.keys.found, told.keys.above) == (2, 2)
    price = price_of(Budget.of(1), Unit(cells=1, id="user"))
    assert told.keys.threshold == threshold(
        price.kind, price.law.size, Unit(cells=1, id="user"), Fraction(1, 10**6), 3
    )
    assert "from which on a noisy count is shown" in str(told)
    without = rehearse(unread(), PAGE)
    assert without.keys is not None
    assert without.keys.threshold is None
    assert "give a delta" in str(without)
    assert without.forecasts == {}
    with pytest.raises(errors.InputError, match="workload"):
        rehearse(unread(), PAGE, workload="cells")


def test_one_attribute_is_discovered_at_a_time() -> None:
    both = Domain([Nominal("page", discover=True), Nominal("query", discover=True)])
    with pytest.raises(errors.DomainError, match="one attribute can be discovered"):
        publish(pa.table({"page": ["a"], "query": ["b"]}), both, rho=1, delta="1e-6")
