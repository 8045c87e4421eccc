"""Budgets over levels: the closed form is the error of least squares, and the search finds the best shares."""

import itertools

import numpy as np
import pytest

from dphist.inference.trees import TreeNoise
from dphist.kernels.trees.shares import best_shares, range_error
from dphist.mechanisms.tree import complete_tree
from dphist.mechanisms.trees.shares import box_energy, halvings
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload

FAR = np.array([1e12])
ONE = np.ones(1)


def _domain(shape):
    return Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(shape)])


def contrasts(shape, sides, low, high):
    return np.diff([box_energy(shape, side, low, high) for side in sides], prepend=0.0)


def _cells(sides):
    return np.array([np.prod(side) for side in sides], dtype=np.float64)


@pytest.mark.parametrize("shape", [(16, 16), (32, 4), (8, 8, 8), (64,)])
def test_the_closed_form_is_the_error_of_least_squares(shape):
    sides = halvings(shape)
    workload = Workload.random(_domain(shape), 200, seed=3)
    shares = np.linspace(1, 2, len(sides))
    shares /= shares.sum()
    level = np.repeat(np.arange(len(sides)), [np.prod(shape) // int(c) for c in _cells(sides)])
    variance = 2.0 / shares[level] ** 2
    tree = complete_tree(shape, sides, np.zeros(level.size), variance)
    exact = TreeNoise(tree).spread(workload).variance.mean()
    weight = contrasts(shape, sides, workload.low, workload.high)
    # Counts far from even: only noise is left.
    found = range_error(weight, _cells(sides), np.zeros(len(sides)), shares, 1.0, FAR, ONE, 0.0)
    assert found == pytest.approx(exact, rel=1e-6)


def test_what_is_not_measured_costs_what_it_departs_from_even():
    weight, cells, none = np.array([1.0, 2.0, 3.0]), np.array([16.0, 4.0, 1.0]), np.zeros(3)
    error = range_error(weight, cells, none, none, 1.0, np.array([0.5]), ONE, 0.3)
    assert error == pytest.approx(0.25 * (16 + 8 + 3))


@pytest.mark.parametrize("density", [0.05, 1.0, 1e6])
@pytest.mark.parametrize("length", [2, 8, 16])
def test_the_search_finds_the_best_shares(density, length):
    sides = halvings((16, 16))
    low = np.array([[a, b] for a in range(17 - length) for b in range(17 - length)])
    weight = contrasts((16, 16), sides, low, low + length)
    cells, none = _cells(sides), np.zeros(len(sides))
    densities = np.array([density])
    lowest, shares = best_shares(weight, cells, none, 1.0, 0, 1.0, densities, ONE, 0.3)
    assert shares.sum() == pytest.approx(1.0)
    grid = 12
    for parts in itertools.product(range(grid + 1), repeat=len(sides) - 1):
        if sum(parts) <= grid:
            tried = np.array([*parts, grid - sum(parts)]) / grid
            assert lowest <= 1.01 * range_error(weight, cells, none, tried, 1.0, densities, ONE, 0.3)
