"""Bucket deviations against brute force in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dphist.kernels.buckets.deviations import (
    bisection_errors,
    bucket_deviations,
    grow,
    power_deviations,
    rank,
)

VECTORS = {
    "flat": np.zeros(17, np.int64),
    "sparse": np.random.default_rng(1).poisson(0.2, 40),
    "rough": np.random.default_rng(2).integers(0, 1000, 33),
    "negative too": np.random.default_rng(3).integers(-50, 50, 29),
    "one huge count": np.array([0, 0, 2**45, 1, 0, 3, 0]),
    "a single cell": np.array([7]),
    "long": np.random.default_rng(4).poisson(3, 90) ** 3,
    "long and negative": np.random.default_rng(5).integers(-400, 90, 70),
}


def exact(cells: np.ndarray, grid: int, about_median: bool) -> int:
    values = [int(x) for x in cells]
    if about_median:
        centre = sorted(values)[len(values) // 2]
        return sum(abs(x - centre) for x in values)
    mean = Fraction(sum(values), len(values))
    cost = grid * sum(abs(x - mean) for x in values)
    return (2 * cost + 1).__floor__() // 2


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize(("grid", "about_median"), [(1, False), (16, False), (1, True)])
def test_rows_of_all_buckets(name: str, grid: int, about_median: bool) -> None:
    x = VECTORS[name].astype(np.int64)
    n = len(x)
    distinct, place = rank(x)
    tally, row = np.empty(len(distinct), np.int64), np.empty(n, np.int64)
    for start in range(n):
        grow(x, distinct, place, start, n - start, 1, grid, 1, about_median, tally, row)
        expected = [exact(x[start : start + m], grid, about_median) for m in range(1, n - start + 1)]
        assert row[: n - start].tolist() == expected


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("about_median", [False, True])
def test_powers_of_two_and_given_buckets(name: str, about_median: bool) -> None:
    x = VECTORS[name].astype(np.int64)
    n, grid = len(x), 1 if about_median else 16
    costs = power_deviations(x, *rank(x), grid, about_median)
    assert costs.shape == (int(np.log2(n)) + 1, n)
    starts, stops, expected = [], [], []
    for k in range(len(costs)):
        for i in range(n - 2**k + 1):
            starts.append(i)
            stops.append(i + 2**k)
            expected.append(exact(x[i : i + 2**k], grid, about_median))
            assert costs[k, i] == expected[-1]
    assert bucket_deviations(x, np.array(starts), np.array(stops), grid, 1, about_median).tolist() == expected


@pytest.mark.parametrize("about_median", [False, True])
def test_one_step_moves_a_bucket_by_no_more_than_its_sensitivity(about_median: bool) -> None:
    """Exhaustive: every vector of five counts in 0 … 3, every cell; the bound 2g − ⌊2g/m⌋ (1 about the median)."""
    grid = 1 if about_median else 16
    cells = np.array(np.meshgrid(*[np.arange(4)] * 5)).reshape(5, -1).T.astype(np.int64)
    worst = np.zeros(6, np.int64)
    for length in range(1, 6):
        rows = np.ascontiguousarray(cells[:, :length]).reshape(-1)
        starts = np.arange(0, len(rows), length)
        before = bucket_deviations(rows, starts, starts + length, grid, 1, about_median)
        for cell in range(length):
            moved = rows.copy()
            moved[cell::length] += 1
            after = bucket_deviations(moved, starts, starts + length, grid, 1, about_median)
            worst[length] = max(worst[length], np.abs(after - before).max())
    bounds = [min(m - 1, 1) if about_median else 2 * grid - 2 * grid // m for m in range(1, 6)]
    assert worst[1:].tolist() == bounds


@pytest.mark.parametrize("largest", [1, 3, 100, 10**6, 2**40])
def test_every_cut_of_every_part_floored(largest: int) -> None:
    def floored(cells: np.ndarray) -> int:
        mean = Fraction(int(cells.sum()), len(cells))
        return (1024 * sum(abs(int(x) - mean) for x in cells)).__floor__()

    rng = np.random.default_rng(largest)
    for _ in range(25):
        n = int(rng.integers(1, 40))
        x = rng.integers(0, largest + 1, n)
        starts = np.sort(np.concatenate([[0, n], rng.integers(0, n, 3)]))
        expected = []
        for a, b in pairwise(starts.tolist()):
            expected += [floored(x[a:b])] if a < b else []
            expected += [floored(x[a:i]) + floored(x[i:b]) for i in range(a + 1, b)]
        assert bisection_errors(x, starts, 1024).tolist() == expected
        assert bucket_deviations(x, starts[:1], starts[-1:], 1024, 0, False).tolist() == [floored(x)]
