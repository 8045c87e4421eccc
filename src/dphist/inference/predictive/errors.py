"""Calibrated intervals of anything measured as a tree, or cell by cell: what is published, give or take."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import CALIBRATED, How, Interval, Words, each_of, shared_confidence
from dphist.inference.intervals import joint_deviations, normal_quantile
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.law import BinaryTree, Law
from dphist.kernels.special import ROOT_HALF, each
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

if TYPE_CHECKING:
    from dphist.inference.guaranteed import Theorem
    from dphist.inference.predictive.learning import Learned

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Boxes = tuple[IntArray, IntArray, IntArray | None]
"""The boxes of questions, and where those of each start if one may have several."""

NEXT_TO_EXACT = 1e-6
"""The least variance that is reckoned with: below it no sum of cells is off by a record."""
# What plain least squares is allowed beyond its variance, where it serves better than the predictive law; what lies
# inside leaves that a question cuts counts twice beside its noise.
_PLAIN, _INSIDE = 1.2, 2.0
# Boxes of a size class have at most 1.5 times its cells.
_SAME_SIZE = 1.5
# From here on, in variances of its noise, a sum may be biased by more than noise; and one question departs too far.
_BIASED, _FAR = 1.1, 9.0
# Of what many intervals of several attributes may miss together, what the law may where a theorem may stand in for it:
# its tails fall with the fourth power, the theorem's exponentially. On lines it misses so little that both have all.
_OF_LAW = 2.0 / 3.0
# Where cells of several attributes were measured one by one, intervals that hold together reach at least 2 noise
# deviations to both sides of the noisy sum: the law is surest where it takes what it sees for noise.
_BEYOND = 2.0
# Trees with fewer deviations of noise in their total have nothing better to say than what is published.
_ENOUGH = 10.0


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """Cells that were measured one by one with noise of one law.

    Args:
        values: The noisy cells, an axis an attribute.
        law: Of the noise in each.
    """

    values: NDArray[Any]
    law: NoiseLaw

    @property
    def _variance(self) -> float:
        """That of the whole numbers that are drawn: at a large ε most noise is 0, and sums are next to exact."""
        return max(self.law.drawn_variance, NEXT_TO_EXACT)

    @cached_property
    def binary(self) -> BinaryTree:
        """A grid of cells, as a binary tree."""
        return BinaryTree.of_cells(self.values, self._variance)

    @cached_property
    def learned(self) -> Learned:
        """Learned from all cells."""
        # Loaded here, and below: who asks a file learns nothing.
        from dphist.inference.predictive.learning import learned_of_cells

        return learned_of_cells(self.values, self._variance)

    @cached_property
    def theorem(self) -> Theorem:
        """Sums of independent draws."""
        # Loaded here, and below: most intervals are calibrated.
        from dphist.inference.guaranteed import NoisySums

        return NoisySums(self.values, self.law)


@dataclass(frozen=True, eq=False)
class MeasuredBlocks:
    """Blocks that were measured as a tree.

    Args:
        tree: The blocks with their noisy totals.
        levels: On a line, how many levels of blocks there may be, which is public; 0 elsewhere.
    """

    tree: MeasuredTree
    levels: int = 0

    @cached_property
    def binary(self) -> BinaryTree:
        """Families, as a binary tree."""
        return BinaryTree.of_tree(self.tree)

    @cached_property
    def learned(self) -> Learned:
        """Learned from all splits."""
        from dphist.inference.predictive.learning import learned_of_tree

        return learned_of_tree(self.tree)

    @cached_property
    def theorem(self) -> Theorem:
        """A martingale over what was measured, in order."""
        from dphist.inference.guaranteed import PredictableTree

        return PredictableTree(self.tree, self.levels)


@dataclass(frozen=True, eq=False)
class PredictiveErrors:
    """Errors of published counts by the predictive law of the true ones.

    With m and V the law's mean and variance, V widened by how far the law was seen to be too smooth, the published
    answer is off by about √(V + (m − published)²): the interval widens where law and estimate disagree. Where plain
    least squares, with the same reckoning, promises less, its figure is taken. Worked out when first asked for.

    Args:
        measured: What was measured.
        counts: The published cells, where sums of many of them may be biased: they were inferred one by one, or pruned.
        pruned: Whether they come of a tree whose splits and boxes were pruned.
        law: The law; learned when first asked for if not given.
        departures: How far published sums of blocks of 1, 2, 4 … cells are from the noisy ones; as the law.
    """

    measured: MeasuredCells | MeasuredBlocks
    counts: FloatArray | None = None
    pruned: bool = False
    law: Law | None = None
    departures: FloatArray | None = None

    @cached_property
    def settled(self) -> PredictiveErrors:
        """The same with all that is learned at hand: what a file holds."""
        return self if self.law is not None else replace(self, law=self._law, departures=self._departures)

    @cached_property
    def _law(self) -> Law:
        return self.measured.learned.law if self.law is None else self.law

    @cached_property
    def _departures(self) -> FloatArray | None:
        if self.law is not None or self.counts is None:
            return self.departures
        return self.measured.learned.departures(self.counts)

    @cached_property
    def blocks(self) -> IntArray | None:
        """Where the blocks of a line begin that were not divided, in order; None where cells have several axes."""
        binary = self._law.binary
        if len(binary.shape) != 1:
            return None
        return np.sort(binary.low[binary.left < 0, 0]).astype(np.int64)

    def noisy_sums(self, workload: Workload) -> tuple[FloatArray, FloatArray] | None:
        """Sums of noisy cells with their variances; None where cells were not measured one by one."""
        if not isinstance(self.measured, MeasuredCells):
            return None
        sums = workload.answer(self.measured.values.reshape(workload.domain.shape))
        variance = self.measured.law.drawn_variance * workload.cells_in_each.astype(np.float64)
        return np.asarray(sums, dtype=np.float64), variance

    @property
    def words(self) -> Words:
        """Say how intervals are obtained."""
        return CALIBRATED

    def variance(self, workload: Workload) -> FloatArray:
        """Give the law's variance of every box, widened."""
        said = self._law.ask(*by_question(workload))
        known = self._law.hedged(said.known, said.noise, workload.cells_in_each)
        return (known + said.inner) * float(np.median(self._law.caution))

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Add up the published cells, or answer otherwise where sums of them are not to be trusted.

        Cells that were inferred one by one are biased, by less than their noise; over a long range bias adds up faster
        than noise does. How far published sums depart from the noisy ones is known, for boxes of every size. All of it
        is taken for bias, which over a part of a box is about that part of it: where that could exceed the noise of the
        question, or the question departs too far by itself, the law's mean or the noisy sum is the answer, whichever
        promises less error.

        Cells of a tree that was pruned, without negative ones, are biased too, and alike over large parts: a table of
        one attribute then had up to five times the error of plain least squares. There the answer is that one's, for
        questions and sizes that depart from it by more than its noise.
        """
        cells = workload.cells_in_each
        if self.counts is None or not (cells > 1).any():
            return summed
        if self.pruned and self._law.binary.deviations < _ENOUGH:
            return summed
        mean, known, inner, plain, noise = self._law.ask(*by_question(workload))
        if self.pruned:
            better = np.maximum(plain, 0.0)
        else:
            promised = self._law.caution_of(cells) * (self._law.hedged(known, noise, cells) + inner)
            better = np.where(promised < noise, mean, plain)
        departs = (plain - summed) ** 2 > _FAR * noise
        return np.where((cells > 1) & (departs | self._biased(cells)), better, summed)

    def _biased(self, cells: IntArray) -> NDArray[np.bool_]:
        """Whether sums of ``cells`` cells may be biased by more than their noise."""
        seen = np.zeros(0) if self._departures is None else self._departures
        most = 0 if self.counts is None else self.counts.size
        part = cells[:, None] / np.minimum(2.0 ** np.arange(seen.size), most)
        bias = np.where(part <= _SAME_SIZE, np.minimum(part, 1.0) * seen, 0.0).max(axis=1)
        return np.asarray(bias > _BIASED, dtype=np.bool_)

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stand on what is published, and be off by its distance from the law's mean."""
        return published, self._law.ask(*by_question(workload)).mean - published

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Give or take the root of what is expected of the squared error, in whole counts."""
        share = shared_confidence(confidence, len(workload), how)
        boxes = by_question(workload)
        if how.get("guaranteed"):
            return self._proven(boxes, published, share)
        deviation = np.sqrt(self.squares(*boxes, published))
        if share == confidence:
            return self.whole(published, deviation, asked_cells(*boxes), share)
        law = rest = share
        if len(workload.domain.shape) > 1:
            # Which of two stands is known only when both are, so that both may miss: each has its part of what may be.
            law, rest = (
                each_of(1.0 - (1.0 - confidence) * part, len(workload)) for part in (_OF_LAW, 1.0 - _OF_LAW)
            )
        found = self._together(boxes, published, deviation, confidence, law)
        proof = self._proven(boxes, published, rest)
        shorter = proof.high - proof.low < found.high - found.low
        if bool(shorter.all()):
            return self._proven(boxes, published, share)
        return Interval(np.where(shorter, proof.low, found.low), np.where(shorter, proof.high, found.high))

    def _together(
        self, boxes: Boxes, published: FloatArray, deviation: FloatArray, confidence: float, share: float
    ) -> Interval:
        """What the law says where each must hold with this share, for all to hold with that confidence."""
        times = joint_deviations(confidence, share)
        found = self.whole(published, times / normal_quantile(share) * deviation, asked_cells(*boxes), share)
        if not isinstance(self.measured, MeasuredCells) or self.measured.values.ndim == 1:
            return found
        noisy, noise = self._law.ask(*boxes)[3:]
        low, high = whole_counts(noisy, _BEYOND * np.sqrt(noise))
        return Interval(np.minimum(found.low, low), np.maximum(found.high, high))

    def _proven(self, boxes: Boxes, published: FloatArray, confidence: float) -> Interval:
        """What holds for any data, with what is published inside."""
        least, most = proven(self.measured.theorem, *boxes, confidence)
        return Interval(*outward(np.minimum(least, published), np.maximum(most, published)))

    def whole(
        self, published: FloatArray, deviation: FloatArray, cells: FloatArray, confidence: float
    ) -> Interval:
        """Whole counts that hold as often as they promise, by a normal law of the error.

        Where cells were measured one by one, those of a single cell are the fewest that do: their law is nearly exact,
        and rounding outward would be most of a narrow interval. Elsewhere rounding outward stays, as a reserve for what
        was not measured.
        """
        deviations = normal_quantile(confidence)
        low, high = whole_counts(published, deviations * deviation)
        alone = cells == 1.0
        if self.counts is not None and not self.pruned and alone.any():
            low[alone], high[alone] = likeliest_counts(
                published[alone], deviation[alone], deviations, confidence
            )
        return Interval(low, high)

    def squares(
        self, low: IntArray, high: IntArray, starts: IntArray | None, published: FloatArray
    ) -> FloatArray:
        """Expected squared errors of published answers; question j has the boxes ``starts[j]`` to ``starts[j + 1]``."""
        mean, known, inner, plain, noise = self._law.ask(low, high, starts)
        cells = asked_cells(low, high, starts)
        uncertain = self._law.caution_of(cells) * (self._law.hedged(known, noise, cells) + inner)
        return self._law.overlap * np.minimum(
            uncertain + (mean - published) ** 2,
            _PLAIN * (noise + _INSIDE * inner) + (plain - published) ** 2,
        )


def by_question(workload: Workload) -> Boxes:
    """The boxes of a workload, those of one question side by side, and where each question starts."""
    if workload.query is None:
        return workload.low, workload.high, None
    order = np.argsort(workload.query, kind="stable")
    # A question without boxes gets an empty one: nothing, for certain.
    count = np.bincount(workload.query, minlength=len(workload))
    missing = np.flatnonzero(count == 0)
    low, high, query = workload.low[order], workload.high[order], workload.query[order]
    if missing.size:
        none = np.zeros((missing.size, low.shape[1]), dtype=np.int64)
        query = np.concatenate([query, missing])
        again = np.argsort(query, kind="stable")
        low, high = np.concatenate([low, none])[again], np.concatenate([high, none])[again]
        count = np.maximum(count, 1)
    return low, high, np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def asked_cells(low: IntArray, high: IntArray, starts: IntArray | None) -> FloatArray:
    """How many cells every question is about."""
    cells: FloatArray = np.prod(np.maximum(high - low, 0).astype(np.float64), axis=1)
    if starts is None:
        return cells
    return np.add.reduceat(cells, starts[:-1]) if cells.size else np.zeros(0)


def proven(
    theorem: Theorem, low: IntArray, high: IntArray, starts: IntArray | None, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Guaranteed bounds for questions of one box or several: by the union bound over a question's boxes."""
    if starts is None:
        return theorem.bounds(low, high, confidence)
    boxes = np.diff(starts)
    least, most = np.zeros(len(low)), np.zeros(len(low))
    for count in np.unique(boxes):
        here = np.flatnonzero(np.repeat(boxes == count, boxes))
        share = each_of(confidence, int(count))
        least[here], most[here] = theorem.bounds(low[here], high[here], share)
    return np.add.reduceat(least, starts[:-1]), np.add.reduceat(most, starts[:-1])


