"""Noise that is a linear map of independent draws: of ranges, groups, boxes, wavelets and waves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, NoiseErrors, laplace_if_bare, spread_of
from dphist.inference.intervals import Spread
from dphist.kernels.trees import kdtree
from dphist.kernels.wavelets.axes import Axis
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DenseNoise(NoiseErrors):
    """Noise of ranges of a few cells from their covariance written out."""

    covariance: FloatArray
    method: str = "exact variance of the strategy's least squares; not covered: the bias of cutting at zero"

    def spread(self, workload: Workload) -> Spread:
        """Sum the covariance over the range on both sides."""
        n = len(self.covariance)
        table = np.zeros((n + 1, n + 1))
        table[1:, 1:] = self.covariance.cumsum(axis=0).cumsum(axis=1)
        a, b = workload.low[:, 0], workload.high[:, 0]
        variance = np.maximum(table[b, b] - table[a, b] - table[b, a] + table[a, a], 0.0)
        # Which draw weighs most is not kept; the whole variance in one draw is the widest it can be.
        return Spread(variance, np.sqrt(variance / 2))


@dataclass(frozen=True, eq=False)
class PrefixNoise(NoiseErrors):
    """The noise in any range: a weighted sum of the draws before its end."""

    weights: FloatArray
    """What a prefix sum makes of one draw, by how many cells before its end that was."""
    law: NoiseLaw
    method: str = "exact variance of the noise in the range, a difference of two prefix sums"
    theorem = True

    @property
    def size(self) -> int:
        """How many cells."""
        return self.weights.size

    def spread(self, workload: Workload) -> Spread:
        """Weigh the draws inside every range, and those before it, which it carries by differences of two prefixes."""
        low, length = workload.low[:, 0], np.maximum(workload.high[:, 0] - workload.low[:, 0], 0)
        squares, largest = (np.append(0.0, each)[length] for each in _running(self.weights))
        late = (low > 0) & (length > 0)
        for size in np.unique(length[late]).tolist():
            asked = np.flatnonzero(late & (length == size))
            sums, most = _running(self.weights[size:] - self.weights[:-size])
            squares[asked] += sums[low[asked] - 1]
            largest[asked] = np.maximum(largest[asked], most[low[asked] - 1])
        heaviest = np.zeros(largest.shape) if self.law.gaussian else largest * float(self.law.scale)
        return Spread(squares * float(self.law.variance), heaviest)


def _running(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Running sums of squares, and the largest so far."""
    return np.cumsum(weights**2), np.maximum.accumulate(np.abs(weights))


