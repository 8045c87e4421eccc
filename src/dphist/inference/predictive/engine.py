"""The predictive law of any sum of cells, given everything that was measured as a tree.

No budget is spent: only released values are read. Given a prior of how totals divide, which parts of a tree were
measured, and why, drops out of the posterior; so the law holds whatever rule grew the tree, as far as the prior does.
The prior is learned from the measured splits themselves (see `dphist.kernels.predictive.splits`), and how far that
was too smooth is checked against plain least squares, whose errors are known (`Engine.caution`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.law import Law, deviations_of
from dphist.inference.predictive.trials import size_classes as count_classes
from dphist.inference.predictive.trials import trial_boxes
from dphist.kernels.predictive.halving import halve_cells, halve_families
from dphist.kernels.predictive.splits import best_totals
from dphist.kernels.predictive.ways import WAYS, size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Variances are never below so many times what the prior says: what it gets wrong on average.
LEAST_CAUTION = 1.1
# A tree that stopped early taught the prior little: the least caution grows with one over the root of how many
# deviations of its noise the total is.
_LITTLE_LEARNED = 1.5
# The same where cells were measured one by one, and a total beside them.
_TOLD_OF_FEW = 3.0
# How much of what the law claims to know beyond plain least squares is not believed, on a line. Errors of a learned
# prior are shared by all splits it was applied to, so they add up over long ranges, which no variance of splits
# shows. On 23 made-up lines (92 cases, 12 draws) 1 then fell below 0.93 for ranges and none for lists; 2 and 4 before.
_DOUBT = 0.25
# The same in a tree, whose counts have since been averaged with the law's means: on drawn lines 300 to 344 (6 draws) 1
# of 43 cases of each kind falls below 0.93 with 0.25 as with 0.1, and means go from 0.983 to 0.980.
_DOUBT_OF_TREES = 0.2
# Where every cell was measured, sums of more cells than this are hedged. On 13 made-up lines (52 cases, 8 draws) lists
# and long ranges then hold in 0.95 of each case at least; in 0.92 without.
_LONG_SUM = 32.0
# What all squared errors on planes are scaled by, as what is added for leaves, for caution and for the distance from
# the law's mean overlaps. Of 62 made-up and drawn ones (100 to 129, 3 draws) 2 of 248 cases then fall below 0.93, as
# before; rectangles on average hold in 0.98.
_OVERLAP_ON_PLANES = 0.9
# A plane that was looked at step by step has larger blocks where records are few, and what lies inside is the larger
# part of what is unknown: squared errors are larger by so much over the root of how many deviations of its noise the
# total is. Of made-up planes with 10,000 records the least, a diagonal at ε = 0.1, then holds in 0.94 (24 draws); in
# 0.91 without it (12 draws), and in 0.95 where it was not looked at step by step.
_STEP_BY_STEP = 2.2


@dataclass(frozen=True, eq=False)
class Engine(Law):
    """The law with how far it is to be trusted; made by `of_tree` or `of_cells`, asked by `ask`."""

    least_caution: float = LEAST_CAUTION
    doubt: float = 0.0
    doubted_from: float = 0.0
    """Questions about more cells than this are hedged."""
    overlap: float = 1.0
    """Squared errors are scaled by this."""

    @classmethod
    def of_tree(cls, tree: MeasuredTree, *, near: bool = False) -> Engine:
        """Read a measured tree: boxes with noisy totals, siblings side by side; perhaps one grown step by step.

        On a line measured splits count by what they tell of the inside of leaves.
        """
        left, low, high, size, value, variance = halve_families(
            tree.first,
            tree.last,
            np.ascontiguousarray(tree.low, dtype=np.int64),
            np.ascontiguousarray(tree.high, dtype=np.int64),
            np.ascontiguousarray(tree.size, dtype=np.float64),
            tree.value,
            tree.variance,
        )
        best, spread = best_totals(left, value, variance)
        seen = math.sqrt(deviations_of(best, spread))
        least = LEAST_CAUTION * (1.0 + _LITTLE_LEARNED / seen)
        doubt = _DOUBT_OF_TREES if len(tree.shape) == 1 else 0.0
        overlap = _OVERLAP_ON_PLANES if len(tree.shape) == 2 else 1.0
        overlap *= 1.0 + _STEP_BY_STEP / seen if near else 1.0
        return cls(
            *(tuple(tree.shape), left, low, high, size, best, spread, least, doubt),
            overlap=overlap,
            wary=len(tree.shape) == 1,
        )

    @classmethod
    def of_cells(
        cls, noisy: NDArray[Any], variance: float, total: tuple[float, float] | None = None
    ) -> Engine:
        """Read noisy cells that all carry noise of the same variance, and perhaps a total with its own."""
        left, low, high, cell = halve_cells(np.array(noisy.shape, dtype=np.int64))
        leaves = cell >= 0
        value = np.zeros(cell.size)
        value[leaves] = noisy.reshape(-1)[cell[leaves]]
        known = np.where(leaves, variance, np.inf)
        if total is not None:
            value[0], known[0] = total
        best, spread = best_totals(left, value, known)
        size = np.prod((high - low).astype(np.float64), axis=1)
        # A total is asked for where there are few records: cells then teach little of how it divides.
        little = 0.0 if total is None else _TOLD_OF_FEW / math.sqrt(deviations_of(best, spread))
        return cls(
            *(tuple(noisy.shape), left, low, high, size, best, spread, LEAST_CAUTION * (1.0 + little)),
            *(_DOUBT, _LONG_SUM),
        )

    def believe(self, told: Mapping[str, FloatArray]) -> None:
        """Take from a file what would be learned otherwise, as far as it fits this tree."""
        classes = int(size_classes(self.size[:1])[0]) + 1 if self.size.size else 0
        fits = {"ways": (classes, len(WAYS)), "alike": (1,), "caution": (count_classes(self.shape),)}
        if any(name not in told or told[name].shape != shape for name, shape in fits.items()):
            return
        self.__dict__["ways"] = told["ways"]
        self.__dict__["alike"] = float(told["alike"][0])
        self.__dict__["_cautions"] = dict(enumerate(told["caution"].tolist()))

    @property
    def learned(self) -> dict[str, FloatArray]:
        """What was learned from everything that was measured, in few numbers."""
        return {"ways": self.ways, "alike": np.array([self.alike]), "caution": self.caution}

    def departures(self, cells: NDArray[Any], inside: float = 0.0) -> FloatArray:
        """How far other cells' sums are from the noisy ones: mean squares over noise, for boxes of 1, 2, 4 … cells.

        What is unknown inside leaves counts ``inside`` times as noise.
        """
        from dphist.kernels.summed_area import box_sums

        low, high, ends = self.trials
        sums = box_sums(np.ascontiguousarray(cells, dtype=np.float64).reshape(self.shape), low, high)
        known = inside > 0.0 or len(self._tried) == len(ends)
        plain, noise = self.tried[3:] if known else self.least_squares(low, high)
        if inside > 0.0:
            noise = noise + inside * self.tried[2]
        count = np.diff([*ends, len(low)])
        return np.asarray(np.add.reduceat((sums - plain) ** 2 / noise, ends) / count, dtype=np.float64)

    @cached_property
    def trials(self) -> tuple[IntArray, IntArray, IntArray]:
        """Boxes of every size class, and where each class starts."""
        trials = trial_boxes(self.shape)
        low, high = (np.concatenate([each[side] for each in trials]) for side in range(2))
        return low, high, np.cumsum([0, *(len(each[0]) for each in trials)])[:-1]

    @cached_property
    def _tried(self) -> dict[int, tuple[FloatArray, ...]]:
        """What both laws say of the trial boxes of the size classes that were looked at, as `ask_both` gives it."""
        return {}

    @property
    def tried(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """What the law says of them (mean, variance, inner part) and what plain least squares does (mean, variance)."""
        classes = range(count_classes(self.shape))
        self._try(classes)
        mean, known, inner, plain, noise = (
            np.concatenate([self._tried[each][part] for each in classes]) for part in range(5)
        )
        return mean, known, inner, plain, noise

    def _try(self, classes: Sequence[int]) -> None:
        """Ask the trial boxes of some size classes; each is a question by itself, whatever else is asked with it."""
        classes = [each for each in classes if each not in self._tried]
        if not classes:
            return
        boxes = [trial_boxes(self.shape)[each] for each in classes]
        low, high = (np.concatenate([each[side] for each in boxes]) for side in range(2))
        ends = np.cumsum([len(each[0]) for each in boxes])
        said = self.ask_both(low, high, np.arange(len(low) + 1))
        for each, *parts in zip(classes, *(np.split(answers, ends[:-1]) for answers in said), strict=True):
            self._tried[each] = tuple(parts)

    # ---- the check ----

    def caution_of(self, cells: FloatArray) -> FloatArray:
        """The caution for questions about so many cells: of their size classes, and no others are looked at."""
        number = np.ceil(np.log2(np.maximum(cells, 1.0) / 1.5)).astype(np.int64)
        number = np.clip(number, 0, count_classes(self.shape) - 1)
        wanted = np.flatnonzero(np.bincount(number))
        table = np.zeros(int(wanted[-1]) + 1 if wanted.size else 0)
        table[wanted] = self._caution(wanted.tolist())
        return np.asarray(table[number], dtype=np.float64)

    @property
    def caution(self) -> FloatArray:
        """By how much the mean squared error of the means exceeds their variance, for every size class."""
        return self._caution(range(count_classes(self.shape)))

    @cached_property
    def _cautions(self) -> dict[int, float]:
        return {}

    def _caution(self, classes: Sequence[int]) -> FloatArray:
        """The caution of some size classes.

        Plain least squares l is unbiased with known variance W. So (l − m)² − W + 2V estimates the squared
        error of m (Stein's identity, with V for the covariance of m and l); over many boxes of one size it is set
        against V, hedged. What lies inside leaves that a box cuts was never measured: there l says nothing, and V
        counts twice.
        """
        new = [each for each in classes if each not in self._cautions]
        self._try(new)
        for each in new:
            low, high = trial_boxes(self.shape)[each]
            mean, known, inner, plain, noise = self._tried[each]
            squares = (plain - mean) ** 2 - noise + 2.0 * (known + inner)
            cells = np.prod((high - low).astype(np.float64), axis=1)
            claimed = self.hedged(known, noise, cells) + inner
            ratio = float(np.add.reduceat(squares, [0])[0]) / max(
                float(np.add.reduceat(claimed, [0])[0]), 1e-9
            )
            self._cautions[each] = max(self.least_caution, ratio)
        return np.array([self._cautions[each] for each in classes], dtype=np.float64)

    def hedged(self, known: FloatArray, noise: FloatArray, cells: FloatArray) -> FloatArray:
        """The law's variances, with a part of what it claims to know beyond plain least squares taken back.

        Args:
            known: The law's variances of some questions.
            noise: Those of plain least squares.
            cells: How many cells each question is about.

        Returns:
            The variances to go by.
        """
        doubt: FloatArray = np.where(cells > self.doubted_from, self.doubt, 0.0)
        wider: FloatArray = known + doubt * np.maximum(noise - known, 0.0)
        return wider
