"""Every grouping against all partitions written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, product

import numpy as np
import pytest

from dphist.kernels.buckets.cheapest import (
    UNREACHED,
    deviation_grouping,
    nested_buckets,
    power_grouping,
    push_deviation_rows,
    squared_deviations,
    squared_grouping,
    squared_power_grouping,
    starts_of,
    tree_grouping,
)
from dphist.kernels.buckets.deviations import bucket_deviations, power_deviations, rank


def partitions(n: int) -> list[list[int]]:
    """Starts of every way to cut n cells; the first is one bucket."""
    return [
        [0, *(i + 1 for i, cut in enumerate(cuts) if cut)] for cuts in product([0, 1], repeat=max(0, n - 1))
    ]


def cheapest(n: int, cost: Mapping[tuple[int, int], float]) -> list[int]:
    """Least total; among equals the smallest last cut, recursively, comparing exactly."""
    allowed = [p for p in partitions(n) if all(bucket in cost for bucket in pairwise([*p, n]))]
    return min(allowed, key=lambda p: (sum(cost[b] for b in pairwise([*p, n])), p[::-1]))


def vectors(seed: int, n: int = 9) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return [rng.poisson(0.7, n), rng.integers(0, 30, n), np.repeat(rng.integers(0, 9, 3), 3)][
        seed % 3
    ].astype(np.int64)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("median", [False, True])
def test_deviations_without_noise(seed: int, median: bool) -> None:
    x, price, grid = vectors(seed), 3, 1 if median else 16
    cost = {}
    for i in range(9):
        for j in range(i + 1, 10):
            cost[i, j] = int(bucket_deviations(x, np.array([i]), np.array([j]), grid, 1, median)[0]) + price
    assert deviation_grouping(x, price, grid=grid, about_median=median).tolist() == cheapest(9, cost)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("shorts", [1, 4, 9])
def test_deviations_with_noise_row_by_row(seed: int, shorts: int) -> None:
    """Noise reaches the bucket it was drawn for, whatever the batches."""
    x, price, grid, n = vectors(seed), 5, 4, 9
    rng = np.random.default_rng(seed)
    short = rng.integers(-60, 60, (shorts, n))
    long = {(i, j): int(rng.integers(-60, 60)) for i in range(n) for j in range(i + shorts + 1, n + 1)}
    cost = {}
    for i in range(n):
        for j in range(i + 1, n + 1):
            noise = short[j - i - 1, i] if j - i <= shorts else long[i, j]
            cost[i, j] = (
                int(bucket_deviations(x, np.array([i]), np.array([j]), grid, 1, False)[0])
                + price
                + int(noise)
            )
    best, cut = np.full(n + 1, UNREACHED), np.zeros(n + 1, np.int64)
    best[0] = 0
    for first, last in pairwise([0, 2, 3, 7, 9]):
        batch = np.array([z for (i, _), z in long.items() if first <= i < last], dtype=np.int64)
        push_deviation_rows(
            x, *rank(x), first, last, grid, False, price, short.astype(np.int64), batch, best, cut
        )
    assert starts_of(cut).tolist() == cheapest(n, cost)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [1, 2, 7, 9])
def test_powers_of_two(seed: int, n: int) -> None:
    x = vectors(seed)[:n]
    costs = power_deviations(x, *rank(x), 16, False)
    costs += np.random.default_rng(seed).integers(-90, 90, costs.shape)
    cost = {(i, i + 2**k): int(costs[k, i]) + 7 for k in range(len(costs)) for i in range(n - 2**k + 1)}
    assert power_grouping(costs, 7).tolist() == cheapest(n, cost)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("search", [squared_grouping, squared_power_grouping])
def test_squares(seed: int, search: Callable[..., np.ndarray]) -> None:
    n = 9
    rng = np.random.default_rng(seed)
    x, prices = rng.normal(0, 3, n), rng.uniform(0, 20, n + 1)
    cost = {
        (i, j): float(((x[i:j] - x[i:j].mean()) ** 2).sum() + prices[j - i])
        for i in range(n)
        for j in range(i + 1, n + 1)
        if search is squared_grouping or (j - i) & (j - i - 1) == 0
    }
    assert search(x, prices).tolist() == cheapest(n, cost)


def test_one_huge_value_does_not_swallow_small_differences() -> None:
    x = np.array([2.0**40, 0, 0, 0, 9, 9, 9])
    assert squared_grouping(x, np.arange(10.0, -70.0, -10.0)).tolist() == [0, 1, 4]
    assert squared_deviations(x, np.array([1, 0]), np.array([7, 2]))[0] == pytest.approx(121.5)


def test_fig_1_of_the_paper_buckets_are_whole_subtrees() -> None:
    """Four leaves under a binary tree: exactly the five strategies G₁ … G₅ can come out."""
    parent, lows, highs, levels = nested_buckets(4, (4, 2, 1))
    assert list(zip(lows.tolist(), highs.tolist(), strict=True)) == [
        (0, 4), (0, 2), (2, 4), (0, 1), (1, 2), (2, 3), (3, 4),
    ]  # fmt: skip
    assert levels.tolist() == [0, 1, 1, 2, 2, 2, 2]
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(400):
        costs = rng.integers(0, 20, 7) + 5 * (highs - lows)
        whole = tree_grouping(parent, costs)
        chosen = tuple(sorted(lows[whole == 1].tolist()))
        cost = {(int(a), int(b)): int(c) for a, b, c in zip(lows, highs, costs, strict=True)}
        least = min(
            sum(cost[b] for b in pairwise([*p, 4]))
            for p in partitions(4)
            if all(b in cost for b in pairwise([*p, 4]))
        )
        assert costs[whole == 1].sum() == least
        seen.add(chosen)
    assert seen == {(0, 1, 2, 3), (0, 2, 3), (0, 1, 2), (0, 2), (0,)}


def test_no_bucket_of_a_ragged_tree_is_there_twice() -> None:
    parent, lows, highs, _ = nested_buckets(17, (256, 16, 4, 1))
    spans = list(zip(lows.tolist(), highs.tolist(), strict=True))
    assert len(spans) == len(set(spans))
    assert spans[:3] == [(0, 17), (0, 16), (16, 17)]
    for node in range(len(spans)):
        children = np.flatnonzero(parent == node)
        if children.size:
            assert (highs[children] - lows[children]).sum() == highs[node] - lows[node]
