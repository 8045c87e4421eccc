"""Faults that need no paper: quiet noise, wrong sensitivity, a question that was not paid for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.private.gate import PrivateCounts
from dphist.private.noise import Noise
from dphist.private.queries import Identity
from dphist.private.questions import IntArray, Layout


def peek(data: PrivateCounts) -> IntArray:
    """Read the counts behind a right, as only a cheat would."""
    counts = data._right[0]
    if counts is None:
        raise ValueError("there is nothing to steal behind a replay")
    return counts


@dataclass(frozen=True)
class _QuietIdentity(Identity):
    """Noise of 4/5 of what the promise needs."""

    def scales(self, layout: Layout) -> Fraction:
        return Fraction(4, 5)


@dataclass(frozen=True, kw_only=True)
class QuietNoise:
    """Every cell, with noise × 0.8."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask a query that breaks its promise."""
        noisy = data.measure(_QuietIdentity())
        return Estimate(noisy.values.astype(np.float64), IndependentNoise(noisy.scale))


@dataclass(frozen=True)
class _CellsAndTotal:
    """Every cell and their sum, at scale 1: one step moves two answers by one."""

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        return np.append(counts, counts.sum())

    def scales(self, layout: Layout) -> Fraction:
        return Fraction(1)


@dataclass(frozen=True, kw_only=True)
class WrongSensitivity:
    """Every cell and the total, noised as if only one of them could move."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask a query whose sensitivity is two and says one."""
        noisy = data.measure(_CellsAndTotal())
        return Estimate(noisy.values[:-1].astype(np.float64), IndependentNoise(noisy.scale))


@dataclass(frozen=True, kw_only=True)
class ForgottenHalf:
    """Every cell twice, each at the whole price: spends 2ε and charges ε."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask once through the gate, and once past it."""
        again = Noise.system().add_laplace(peek(data).copy(), data.unit_scale)
        noisy = data.measure(Identity())
        return Estimate((noisy.values + again.reshape(data.shape)) / 2.0, IndependentNoise(noisy.scale))


@dataclass(frozen=True, kw_only=True)
class TrueTotal:
    """Noisy cells, rescaled to the true total."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Use a total that was never paid for."""
        total = float(peek(data).sum())
        noisy = data.measure(Identity())
        counts = np.maximum(noisy.values, 0).astype(np.float64)
        return Estimate(counts * (total / max(1.0, counts.sum())), IndependentNoise(noisy.scale))
