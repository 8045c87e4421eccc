"""Settled tables beside sums of believed cells: the better of both is kept, and what is known well stays."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist.inference.tables.fitting import rake
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.shrunk import Shrunk, TableNoise
from dphist.mechanisms import Marginals
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run


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


def test_cells_that_go_by_chance_are_off_by_sampling_at_least():
    # Noise of 16 hides that cells of 120 records vary by 11, as those of a sample do: the law of departures knows.
    domain = Domain([Ordinal("x", range(30)), Ordinal("y", range(52))])
    draws = np.random.default_rng(4)
    counts = draws.poisson(np.outer(draws.dirichlet(np.full(30, 5.0)), np.full(52, 1 / 52)) * 190_000)
    mechanism = Marginals(
        tables=((0,), (1,), (0, 1)),
        shares=(Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)),
        estimator="weighed",
    )
    found: Any = run(mechanism, counts, epsilon="1/10", seed=3)
    truth = counts.reshape(-1)
    cells = np.asarray(found.counts).reshape(-1)
    within = found.errors.interval(Workload.cells(domain), cells, 0.95)
    assert np.mean((within.low <= truth) & (truth <= within.high)) > 0.93


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


def test_a_cube_alone_is_moved_to_its_total_and_not_to_tables_of_its_own_cells():
    # Groups of people in 1,296 cells of eight attributes, one noise scale of records each.
    draw = np.random.default_rng(3)
    shape = (3, 3, 3, 3, 2, 2, 2, 2)
    weights = np.zeros(shape)
    for _ in range(6):
        part = np.ones((1,) * len(shape))
        for axis, size in enumerate(shape):
            sides = [-1 if other == axis else 1 for other in range(len(shape))]
            part = part * draw.dirichlet(np.full(size, 0.4)).reshape(sides)
        weights += part
    cube = draw.multinomial(1000, (weights / weights.sum()).reshape(-1)).reshape(shape)
    every = tuple(range(len(shape)))
    alone = Marginals(tables=(every,), shares=(Fraction(1),), estimator="weighed")
    squares = [
        np.mean((np.asarray(run(alone, cube, epsilon=1, seed=seed).counts) - cube) ** 2) for seed in range(4)
    ]
    # Plain noise has 1.36; moved to tables of two and three attributes, cells had 1.05.
    assert np.sqrt(np.mean(squares)) < 0.8
