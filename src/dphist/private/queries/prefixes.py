"""Half of the way to all prefix sums: the question whose square answers every prefix."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.toeplitz import FRACTION, inverse_series, triangle_product
from dphist.private.questions import LARGEST_SUM, IntArray, Layout, Moves, own_array, proven

_BITS = 16
# Beyond this the ceiling of a cell comes down to what cells may hold, and limbs of few bits make the product slow.
LONGEST = 1 << 20
INVERSE_UNIT = 2.0 ** -(_BITS + FRACTION)
"""What the numbers of `inverse_weights` are multiples of."""


@lru_cache(maxsize=16)
def root_weights(n: int) -> IntArray:
    """The first n coefficients of 1 ÷ √(1 − x), 1, 1/2, 3/8, 5/16 …, in whole 2⁻¹⁶ths: public integers."""
    weights, exact = [], 1 << 200
    for k in range(n):
        weights.append(exact >> (200 - _BITS))
        exact = exact * (2 * k + 1) // (2 * k + 2)
    return own_array(np.array(weights, dtype=np.int64))


@lru_cache(maxsize=4)
def inverse_weights(n: int) -> IntArray:
    """The first n coefficients of one over the series of `root_weights`, in units of 2^−(16 + FRACTION)."""
    return inverse_series(root_weights(n), _BITS, n)


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

    moves: ClassVar[Moves] = "nonnegative"

    @property
    def unit(self) -> Fraction:
        """The lattice step."""
        return Fraction(1, 1 << _BITS)

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Add up in integers, exactly (`dphist.kernels.toeplitz`); counts are cut at a public ceiling.

        So no sum overflows, and how the product is computed follows from the ceiling and the number of cells.
        """
        # What is cut moves by at most one when x does.
        ceiling = LARGEST_SUM // ((1 << _BITS) * max(1, layout.size))
        return triangle_product(self._weights(layout), np.clip(counts, -ceiling, ceiling), ceiling)

    def scales(self, layout: Layout) -> Fraction:
        """The sum of the weights."""
        return Fraction(int(self._weights(layout).sum()))

    def variances(self, layout: Layout) -> Fraction:
        """The sum of their squares."""
        # At most 2²⁰ squares of at most 2³²: whole numbers of 64 bits hold them.
        weights = self._weights(layout)
        return Fraction(int((weights * weights).sum()))

    def _weights(self, layout: Layout) -> IntArray:
        if layout.size > LONGEST:
            raise MechanismError(f"prefix roots take too long on more than {LONGEST:,} cells: use a tree")
        return root_weights(layout.size)
