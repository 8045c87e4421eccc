"""Sharing a budget among tables of a cube: the shares with the least expected error over all kinds of questions.

A table that spends a share knows every residual inside it, the better the larger the share; what is known is mixed with
what residuals hold by themselves. The least product of errors is found by steps of sums and products alone. Nothing
here reads a count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dphist.arrays import FloatArray
from dphist.mechanisms.trees.planning import WASTE

# Steps of the search; the error is flat near its least: where it was tried, 80 came within a thousandth of it.
_STEPS = 80


def mixed(precision: FloatArray, held: FloatArray, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The squared error of what is measured with a precision and shrunk, and how fast that falls with the precision.

    ``held`` has a row for each thing that may be so, ``chances`` how likely each is.

    The better mix of a measurement and of nothing has error h / (1 + h·precision), where h is what is there; a part of
    the noise stays wherever the same mix serves all of them.
    """
    parts = np.append((1.0 - WASTE) * chances, WASTE)[:, None]
    one = np.vstack([held, chances @ held])
    mix = one / (1.0 + one * precision[..., None, :])
    return (parts * mix).sum(axis=-2), (parts * mix**2).sum(axis=-2)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The problem of sharing a budget among tables: errors of each kind, and the shares with the least product."""

    speaks: FloatArray
    adds: FloatArray
    weights: FloatArray
    held: FloatArray
    chances: FloatArray
    power: int
    least: float
    """What the last table, the cube, must have."""
    cells: FloatArray
    orders: FloatArray
    """How many cells and attributes each residual has."""

    def precision(self, share: FloatArray) -> FloatArray:
        """How precisely every residual is known, for any number of rows of shares."""
        return np.asarray((self.speaks * share[..., None, :] ** self.power).sum(axis=-1), dtype=np.float64)

    def _each(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The squared error of every residual, and how fast it falls with its precision."""
        precision = self.precision(share)
        if not self.chances.size:
            precision = np.maximum(precision, 1e-100)
            return 1.0 / precision, 1.0 / precision**2
        return mixed(precision, self.held, self.chances)

    def errors(self, share: FloatArray) -> FloatArray:
        """The mean squared error of every kind of question."""
        return np.asarray(self._each(share)[0] @ self.adds.T, dtype=np.float64)

    def best(self, orders: Sequence[int], *, alone: bool = True) -> FloatArray:
        """Shares are scaled by a power of their gain until all gain alike; starts favour tables of every order.

        The last table may have it all by default.
        """
        order = np.array(orders)
        favoured = order == np.unique(order)[:, None]
        share = favoured / favoured.sum(axis=1, keepdims=True) + 0.5 / order.size
        share /= share.sum(axis=1, keepdims=True)
        for _ in range(_STEPS):
            error, slope = self._each(share)
            pull = (self.weights / np.maximum(error @ self.adds.T, 1e-300)) @ self.adds * slope
            gain = (pull @ self.speaks) * share ** (self.power - 1)
            share *= np.sqrt(gain / np.maximum(gain.max(axis=1, keepdims=True), 1e-300))
            share /= share.sum(axis=1, keepdims=True)
            low = share[:, -1] < self.least
            others = np.maximum(share[low, :-1].sum(axis=1, keepdims=True), 1e-300)
            share[low, :-1] *= (1.0 - self.least) / others
            share[low, -1] = self.least
        if alone:
            # Sharing may win nothing, which steps from the inside do not find.
            share = np.vstack([share, np.arange(order.size) == order.size - 1])
        scores = np.log(np.maximum(self.errors(share), 1e-300)) @ self.weights
        return np.asarray(share[int(np.argmin(scores))])
