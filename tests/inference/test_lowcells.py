"""Whether low cells hold anything, and in which of two ways a cube that was measured alone is read then."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.inference.neighbours.lowcells import only_tall_cells_hold
from dphist.inference.tables.noise import TableNoise
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.posterior import Posterior
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run

SHAPE = (16, 12, 8)
ALONE = Marginals(tables=((0, 1, 2),), shares=(Fraction(1),), estimator="weighed")


def _tall():
    counts = np.zeros(SHAPE, dtype=np.int64)
    counts[3, 2:6, 1], counts[9, 4, 2:5] = 900, 400
    return counts


def _low():
    return np.random.default_rng(5).poisson(1.5, SHAPE)


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_hides_nothing_adds_up_to_nothing(seed):
    noise = np.random.default_rng(seed).laplace(0.0, 10.0, SHAPE)
    assert only_tall_cells_hold(_tall() + noise, 200.0)
    assert not only_tall_cells_hold(10.0 * _low() + noise, 200.0)
    # Empty land may look emptier than it is.
    assert only_tall_cells_hold(noise - 10.0, 200.0)
    # A full cube has no low cells.
    assert not only_tall_cells_hold(noise + 500.0, 200.0)


def test_tall_cells_among_empty_ones_are_read_by_their_neighbours():
    tall, beside = (run(each, _tall(), 1, seed=4) for each in (ALONE, Posterior()))
    assert np.array_equal(tall.counts, beside.counts)
    rows = Workload.marginals(
        Domain([Ordinal(name, range(n)) for name, n in zip("xyz", SHAPE, strict=True)]), 1
    )
    said = rows.answer(tall.counts)
    one, other = (each.errors.interval(rows, said, 0.9) for each in (tall, beside))
    assert np.array_equal(one.low, other.low)
    assert np.array_equal(one.high, other.high)
    assert "only tall cells hold anything" in tall.note
    assert isinstance(run(ALONE, _low(), 1, seed=4).errors, TableNoise)


def test_that_is_nearer_than_what_sums_suggest():
    # With the total measured beside the cells, sums are heard whatever low cells hold.
    heard = Marginals(
        tables=((), (0, 1, 2)), shares=(Fraction(1, 100), Fraction(99, 100)), estimator="weighed"
    )

    def off(mechanism):
        found = [run(mechanism, _tall(), 1, seed=seed).counts for seed in range(4)]
        return np.mean([(each - _tall()) ** 2 for each in found])

    assert off(ALONE) < 0.5 * off(heard)
