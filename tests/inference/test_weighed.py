"""Intervals of single cells gain where a trend or a profile was read, and hold."""

from typing import cast

import numpy as np
import pytest

from dphist import Domain, Histogram, Ordinal, load, publish
from dphist.inference.predictive.weighed import WeighedErrors
from dphist.mechanisms import Posterior
from dphist.mechanisms.spec import parse
from dphist.model.workload import Workload
from dphist.testing import run

N = 364
CELLS = np.arange(N)
WEEKS = np.where(CELLS % 7 < 5, 1.0, 0.3) * (1.2 + np.sin(CELLS / 60))
DAYS = Domain([Ordinal("day", range(N))])
ALL = Workload.cells(DAYS)


def _cells(expected, weighed, seeds=4, epsilon="0.05"):
    """How often 95 % intervals hold, and their width."""
    mechanism = Posterior(fine=True, structural=True, hidden=True, weighed=weighed)
    hits, widths = [], []
    for seed in range(seeds):
        counts = np.random.default_rng(seed).poisson(expected)
        estimate = run(mechanism, counts, epsilon, seed=seed)
        found = estimate.errors.interval(ALL, estimate.counts, 0.95)
        hits.append(np.mean((found.low <= counts) & (counts <= found.high)))
        widths.append(np.mean(found.high - found.low))
    return np.mean(hits), np.mean(widths)


def test_a_year_of_weeks_has_narrower_intervals_that_hold():
    # Fixed noise.
    before, after = (_cells(100 * WEEKS, weighed) for weighed in (False, True))
    assert after[1] < 0.75 * before[1]
    assert after[0] > 0.94


def test_half_a_year_of_weeks_does_not_vouch_for_the_other():
    # The second half is rough: what holds on average must hold there as well.
    rough = np.where(CELLS < N // 2, WEEKS, np.exp(np.random.default_rng(2).normal(0, 0.8, N)))
    assert _cells(100 * rough, True)[0] > 0.93


def test_where_no_trend_is_heard_nothing_changes():
    steps = np.repeat(np.random.default_rng(3).gamma(1.0, 300.0, 14), 26)
    one, two = (
        run(Posterior(structural=True, hidden=True, weighed=each), steps.astype(int), "0.1", seed=1)
        for each in (False, True)
    )
    assert cast(WeighedErrors, two.errors).heard == 0.0
    left, right = (each.errors.interval(ALL, each.counts, 0.95) for each in (one, two))
    assert (left.high == right.high).all()


def test_a_day_far_from_its_week_keeps_a_wide_interval():
    counts = np.rint(100 * WEEKS).astype(np.int64)
    counts[200] += 400
    before, after = (
        run(Posterior(structural=True, hidden=True, weighed=each), counts, "0.05", seed=1)
        for each in (False, True)
    )
    one, two = (each.errors.interval(ALL, each.counts, 0.95) for each in (before, after))
    assert one.high[200] == two.high[200]
    assert np.mean(two.high - two.low) < 0.95 * np.mean(one.high - one.low)


def test_sums_are_left_to_the_law():
    weeks = Workload(DAYS, CELLS[:-7, None], CELLS[7:, None])
    counts = np.rint(100 * WEEKS).astype(np.int64)
    found = [
        each.errors.interval(weeks, weeks.answer(each.counts), 0.95).high
        for each in (
            run(Posterior(structural=True, hidden=True, weighed=weighed), counts, "0.05", seed=1)
            for weighed in (False, True)
        )
    ]
    assert (found[0] == found[1]).all()


def test_it_is_an_option_that_is_saved_and_replayed(tmp_path):
    assert parse("posterior(weighed=true)") == Posterior(weighed=True)
    counts = np.rint(100 * WEEKS).astype(np.int64)
    release = publish(Histogram(DAYS, counts), epsilon="0.05", workload="cells")
    path = tmp_path / "days.parquet"
    release.save(path)
    again = load(path)
    again.verify()
    one, two = (each.answer(ALL) for each in (release, again))
    assert one.high == pytest.approx(two.high)