def outward(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut at zero and round to whole counts, away from the middle: the truth is a whole count."""
    return np.floor(np.maximum(low, 0.0) + 1e-6), np.ceil(np.maximum(high, 0.0) - 1e-6)


def whole_counts(
    published: FloatArray, below: FloatArray, above: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Published, give or take a width, cut at zero: the nearest whole counts, with what is published between them.

    The truth is a whole count, and a law of errors that knows no such thing gives count k what lies within a half of
    it. So the counts whose halves cover the interval hold as often as it does (the correction for continuity).
    """
    above = below if above is None else above
    low = np.minimum(np.rint(published - below), np.floor(published + 1e-6))
    high = np.maximum(np.rint(published + above), np.ceil(published - 1e-6))
    return np.maximum(low, 0.0), np.maximum(high, 0.0)


def likeliest_counts(
    published: FloatArray, deviation: FloatArray, deviations: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """The fewest whole counts in a row that have this much of the law, and what is published between the bounds.

    Count k has what a normal law about the published one gives to (k − ½, k + ½). Counts within ``deviations`` (the
    normal law's to both sides, for this confidence) have more than is needed; so the least likely at either end are
    dropped while enough is left. What the law has below zero counts as missed, though no count lies there: a reserve,
    as errors of what is nearly empty lie above.

    Args:
        published: The counts.
        deviation: Of the error of each.
        deviations: How many the normal law needs to either side.
        confidence: How often the counts between the bounds are to hold.

    Returns:
        The bounds.
    """
    nearest = np.maximum(np.rint(published), 0.0)
    first = np.clip(np.rint(published - deviations * deviation), 0.0, nearest)
    last = np.maximum(np.rint(published + deviations * deviation), nearest)
    at = np.flatnonzero((deviation > 0.0) & (first < last))

    def below(count: FloatArray) -> FloatArray:
        return 0.5 * each(math.erfc, (published[at] - count) / deviation[at] * ROOT_HALF)

    spare = np.zeros(published.shape)
    spare[at] = below(last[at] + 0.5) - below(first[at] - 0.5) - confidence
    while at.size:
        # The farther, the less likely; of two as far the upper one goes, whatever rounding makes of their shares.
        farther = last[at] - published[at] >= published[at] - first[at]
        from_above = (last[at] > nearest[at]) & (farther | (first[at] >= nearest[at]))
        edge = np.where(from_above, last[at], first[at])
        share = below(edge + 0.5) - below(edge - 0.5)
        go = share <= spare[at]
        at, from_above, share = at[go], from_above[go], share[go]
        last[at] -= from_above
        first[at] += ~from_above
        spare[at] -= share
        at = at[first[at] < last[at]]
    # Rounding below zero leaves a zero with a sign.
    return np.minimum(first, np.maximum(published, 0.0)) + 0.0, np.maximum(last, published)
