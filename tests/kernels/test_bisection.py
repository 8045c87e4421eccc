from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dphist.kernels.buckets.bisection import (
    LATTICE,
    best_bisections,
    bisection_errors,
    run_errors,
)


def floored(values):
    values = [int(v) for v in values]
    mean = Fraction(sum(values), len(values))
    error = sum(abs(v - mean) for v in values) * 2**LATTICE
    return error.numerator // error.denominator


def by_hand(values, starts):
    out = []
    for a, b in pairwise(starts):
        out.append(floored(values[a:b]))
        out += [floored(values[a : a + i]) + floored(values[a + i : b]) for i in range(1, b - a)]
    return out


@pytest.mark.parametrize("largest", [1, 3, 100, 10**6, 2**40])
def test_every_cut_of_every_part_equals_fractions(largest):
    rng = np.random.default_rng(largest)
    for _ in range(25):
        n = int(rng.integers(1, 40))
        values = rng.integers(0, largest + 1, n)
        starts = np.unique(np.concatenate([[0, n], rng.integers(0, n, 3)]))
        assert bisection_errors(values, starts).tolist() == by_hand(values, starts.tolist())


def test_long_parts_cross_blocks_and_superblocks_of_ranks():
    rng = np.random.default_rng(5)
    # The mean swings over thousands of ranks for half of the scan: the pointer must leap, and leap right.
    swing = np.tile([0, 10**9], 3000)
    crowd = 5 * 10**8 + rng.integers(-(10**6), 10**6, 6000)
    values = np.concatenate([swing, crowd]).astype(np.int64)
    errors = bisection_errors(values, np.array([0, values.size]))
    where = np.unique(np.concatenate([rng.integers(1, values.size, 200), [1, 2, 4096, values.size - 1]]))
    first, last = np.zeros_like(where), np.full_like(where, values.size)
    np.testing.assert_array_equal(
        errors[where], run_errors(values, first, where) + run_errors(values, where, last)
    )
    assert errors[0] == floored(values)


def test_best_cut_is_the_first_of_the_least():
    cuts, least = best_bisections(np.array([1, 1, 9, 9, 4, 6, 6]), np.array([0, 4, 5, 7]))
    assert cuts.tolist() == [2, 0, 1]
    assert least.tolist() == [0, 0, 0]
