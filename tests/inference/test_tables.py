"""Least squares over tables against the textbook's matrices, and fits that keep what they promise."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from dphist.inference.estimate import Interval, nearest_whole
from dphist.inference.tables.fitting import rake, settle
from dphist.inference.tables.measured import MeasuredTables
from dphist.mechanisms import Marginals
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing.gates import run

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
    answers, (variance, largest) = tables.answers(low, high), tables.spread(low, high)
    measured = ~np.isnan(variance)
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


def test_raking_finds_the_tables_and_keeps_what_they_say_nothing_of():
    start = np.random.default_rng(6).uniform(1, 9, SHAPE)
    truth = np.random.default_rng(7).poisson(20, SHAPE).astype(float)
    cube = rake(start, {(0,): truth.sum(axis=(1, 2)), (2,): truth.sum(axis=(0, 1))}, 200, 1e-10)
    assert np.allclose(cube.sum(axis=(1, 2)), truth.sum(axis=(1, 2)))
    # Raking multiplies by a factor for each value of an attribute: cross ratios along the others stay.
    ratios = cube / start
    for one, two in pairwise(range(4)):
        assert np.allclose(ratios[:, one], ratios[:, two])


def test_bounds_of_tables_are_whole_counts_and_hold_where_noise_is_whole():
    # Two cells have noise of deviation 1: 1.96 either way would allow for one whole step and hold in 0.87.
    domain = Domain([Nominal("a", ["x", "y"]), Nominal("b", ["x", "y"])])
    counts = np.array([[9, 4], [7, 12]])
    rows = Workload.marginals(domain, 1)
    truth, held, wide = rows.answer(counts), [], []
    for seed in range(100):
        estimate = run(Marginals(tables=((0, 1),)), Histogram(domain, counts), Budget.of(rho=1), seed=seed)
        found = estimate.errors.interval(rows, rows.answer(estimate.counts), 0.95)
        held.append(float(((found.low <= truth) & (truth <= found.high)).mean()))
        wide.append(float((found.high - found.low).mean()))
    assert np.mean(held) > 0.95
    assert np.mean(wide) == pytest.approx(4.0, abs=0.1)


def test_whole_bounds_hold_whenever_others_did_and_what_is_published():
    draws = np.random.default_rng(4)
    low = draws.uniform(0.0, 9.0, 2_000)
    high, published = low + draws.uniform(0.0, 3.0, 2_000), draws.uniform(0.0, 12.0, 2_000)
    found = nearest_whole(Interval(low, high), published)
    for truth in range(13):
        assert not ((low <= truth) & (truth <= high) & ((found.low > truth) | (truth > found.high))).any()
    assert ((found.low <= published) & (published <= found.high)).all()
    plain = nearest_whole(Interval(low, high), low)
    assert np.mean(plain.high - plain.low) == pytest.approx(np.mean(high - low), rel=0.2)


def test_settled_tables_are_shown_their_model():
    seen = {}

    def better(axes, values, model):
        seen[axes] = model
        return values

    known = {(): np.array(8.0), (0,): np.array([6.0, 2.0]), (1,): np.array([4.0, 4.0])}
    known[(0, 1)] = np.array([[6.0, 0.0], [-2.0, 4.0]])
    settled = settle((2, 2), [(0, 1)], known.__getitem__, better)
    assert list(seen) == [(0, 1)]
    np.testing.assert_allclose(seen[(0, 1)], [[3.0, 3.0], [1.0, 1.0]])
    np.testing.assert_allclose(settled[(0, 1)].sum(axis=1), [6.0, 2.0], atol=1e-3)
