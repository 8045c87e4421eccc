"""Least squares by residuals is least squares by matrices, variances included, whatever was measured."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dphist
from dphist.inference.intervals import Spread, half_widths, normal_quantile
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.residuals import Measured, TableResiduals, bounded_kinds
from dphist.mechanisms import Residuals
from dphist.mechanisms.wide.plan import wanted_tables
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run

SHAPE = (2, 3, 2)
PLANE = Domain([Ordinal("x", range(3)), Ordinal("y", range(3))])
Array = np.ndarray[Any, Any]


def rows(axes: tuple[int, ...], differences: tuple[int, ...] = (), residual: bool = False) -> Array:
    """The matrix of a measurement over the flat cells of the whole cube."""
    parts = []
    for axis, n in enumerate(SHAPE):
        if axis not in axes:
            parts.append(np.ones((1, n)))
        elif axis in differences:
            parts.append(np.array([[1.0, -1.0]]))
        elif residual:
            parts.append(np.eye(n) - 1.0 / n)
        else:
            parts.append(np.eye(n))
    return reduce(np.kron, parts)


CASES: list[list[tuple[Any, ...]]] = [
    [((0, 1), (), False, 2.0), ((1, 2), (), False, 3.0), ((), (), False, 0.5)],
    [((0, 1), (0,), False, 2.0), ((1,), (), False, 1.0), ((1, 2), (2,), False, 5.0)],
    [(axes, (), True, 1.0 + len(axes)) for order in range(3) for axes in combinations(range(3), order)],
    [((0, 2), (0, 2), False, 2.0), ((0,), (0,), False, 1.0), ((2,), (2,), False, 4.0), ((), (), False, 1.0)],
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_least_squares_and_variances_are_those_of_the_matrices(case: int) -> None:
    rng = np.random.default_rng(case)
    matrices, noisy, weights, measured = [], [], [], []
    for axes, differences, residual, variance in CASES[case]:
        matrix = rows(axes, differences, residual)
        values = matrix @ rng.integers(0, 50, 12) + rng.normal(size=len(matrix))
        sides = [1 if axis in differences else SHAPE[axis] for axis in axes]
        measured.append(
            Measured(axes, values.reshape(sides), variance, math.sqrt(variance / 2), differences, residual)
        )
        matrices.append(matrix)
        noisy.append(values)
        weights.append(np.full(len(matrix), 1.0 / variance))
    A, y, w = np.concatenate(matrices), np.concatenate(noisy), np.concatenate(weights)
    known = TableResiduals(SHAPE, measured)
    # Least squares, least in norm where nothing was measured; covered questions do not depend on that choice. A
    # residual's noise has one variance on all of its entries, which is as good as on its space alone.
    inverse = np.linalg.pinv(A.T @ (w[:, None] * A))
    best = inverse @ A.T @ (w * y)
    checked = 0
    for order in range(4):
        for axes in combinations(range(3), order):
            if not known.covers(axes):
                continue
            checked += 1
            matrix = rows(axes)
            assert np.allclose(known.table(axes).reshape(-1), matrix @ best)
            variances = np.diag(matrix @ inverse @ matrix.T)
            assert np.allclose(known.cell_variance(axes), variances)
    assert checked >= 4
    # Boxes: variance exactly, and one draw never weighs more than it is said to.
    every = np.stack(np.unravel_index(np.arange(6 * 3), (3, 6)), axis=1)
    spans = {2: [(0, 1), (1, 2), (0, 2)], 3: [(0, 1), (1, 3), (0, 3), (1, 2), (0, 2), (2, 3)]}
    low = np.array([[spans[2][i][0], spans[3][j][0], 0] for i, j in every])
    high = np.array([[spans[2][i][1], spans[3][j][1], 2] for i, j in every])
    variance, largest = known.spread(low, high)
    cells = np.stack(np.unravel_index(np.arange(12), SHAPE), axis=1)
    answers = known.answers(low, high)
    for place in range(len(low)):
        box = ((cells >= low[place]) & (cells < high[place])).all(axis=1).astype(float)
        if np.isnan(answers[place]):
            continue
        assert np.isclose(answers[place], box @ best)
        assert np.isclose(variance[place], box @ inverse @ box)
        weight = np.abs(box @ inverse @ A.T * w) * np.sqrt(1 / w / 2)
        assert largest[place] >= weight.max() - 1e-9


def test_what_no_table_holds_is_not_covered() -> None:
    known = TableResiduals((4,) * 50, [Measured((3, 7), np.ones((4, 4)), 1.0, 0.0)])
    assert known.covers((7,))
    assert not known.covers((3, 8))
    low, high = np.zeros((2, 50), dtype=np.int64), np.full((2, 50), 4)
    high[0, [3, 7]] = 2
    high[1, [3, 8]] = 2
    assert known.answers(low, high)[0] == pytest.approx(4.0)
    assert np.isnan(known.answers(low, high)[1])
    assert np.isnan(known.spread(low, high)[0][1])
    assert [axes for axes, _ in bounded_kinds(known.shape, low, high)] == [(3, 8), (3, 7)]


def test_wanted_tables() -> None:
    assert wanted_tables((3, 2, 1, 5), [(0,), (1, 0), (2, 3), (2,)]) == ((0, 1), (3,))
    assert wanted_tables((1, 1), [(0, 1)]) == ((),)


@pytest.mark.parametrize("budget", ["1", "1/2", "3"])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_intervals_of_one_small_table_hold_as_often_as_they_say(budget: str, confidence: float) -> None:
    """Noise of whole numbers: between two of them nothing is gained, so the width is the next one up."""
    scale = 1.0 / float(Fraction(budget))
    known = TableResiduals((3, 3), [Measured((0, 1), np.zeros((3, 3)), 2.0 * scale**2, scale)])
    chance = math.exp(-1.0 / scale)
    for axes, cells in (((0, 1), 1), ((0,), 3), ((1,), 3)):
        cell = np.array([[1 if axis in axes else 3 for axis in range(2)]])
        asked = Workload(PLANE, np.zeros_like(cell), cell)
        interval = ResidualNoise(known).interval(asked, np.zeros(1), confidence)
        width = math.floor(float(interval.high.max()) + 1e-9)
        # The law of a sum of so many draws, by convolution.
        one = (1 - chance) / (1 + chance) * chance ** np.abs(np.arange(-80, 81))
        law = one
        for _ in range(cells - 1):
            law = np.convolve(law, one)
        middle = law.size // 2
        assert law[middle - width : middle + width + 1].sum() >= confidence - 1e-6


def test_a_bound_on_the_heaviest_draw_never_makes_an_interval_too_narrow() -> None:
    """Two hundred small draws, of which one is bounded by as much as all of them together."""
    spread = Spread(np.array([2.0]), np.array([1.0]))
    assert half_widths(spread, 0.8)[0] >= normal_quantile(0.8) * math.sqrt(2.0)
    assert half_widths(spread, 0.95)[0] > normal_quantile(0.95) * math.sqrt(2.0)


@pytest.mark.filterwarnings("ignore::dphist.errors.CustodyWarning")
@pytest.mark.parametrize("mechanism", ["residuals", "mixture"])
def test_a_cube_has_the_tables_that_were_measured_however_strongly_attributes_depend(mechanism: str) -> None:
    domain = dphist.Domain(
        [dphist.Ordinal(name, range(size)) for name, size in zip("abc", (9, 12, 6), strict=True)]
    )
    a, b, c = np.indices(domain.shape)
    counts = np.rint(
        3000 * np.exp(-2 * np.abs(a - 0.7 * b) - 1.5 * ((a + c) % 3) - 2 * ((b + c) % 2))
    ).astype(int)
    release = dphist.publish(
        dphist.Histogram(domain, counts), epsilon=10**6, mechanism=mechanism, workload="marginals:2"
    )
    for axis, left in enumerate(("bc", "ac", "ab")):
        assert np.abs(release.project(*left).counts - counts.sum(axis=axis)).max() < 0.01


def test_shrunk_tables_agree_and_are_nearer_where_attributes_go_by_chance() -> None:
    counts = np.random.default_rng(5).poisson(np.multiply.outer(np.arange(1, 9), np.full((7, 6), 2.0)))
    truth: dict[tuple[int, ...], Any] = {
        axes: counts.sum(axis=3 - sum(axes)) for axes in combinations(range(3), 2)
    }
    off = []
    for shrink in (True, False):
        found: Any = run(Residuals(shrink=shrink), counts, "1/10", seed=3)
        tables = found.tables
        off.append(sum(float(((tables[axes] - exact) ** 2).sum()) for axes, exact in truth.items()))
        assert np.allclose(tables[0, 1].sum(axis=0), tables[1, 2].sum(axis=1), atol=1e-3)
    assert off[0] < 0.7 * off[1]