@dataclass(frozen=True, eq=False)
class BucketNoise(NoiseErrors):
    """Noise of a range of cells from that of ranges of groups, when groups are runs of neighbours.

    A range that takes shares a and b of its first and last group is the mixture (1−a)(1−b), a(1−b), (1−a)b, ab of four
    ranges of whole groups. A standard deviation is a norm, so the mixture's is at most the mixture of theirs.
    """

    sizes: IntArray
    inner: Errors

    @property
    def method(self) -> str:  # type: ignore[override]  # the same for all
        """How intervals are obtained."""
        return (
            "noise of the groups' totals, given the released groups, bounded at groups that the range cuts; "
            "not covered: the bias inside those groups"
        )

    def spread(self, workload: Workload) -> Spread:
        """Mix four whole-group ranges for every range."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        low, high = workload.low[:, 0], workload.high[:, 0]
        first = np.clip(np.searchsorted(ends, low, side="right") - 1, 0, self.sizes.size - 1)
        last = np.clip(np.searchsorted(ends, high, side="left"), 1, self.sizes.size)
        head = (np.minimum(ends[first + 1], high) - low) / self.sizes[first]
        tail = (high - np.maximum(ends[last - 1], low)) / self.sizes[last - 1]
        # A range inside one group is that group's total times the share it takes.
        single = last - first <= 1
        tail = np.where(single, 1.0, tail)
        empty = high <= low
        deviation, largest = np.zeros(len(low)), np.zeros(len(low))
        groups = _line(self.sizes.size)
        for skip_first, skip_last in ((0, 0), (1, 0), (0, 1), (1, 1)):
            weight = np.where(skip_first, 1 - head, head) * np.where(skip_last, 1 - tail, tail)
            start, stop = first + skip_first, last - skip_last
            used = (weight > 0) & (stop > start) & ~empty
            if not used.any():
                continue
            part = spread_of(self.inner, Workload(groups, start[used][:, None], stop[used][:, None]))
            deviation[used] += weight[used] * np.sqrt(part.variance)
            largest[used] += weight[used] * part.largest
        return Spread(deviation**2, np.minimum(largest, deviation / np.sqrt(2)))


@dataclass(frozen=True, eq=False)
class CellBound(NoiseErrors):
    """Noise of any box from that of single groups: standard deviations are added, which is never too little."""

    shape: tuple[int, ...]
    labels: IntArray
    sizes: IntArray
    inner: Errors

    @property
    def method(self) -> str:  # type: ignore[override]  # the same for all
        """How intervals are obtained."""
        return (
            "a bound that adds up the standard deviations of the groups, given the released groups; "
            "not covered: the bias inside groups that the range cuts"
        )

    def spread(self, workload: Workload) -> Spread:
        """Sum every cell's share of its group's standard deviation over the box."""
        each = spread_of(self.inner, Workload.cells(_line(self.sizes.size)))
        deviation = _boxes(workload, (np.sqrt(each.variance) / self.sizes)[self.labels].reshape(self.shape))
        return Spread(deviation**2, deviation / np.sqrt(2))


def _boxes(workload: Workload, cells: FloatArray) -> FloatArray:
    """Sums over every box of the workload, one by one also where a question unites several."""
    boxes = workload if workload.query is None else Workload(workload.domain, workload.low, workload.high)
    return np.maximum(np.asarray(boxes.answer(cells), dtype=np.float64), 0.0)


def _line(n: int) -> Domain:
    return Domain([Ordinal("group", range(n))])


@dataclass(frozen=True, eq=False)
class Cuts:
    """Boxes that tile the cells, as leaves of a tree of cuts that are yet to be counted.

    Node i is cut into ``left[i]`` and the next.
    """

    left: IntArray
    parent: IntArray
    low: IntArray
    high: IntArray
    labels: IntArray
    """The leaf of every cell, numbered in the order of `leaves`."""

    @property
    def leaves(self) -> IntArray:
        """Nodes that are not split, in order."""
        return np.flatnonzero(self.left < 0)

    @property
    def sizes(self) -> IntArray:
        """How many cells each leaf has."""
        leaves = self.leaves
        return np.asarray(np.prod(self.high[leaves] - self.low[leaves], axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LeafNoise(NoiseErrors):
    """The noise of any box when each leaf's cells are yᵢ + pull · (its total − Σ y), given the tree."""

    cuts: Cuts
    pull: FloatArray
    cell_scale: float
    """The scale of what was measured of every cell; 0 if none of it is used."""
    leaf_scale: float
    """The scale of every leaf's total."""
    gaussian: bool
    method: str
    centre: FloatArray | None = None
    """Unbiased numbers before the estimate was made non-negative: what intervals stand on."""

    def leaves(self) -> tuple[IntArray, IntArray]:
        """Bounds of the boxes that were counted."""
        ends = self.cuts.leaves
        return self.cuts.low[ends], self.cuts.high[ends]

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        cuts, pull = self.cuts, np.zeros(self.cuts.left.size)
        pull[cuts.leaves] = self.pull
        variance, largest = kdtree.leaf_spread(
            *(cuts.left, cuts.parent, cuts.low, cuts.high, pull),
            *(self.cell_scale, self.leaf_scale),
            *(np.ascontiguousarray(workload.low), np.ascontiguousarray(workload.high)),
        )
        return Spread(variance, np.zeros(largest.shape) if self.gaussian else largest)


METHODS = {
    False: "exact variance of the noise in the range: the product of the factors of its axes",
    True: (
        "variance of the noise in the range before thresholding; "
        "not covered: the bias of shrinking coefficients, which usually costs less than the noise it removes"
    ),
}


@dataclass(frozen=True, eq=False)
class WaveletNoise(NoiseErrors):
    """The noise in any range answer: a product over the axes.

    A range weighs the coefficient k₁ × k₂ × … by the product of its weights along the axes, so squared
    weights summed over all coefficients are the product of the axes' own sums; with noise of one ``law`` on every
    normalised coefficient the variance is that of the law times it.
    """

    axes: tuple[Axis, ...]
    law: NoiseLaw | float
    method: str = METHODS[False]

    @property
    def theorem(self) -> bool:
        """Whether intervals hold for any data."""
        return self.method == METHODS[False]

    def spread(self, workload: Workload) -> Spread:
        """Give variance and largest draw for every box, many at a time."""
        law = laplace_if_bare(self.law)
        variance = np.full(len(workload.low), float(law.variance))
        largest = np.full(len(workload.low), 0.0 if law.gaussian else float(law.scale))
        for place, axis in enumerate(self.axes):
            # Boxes share their sides: of many there are a few kinds along every axis.
            sides = workload.low[:, place] * (axis.size + 1) + workload.high[:, place]
            kinds, which = np.unique(sides, return_inverse=True)
            squares, most = axis.spread(*np.divmod(kinds, axis.size + 1))
            variance *= squares[which]
            largest *= most[which]
        return Spread(variance, largest)


