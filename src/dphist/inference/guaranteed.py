"""Guaranteed intervals: a theorem for any data and a question fixed in advance, also on trees that noise has shaped.

**What is proven.** Let a question be fixed before the release is made. The interval holds the true answer with at least
the stated probability over the noise, whatever the data are.

**Why.** A tree is measured step by step; which block is measured next, and with how much of the budget, depends on
earlier noise only. Give measurement j a coefficient cⱼ that depends on earlier measurements only (*predictable*), such
that along every path of measured blocks the coefficients of the blocks over a cell add up to what the question asks of
that cell. Then Σ cⱼ·(measured total)ⱼ is the true answer plus Σ cⱼNⱼ. With ψ(u) = −log(1 − u²) ≥ the logarithm of the
moment generating function of Laplace noise of scale 1 (continuous; the discrete law's is smaller, as the continuous is
the discrete plus an independent symmetric rest), exp(λ Σ cⱼNⱼ − Σ ψ(λcⱼsⱼ)) is a positive supermartingale that starts
at 1. By Markov's inequality Σ cⱼNⱼ exceeds (log(1/β) + Σ ψ(λcⱼsⱼ))/λ with probability at most β, for a λ fixed in
advance. Under Gaussian noise of variance v the same holds with ψ(u) = u²v/2, which the discrete law obeys as well
(Canonne, Kamath and Steinke, 2020). A mixture over several λ stands in for the best one, which would depend on the
data: it is a supermartingale too.

The coefficients used are those of least squares for the plan as it looks when a block is measured: a block's own
measurement is trusted by its precision, beside what the budget its cells still have could buy. They are *not* the
inverse-variance weights of the finished tree, which depend on the noise they weigh.

A block that the question cuts and that was not divided further holds between nothing and its total; its total is
bounded above by the same argument, with a small part of the error probability.

Where noise does not depend on the data at all, a sum's law is known and no martingale is needed: `NoisySums`, and
`dphist.inference.intervals.chernoff_widths`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.inference.intervals import Spread, half_widths
from dphist.inference.measured import MeasuredTree
from dphist.kernels.trees.predictable import cut_boxes, whole_nodes
from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# For the bounds on what lies in blocks that are cut; the rest is for the noise.
_FOR_CUTS = 0.15
# Deviations that the λ are made for, in noise scales of the whole budget, and how the error probability is shared among
# them: most for what ranges on trees of a few levels have.
_DEVIATIONS = tuple(math.sqrt(2.0) * 2.0**k for k in range(11))
_MASSES = (0.02, 0.06, 0.18, 0.26, 0.22, 0.12, 0.06, 0.03, 0.02, 0.02, 0.01)
# A measurement is trusted as if what is left of the budget could measure the same total with this many times the
# variance that one block would have: between 1 (nothing is divided) and some 60 (all of it is). On made-up lines widths
# are within 2 % of the best from 6 to 50.
_DIVIDED = 12.0


class Theorem(Protocol):
    """Bounds for any data and a box fixed in advance."""

    def bounds(self, low: IntArray, high: IntArray, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Bound every box, each with at least this confidence."""
        ...


