"""Half of the way to all prefix sums: the question whose square answers every prefix."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.linear import triangle_product
from dphist.private.questions import IntArray, Layout, Moves, own_array, proven

_LARGEST_SUM = 2**62
_BITS = 16
# Every answer adds up all cells before it: beyond this it takes seconds.
LONGEST = 1 << 16


@lru_cache(maxsize=16)
def root_weights(n: int) -> IntArray:
    """The first n coefficients of 1 ÷ √(1 − x), 1, 1/2, 3/8, 5/16 …, in whole 2⁻¹⁶ths: public integers."""
    weights, exact = [], 1 << 200
    for k in range(n):
        weights.append(exact >> (200 - _BITS))
        exact = exact * (2 * k + 1) // (2 * k + 2)
    return own_array(np.array(weights, dtype=np.int64))


@proven
@dataclass(frozen=True)
class PrefixRoots:
    """On a line, answer i is Σ_{j ≤ i} w_{i−j}·x_j for the weights of `root_weights`.

    The weights' generating function is the root of that of all ones, so asking twice would give prefix sums, and
    undoing one of the two from a noisy answer leaves errors that are small for every prefix (the square-root
    factorisation of Fichtenberger, Henzinger and Upadhyay, 2023).

    One step in cell j moves answers j, j + 1, … by w₀, w₁, …; all weights are non-negative and the first cell's column
    is the longest. So Σ w is a scale and Σ w² a variance that keep the promises, in whole numbers.
    """

    moves: ClassVar[Moves] = "alike"

    @property
    def unit(self) -> Fraction:
        """The lattice step."""
        return Fraction(1, 1 << _BITS)

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Add up in integers; counts are cut at a public ceiling so that no sum overflows."""
        # min(x, c) moves by at most one when x does.
        ceiling = _LARGEST_SUM // ((1 << _BITS) * max(1, layout.size))
        answers: IntArray = triangle_product(self._weights(layout), np.minimum(counts, ceiling))
        return answers

    def scales(self, layout: Layout) -> Fraction:
        """The sum of the weights."""
        return Fraction(int(self._weights(layout).sum()))

    def variances(self, layout: Layout) -> Fraction:
        """The sum of their squares."""
        return Fraction(sum(weight * weight for weight in self._weights(layout).tolist()))

    def _weights(self, layout: Layout) -> IntArray:
        if layout.size > LONGEST:
            raise MechanismError(f"prefix roots take too long on more than {LONGEST:,} cells: use a tree")
        return root_weights(layout.size)