@dataclass(frozen=True, eq=False)
class WaveNoise(NoiseErrors):
    """Noise of ``scale`` on the coordinate of each kept wave; a range gathers what each wave sums to over it.

    Waves are products over axes, and so is the variance. Both bases have closed forms for sums over ranges,
    and one transform turns those into a table for all ranges of an axis.
    """

    shape: tuple[int, ...]
    keep: tuple[int, ...]
    basis: Literal["fourier", "cosine"]
    scale: float
    method: str = (
        "noise of the kept frequencies, given which were kept; not covered: the dropped frequencies, a bias"
    )

    def spread(self, workload: Workload) -> Spread:
        """Gather the kept waves over every box."""
        low, high = workload.low, np.maximum(workload.low, workload.high)
        runs = np.ones(len(low))
        if len(self.shape) != low.shape[1]:
            low, high, runs = _strung_together(low, high, workload.domain.shape)
        variance = np.full(len(low), 2.0 * self.scale**2)
        largest = np.full(len(low), self.scale)
        for axis, (n, k) in enumerate(zip(self.shape, self.keep, strict=True)):
            length = high[:, axis] - low[:, axis]
            if self.basis == "fourier":
                variance *= _fourier_gathers(n, k, length)
            else:
                variance *= _cosine_gathers(n, k, low[:, axis], high[:, axis], runs > 1)
            # A wave is at most √2/√n high anywhere, the constant one 1/√n.
            largest *= length * np.sqrt((2.0 if k > 1 else 1.0) / n)
        # Runs of one box share their draws: adding deviations is never too narrow.
        return Spread(variance * runs**2, np.minimum(largest, np.sqrt(variance / 2.0)) * runs)


def _fourier_gathers(n: int, keep: int, length: IntArray) -> FloatArray:
    """Sum over kept waves of (sum of the wave over ``length`` neighbouring cells)².

    Over L cells the waves of frequency ±m gather |sin(πmL/n) ÷ sin(πm/n)|²/n each, wherever the cells lie;
    that is (1 − cos(2πmL/n)) ÷ (1 − cos(2πm/n)), for all L at once by one transform.
    """
    frequency = np.arange(1, n)
    frequency = frequency[np.minimum(frequency, n - frequency) < keep]
    weights = np.zeros(n)
    weights[frequency] = 0.5 / np.sin(np.pi * frequency / n) ** 2
    turned = np.fft.fft(weights).real
    return np.asarray((length**2.0 + np.maximum(turned[0] - turned[length % n], 0.0)) / n)


def _cosine_gathers(
    n: int, keep: int, low: IntArray, high: IntArray, anywhere: NDArray[np.bool_]
) -> FloatArray:
    """Sum over kept waves of (sum of the wave over low … high − 1)², or the most it is ``anywhere``.

    Wave m sums to (sin(πmh/n) − sin(πml/n)) ÷ √(2n)·sin(πm/2n) over l … h − 1. Squared and written in
    cosines of differences and sums, one transform of length 2n tabulates Σₘ. Wherever the cells lie, the
    difference of sines is at most 2 sin(πm(h − l)/2n).
    """
    frequency = np.arange(1, keep)
    weights = np.zeros(2 * n)
    weights[frequency] = 0.5 / (n * np.sin(np.pi * frequency / (2 * n)) ** 2)
    turned = np.fft.fft(weights).real
    squares = turned[0] - 0.5 * (turned[(2 * high) % (2 * n)] + turned[(2 * low) % (2 * n)])
    crossed = turned[high - low] - turned[(high + low) % (2 * n)]
    most = 2.0 * (turned[0] - turned[high - low])
    return np.asarray((high - low) ** 2.0 / n + np.maximum(np.where(anywhere, most, squares - crossed), 0.0))


def _strung_together(
    low: IntArray, high: IntArray, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Boxes of a table as runs of its rows strung together: bounds of the first, and how many there are."""
    run, runs = high[:, -1] - low[:, -1], np.ones(len(low))
    start, stride = low[:, -1].copy(), shape[-1]
    whole = run == shape[-1]
    for axis in reversed(range(len(shape) - 1)):
        length = high[:, axis] - low[:, axis]
        run = np.where(whole, run * length, run)
        runs = np.where(whole, runs, runs * length)
        whole = whole & (length == shape[axis])
        start = start + low[:, axis] * stride
        stride *= shape[axis]
    return start[:, None], (start + run)[:, None], runs
