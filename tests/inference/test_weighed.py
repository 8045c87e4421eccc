"""Intervals of single cells gain where a trend or a profile was read, and hold."""

from typing import cast

import numpy as np
import pytest

from dphist import Domain, Histogram, Ordinal, load, publish
from dphist.inference.predictive.hidden import HiddenErrors
from dphist.inference.predictive.weighed import WeighedErrors
from dphist.mechanisms import Posterior
from dphist.model.workload import Workload
from dphist.testing import run

N = 364
CELLS = np.arange(N)
WEEKS = np.where(CELLS % 7 < 5, 1.0, 0.3) * (1.2 + np.sin(CELLS / 60))
DAYS = Domain([Ordinal("day", range(N))])
ALL = Workload.cells(DAYS)


def _hidden_alone(errors):
    """The same errors without what Stein's identity tells of single cells."""
    assert isinstance(errors, WeighedErrors)
    return HiddenErrors(
        *(errors.make, errors.prove, errors.counts, errors.pruned, errors.told),
        noisy=errors.noisy,
        noise=errors.noise,
        total=errors.total,
    )


def _both(counts, workload=ALL, epsilon="0.05", seed=1):
    """95 % intervals without and with what the trend tells."""
    estimate = run(Posterior(), counts, epsilon, seed=seed)
    answers = workload.answer(estimate.counts)
    return [
        errors.interval(workload, answers, 0.95)
        for errors in (_hidden_alone(estimate.errors), estimate.errors)
    ]


def _cells(expected, seeds=4):
    """How often 95 % intervals hold, and their width: without and with what the trend tells."""
    hits, widths = [], []
    for seed in range(seeds):
        counts = np.random.default_rng(seed).poisson(expected)
        both = _both(counts, seed=seed)
        hits.append([np.mean((found.low <= counts) & (counts <= found.high)) for found in both])
        widths.append([np.mean(found.high - found.low) for found in both])
    return np.mean(hits, axis=0), np.mean(widths, axis=0)


def test_a_year_of_weeks_has_narrower_intervals_that_hold():
    # Fixed noise.
    held, width = _cells(100 * WEEKS)
    assert width[1] < 0.75 * width[0]
    assert held[1] > 0.94


def test_half_a_year_of_weeks_does_not_vouch_for_the_other():
    # The second half is rough: what holds on average must hold there as well.
    rough = np.where(CELLS < N // 2, WEEKS, np.exp(np.random.default_rng(2).normal(0, 0.8, N)))
    assert _cells(100 * rough)[0][1] > 0.93


def test_where_no_trend_is_heard_nothing_changes():
    steps = np.repeat(np.random.default_rng(3).gamma(1.0, 300.0, 14), 26).astype(int)
    assert cast(WeighedErrors, run(Posterior(), steps, "0.1", seed=1).errors).heard == 0.0
    left, right = _both(steps, epsilon="0.1")
    assert (left.high == right.high).all()


def test_a_day_far_from_its_week_keeps_a_wide_interval():
    counts = np.rint(100 * WEEKS).astype(np.int64)
    counts[200] += 400
    one, two = _both(counts)
    assert one.high[200] == two.high[200]
    assert np.mean(two.high - two.low) < 0.95 * np.mean(one.high - one.low)


def test_sums_are_left_to_the_law():
    weeks = Workload(DAYS, CELLS[:-7, None], CELLS[7:, None])
    one, two = _both(np.rint(100 * WEEKS).astype(np.int64), weeks)
    assert (one.high == two.high).all()


def test_what_was_heard_is_saved_and_replayed(tmp_path):
    counts = np.rint(100 * WEEKS).astype(np.int64)
    release = publish(Histogram(DAYS, counts), epsilon="0.05", workload="cells")
    path = tmp_path / "days.parquet"
    release.save(path)
    again = load(path)
    again.verify()
    one, two = (each.answer(ALL) for each in (release, again))
    assert one.high == pytest.approx(two.high)
