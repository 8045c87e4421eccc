"""Buckets of squared deviations whose price falls with their length: the fast searches find what weighing all finds."""

import numpy as np
import pytest

from dphist.kernels.buckets.cheapest import prefix_squares, starts_of
from dphist.kernels.buckets.lengthwise import lengthwise_grouping
from dphist.kernels.compile import load

# The price of a total and of a value, and the noise: as S₂ and AHP have them, and extremes.
PRICES = [
    (3.5, 32.0, 4.0),
    (16.4, 4.7, 1.54),
    (0.3, 0.32, 0.4),
    (354.0, 3200.0, 40.0),
    (0.001, 5.0, 1.0),
    (50.0, 0.1, 1.0),
]


def weigh_all(values, total_price, value_price):
    """Every bucket, reckoned as the searches do; of equals the one that starts first."""
    n = len(values)
    total, square, lost = prefix_squares(values)
    best, cut = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = 0.0
    for i in range(n):
        m = np.arange(1, n - i + 1)
        whole = total[i + 1 :] - total[i]
        spread = ((square[i + 1 :] - square[i]) + (lost[i + 1 :] - lost[i])) - whole * whole * (1.0 / m)
        cost = best[i] + (np.maximum(spread, 0.0) + (total_price / m - value_price * (m - 1)))
        better = cost < best[i + 1 :]
        best[i + 1 :][better] = cost[better]
        cut[i + 1 :][better] = i
    return starts_of(cut).tolist(), best[n]


def samples(n, noise, seed):
    rng = np.random.default_rng(seed)
    drawn = np.rint(rng.laplace(0, noise, n))
    yield drawn
    yield np.repeat(rng.poisson(50, n // 20 + 1), 20)[:n] + drawn
    yield np.rint(200 * np.exp(-np.linspace(0, 4, n))) + drawn
    yield (rng.random(n) < 0.02) * rng.integers(0, 10**6, n) + drawn
    yield np.zeros(n)
    yield rng.integers(0, 3, n).astype(float)
    yield np.rint(rng.gamma(0.3, 200, n)) + drawn


@pytest.mark.parametrize(("total", "value", "noise"), PRICES)
@pytest.mark.parametrize("n", [1, 2, 3, 17, 300])
def test_they_find_the_cheapest_buckets(n, total, value, noise):
    load()
    for which, x in enumerate(samples(n, noise, n)):
        assert lengthwise_grouping(x, total, value).tolist() == weigh_all(x, total, value)[0], which
        x = -np.sort(-x)
        assert lengthwise_grouping(x, total, value).tolist() == weigh_all(x, total, value)[0], which


def test_a_flat_line_is_one_bucket_and_a_step_is_found():
    assert lengthwise_grouping(np.full(5000, 7.0), 2.0, 9.0).tolist() == [0]
    x = np.repeat([3.0, 90.0], [2500, 2500])
    assert lengthwise_grouping(x, 2.0, 9.0).tolist() == [0, 2500]
    assert lengthwise_grouping(x[::-1].copy(), 2.0, 9.0).tolist() == [0, 2500]
