from fractions import Fraction

import numpy as np
import pytest

from dphist.mechanisms.isotonic import Isotonic
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing import run
from dphist.testing.gates import as_histogram


def test_converges_on_counts_that_rise():
    counts = np.array([0, 0, 3, 3, 8, 100, 2**40])
    np.testing.assert_array_equal(run(Isotonic(), counts, 10**6, seed=0).counts, counts)


def test_unattributed_is_the_multiset_of_counts():
    domain = Domain([Nominal("place", ["a", "b", "c"]), Ordinal("age", range(2))])
    histogram = Histogram(domain, np.array([[5, 0], [2, 2], [9, 1]]))
    sorted_counts = histogram.unattributed()
    assert sorted_counts.counts.tolist() == [0, 1, 2, 2, 5, 9]
    assert sorted_counts.domain == Domain([Ordinal("rank", range(6))])
    assert histogram.counts[0, 0] == 5


def test_sorting_keeps_one_step_one_step():
    """All steps from random multisets: exactly one sorted cell moves, by one."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 5, 8)
        domain = Domain([Ordinal("x", range(8))])
        before = Histogram(domain, counts).unattributed().counts
        for cell in range(8):
            after = Histogram(domain, counts + (np.arange(8) == cell)).unattributed().counts
            assert sorted(np.abs(after - before).tolist()) == [0] * 7 + [1]


@pytest.mark.parametrize("guaranteed", [False, True])
def test_intervals_hold_on_counts_that_fall(guaranteed):
    """What is published is far off there; around that, intervals held in a third of ranges, guaranteed or not."""
    counts = np.arange(120, 0, -2)
    asked = Workload.random(as_histogram(counts).domain, 80, seed=1)
    truth, held = asked.answer(counts), []
    for seed in range(16):
        estimate = run(Isotonic(), counts, Fraction(1, 2), seed=seed)
        published = np.asarray(asked.answer(estimate.counts), dtype=np.float64)
        found = estimate.errors.interval(asked, published, 0.95, guaranteed=guaranteed)
        assert ((found.low <= published) & (published <= found.high)).all()
        held.append(np.mean((found.low <= truth) & (truth <= found.high)))
    assert np.mean(held) >= 0.95
