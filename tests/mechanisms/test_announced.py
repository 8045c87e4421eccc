"""Announced tables: measured, or left to chance where noise would hide them; every one of them has an interval."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.inference.tables.residuals import Measured, TableResiduals
from dphist.inference.tables.shrinking import shrink_downward
from dphist.mechanisms import Auto, Marginals, Residuals
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.independence import independent_product, pairs_of
from dphist.mechanisms.choosing.pilot import TOTAL, PilotAnswer
from dphist.model.budget import Budget
from dphist.model.law import NoiseLaw
from dphist.testing import open_counts, run

SHAPE = (6, 4, 3, 2, 2)
DOMAIN = dphist.Domain([dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(SHAPE)])
MANY = (3, 3, 3, 3, 2, 2, 2, 2, 2, 2)
PAIRS_ASKED = dphist.Workload.marginals(DOMAIN, 2)


def _even(records):
    return np.full(SHAPE, records // int(np.prod(SHAPE)), dtype=np.int64)


def _diagonal(records):
    counts = np.zeros(SHAPE, dtype=np.int64)
    for place in range(6):
        counts[place, place * 4 // 6, place // 2, place // 3, place // 3] = records // 6
    return counts


def test_few_records_are_left_to_chance_and_pairs_have_bounds(tmp_path):
    counts = _even(288)
    release = dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon="0.01", workload=PAIRS_ASKED)
    told = release.mechanism
    assert isinstance(told, Auto)
    assert isinstance(told.chosen, Marginals)
    assert told.chosen.tables == ((0,), (1,), (2,), (3,), (4,))
    for said in (told.why, release.note):
        assert said.startswith("No pair of columns was measured: the budget is too small. ")
    assert "Numbers about pairs assume independence." in release.describe()
    assert "put together as if they were independent" in told.why
    answers = release.answer(PAIRS_ASKED)
    assert not np.isnan(answers.low).any()
    assert not np.asarray(answers.measured).any()
    assert (answers.low <= answers.value).all()
    assert (answers.value <= answers.high).all()
    release.verify()
    # The file says it to whoever opens it with something else.
    release.save(tmp_path / "r.parquet")
    assert (
        pq.read_metadata(tmp_path / "r.parquet").metadata[b"intervals"].startswith(b"No pair of columns was")
    )
    assert dphist.load(tmp_path / "r.parquet").describe() == release.describe()


def test_many_records_that_depend_on_each_other_are_measured():
    counts = _diagonal(600_000)
    release = dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=1, workload=PAIRS_ASKED)
    told = release.mechanism
    assert isinstance(told, Auto)
    assert not release.note.startswith("No pair")
    assert told.look is not None
    assert told.look.total == TOTAL
    truth = np.asarray(PAIRS_ASKED.answer(counts), dtype=float)
    # Ten tables with a tenth of the budget have noise of about 10: off by 1,000 with a chance far below 1e-6.
    assert np.abs(release.answer(PAIRS_ASKED).value - truth).max() < 1000.0
    release.verify()


def test_single_attributes_and_the_whole_cube_are_not_doubted():
    for load in (dphist.Workload.marginals(DOMAIN, 1), dphist.Workload.marginals(DOMAIN, 5)):
        release = dphist.publish(dphist.Histogram(DOMAIN, _even(2880)), epsilon=1, workload=load)
        assert isinstance(release.mechanism, Auto)
        assert release.mechanism.look is None


def test_what_is_left_to_chance_is_closer_than_noise_and_has_bounds_that_hold():
    asked = asked_kinds(SHAPE, DOMAIN, PAIRS_ASKED, "marginals")
    forecaster = Forecaster(SHAPE, asked, NoiseLaw("laplace", Fraction(10)), 288.0)
    found = independent_product(forecaster, 1e9, None, PilotAnswer(288.0, 0.0))
    assert found is not None
    mechanism = found.mechanism
    assert mechanism.shares is not None
    assert sum(mechanism.shares, Fraction(0)) == 1
    counts = _even(288)
    truth = np.asarray(PAIRS_ASKED.answer(counts), dtype=float)
    measured = Marginals(tables=pairs_of(SHAPE, [tuple(range(5))]))
    # Eight seeds have 0.03 of the squared error.
    error, held = np.zeros(2), np.zeros(2)
    for seed in range(8):
        for place, each in enumerate((mechanism, measured)):
            made = run(each, counts, epsilon="0.1", seed=seed)
            values = np.asarray(PAIRS_ASKED.answer(made.counts), dtype=float)
            bounds = made.errors.interval(PAIRS_ASKED, values, 0.95)
            error[place] += np.mean((values - truth) ** 2)
            held[place] += np.mean((bounds.low <= truth) & (truth <= bounds.high)) / 8
    assert error[0] < 0.3 * error[1]
    assert held.min() > 0.93


def test_announced_ranges_of_few_records_all_have_intervals():
    low, high = np.zeros((6, 5), dtype=np.int64), np.tile(SHAPE, (6, 1))
    for place, (one, other) in enumerate([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 4)]):
        high[place, [one, other]] = 2
    asked = dphist.Workload(DOMAIN, low, high)
    release = dphist.publish(dphist.Histogram(DOMAIN, _even(288)), epsilon="0.1", workload=asked)
    answers = release.answer(asked)
    assert not np.isnan(answers.low).any()
    assert (answers.low <= answers.high).all()


def test_what_was_seen_of_pairs_decides():
    domain = dphist.Domain([dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(MANY)])
    asked, nobody = dphist.Workload.marginals(domain, 2), np.zeros(MANY, dtype=np.int64)
    right = open_counts(dphist.Histogram(domain, nobody), 1, workload=asked)

    def by_chance(seen: PilotAnswer) -> bool:
        return "as if they were independent" in Auto().choose(right, seen)[1]

    near, far = (by_chance(PilotAnswer(1e3, dependence)) for dependence in (0.0, 0.3))
    assert near
    assert not far
    few, many = (by_chance(PilotAnswer(records)) for records in (100.0, 1e6))
    assert few
    assert not many


@pytest.mark.parametrize("deviation", [1e-3, 1e3])
def test_tables_are_shrunk_from_the_total_down_where_noise_hides_them(deviation):
    draws = np.random.default_rng(5)
    tables, truth = [(0, 1), (0, 2), (1, 2)], np.diag([90.0, 50.0, 30.0, 10.0])
    values = [truth + deviation * draws.standard_normal((4, 4)) for _ in tables]
    noisy = [Measured(axes, each, deviation**2, 0.0) for axes, each in zip(tables, values, strict=True)]
    found = shrink_downward(TableResiduals((4, 4, 4), noisy), tables)
    assert set(found) == {(), (0,), (1,), (2,), *tables}
    if deviation < 1.0:
        assert np.abs(found[(0, 1)] - truth).max() < 0.1
    else:
        assert np.ptp(found[(0, 1)]) < 0.2 * np.ptp(values[0])


def test_shrinking_residuals_changes_nothing_where_there_is_no_noise():
    counts = _diagonal(6000)
    plain, shrunk = (
        np.asarray(run(Residuals(shrink=shrink), counts, epsilon=10**6, seed=1).counts)
        for shrink in (False, True)
    )
    assert np.abs(plain - shrunk).max() < 1.0


def test_a_named_choice_buys_the_same_look():
    release = dphist.publish(dphist.Histogram(DOMAIN, _even(288)), epsilon="0.01", workload=PAIRS_ASKED)
    told = release.mechanism
    assert isinstance(told, Auto)
    again = Auto(look=told.look, chosen=told.chosen)
    assert run(again, _even(288), epsilon=1, seed=2).counts.shape == SHAPE


def test_boxes_of_full_cells_are_added_up_from_them():
    """By tables that move them, the cube alone."""
    domain = dphist.Domain([dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(MANY)])
    boxes = dphist.Workload.random(domain, 200, seed=5)
    even = dphist.Histogram(domain, np.ones(MANY, dtype=np.int64))
    right = open_counts(even, 1, workload=boxes)
    full, few = (Auto().choose(right, PilotAnswer(records, 0.1))[0] for records in (1e8, 1e3))
    every = tuple(range(len(MANY)))
    assert full == Marginals(tables=(every,), shares=(Fraction(1),), estimator="weighed")
    assert isinstance(few, Marginals)
    assert few.tables is not None
    assert len(few.tables) > 1


def test_ranges_inside_announced_tables_of_a_cube_are_served():
    domain = dphist.Domain([dphist.Ordinal("place", range(256)), dphist.Nominal("kind", ["a", "b", "c"])])
    people = dphist.Histogram(domain, np.full(domain.shape, 40))
    low = np.array([[first, kind] for first in range(0, 128, 9) for kind in range(3)])
    asked, off = dphist.Workload(domain, low, low + np.array([128, 1])), []
    for told in ("marginals:2 ranges:place", "marginals:2"):
        found: Any = run(
            Auto(), people, Budget.of(rho="1/200"), seed=1, workload=dphist.Workload.parse(domain, told)
        )
        bounds = found.errors.interval(asked, np.asarray(asked.answer(found.counts), dtype=float), 0.95)
        off.append(float(np.mean(bounds.high - bounds.low)))
    assert off[0] < 0.6 * off[1]
    line = dphist.Domain([domain.attributes[0]])
    counts = dphist.Histogram(line, np.full(256, 40))
    alone = dphist.publish(counts, rho="1/200", workload="marginals:1 ranges:place")
    assert "along place" in alone.note
