"""The hidden level model against plain sums, integrals and a dense forward–backward pass."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dphist.kernels.levels.chain import LARGE_STEPS, SMALL_STEPS, expect, infer
from dphist.kernels.levels.fit import _packed, denoise
from dphist.kernels.levels.likelihood import level_grid, likelihoods, moments


def _noise(z, rate):
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(z))


def _counts(level, c, upto):
    x = np.arange(upto)
    if c * c * level < 1e-3:
        return x, stats.poisson.pmf(x, level)
    shape = 1 / c**2
    return x, stats.nbinom.pmf(x, shape, shape / (shape + level))


@pytest.mark.parametrize("c", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("rate", [0.05, 1.0, 4.0])
def test_few_counts_are_summed_exactly(c, rate):
    values = np.array([-40, -3, -1, 0, 1, 2, 7, 30, 500])
    grid = np.array([0.0, 0.02, 0.7, 5.0])
    table, scales = likelihoods(values, grid, c, rate)
    first, second = moments(values, grid, c, rate, np.ones((values.size, grid.size)))
    for k, level in enumerate(grid):
        x, p = _counts(level, c, 4000) if level else (np.zeros(1), np.ones(1))
        joint = p[None, :] * _noise(values[:, None] - x[None, :], rate)
        total = joint.sum(axis=1)
        # Listed counts end where their law has faded; a value far beyond is some other level's.
        seen = (total > 1e-250) & (np.abs(values) < 20)
        assert np.allclose(table[seen, k] * np.exp(scales[seen]), total[seen], rtol=1e-6, atol=0)
        mean = (joint * x).sum(axis=1)[seen] / total[seen]
        assert np.allclose(first[seen, k], mean, rtol=1e-5, atol=1e-9)
        square = (joint * x**2).sum(axis=1)[seen] / total[seen]
        assert np.allclose(second[seen, k], square - mean**2, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_many_counts_are_a_gaussian_under_laplace_noise(rate):
    level, c = 300.0, 0.1
    v = level + (c * level) ** 2
    values = np.array([-300, 0, 150, 290, 300, 320, 700])
    table, scales = likelihoods(values, np.array([0.0, level]), c, rate)
    first, second = moments(values, np.array([0.0, level]), c, rate, np.ones((values.size, 2)))
    for i, y in enumerate(values):

        def density(x, y=y):
            return stats.norm.pdf(x, level, math.sqrt(v)) * rate / 2 * np.exp(-rate * abs(y - x))

        wide = 14 * math.sqrt(v) + rate * v
        pieces = [level - wide, min(max(y, level - wide), level + wide), level + wide]
        sums = []
        for power in range(3):
            parts = [
                integrate.quad(
                    lambda x, p=power, f=density: x**p * f(x), a, b, limit=400, epsabs=0, epsrel=1e-10
                )[0]
                for a, b in itertools.pairwise(pieces)
                if b > a
            ]
            sums.append(sum(parts))
        assert table[i, 1] * math.exp(scales[i]) == pytest.approx(sums[0], rel=1e-5)
        mean = sums[1] / sums[0]
        assert first[i, 1] == pytest.approx(max(mean, 0.0), rel=1e-5, abs=1e-3)
        assert second[i, 1] == pytest.approx(sums[2] / sums[0] - mean**2, rel=1e-2, abs=1e-2)


def test_likelihoods_stay_finite_where_exponentials_overflow():
    values = np.array([-(10**9), 0, 10**9])
    grid = level_grid(values, 5.0)
    table, scales = likelihoods(values, grid, 1.0, 5.0)
    assert np.isfinite(table).all()
    assert np.isfinite(scales).all()
    assert np.allclose(table.max(axis=1), 1.0)


def _dense(table, rows, jump, weights, share):
    stay, step, leave = weights
    w = stay, share * step, (1 - share) * step, leave
    k = np.arange(jump.size)
    gap = np.abs(k[:, None] - k[None, :])
    small, large = (
        sum(share * (gap <= reach) / (2 * reach + 1) for reach, share in steps)
        for steps in (SMALL_STEPS, LARGE_STEPS)
    )
    kinds = [np.eye(k.size), small, large, np.tile(jump, (k.size, 1))]
    move = sum(a[:, None] * m for a, m in zip(w, kinds, strict=True))
    b = table[rows]
    forward, back = [b[0] * jump], [np.ones(k.size)]
    for row in b[1:]:
        forward.append(row * (forward[-1] @ move))
    for row in b[:0:-1]:
        back.insert(0, move @ (row * back[0]))
    evidence = forward[-1].sum()
    moves = np.zeros((4, jump.size))
    starts = forward[0] * back[0] / evidence
    for i in range(1, len(b)):
        for m in range(4):
            moves[m] += w[m] * forward[i - 1] * (kinds[m] @ (b[i] * back[i])) / evidence
        starts += (w[3] * forward[i - 1]).sum() * jump * b[i] * back[i] / evidence
    return math.log(evidence), starts, moves, np.array(forward) * np.array(back) / evidence


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("levels", [9, 90])
def test_forward_backward_equals_the_dense_one(apart, levels):
    generator = np.random.default_rng(3)
    table = generator.random((6, levels))
    if apart:
        # Neighbours whose levels have nothing in common, with a gap between them.
        third = levels // 3
        table[:2, third:] = table[2:4, : 2 * third] = 0.0
        table[4:, :third] = table[4:, third + 2 :] = 0.0
    rows = generator.integers(0, 6, 12)
    jump = generator.random(levels)
    jump /= jump.sum()
    w = np.ascontiguousarray(generator.dirichlet([5.0, 3.0, 2.0], levels).T)
    evidence, starts, moves, posterior = _dense(table, rows, jump, w, 0.6)
    whole = np.array([[0, 12]])
    found = expect(*_packed(table), rows, whole, jump, w, 0.6, np.empty(12 * levels))
    assert found[0] == pytest.approx(evidence, rel=1e-12)
    assert np.allclose(found[1], starts)
    assert np.allclose(found[2], moves)
    first, second = generator.random((6, levels)), generator.random((6, levels))
    mean, within, between = infer(*_packed(table), rows, jump, w, 0.6, first, second)
    expected = (posterior * first[rows]).sum(axis=1)
    assert np.allclose(mean, expected)
    assert np.allclose(within, (posterior * second[rows]).sum(axis=1))
    assert np.allclose(between, (posterior * first[rows] ** 2).sum(axis=1) - expected**2)


def test_stretches_are_independent_sequences():
    generator = np.random.default_rng(4)
    table, rows = generator.random((5, 7)), generator.integers(0, 5, 20)
    jump, w = np.full(7, 1 / 7), np.tile([[0.7], [0.2], [0.1]], 7)
    parts = [
        expect(*_packed(table), rows, np.array([[a, b]]), jump, w, 0.5, np.empty(140))
        for a, b in ((0, 8), (8, 20))
    ]
    both = expect(*_packed(table), rows, np.array([[0, 8], [8, 20]]), jump, w, 0.5, np.empty(140))
    for i in range(3):
        assert np.allclose(both[i], parts[0][i] + parts[1][i])


@pytest.mark.parametrize("size", [1, 2, 17, 70_000])
def test_any_length_is_denoised(size):
    generator = np.random.default_rng(6)
    values = 20 + generator.geometric(0.26, size) - generator.geometric(0.26, size)
    found = denoise(values, 0.3)
    assert found.mean.shape == (size,)
    assert np.isfinite(found.mean).all()
    assert (found.mean >= 0).all()
    assert (found.within >= 0).all()
    assert (found.between >= 0).all()
    if size > 100:
        assert abs(found.mean.mean() - 20) < 1
        assert np.mean((found.mean - 20) ** 2) < np.mean((values - 20.0) ** 2) / 2


def test_levels_far_from_a_value_are_left_out_without_a_trace():
    values = np.array([-50, 0, 3, 400, 90_000])
    grid = level_grid(values, 1.0)
    table, _ = likelihoods(values, grid, 0.1, 1.0)
    first, second = moments(values, grid, 0.1, 1.0, table)
    assert (table.max(axis=1) == 1).all()
    assert (table[-1] == 0).any()
    assert (first[table == 0] >= 0).all()
    assert np.isfinite(first).all()
    assert np.isfinite(second).all()