@dataclass(frozen=True, eq=False)
class NoisySums:
    """Cells that each carry a draw of their own, of one law: a range carries a sum of draws whose law is known."""

    noisy: NDArray[Any]
    law: NoiseLaw

    def bounds(self, low: IntArray, high: IntArray, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Bound every box by the noisy sum, give or take the quantile of that law.

        Args:
            low: The first cell of every box on every axis.
            high: One past the last.
            confidence: The probability with which each interval holds the truth, at least.

        Returns:
            Lower and upper bounds; neither is below zero.
        """
        from dphist.kernels.summed_area import box_sums

        terms = np.prod(np.maximum(high - low, 0), axis=1).astype(np.int64)
        spread = Spread.of_terms(terms, self.law)
        middle, width = box_sums(self.noisy.astype(np.float64), low, high), half_widths(spread, confidence)
        return np.maximum(middle - width, 0.0), np.maximum(middle + width, 0.0)


@dataclass(frozen=True, eq=False)
class PredictableTree:
    """A measured tree with weights that were settled before the noise they weigh."""

    tree: MeasuredTree

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        tree = self.tree
        value, variance = tree.again()
        scale = np.sqrt(variance / 2.0)
        seen = np.zeros(len(tree)) if tree.seen is None else np.where(np.isfinite(tree.seen), tree.seen, 0.0)
        seen_scale = np.full(len(tree), np.inf)
        if tree.seen_variance is not None:
            seen_scale = np.sqrt(tree.seen_variance / 2.0)
        bounds = (np.ascontiguousarray(tree.low), np.ascontiguousarray(tree.high))
        measured = (value, scale, seen, seen_scale, self._trust)
        return (tree.first, tree.last, tree.pool, *bounds, tree.size, *measured)

    @cached_property
    def _prices(self) -> tuple[FloatArray, FloatArray, float]:
        """What the first measurement of each node cost, what its path had then spent, and the whole budget.

        Laplace noise of scale s costs 1/s, Gaussian noise of its variance 1/s², and every path spends the budget: a
        public price list.
        """
        tree = self.tree
        scale = np.sqrt(tree.again()[1] / 2.0) ** self._cost
        twice = np.zeros(len(tree), dtype=bool)
        once = scale.copy()
        if tree.seen_variance is not None:
            twice = np.isfinite(tree.seen_variance)
            once[twice] = np.sqrt(tree.seen_variance[twice] / 2.0) ** self._cost
        price = np.where(np.isfinite(once), 1.0 / once, 0.0)
        # Blocks of a pool were measured before it was.
        spent = np.where(tree.pool, 0.0, price)
        for start, stop in self._levels:
            spent[start:stop] += spent[tree.parent[start:stop]]
        last = np.where(twice, 1.0 / scale, 0.0)
        joint = np.zeros(len(tree))
        above = tree.parent[1:]
        joint[1:] = np.where(tree.pool[above], 1.0 / scale[above], 0.0)
        return price, spent, float((spent + last + joint)[tree.first < 0].max())

    @property
    def _cost(self) -> int:
        return 2 if self.tree.kind == "gaussian" else 1

    @property
    def _budget(self) -> float:
        return self._prices[2]

    @cached_property
    def _trust(self) -> FloatArray:
        """How much a first measurement is trusted beside what the budget that is left can buy."""
        price, spent, budget = self._prices
        left = np.maximum(budget - spent, 0.0)
        # Precision is the square of the price under Laplace noise, and the price itself under Gaussian noise.
        power = 2 // self._cost
        known = price**power
        return np.asarray(known / np.maximum(known + left**power / _DIVIDED, 1e-300), dtype=np.float64)

    @cached_property
    def _levels(self) -> list[tuple[int, int]]:
        """Runs of nodes whose parents all come before the run: breadth first, a level each."""
        runs, start = [], 1
        while start < len(self.tree):
            stop = start + int(np.searchsorted(self.tree.parent[start:], start))
            runs.append((start, stop))
            start = stop
        return runs

    @cached_property
    def _whole(self) -> tuple[FloatArray, FloatArray]:
        first, last, pool, _, _, _, *measured = self._arrays
        total, made = whole_nodes(first, last, pool, *measured)
        return total, made

    def bounds(self, low: IntArray, high: IntArray, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Bound every box, each with at least this confidence for a box fixed in advance.

        Args:
            low: The first cell of every box on every axis.
            high: One past the last.
            confidence: The probability with which each interval holds the truth, at least.

        Returns:
            Lower and upper bounds; neither is below zero.
        """
        asked = (np.ascontiguousarray(low, dtype=np.int64), np.ascontiguousarray(high, dtype=np.int64))
        ask: Any = cut_boxes  # fifteen arrays, by position
        found, noise, cuts = ask(*self._arrays, *self._whole, *asked)
        unit = (1.0 / self._budget) ** (1.0 / self._cost)
        if self.tree.kind == "gaussian":
            # No draw is heavier than Gaussian: fourth moments and the largest draw are Laplace's.
            noise = noise * np.array([1.0, 0.0, 0.0])
        error = 1.0 - confidence
        width = martingale_widths(noise[:, 0], error * (1.0 - _FOR_CUTS) / 2.0, unit)
        if len(self.tree.shape) == 1:
            missing, surplus = self._at_the_ends(cuts, error * _FOR_CUTS / 2.0)
        else:
            side = error * _FOR_CUTS / 2.0
            missing, surplus = (found[:, k] + martingale_widths(noise[:, k], side, unit) for k in (1, 2))
        lower = found[:, 0] - width - np.maximum(surplus, 0.0)
        return np.maximum(lower, 0.0), np.maximum(found[:, 0] + width + np.maximum(missing, 0.0), 0.0)

    def _at_the_ends(self, cuts: FloatArray, error: float) -> tuple[FloatArray, FloatArray]:
        """What blocks at the two ends of a range may hide: one draw of known scale each, so no martingale is needed.

        Which block an end falls into is settled before its last measurement, whose noise exceeds s·log(1/β) with
        probability at most β (the discrete law may put up to twice as much beyond as the continuous); Gaussian noise of
        that variance exceeds 2s·√log(1/β) so, by Chernoff's bound.
        """
        value, scale = self._arrays[6], self._arrays[7]
        needed = math.log(1.0 / error)
        reach = 2.0 * math.sqrt(needed) if self.tree.kind == "gaussian" else needed
        node = cuts[:, :, 0].astype(np.int64)
        none = node < 0
        most = np.maximum(value[node] + scale[node] * reach, 0.0)
        most[none] = 0.0
        weights = np.where(none[:, :, None], 0.0, cuts[:, :, 1:])
        return (most * weights[:, :, 0]).sum(axis=1), (most * weights[:, :, 1]).sum(axis=1)


def martingale_widths(noise: FloatArray, error: float, unit: float) -> FloatArray:
    """How far sums of noises with predictable coefficients reach on one side, but for this error probability.

    With u = coefficient times scale of each draw, Σ ψ(λu) for ψ(x) = −log(1 − x²) is at most
    λ² Σ u² + λ⁴ Σ u⁴ · (ψ(θ) − θ²)/θ⁴, θ the largest λ|u|, as (ψ(x) − x²)/x⁴ grows with x. A mixture of the
    supermartingales of several λ is one too, so the reach is where the mixture comes to one over the error.

    Args:
        noise: A row for each sum: Σ u², Σ u⁴ and the largest |u|.
        error: The probability that is allowed.
        unit: The scale of noise that the whole budget buys, which the λ are stated in.

    Returns:
        The reach of each sum.
    """
    logs = np.log(np.array(_MASSES))
    rates = math.sqrt(2.0 * math.log(1.0 / (error * max(_MASSES)))) / (np.array(_DEVIATIONS) * unit)
    costs = _costs(rates, noise)
    needed = -math.log(error)
    # The least reach that one λ alone would give is too far; the mixture's lies below it.
    far = ((needed - logs + costs) / rates).min(axis=1)
    near = np.zeros_like(far)
    for _ in range(40):
        middle = (near + far) / 2.0
        weight = rates * middle[:, None] - costs + logs
        most = weight.max(axis=1)
        reached = most + np.log(np.exp(weight - most[:, None]).sum(axis=1)) >= needed
        far, near = np.where(reached, middle, far), np.where(reached, near, middle)
    return np.where(noise[:, 0] > 0.0, far, 0.0)


def _costs(rates: FloatArray, noise: FloatArray) -> FloatArray:
    """The logarithm of the moment generating function of every sum at every rate, at most; sums × rates."""
    theta = (rates * noise[:, 2:3]) ** 2
    safe = np.clip(theta, 1e-6, 1.0 - 1e-12)
    excess = np.where(theta > 1e-6, (-np.log1p(-safe) - safe) / safe**2, 0.5 + theta / 3.0)
    costs = rates**2 * noise[:, 0:1] + rates**4 * noise[:, 1:2] * excess
    return np.asarray(np.where(theta < 1.0, costs, np.inf), dtype=np.float64)
