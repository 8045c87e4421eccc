"""Trees of totals against dense least squares, brute force and the definition of the curve."""

import itertools

import numpy as np
import pytest

from dphist.inference.neighbours import classify
from dphist.kernels.halves import hilbert_order
from dphist.kernels.trees.passes import hand_down
from dphist.kernels.trees.pruning import mirror_threshold

# Root 0 with children 1, 2; node 1 with children 3, 4, 5.
FIRST = np.array([1, 3, -1, -1, -1, -1])
LAST = np.array([3, 6, 0, 0, 0, 0])
SIZE = np.array([5.0, 3.0, 2.0, 1.0, 1.0, 1.0])
SPLIT = np.zeros(6, dtype=bool)


def distribute(first, last, size, best, variance, cut, shrink, whole=SPLIT):
    return hand_down(first, last, size, best, variance, True, cut, shrink, whole)


def test_a_cut_never_empties_a_family():
    best = np.array([10.0, 5.0, 5.0, 1.0, 1.0, 1.0])
    totals = distribute(FIRST, LAST, SIZE, best, np.ones(6), np.full(6, 100.0), -1.0)
    assert totals[0] == pytest.approx(10)
    assert totals[3:].sum() == pytest.approx(totals[1])
    kept = distribute(
        FIRST, LAST, SIZE, np.array([10.0, 9.0, 1.0, 8.0, 0.5, 0.5]), np.ones(6), np.full(6, 2.0), -1.0
    )
    assert kept[2] == 0
    assert kept[4] == 0
    assert kept[3] == pytest.approx(10)


def test_a_whole_node_is_spread_evenly_all_the_way_down():
    best = np.array([50.0, 30.0, 20.0, 28.0, 1.0, 1.0])
    inner, root = np.arange(6) == 1, np.arange(6) == 0
    totals = distribute(FIRST, LAST, SIZE, best, np.ones(6), np.zeros(6), -1.0, inner)
    assert totals.tolist() == [50, 30, 20, 10, 10, 10]
    totals = distribute(FIRST, LAST, SIZE, best, np.ones(6), np.zeros(6), -1.0, root)
    assert totals.tolist() == [50, 30, 20, 10, 10, 10]


def test_the_mirror_cuts_noise_and_keeps_signal():
    generator = np.random.default_rng(1)
    noise = generator.laplace(0, 2**-0.5, 4000)
    assert mirror_threshold(noise) > 2
    signal = np.concatenate([noise, np.full(50, 30.0)])
    assert 1 < mirror_threshold(signal) < 30
    assert mirror_threshold(np.full(100, 9.0)) == 0


def _partitions(low, high):
    """Every dyadic partition of [low, high), as lists of blocks."""
    yield [(low, high)]
    if high - low > 1:
        middle = (low + high) // 2
        for left, right in itertools.product(_partitions(low, middle), _partitions(middle, high)):
            yield left + right


def test_the_classification_tree_is_the_best_dyadic_partition():
    generator = np.random.default_rng(2)
    for _ in range(20):
        values = generator.integers(-5, 60, 8)
        costs = {}
        for blocks in _partitions(0, 8):
            fit = np.concatenate([np.full(b - a, values[a:b].mean()) for a, b in blocks])
            costs[tuple(blocks)] = (((values - fit) ** 2).sum() + 6.0 * 9 * len(blocks), fit)
        best = min(costs.values(), key=lambda cost: cost[0])[1]
        assert np.allclose(classify(values, 9.0), np.maximum(best, 0))


@pytest.mark.parametrize("shape", [(1,), (7,), (5, 3), (8, 8), (3, 4, 5)])
def test_classification_takes_any_shape(shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    assert np.allclose(classify(values, 1e-9), values)
    assert np.allclose(classify(values, 1e9), values.mean())


@pytest.mark.parametrize("shape", [(8, 8), (4, 4, 4), (16, 16)])
def test_the_curve_steps_from_neighbour_to_neighbour(shape):
    order = hilbert_order(shape)
    assert np.array_equal(np.sort(order), np.arange(np.prod(shape)))
    places = np.stack(np.unravel_index(order, shape), axis=1)
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("shape", [(1,), (5, 1), (7, 3), (2, 3, 5)])
def test_the_curve_visits_every_cell_of_any_shape_once(shape):
    assert np.array_equal(np.sort(hilbert_order(shape)), np.arange(np.prod(shape)))
