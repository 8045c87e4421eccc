"""Dividing a total among blocks: against exact integrals for two blocks, limits, and pools painted over cells."""

import numpy as np
import pytest

from dphist.kernels.trees.evenness import EVEN, SPREADS, divide_pools, likely_divisions


def likely_division(seen, variance, size, total):
    return likely_divisions(seen[None], np.array([variance]), size[None], np.array([total]))[0]


def _exact(seen, variance, total):
    """Posterior mean of the first of two equal blocks, by sums over a fine grid of divisions."""
    x = (np.arange(200_000) + 0.5) / 200_000 * total
    even = total / 2

    def likelihood(first):
        squares = (seen[0] - first) ** 2 + (seen[1] - (total - first)) ** 2
        return np.exp(-0.5 * squares / variance)

    chances, means = [EVEN * likelihood(even)], [even]
    share = (1 - EVEN) / (len(SPREADS) + 1)
    for spread in SPREADS:
        # Two independent deviations of variance t, given that they sum to zero: one of variance t / 2.
        wide = np.linspace(-4, 4, 20_001) * np.sqrt(spread / 2) * even
        weight = np.exp(-(wide**2) / (spread * even**2))
        weight = weight / weight.sum() * likelihood(even + wide)
        chances.append(share * weight.sum())
        means.append(np.clip(even + (weight * wide).sum() / weight.sum(), 0, total))
    weight = likelihood(x) / x.size
    chances.append(share * weight.sum())
    means.append((weight * x).sum() / weight.sum())
    return np.dot(chances, means) / np.sum(chances)


@pytest.mark.parametrize("seen", [(60.0, 40.0), (95.0, 15.0), (115.0, -10.0), (52.0, 49.0)])
@pytest.mark.parametrize("variance", [9.0, 100.0, 900.0])
def test_two_blocks_agree_with_the_exact_mean(seen, variance):
    parts = likely_division(np.array(seen), variance, np.ones(2), 100.0)
    # The saddle point is an approximation: a tenth of the deviation is far less than the noise.
    assert parts[0] == pytest.approx(_exact(seen, variance, 100.0), abs=max(0.1 * np.sqrt(variance), 1.0))


def test_parts_add_up_and_are_not_negative():
    generator = np.random.default_rng(1)
    for _ in range(200):
        count = int(generator.integers(2, 17))
        size = generator.integers(1, 9, count).astype(float)
        total = float(generator.exponential(100.0)) + 1e-6
        seen = generator.normal(total / count, 80.0, count)
        parts = likely_division(seen, float(generator.uniform(1, 5000)), size, total)
        assert np.isfinite(parts).all()
        assert (parts >= 0).all()
        assert parts.sum() == pytest.approx(total)


def test_noise_is_spread_evenly_and_certainty_is_believed():
    size = np.array([1.0, 1.0, 2.0])
    assert np.allclose(
        likely_division(np.array([30.0, 20.0, 50.0]), 1e8, size, 100.0), [25, 25, 50], rtol=0.05
    )
    sure = likely_division(np.array([70.0, 20.0, 10.0]), 1e-3, size, 100.0)
    assert np.allclose(sure, [70, 20, 10], atol=0.2)


def test_pools_are_divided_and_nothing_else():
    first, last = np.array([1, 3, -1, -1, -1]), np.array([3, 5, 0, 0, 0])
    size, seen = np.array([6.0, 4.0, 2.0, 2.0, 2.0]), np.array([49.0, 41.0, 9.0, 38.0, 2.0])
    totals = np.array([49.0, 40.0, 9.0, 20.0, 20.0])
    divide_pools(first, last, np.arange(5) == 1, size, seen, np.full(5, 0.01), totals)
    assert totals[:3].tolist() == [49, 40, 9]
    assert totals[3:] == pytest.approx([38, 2], abs=0.5)
