"""Sound mechanisms with one thing broken underneath them: the faults a change to the trusted core could bring in.

`Mutant(inner, fault)` hands any mechanism a right whose noise or price was tampered with (`FAULTS`).

`SharedKeystream` and `ReusedSeed` are the last fault with nothing else around it: two processes forked from one keep
its keystream, and each counts its half of the cells with the same noise; two phases draw from one seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.tables.published import TableEstimate
from dphist.mechanisms.protocol import Mechanism
from dphist.private.gate import PrivateCounts
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Identity, Totals
from dphist.private.questions import IntArray
from dphist.private.scores.counting import Disagreements

Fault = Literal["quiet", "halved", "unpaid", "insensitive", "greedy", "reseeded"]

FAULTS: dict[Fault, str] = {
    "quiet": "every Laplace scale × 0.8",
    "halved": "every Laplace scale × 0.5",
    "unpaid": "noise for 2ε, charged as ε",
    "insensitive": "choices as if scores moved half as far",
    "greedy": "choices without noise: the best candidate wins",
    "reseeded": "every question draws from one seed",
}


class _Quiet(Noise):
    def __init__(self, keystream: Keystream, factor: Fraction) -> None:
        super().__init__(keystream)
        self._factor = factor

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        return super().add_laplace(values, scale * self._factor, out)

    def add_gaussian(self, values: IntArray, variance: Fraction, out: IntArray | None = None) -> IntArray:
        return super().add_gaussian(values, variance * self._factor**2, out)


class _Insensitive(Noise):
    def select(self, scores: IntArray, starts: IntArray, rate: Any, *more: Any) -> IntArray:
        return super().select(scores, starts, 2 * rate, *more)


class _Greedy(Noise):
    def select(self, scores: IntArray, starts: IntArray, rate: Any, *more: Any) -> IntArray:
        return np.array([np.argmax(scores[first:last]) for first, last in pairwise(starts)], dtype=np.int64)


class _Reseeded(Noise):
    def __init__(self, keystream: Keystream) -> None:
        super().__init__(keystream)
        self._seed = keystream.take(32).tobytes()

    def _again(self) -> Noise:
        return Noise(Keystream.for_tests(self._seed))

    def add_laplace(self, *given: Any) -> IntArray:
        return self._again().add_laplace(*given)

    def add_gaussian(self, *given: Any) -> IntArray:
        return self._again().add_gaussian(*given)

    def select(self, *given: Any) -> IntArray:
        return self._again().select(*given)


_TAMPERED: dict[Fault, Callable[[Keystream], Noise]] = {
    "quiet": lambda keystream: _Quiet(keystream, Fraction(4, 5)),
    "halved": lambda keystream: _Quiet(keystream, Fraction(1, 2)),
    "insensitive": _Insensitive,
    "greedy": _Greedy,
    "reseeded": _Reseeded,
}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A mechanism on tampered ground."""

    inner: Mechanism
    fault: Fault

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Break one thing behind the gate, then go on as usual."""
        keystream = data._noise_source().keystream
        if self.fault == "unpaid":
            data._budget = data._budget.share(Fraction(2))
        else:
            data._noise = _TAMPERED[self.fault](keystream)
        return self.inner.estimate(data)


@dataclass(frozen=True, kw_only=True)
class Quieter:
    """A mechanism whose noise, Laplace or Gaussian, has this part of the scale or deviation that was paid for."""

    inner: Mechanism
    factor: Fraction

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Make the noise smaller, then go on as usual."""
        data._noise = _Quiet(data._noise_source().keystream, self.factor)
        return self.inner.estimate(data)


@dataclass(frozen=True, kw_only=True)
class OneChoice:
    """Spends everything on one choice between two boxes, and publishes which: sound, and as tight as a choice can be.

    A record in the first cell moves the first box nearer its guess and the second further from its own, so the whole
    range of two is used.
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose the box that is further from its guess."""
        low, high = np.zeros((2, 1), dtype=np.int64), np.array([[1], [data.size]])
        size, scale = data.size, data.unit_scale
        pick = data.choose(Disagreements(low, high, np.array([3, 0])))
        return Estimate(np.full(size, float(pick[0, 0])), IndependentNoise(scale))


@dataclass(frozen=True, kw_only=True)
class SharedKeystream:
    """The left and the right half of the cells, counted by two processes that were forked from one."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Give both sides the same bytes."""
        scale = data.unit_scale
        one, other = data.partition(np.arange(data.size) % 2).select(np.array([True, False]))
        seed = Keystream().take(32).tobytes()
        for right in (one, other):
            right._noise = Noise(Keystream.for_tests(seed))
        left, right_half = one.measure(Identity()), other.measure(Identity())
        counts = np.empty(left.values.size + right_half.values.size)
        counts[::2], counts[1::2] = left.values, right_half.values
        return Estimate(counts, IndependentNoise(scale))


@dataclass(frozen=True, kw_only=True)
class ReusedSeed:
    """Cells with half of the budget, then the total with the other half, both from the start of one keystream."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Draw twice from one seed."""
        seed = Keystream().take(32).tobytes()
        first, second = data.split(Fraction(1, 2), Fraction(1, 2))
        for right in (first, second):
            right._noise = Noise(Keystream.for_tests(seed))
        # One draw each, so that both phases meet the same bytes.
        first = first.coarsen(np.minimum(np.arange(first.size), 1)).arrange([0])
        cell, total = first.measure(Identity()), second.measure(Totals())
        counts = np.append(cell.values, total.values).astype(np.float64)
        return Estimate(counts, IndependentNoise(cell.scale))
