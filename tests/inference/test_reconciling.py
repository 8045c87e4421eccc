"""Settled tables beside sums of believed cells: the better of both is kept, and what is known well stays."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist.inference.tables.departures import Shrunk
from dphist.inference.tables.fitting import rake, reconcile
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.noise import TableNoise
from dphist.inference.tables.posterior import Observed, _tails, posteriors
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


@pytest.mark.parametrize("biased", [False, True])
def test_tables_lean_on_cells_that_are_right_and_not_on_those_that_are_not(biased):
    truth = _tall()
    noisy = truth + np.random.default_rng(5).laplace(0.0, 10.0, truth.shape)
    measured = MeasuredTables(truth.shape, ((0, 1, 2),), (noisy,), (10.0,))
    settled = {(): truth.sum(), (0,): truth.sum(axis=(1, 2)), (1,): truth.sum(axis=(0, 2))}
    settled[(0, 1)] = table = noisy.sum(axis=2)
    cells = 0.5 * truth[::-1] if biased else truth
    follows = {(0, 1): 200.0 * noisy.size, (0, 1, 2): 0.0}
    found = reconcile(measured, settled, ((0, 1),), cells, follows)[(0, 1)]
    right = truth.sum(axis=2)
    before, after = (float(np.mean((each - right) ** 2)) for each in (table, found))
    assert after < (1.05 if biased else 0.1) * before


@pytest.mark.parametrize("draws", [1.0, 4.0, 32.0])
def test_sums_of_laplace_draws_keep_their_tails(draws):
    variances, often = _tails(draws)
    assert often.sum() == pytest.approx(1.0)
    assert often @ variances == pytest.approx(1.0)
    # The fourth moment of a sum of k Laplace draws of variance 1/k each is 3 + 3/k.
    assert 3.0 * (often @ variances**2) == pytest.approx(3.0 + 3.0 / draws)


def test_full_cells_tell_how_far_they_depart_though_most_are_empty():
    draw = np.random.default_rng(6)
    model = np.full((100, 60, 4), 0.01)
    model[:4, :10] = 60.0
    truth = model.copy()
    truth[:4, :10] += draw.normal(0.0, 20.0, truth[:4, :10].shape)
    noisy = truth + draw.laplace(0.0, 10.0 / np.sqrt(2.0), truth.shape)
    errors = []
    for sized in (False, True):
        found = posteriors([Observed(noisy, 100.0, model, laplace=True)], sized=sized)[0].mean
        errors.append(float(np.mean((found - truth)[:4, :10] ** 2)))
    # The better mix of both is off by 80 on average.
    assert errors[1] < min(0.95 * errors[0], 110.0)


@pytest.mark.parametrize("left", [0.6, 0.4])
def test_sums_of_shrunk_cells_answer_unless_cells_hardly_left_what_was_measured(left):
    draw = np.random.default_rng(7)
    truth = np.full((16, 12, 8), 20.0)
    noise = draw.laplace(0.0, 10.0, truth.shape)
    measured = MeasuredTables(truth.shape, ((0, 1, 2),), (truth + noise,), (10.0,))
    # Of the noise so much went, in squares.
    counts = truth + (1.0 - np.sqrt(left)) * noise
    errors = TableNoise(measured, counts, Shrunk(measured, counts, 2, {}))
    domain = Domain([Ordinal(name, range(size)) for name, size in zip("xyz", truth.shape, strict=True)])
    boxes = Workload.random(domain, 50, seed=1)
    summed = np.asarray(boxes.answer(counts), dtype=np.float64)
    several = boxes.cells_in_each > 1
    plain = np.maximum(boxes.answer(truth + noise), 0.0)
    answers = errors.answer(boxes, summed)
    np.testing.assert_allclose(answers[several], (summed if left > 0.5 else plain)[several])


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
        seen.append(bool(TableNoise(measured, published, Shrunk(measured, published, 2, {}))._biased.any()))
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
