"""The predictive engine: least squares as its special case, sums of boxes, what lies inside leaves, coverage."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dphist
from dphist.inference.predictive.errors import MeasuredCells, PredictiveErrors, likeliest_counts, whole_counts
from dphist.inference.predictive.learning import LEAST_CAUTION, learned_of_cells, learned_of_tree
from dphist.kernels.predictive.halving import halve_cells
from dphist.kernels.predictive.ways import infer_splits
from dphist.model.law import NoiseLaw


def _tree(shape, nodes):
    """Nodes as (parent, low, high, value, variance), siblings side by side."""
    parent = np.array([n[0] for n in nodes])
    first, last = np.full(len(nodes), -1), np.zeros(len(nodes), dtype=np.int64)
    for child, up in enumerate(parent):
        if up >= 0:
            first[up] = child if first[up] < 0 else first[up]
            last[up] = child + 1
    low = np.array([n[1] for n in nodes], dtype=np.int64).reshape(len(nodes), -1)
    high = np.array([n[2] for n in nodes], dtype=np.int64).reshape(len(nodes), -1)
    return SimpleNamespace(
        shape=shape,
        first=first.astype(np.int64),
        last=last,
        low=low,
        high=high,
        size=np.prod(high - low, axis=1).astype(float),
        value=np.array([n[3] for n in nodes], dtype=float),
        variance=np.array([n[4] for n in nodes], dtype=float),
    )


@pytest.fixture
def plane():
    rng = np.random.default_rng(1)
    nodes = [(-1, (0, 0), (6, 4), 300.0, 9.0)]
    nodes += [(0, (i, j), (i + 2, j + 2), 50 + rng.normal(), 4.0) for i in (0, 2, 4) for j in (0, 2)]
    nodes += [(2, (i, j), (i + 1, j + 1), 12 + rng.normal(), 2.0) for i in (0, 1) for j in (2, 3)]
    # An only child is the same box measured once more.
    nodes += [(3, (2, 0), (4, 2), 53.0, 3.0)]
    return _tree((6, 4), nodes)


def _generalised(tree, low, high):
    """Least squares over the leaves by linear algebra; leaves are spread evenly."""
    leaves = np.flatnonzero(tree.first < 0)
    holds = np.array(
        [
            [
                float(np.all(tree.low[n] <= tree.low[leaf]) and np.all(tree.high[leaf] <= tree.high[n]))
                for leaf in leaves
            ]
            for n in range(tree.first.size)
        ]
    )
    known = np.isfinite(tree.variance)
    inverse = np.linalg.inv(holds[known].T @ (holds[known] / tree.variance[known, None]))
    estimate = inverse @ holds[known].T @ (tree.value[known] / tree.variance[known])
    answer = []
    for a, b in zip(low, high, strict=True):
        overlap = np.prod(
            np.maximum(np.minimum(b, tree.high[leaves]) - np.maximum(a, tree.low[leaves]), 0), axis=1
        )
        share = overlap / tree.size[leaves]
        answer.append((share @ estimate, share @ inverse @ share))
    return np.array(answer).T


def test_least_squares_is_the_engine_without_a_prior(plane):
    low = np.array([[0, 0], [1, 1], [3, 0], [0, 2], [5, 3]])
    high = np.array([[6, 4], [4, 3], [6, 1], [2, 4], [6, 4]])
    expected = _generalised(plane, low, high)
    np.testing.assert_allclose(learned_of_tree(plane).law.ask(low, high)[3:], expected, rtol=1e-9)


def test_boxes_of_one_question_share_their_noise(plane):
    law = learned_of_tree(plane).law
    whole = law.ask(np.array([[1, 0]]), np.array([[6, 4]]))
    # Cut at 3, inside boxes that were measured as a whole.
    low, high = np.array([[1, 0], [3, 0]]), np.array([[3, 4], [6, 4]])
    parts = law.ask(low, high, starts=np.array([0, 2]))
    np.testing.assert_allclose(parts, whole, rtol=1e-9)
    # Questions are each what they are alone.
    several = law.ask(np.concatenate([low, low[:1]]), np.concatenate([high, high[:1]]), np.array([0, 2, 3]))
    np.testing.assert_allclose([each[0] for each in several], np.ravel(whole), rtol=1e-9)


def test_inside_a_leaf_halvings_go_on():
    """Against the recursion written out, cell by cell, for a block of 8 × 4."""
    tree = _tree((8, 4), [(-1, (0, 0), (8, 4), 60.0, 5.0)])
    law = learned_of_tree(tree).law
    unevenness = law.uneven
    mean, variance = law.posterior.mean[0], law.posterior.variance[0]

    def inner(low, high, a, b, t, square):
        overlap = np.maximum(np.minimum(b, high) - np.maximum(a, low), 0)
        share = overlap.prod() / (high - low).prod()
        if share in (0.0, 1.0):
            return share, 0.0
        axis = int(np.argmax(high - low))
        middle = (low[axis] + high[axis]) // 2
        rest = 0.25 * (square * unevenness[int(np.ceil(np.log2((high - low).prod() / 1.5)))] + t)
        found = []
        for side in range(2):
            lo, hi = low.copy(), high.copy()
            (hi if side == 0 else lo)[axis] = middle
            found.append(inner(lo, hi, a, b, t / 2, square / 4 + rest))
        (b1, w1), (b2, w2) = found
        return (b1 + b2) / 2, w1 + w2 + (b1 - b2) ** 2 * rest

    for a, b in (([1, 1], [6, 3]), ([0, 0], [5, 4]), ([7, 3], [8, 4]), ([2, 0], [4, 2])):
        beta, rest = inner(
            np.array([0, 0]), np.array([8, 4]), np.array(a), np.array(b), mean, mean**2 + variance
        )
        expected = (beta * mean, beta**2 * variance, rest)
        got = law.ask(np.array([a]), np.array([b]))[:3]
        np.testing.assert_allclose(np.ravel(got), expected, rtol=1e-9)


def test_cells_are_halved_along_the_longest_side():
    left, low, high, cell = halve_cells(np.array([5, 3]))
    assert sorted(cell[cell >= 0]) == list(range(15))
    inner = left >= 0
    assert np.all((high - low)[~inner] == 1)
    np.testing.assert_array_equal(low[0], 0)
    np.testing.assert_array_equal(high[left[0]], [3, 3])


def test_large_totals_do_not_drown_the_variance():
    """A spike of a million: what is unknown of it is the noise, not the rounding of its square."""
    noisy = np.zeros(64)
    noisy[20] = 1e6
    law = learned_of_cells(noisy, 2.0).law
    low, high = np.array([[20]]), np.array([[21]])
    # All on one side: the cell's total is the root's, whose noise is that of 64 cells.
    assert law.ask(low, high)[1][0] < 140.0
    assert law.ask(low, high).noise[0] == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["flat", "steps", "spikes", "uneven"])
def test_intervals_from_noisy_cells_hold_the_truth(kind):
    rng = np.random.default_rng(7)
    law = {
        "flat": np.full(256, 40.0),
        "steps": np.repeat(rng.exponential(60, 8), 32),
        "spikes": np.where(np.arange(256) % 37 == 0, 500.0, 0.0),
        "uneven": rng.exponential(50, 256),
    }[kind]
    held = []
    for _ in range(12):
        truth = rng.poisson(law)
        found = learned_of_cells(truth + rng.laplace(0, 5, 256).round(), 50.0).law
        low = rng.integers(0, 250, (200, 1))
        high = np.minimum(low + rng.integers(1, 40, (200, 1)), 256)
        mean, variance = found.ask(low, high)[:2]
        total = np.concatenate([[0], np.cumsum(truth)])
        gap = (total[high] - total[low])[:, 0] - mean
        held.append(np.mean(np.abs(gap) <= 2.2 * np.sqrt(variance) + 0.5))
    assert np.mean(held) > 0.92


def test_too_much_smoothing_is_noticed():
    """Every other cell is empty below blocks that look even: least squares knows better, and caution rises."""
    rng = np.random.default_rng(3)
    truth = np.where(np.arange(512) % 2 == 0, 30, 0)
    even = learned_of_cells(np.full(512, 15) + rng.laplace(0, 4, 512).round(), 32.0).law
    comb = learned_of_cells(truth + rng.laplace(0, 20, 512).round(), 800.0).law
    assert even.caution[0] < 1.6
    assert comb.caution.min() >= LEAST_CAUTION


@pytest.mark.parametrize("lone", [False, True])
@pytest.mark.parametrize("shape", [(37, 21), (400,), (263, 260)])
def test_single_cells_by_their_path_are_boxes_of_one_cell(shape, lone):
    rng = np.random.default_rng(4)
    counts = rng.poisson(2, shape)
    if lone:
        counts = np.where(rng.random(shape) < 0.02, 50_000, 0)
    domain = dphist.Domain([dphist.Ordinal(f"a{i}", range(n)) for i, n in enumerate(shape)])
    release = dphist.publish(dphist.Histogram(domain, counts), epsilon="1/5", mechanism="adaptivetree")
    errors: Any = release._estimate.errors
    law = errors.settled.law
    cells = np.stack(np.unravel_index(np.arange(counts.size), shape), axis=1)
    # Asked with starts, a box of one cell goes down the tree as all boxes do.
    some = slice(None, None, max(1, counts.size // 4000))
    found = [each[some] for each in law.ask(cells, cells + 1)]
    wanted = law.ask(cells[some], cells[some] + 1, np.arange(len(cells[some]) + 1))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_law_is_what_was_inferred_to_eleven_bits():
    """Numbers of splits are rounded for the file; what follows of them is what was inferred."""
    rng = np.random.default_rng(8)
    noisy = rng.poisson(3.0, (24, 40)) + np.rint(rng.laplace(0.0, 2.0, (24, 40)))
    learned = learned_of_cells(noisy, 8.0)
    law, tree = learned.law, learned.law.binary
    inferred = infer_splits(tree.left, tree.size, *tree.totals, learned.ways)
    found = law.posterior.mean, law.posterior.variance, law.posterior.slope, law.posterior.rest
    for one, other in zip(found, inferred, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-2)
    for each in (law.lean, law.slope, law.rest):
        np.testing.assert_array_equal(each, each.astype(np.float32))


def test_whole_counts_are_the_nearest_and_hold_what_is_published():
    low, high = whole_counts(np.array([2.4, 2.4, 0.3, 7.0, 5.0]), np.array([0.7, 1.0, 0.05, 0.0, 9.0]))
    assert low.tolist() == [2.0, 1.0, 0.0, 7.0, 0.0]
    assert high.tolist() == [3.0, 3.0, 1.0, 7.0, 14.0]


def test_of_two_counts_as_far_the_upper_one_goes_whatever_their_shares_are_rounded_to():
    published, deviation = np.repeat(np.arange(2.0, 60.0), 50), np.tile(np.linspace(0.3, 1.0, 50), 58)
    low, high = likeliest_counts(published, deviation, stats.norm.ppf(0.9), 0.8)
    # Around a whole count rows are even, or one longer below.
    assert set(np.unique((published - low) - (high - published))) == {0.0, 1.0}


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_likeliest_counts_are_the_fewest_that_hold_enough(confidence):
    """Every row of whole counts is tried: none with fewer holds as much, and one more would not be needed."""
    rng = np.random.default_rng(4)
    published = np.concatenate([rng.exponential(3.0, 150), [0.0, 0.02, 7.0, 40.5]])
    deviation = np.concatenate([rng.exponential(2.0, 150) + 0.05, [0.4, 0.05, 0.0, 3.0]])
    law = stats.norm(published[:, None], np.maximum(deviation, 1e-9)[:, None])
    edges = np.arange(81)
    below = law.cdf(edges - 0.5)
    low, high = likeliest_counts(published, deviation, stats.norm.ppf(0.5 + confidence / 2), confidence)
    deviations = stats.norm.ppf(0.5 + confidence / 2)
    assert ((low <= published) & (published <= high)).all()
    assert not np.signbit(low).any()
    first, last = np.ceil(low).astype(int), np.floor(high).astype(int)
    rows = np.arange(len(published))
    mass = below[rows, last + 1] - below[rows, first]
    # Where the law has much below zero, no whole counts have enough: there nothing is dropped.
    short = mass < confidence - 1e-9
    assert (first[short] == 0).all()
    assert (
        last[short] == np.maximum(np.rint(published + deviations * deviation), np.rint(published))[short]
    ).all()
    for i in rows[~short]:
        count = last[i] - first[i]
        if count > 0:
            starts = np.arange(0, 80 - count)
            assert (below[i, starts + count] - below[i, starts]).max() < confidence + 1e-9
    # A published count that is none of them is still between the bounds, and nothing else is not whole.
    for bound in (low, high):
        assert ((bound == np.rint(bound)) | (bound == published)).all()


def test_single_cells_that_were_measured_have_the_fewest_counts_and_sums_do_not():
    counts = np.array([3.2, 0.1, 9.0])
    cells = PredictiveErrors(MeasuredCells(counts, NoiseLaw("laplace", 1)), counts)
    deviation = np.array([1.4, 0.05, 1.4])
    alone = cells.whole(counts, deviation, np.ones(3), 0.95)
    sums = cells.whole(counts, deviation, np.full(3, 2.0), 0.95)
    assert (alone.high - alone.low < sums.high - sums.low).any()
    assert alone.high[1] == 0.1
    tree = replace(cells, pruned=True).whole(counts, deviation, np.ones(3), 0.95)
    np.testing.assert_array_equal(tree.high, sums.high)


def test_widths_below_and_above_may_differ():
    low, high = whole_counts(
        np.array([20.0, 20.0, 3.0]), np.array([4.0, 9.0, 5.0]), np.array([9.0, 4.0, 0.0])
    )
    np.testing.assert_array_equal(low, [16, 11, 0])
    np.testing.assert_array_equal(high, [29, 24, 3])
