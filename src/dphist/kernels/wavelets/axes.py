"""One axis of a cube and its transform: plain here, Haar and nominal beside.

An axis of ``size`` cells has ``slots`` coefficients. Slot k of the forward transform carries noise of scale
``sensitivity`` · its class; one step in a cell then moves Σ |Δₖ| ÷ scaleₖ ≤ 1 along the axis (each class says
why). The inverse gives cells times ``denominator``, a public whole number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Array = NDArray[Any]
Classes = tuple[tuple[Fraction, ...], IntArray]


class Axis:
    """What a transform of many dimensions needs to know of each of them: here, of an axis that is left as it is.

    ``size`` is how many cells it has.
    """

    size: int

    @property
    def slots(self) -> int:
        """How many coefficients."""
        return self.size

    @property
    def sensitivity(self) -> int:
        """P(A) of the paper: what one step moves, in units of the weights."""
        return 1

    @property
    def bound(self) -> float:
        """H(A) of the paper: how much of the noise's variance any range can gather, at most."""
        return float(self.size)

    @property
    def padded(self) -> int:
        """|A| of the paper, padding included."""
        return self.size

    @property
    def denominator(self) -> int:
        """What the inverse multiplies the cells by."""
        return 1

    @property
    def classes(self) -> Classes:
        """The noise scale of each slot over the sensitivity: distinct values, and which of them each slot has."""
        # One class of weight one, without an array to say so.
        return (Fraction(1),), np.broadcast_to(np.int64(0), (self.slots,))

    @property
    def depths(self) -> IntArray:
        """The level of each slot's coefficient in the tree: 0 for the base. Cells are the bases of sub-matrices."""
        return np.arange(self.size, dtype=np.int64)

    def forward(self, cells: Array) -> None:
        """Transform the middle axis of ``cells`` in place."""

    def inverse(self, cells: Array) -> None:
        """Undo `forward`, times the denominator."""

    @property
    def deviations(self) -> FloatArray:
        """The noise of each coefficient after `centre`, as a standard deviation over that of the base."""
        return np.ones(self.slots)

    def centre(self, cells: Array) -> None:
        """Turn noisy numbers into the paper's coefficients, in floating point."""

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """For each range of cells: squared weights summed over the coefficients, and the largest weight.

        Weights are those of normalised coefficients, whose noise all has the same scale.
        """
        length = np.maximum(high - low, 0).astype(np.float64)
        return length, np.minimum(length, 1.0)


@dataclass(frozen=True)
class PlainAxis(Axis):
    """An axis left as it is (in S_A of Privelet+): one step moves one cell by one, so sensitivity and weight are 1."""

    size: int
