import numpy as np
import pytest

from dphist.kernels.isotonic import isotonic


def by_hand(values):
    """The max-min formula: the largest over starts a ≤ i of the least over ends b ≥ i of the mean."""
    n = len(values)
    return [max(min(np.mean(values[a : b + 1]) for b in range(i, n)) for a in range(i + 1)) for i in range(n)]


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_max_min_formula(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=int(rng.integers(1, 25))) if seed % 2 else rng.integers(-3, 4, 20).astype(float)
    np.testing.assert_allclose(isotonic(values), by_hand(values), atol=1e-12)


def test_keeps_what_rises_and_averages_what_falls():
    assert isotonic(np.array([1.0, 2.0, 5.0])).tolist() == [1, 2, 5]
    assert isotonic(np.array([5.0, 2.0, 2.0])).tolist() == [3, 3, 3]
    assert isotonic(np.array([0.0, 4.0, 2.0, 9.0])).tolist() == [0, 3, 3, 9]


def test_keeps_the_total_and_is_a_projection():
    values = np.random.default_rng(0).normal(size=10_000) + np.linspace(0, 3, 10_000)
    once = isotonic(values)
    assert (np.diff(once) >= 0).all()
    assert once.sum() == pytest.approx(values.sum())
    np.testing.assert_allclose(isotonic(once), once, atol=1e-12)
