"""Least squares over tables against the textbook's matrices, and fits that keep what they promise."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from dphist.inference.fitting import rake, settle
from dphist.inference.tables import MeasuredTables

SHAPE = (3, 4, 2)
SETS = [
    [(0, 1), (1, 2)],
    [(0,), (1, 2), (0, 1, 2)],
    [(0, 1), (0, 2), (1, 2)],
    [(0, 1, 2)],
    [(), (0,), (1,), (2,)],
]


def _measured(axes, seed):
    rng = np.random.default_rng(seed)
    values = tuple(rng.normal(20, 9, [SHAPE[a] for a in table]) for table in axes)
    return MeasuredTables(SHAPE, tuple(axes), values, tuple(rng.uniform(0.5, 3, len(axes))))


def _matrix(axes):
    """One row for each cell of each table, one column for each cell of the cube."""
    place = np.indices(SHAPE).reshape(len(SHAPE), -1)
    blocks = []
    for table in axes:
        label = np.zeros(place.shape[1], dtype=np.int64)
        for axis in table:
            label = label * SHAPE[axis] + place[axis]
        blocks.append((label == np.arange(label.max() + 1)[:, None]).astype(float))
    return blocks


def _kept(cube, axes):
    return cube.sum(axis=tuple(a for a in range(cube.ndim) if a not in axes))


def _boxes(seed, count=60):
    rng = np.random.default_rng(seed)
    low = np.zeros((count, len(SHAPE)), dtype=np.int64)
    high = np.tile(np.array(SHAPE), (count, 1))
    for box in range(count):
        for axis in np.flatnonzero(rng.random(len(SHAPE)) < 0.6):
            low[box, axis], high[box, axis] = sorted(rng.choice(SHAPE[axis] + 1, 2, replace=False))
    return low, high


@pytest.mark.parametrize("axes", SETS, ids=str)
def test_answers_and_variances_are_those_of_weighted_least_squares(axes):
    tables = _measured(axes, seed=1)
    blocks = _matrix(axes)
    weights = np.concatenate(
        [np.full(len(b), 0.5 / s**2) for b, s in zip(blocks, tables.scales, strict=True)]
    )
    matrix = np.concatenate(blocks)
    noisy = np.concatenate([values.reshape(-1) for values in tables.values])
    covariance = np.linalg.pinv(matrix.T @ (weights[:, None] * matrix))
    best = covariance @ (matrix.T @ (weights * noisy))
    low, high = _boxes(seed=2)
    answers, (variance, largest) = tables.answers(low, high), tables.variances(low, high)
    measured = tables.measured(low, high)
    assert measured.any()
    for box in range(len(low)):
        inside = np.zeros(SHAPE)
        inside[tuple(slice(a, b) for a, b in zip(low[box], high[box], strict=True))] = 1.0
        question = inside.reshape(-1)
        # Measured means just this: the question is a combination of what was measured.
        assert measured[box] == np.allclose(matrix.T @ np.linalg.pinv(matrix.T) @ question, question)
        if not measured[box]:
            assert np.isnan(answers[box])
            continue
        assert answers[box] == pytest.approx(question @ best, abs=1e-9)
        assert variance[box] == pytest.approx(question @ covariance @ question, abs=1e-9)
        draws = np.abs(covariance @ question @ matrix.T * weights) / np.sqrt(2 * weights)
        assert largest[box] >= draws.max() - 1e-9 or largest[box] == pytest.approx(np.sqrt(variance[box] / 2))


@pytest.mark.parametrize("axes", SETS, ids=str)
def test_covered_tables_agree_with_each_other(axes):
    tables = _measured(axes, seed=3)
    for table in axes:
        for place, axis in enumerate(table):
            smaller = tuple(a for a in table if a != axis)
            assert np.allclose(tables.table(table).sum(axis=place), tables.table(smaller))


def test_what_is_settled_agrees_and_is_nowhere_negative():
    rng = np.random.default_rng(4)
    truth = rng.poisson(3, SHAPE).astype(float)
    wanted = list(combinations(range(3), 2))
    values = tuple(
        truth.sum(axis=3 - sum(table)) + rng.laplace(0, 4, [SHAPE[a] for a in table]) for table in wanted
    )
    tables = MeasuredTables(SHAPE, tuple(wanted), values, (4.0,) * 3)
    settled = settle(SHAPE, wanted, tables.table)
    assert min(table.min() for table in settled.values()) >= 0.0
    for table in wanted:
        for place in range(2):
            assert np.allclose(settled[table].sum(axis=place), settled[(table[1 - place],)], atol=0.1)
    assert settled[(0,)].sum() == pytest.approx(float(settled[()]))


def test_settling_changes_nothing_that_agrees_already():
    truth = np.random.default_rng(5).poisson(30, SHAPE).astype(float)
    sums = {t: _kept(truth, t) for n in range(3) for t in combinations(range(3), n)}
    settled = settle(SHAPE, [(0, 1), (1, 2)], sums.__getitem__)
    assert all(np.allclose(settled[table], sums[table]) for table in settled)


def test_raking_finds_the_tables_and_keeps_what_they_say_nothing_of():
    start = np.random.default_rng(6).uniform(1, 9, SHAPE)
    truth = np.random.default_rng(7).poisson(20, SHAPE).astype(float)
    cube = rake(start, {(0,): truth.sum(axis=(1, 2)), (2,): truth.sum(axis=(0, 1))}, 200, 1e-10)
    assert np.allclose(cube.sum(axis=(1, 2)), truth.sum(axis=(1, 2)))
    # Raking multiplies by a factor for each value of an attribute: cross ratios along the others stay.
    ratios = cube / start
    for one, two in pairwise(range(4)):
        assert np.allclose(ratios[:, one], ratios[:, two])
