"""A first look at a cube: what it costs, and that it tells cubes whose attributes depend on each other from others."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.mechanisms.choosing.pilot import BLOCKS, TOTAL, PilotQuery
from dphist.testing import open_counts

SHAPE = (20, 6, 5)


def _apart(records):
    one, two, three = (np.arange(1.0, n + 1.0) for n in SHAPE)
    weights = one[:, None, None] * two[:, None] * three
    return np.rint(weights / weights.sum() * records).astype(np.int64)


def _together(records):
    counts = np.zeros(SHAPE, dtype=np.int64)
    for place in range(20):
        counts[place, place * 6 // 20, place * 5 // 20] = records // 20
    return counts


def test_it_spends_three_percent_and_no_more():
    right = open_counts(_apart(10**5), 1)
    _, rest = PilotQuery().at(right)
    assert rest.unit_scale == 1 / (1 - TOTAL - BLOCKS)
    assert Fraction(1, 30) > TOTAL + BLOCKS


def test_it_tells_how_many_and_whether_they_depend_on_each_other():
    # Noise of the total has a scale of 128: a chance below 1e-6 to be off by 4,000.
    for counts, low, high in ((_apart(10**6), 0.0, 0.001), (_together(10**6), 0.15, 0.6)):
        seen, _ = PilotQuery().at(open_counts(counts, 1))
        assert seen.records == pytest.approx(counts.sum(), abs=4000)
        assert seen.dependence is not None
        assert low <= seen.dependence <= high
