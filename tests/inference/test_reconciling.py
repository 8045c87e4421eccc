"""Settled tables beside sums of believed cells: the better of both is kept, and what is known well stays."""

from typing import Any

import numpy as np
import pytest

from dphist.inference.tables.fitting import rake
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.shrunk import Shrunk, TableNoise


def _tall(shape=(12, 8, 6), some=40, seed=2):
    """A cube that is empty but for a few tall cells."""
    draw = np.random.default_rng(seed)
    cube = np.zeros(shape)
    cube.flat[draw.choice(cube.size, some, replace=False)] = draw.integers(50, 400, some)
    return cube


def test_cells_give_way_by_their_doubt_and_sums_are_the_tables():
    draw = np.random.default_rng(4)
    truth = _tall() + draw.integers(0, 3, (12, 8, 6))
    off = np.where(truth > 10, 0.0, draw.exponential(2.0, truth.shape))
    tables: dict[tuple[int, ...], Any] = {
        axes: truth.sum(axis=3 - sum(axes)) for axes in [(0, 1), (0, 2), (1, 2)]
    }
    found = rake(truth + off, tables, 200, 1e-6, np.where(truth > 10, 0.01, 4.0))
    assert found.min() >= 0.0
    for axes, table in tables.items():
        np.testing.assert_allclose(found.sum(axis=3 - sum(axes)), table, atol=0.05)
    # Scaling all alike would have taken most of it off the tall cells.
    assert np.abs(found - truth)[truth > 10].max() < 0.5


def test_an_empty_cell_gives_nothing_and_may_be_filled():
    less = rake(np.array([[3.0, 0.0]]), {(0,): np.array([2.0])}, 5, 1e-9, np.array([[1.0, 9.0]]))
    assert less.tolist() == [[2.0, 0.0]]
    more = rake(np.array([[3.0, 0.0]]), {(0,): np.array([13.0])}, 5, 1e-9, np.array([[1.0, 9.0]]))
    assert more.tolist() == [[4.0, 9.0]]


@pytest.mark.parametrize("leans", [False, True])
def test_least_squares_answers_where_sums_are_biased_and_not_where_few_boxes_look_so(leans):
    # Boxes of 256 out of 1,344 cells overlap: their noise is that of five, which is 2.5 times its mean now and then.
    draw = np.random.default_rng(1)
    truth = np.full((96, 2, 7), 3.0)
    truth[:48] *= 4.0 if leans else 1.0
    published = np.full(truth.shape, truth.mean())
    seen = []
    for _ in range(60):
        noisy = truth + draw.laplace(0.0, 10.0, truth.shape)
        measured = MeasuredTables(truth.shape, ((0, 1, 2),), (noisy,), (10.0,))
        seen.append(bool(TableNoise(measured, published, Shrunk(measured, published, 2, {})).biased.any()))
    assert all(seen) if leans else not any(seen)
