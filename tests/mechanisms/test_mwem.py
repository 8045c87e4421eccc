import numpy as np

from dphist.mechanisms.mwem import MWEM, _boxes
from dphist.model.workload import Workload
from dphist.testing import open_counts, run
from dphist.testing.gates import as_histogram


def test_the_workload_says_which_ranges_matter():
    histogram = as_histogram(np.arange(8))
    workload = Workload.prefixes(histogram.domain)
    low, high = _boxes(open_counts(histogram, 1, seed=0, workload=workload))
    np.testing.assert_array_equal(high, workload.high)
    low, high = _boxes(open_counts(histogram, 1, seed=0))
    assert len(low) == 15
    low, high = _boxes(open_counts(np.zeros((4, 2), dtype=np.int64), 1, seed=0))
    assert len(low) == 7 * 3


def test_the_total_is_measured_not_known():
    """With the same ε the sum of the estimate wanders around the truth by the noise that was paid for."""
    counts = np.full(16, 100)
    totals = [run(MWEM(rounds=2), counts, 1, seed=s).counts.sum() for s in range(200)]
    assert np.std(totals) > 1
    assert abs(np.mean(totals) - 1600) < 3


def test_every_round_sharpens_the_total_by_the_sum_of_two_answers():
    estimate = run(MWEM(rounds=3), np.arange(16), 10, seed=1)
    each = 10 * (1 - 1 / 20) / 6
    precision = (10 / 20) ** 2 + 3 * each**2 / 2
    np.testing.assert_allclose(estimate.errors.scales, precision**-0.5)  # type: ignore[attr-defined]


def test_it_learns_one_busy_cell():
    counts = np.zeros(64, dtype=np.int64)
    counts[37] = 1000
    estimate = run(MWEM(rounds=8, passes=100), counts, 10, seed=0)
    assert estimate.counts[37] > 900
    assert np.delete(estimate.counts, 37).max() < 50
