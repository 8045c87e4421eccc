"""Where to cut runs of cells in two, and how many of the cuts to keep."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.buckets.deviations import bisection_errors, bucket_deviations
from dphist.kernels.compile import only_read
from dphist.private.questions import Candidates, IntArray, Layout, proven, seal

# Errors are integers in units of 2^−LATTICE records.
LATTICE = 10


@proven
@dataclass(frozen=True)
class Bisections:
    """Leave each part whole, or cut it in two at any place, by the absolute error that is left.

    Parts must be runs of neighbouring cells. A run's error is err(C) = Σ|x − mean(C)|; candidate 0 of a
    part is the whole part, candidate i cuts after its first i cells, and a cut costs ``price`` records
    more. The score is minus error and price.

    Why the range keeps the promise. Raising one of c counts by one moves its own deviation by up to 1 − 1/c
    and the other c − 1 by up to 1/c each, so err(C) changes by at most δ(c) = 2 − 2/c either way; flooring
    to the lattice of step γ makes that at most ⌈δ(c)/γ⌉ steps. A step changes the one run that holds its
    cell. Two different candidates put that cell into runs of which at most one is the whole part of s
    cells, so their changes differ by at most ⌈δ(s)/γ⌉ + ⌈δ(s − 1)/γ⌉: the range. Counts are first cut at a
    public ceiling, under which one step stays at most one step.
    """

    price: Fraction

    def draws(self, layout: Layout) -> int:
        """One choice in every part."""
        _check_size(layout)
        if layout.labels is not None and bool((np.diff(layout.labels) < 0).any()):
            raise MechanismError(
                "bisections need parts that are runs of neighbouring cells, numbered in order"
            )
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every cut of every part."""
        _, starts = layout.group()
        scores = -bisection_errors(_cut(counts), starts, 1 << LATTICE)
        scores -= lattice_price(self.price)
        scores[starts[:-1]] += lattice_price(self.price)
        yield Candidates(scores, starts, error_range(int(np.diff(starts).max(initial=2))))


@proven
@dataclass(frozen=True, eq=False)
class Configurations:
    """How many of a sequence of cuts to keep, by the absolute error that is left and the price of each.

    Cut i parts the run ``first[i] … last[i] − 1``, made by the cuts before it, at ``middle[i]``. Candidate t
    keeps the first t; the last candidate makes every cell a run of its own, which has no error.

    Why the range keeps the promise. The error of a configuration is the sum over its runs, and one step
    changes one run in each. Take two configurations. If that run is the same in both, so is the change. If
    not, one is a part of the other (a single cell is a part of any run that holds it), so one has at most n
    cells and the other at most n − 1, and by the argument of `Bisections` the changes differ by at most
    ⌈δ(n)/γ⌉ + ⌈δ(n − 1)/γ⌉. Subtracting the error of the first configuration from all scores shifts all changes
    alike. All this supposes that every configuration *is* a partition: that each cut parts a run which the cuts
    before it left. A cut made twice would take the same errors off twice, so the sequence is checked, cut by cut.
    """

    first: IntArray
    middle: IntArray
    last: IntArray
    price: Fraction

    def __post_init__(self) -> None:
        seal(self, "first", "middle", "last")
        if not self.first.ndim == 1 or not self.first.shape == self.middle.shape == self.last.shape:
            raise MechanismError("configurations: first, middle and last must be lists of one length")

    def draws(self, layout: Layout) -> int:
        """One choice."""
        _check_size(layout)
        if layout.parts != 1:
            raise MechanismError("configurations are compared over all cells at once")
        if not cuts_ok(self.first, self.middle, self.last, layout.size):
            raise MechanismError("configurations: every cut must part a run that the cuts before it left")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every number of cuts."""
        values = _cut(counts)
        change = (
            _run_errors(values, self.first, self.middle)
            + _run_errors(values, self.middle, self.last)
            - _run_errors(values, self.first, self.last)
            + lattice_price(self.price)
        )
        whole = _run_errors(values, only_read(np.array([0])), only_read(np.array([values.size])))
        apart = whole - (values.size - 1) * lattice_price(self.price)
        scores = np.concatenate([np.zeros(1, dtype=np.int64), -np.cumsum(change), apart])
        yield Candidates(scores, np.array([0, scores.size], dtype=np.int64), error_range(layout.size))


def error_range(size: int) -> int:
    """⌈δ(s)/γ⌉ + ⌈δ(s − 1)/γ⌉ with δ(c) = 2 − 2/c, and at least one."""
    # ⌈2 − 2/c⌉ on the lattice is 2 − ⌊2/c⌋ on it.
    largest = [(2 << LATTICE) - (2 << LATTICE) // max(c, 1) for c in (size, size - 1)]
    return max(1, sum(largest))


def lattice_price(price: Fraction) -> int:
    """The price of a cut on the lattice: public, so any rounding of it will do."""
    # Of all cuts of 2²⁴ cells together 2⁵⁸.
    most = 2**34
    return int(max(min(ceil(price * 2**LATTICE), most), -most))


def _run_errors(values: IntArray, first: IntArray, last: IntArray) -> IntArray:
    """The error of each run of cells, floored to the lattice."""
    errors: IntArray = bucket_deviations(values, first, last, 1 << LATTICE, 0, False)
    return errors


def cuts_ok(first: IntArray, middle: IntArray, last: IntArray, cells: int) -> bool:
    """Tell whether every cut parts a run of cells that the cuts before it left."""
    ends = {0: cells}
    for a, m, b in zip(first.tolist(), middle.tolist(), last.tolist(), strict=True):
        if not a < m < b or ends.get(a) != b:
            return False
        ends[a], ends[m] = m, b
    return True


def _check_size(layout: Layout) -> None:
    if layout.size > 2**24:
        raise MechanismError("bisections take at most 16,777,216 cells; coarsen the domain first")


def _cut(counts: IntArray) -> IntArray:
    # Errors of n cells that sum to 2⁴⁹ stay in 64 bits on the lattice, and so do their products with n ≤ 2²⁴ cells.
    return np.minimum(counts, 2**49 // max(1, counts.size))
