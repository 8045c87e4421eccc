"""Classification by brute force, and the definition of the curve."""

import itertools

import numpy as np
import pytest

from dphist.inference.neighbours import classify
from dphist.kernels.halves import hilbert_order


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
