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
measurement is trusted by its precision, beside what the budget its cells still have could buy, and the more the fuller
the block around it was seen to be. They are *not* the inverse-variance weights of the finished tree, which depend on
the noise they weigh.

A block that the question cuts and that was not divided further holds between nothing and its total. So two sums are
estimated, one without such blocks and one with all of them, which enclose the truth whatever lies inside; what their
last measurements weigh is the rest that is lacking, settled when they are made. A *pool* of blocks that is cut could be
left out or counted whole like any block, but only one or two of its blocks are cut. On a line each end of a range lies
in one block of every level, known in advance. Noise of scale s is below −s·log(1/β) with probability at most β (the
discrete law's tail is a^⌈x⌉/(1 + a) with a = e^(−1/s)), Gaussian noise of variance 2s² below −2s·√log(1/β). Share a
small part of the error probability among both ends and all levels: then none of these blocks holds more than what was
first seen of it and that much. Whether the pool's total or this bound stands for the block is chosen by what the
blocks showed, before the total is measured, so the coefficient stays predictable.

**Finer answers.** A leaf that was looked at, with noise N₁ of scale s₁, and then asked for again (`PrivateCounts.look`)
has a finer answer of noise N₂, scale s₂, and N₁ = N₂ + E. Its second measurement is taken to be
Z = (N₂ − qN₁)/(1 − q) with q = (s₂/s₁)², which has no covariance with N₁. But it is not independent: whether the leaf
is asked for again may depend on N₁, and given N₁ the mean of Z is not zero. With x the coefficient of the first answer
and c that of the second, both times λ, and y = cs₂/(1 − q), finer answers cost k = c²s₂²/(1 − q) + y⁴g(θ), where
g(θ) = (ψ(θ) − θ²)/θ⁴, and the choice to ask for one costs f, whether it is asked for or not. A supermartingale needs

    E[exp(xN₁) · max(1, exp(−k) · E[exp(cZ) | N₁])] ≤ exp(f + x²s₁² + (xs₁)⁴ · g(θ)),

since the maximum is the worst that any choice made after the look can do. With θ the larger of |x|s₁ + |y|s₂/s₁ and
|y| + |x|s₂, f = 0.15|y|/(1 − θ²)² will do. Both sides are integrals, or sums, of exponentials in one or two variables.
That they stand in this order was computed for s₁/s₂ from 1.01 to 20 and θ up to 0.9, for the continuous law and for
discrete ones of several scales (``tests/inference/test_finer.py``); beyond θ = 0.9 nothing is claimed and no such λ is
used. For small λ it says that E[max(0, E[Z | N₁])], the bias that a choice by the first look can bring about, is at
most 0.15·s₂/(1 − q).

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

from dphist.inference.intervals import Spread, half_widths, possible
from dphist.inference.measured import MeasuredTree
from dphist.kernels.compile import only_read
from dphist.kernels.trees.predictable import cut_boxes, whole_nodes
from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# On a line, for what blocks of pools hold that an end of a range falls into; the rest is for the noise. On made-up ones
# widths are within 1 % of the best from 0.08 to 0.25.
_FOR_CUTS = 0.15
# Deviations that the λ are made for, and how the error probability is shared among them: in units of what ranges of a
# line have whose tree goes down to its cells, and of the whole budget's noise scale elsewhere.
_DEVIATIONS = tuple(math.sqrt(2.0) * 2.0**k for k in range(11))
_MASSES: tuple[float, ...] = (0.02, 0.06, 0.18, 0.26, 0.22, 0.12, 0.06, 0.03, 0.02, 0.02, 0.01)
_OF_FULL_LINES = (2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
_MASSES_ON_LINES: tuple[float, ...] = (0.06, 0.56, 0.24, 0.09, 0.03, 0.02)
# Those have this many noise scales of the whole budget, times the levels to the power of one and a half (of one under
# Gaussian noise): each level has its part of the budget, and adds its noise.
_FULL_LINE = 2.4
# A measurement is trusted as if what is left of the budget could measure the same total with this many times the
# variance that one block would have: between 1 (nothing is divided) and some 60 (all of it is). On made-up lines widths
# are within 2 % of the best from 15 to 100.
_DIVIDED = 25.0
# On a line, blocks that come of one with more records than 4 noise scales, times the root of how many they are, will be
# divided or pooled with others that hold much: their first measurement is trusted almost alone. On made-up lines widths
# are within 1 % of the best from 2 to 8.
_FULL = 4.0
# Of finer answers: the bias that picking them by a first look brings about, in their noise scales, at most; and up to
# which reach of a draw that was computed.
_PICKED, _COMPUTED = 0.15, 0.9
# What is left of a budget that was spent, to a float.
_SPENT = 1e-9


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
        """Bound every box by the noisy sum, give or take the quantile of that law."""
        from dphist.kernels.summed_area import box_sums

        terms = np.prod(np.maximum(high - low, 0), axis=1).astype(np.int64)
        spread = Spread.of_terms(terms, self.law)
        middle, width = box_sums(self.noisy.astype(np.float64), low, high), half_widths(spread, confidence)
        return possible(middle - width, middle + width)


@dataclass(frozen=True, eq=False)
class PredictableTree:
    """A measured tree with weights that were settled before the noise they weigh."""

    tree: MeasuredTree
    levels: int = 0
    """On a line, how many levels of blocks there may be, which is public; 0 where ends of a box are not two cells."""

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
        measured = (value, scale, seen, seen_scale, self._finer, self._trust)
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
        if tree.gradual:
            # A finer answer costs what the first look had not.
            last[twice] = 1.0 / np.sqrt(tree.variance[twice] / 2.0) - price[twice]
        joint = np.zeros(len(tree))
        above = tree.parent[1:]
        joint[1:] = np.where(tree.pool[above], 1.0 / scale[above], 0.0)
        return price, spent, float((spent + last + joint)[tree.first < 0].max())

    @cached_property
    def _finer(self) -> FloatArray:
        """Noise scales of the finer answers that nodes could be asked for, as parts of the first looks'; zero if none.

        Of a public price list: what a finer answer would have cost is what was left.
        """
        if not self.tree.gradual:
            return np.zeros(len(self.tree))
        price, spent, budget = self._prices
        left = np.maximum(budget - spent, 0.0)
        choice = (price > 0.0) & ~self.tree.pool & (left > _SPENT * budget)
        return np.where(choice, price / np.maximum(price + left, 1e-300), 0.0)

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
        trust = known / np.maximum(known + left**power / _DIVIDED, 1e-300)
        if not self.levels:
            return np.asarray(trust, dtype=np.float64)
        # Blocks of a pool were measured before it was: what was known then is the total of the block around them.
        tree = self.tree
        around = np.maximum(tree.parent, 0)
        around = np.where(tree.pool[around], np.maximum(tree.parent[around], 0), around)
        scale = np.where(price > 0.0, np.maximum(price, 1e-300) ** (-1.0 / self._cost), np.inf)
        blocks = tree.size[around] / np.maximum(tree.size, 1.0)
        full = np.where(np.isfinite(tree.variance[around]), tree.value[around], 0.0) / (
            scale * np.sqrt(blocks)
        )
        full = np.where(around == np.arange(len(tree)), 0.0, np.maximum(full, 0.0))
        return np.asarray(1.0 - (1.0 - trust) / (1.0 + (full / _FULL) ** 2), dtype=np.float64)

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
        """Bound every box, each with at least this confidence for a box fixed in advance."""
        asked = tuple(only_read(np.asarray(each, dtype=np.int64)) for each in (low, high))
        error, far = 1.0 - confidence, math.inf
        if self.levels:
            one = error * _FOR_CUTS / (2.0 * self.levels)
            far = 2.0 * math.sqrt(-math.log(one)) if self.tree.kind == "gaussian" else -math.log(one)
            error *= 1.0 - _FOR_CUTS
        ask: Any = cut_boxes  # sixteen arguments, by position
        found, noise, beyond = ask(*self._arrays, *self._whole, *asked, far)
        unit = (1.0 / self._budget) ** (1.0 / self._cost)
        deviations, masses = unit * np.array(_DEVIATIONS), _MASSES
        if self.levels:
            # The levels are one more than those that may be divided.
            full = _FULL_LINE * (self.levels + 1.0) ** (0.5 + 1.0 / self._cost)
            deviations, masses = unit * full * np.array(_OF_FULL_LINES), _MASSES_ON_LINES
        if self.tree.kind == "gaussian":
            # No draw is heavier than Gaussian: fourth moments and the largest draw are Laplace's.
            noise = noise * np.array([1.0, 0.0, 0.0, 0.0])
        low_reach, high_reach = (
            martingale_widths(noise[:, side], error / 2.0, deviations, masses) for side in range(2)
        )
        lower, upper = found[:, 0] - low_reach - beyond[:, 0], found[:, 1] + high_reach + beyond[:, 1]
        return possible(lower, upper)


def martingale_widths(
    noise: FloatArray, error: float, deviations: FloatArray, masses: tuple[float, ...]
) -> FloatArray:
    """How far sums of noises with predictable coefficients reach on one side, but for this error probability.

    With u = coefficient times scale of each draw, Σ ψ(λu) for ψ(x) = −log(1 − x²) is at most
    λ² Σ u² + λ⁴ Σ u⁴ · (ψ(θ) − θ²)/θ⁴, θ the largest λ|u|, as (ψ(x) − x²)/x⁴ grows with x. A mixture of the
    supermartingales of several λ is one too, so the reach is where the mixture comes to one over the error.

    Args:
        noise: A row for each sum: Σ u², Σ u⁴ and the largest |u|, and Σ |y| over choices to ask again.
        error: The probability that is allowed.
        deviations: What the λ are made for, fixed in advance.
        masses: How the probability is shared among them; they add up to one.
    """
    logs = np.log(np.array(masses))
    rates = math.sqrt(2.0 * math.log(1.0 / (error * max(masses)))) / deviations
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
    picked = _PICKED * rates * noise[:, 3:4] / (1.0 - safe) ** 2
    most = np.where(noise[:, 3:4] > 0.0, _COMPUTED**2, 1.0)
    return np.asarray(np.where(theta < most, costs + picked, np.inf), dtype=np.float64)
