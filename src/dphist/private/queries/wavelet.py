"""Wavelet coefficients of a cube: the question behind Privelet, asked in integers.

Along each axis a linear map W gives integer coefficients whose noise scales sₖ keep the promise
Σₖ |W[k, x]| ÷ sₖ ≤ 1 for every cell x (proved for each kind of axis in `dphist.kernels.wavelets.axes`). The
coefficients of a cube are the Kronecker product of these maps, and so are the scales. The promise multiplies:
Σ |∏ W[kᵢ, xᵢ]| ÷ ∏ s[kᵢ] = ∏ Σ |W[kᵢ, xᵢ]| ÷ s[kᵢ] ≤ 1. So does the promise for Gaussian noise: along an axis a cell
moves its coefficients by one each, as many of them as the sensitivity P says, and weights wₖ are at least one, so
variances P·wₖ² keep Σₖ W[k, x]² ÷ (P·wₖ²) ≤ 1.

Two questions share it. `Wavelet` returns the noisy coefficients. `WaveletCells` returns the cells rebuilt
from them, and never computes the data's own coefficients: with A the integer inverse, A·W = D·identity for a
public denominator D, so A·(W·x + noise) = D·x + A·noise. Every step is a sum or a product of 64-bit integers,
which is exact arithmetic modulo 2⁶⁴ whatever the noise; hence what is returned, (D·x + A·noise mod 2⁶⁴) ÷ D
rounded once, is a function of the noisy integer coefficients and nothing else. It is post-processing of
`Wavelet`'s answer, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.threads import THREADS, together
from dphist.kernels.wavelets import standard
from dphist.kernels.wavelets.axes import Axis, Calibration, HaarAxis, NominalAxis, PlainAxis
from dphist.model.domain import Nominal
from dphist.model.law import NoiseLaw
from dphist.private.questions import IntArray, Layout, PricedNoise, Scales, proven

if TYPE_CHECKING:
    from dphist.model.domain import Domain

# Numerators stay below this, or they would not mean what they should: three quarters of what 64 bits hold.
_LARGEST = 3 * 2**61
# Nobody counts more records than this in one cell, nor, whatever the cube, more than 2⁶² in all (the gate sees to it).
_FULLEST_CELL, _FULLEST_CUBE = 2**34, 2**62
# Cubes below this are not worth a second thread.
_WORTH_THREADS = 1 << 16

Region = tuple[Any, ...]


def wavelet_axes(
    shape: Sequence[int],
    domain: Domain | None,
    plain: Sequence[int] = (),
    calibration: Calibration = "tight",
) -> tuple[Axis, ...]:
    """Say how each axis is transformed: by its hierarchy if it is nominal, by Haar otherwise, not at all if plain."""
    axes: list[Axis] = []
    for place, size in enumerate(shape):
        attribute = domain.attributes[place] if domain is not None else None
        if place in plain or size == 1:
            axes.append(PlainAxis(size))
        elif isinstance(attribute, Nominal):
            tree = attribute.hierarchy
            axes.append(NominalAxis(tree.parent, tree.leaves, calibration))
        else:
            axes.append(HaarAxis(size))
    return tuple(axes)


def reference_scale(axes: Sequence[Axis]) -> Fraction:
    """λ at ε = 1: the noise scale of a coefficient of weight one, the product of the axes' sensitivities.

    The same number is the *variance* of its Gaussian noise at ρ = 1/2.
    """
    return Fraction(prod(axis.sensitivity for axis in axes))


def reference_law(axes: Sequence[Axis], law: NoiseLaw) -> NoiseLaw:
    """The noise of a coefficient of weight one, where a question of sensitivity one would get this law."""
    return NoiseLaw(law.kind, reference_scale(axes) * law.size)


def numerators_fit(axes: Sequence[Axis], law: NoiseLaw) -> bool:
    """Whether cells can be rebuilt in 64-bit numerators, judged by public facts.

    Room is needed for the fullest cell, and for noise of a hundred scales on every coefficient at once (a
    cell weighs Haar coefficients by 2 in all, nominal ones by 9 at most). Privacy does not depend on it,
    precision does.
    """
    denominator = standard.denominator(axes)
    fullest = min(_FULLEST_CELL, _FULLEST_CUBE // prod(axis.size for axis in axes))
    scale = reference_law(axes, law).scale
    noise = scale * prod(1 if isinstance(axis, PlainAxis) else 9 for axis in axes)
    return denominator * fullest <= _LARGEST and denominator * 100 * noise <= 2**60


@dataclass(frozen=True)
class _Transformed:
    """What both questions say of the transform: the axes that are left alone, and how nominal ones are weighed."""

    plain: tuple[int, ...] = ()
    calibration: Calibration = "tight"

    def __post_init__(self) -> None:
        if self.calibration not in ("tight", "paper"):
            raise MechanismError("calibration must be 'tight' or 'paper'")

    def axes(self, layout: Layout) -> tuple[Axis, ...]:
        """How each axis is transformed."""
        return wavelet_axes(layout.shape, layout.domain, self.plain, self.calibration)


@proven
@dataclass(frozen=True)
class Wavelet(_Transformed):
    """Every wavelet coefficient, with the axes in ``plain`` left alone. The module's docstring has the proof."""

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Transform a copy of the counts, exactly."""
        return standard.forward(counts.reshape(layout.shape), self.axes(layout))

    def scales(self, layout: Layout) -> Fraction | Scales:
        """λ times the product of the slots' weights along the axes."""
        return self._sizes(layout, 1)

    def variances(self, layout: Layout) -> Fraction | Scales:
        """λ times the product of the slots' squared weights."""
        return self._sizes(layout, 2)

    def _sizes(self, layout: Layout, power: int) -> Fraction | Scales:
        axes = self.axes(layout)
        scale = reference_scale(axes)
        if all(len(axis.classes[0]) == 1 for axis in axes):
            return scale
        values = tuple(scale * prod(each) ** power for each in product(*(axis.classes[0] for axis in axes)))
        # Few classes, many coefficients: the narrowest index that holds them.
        index = np.zeros((), dtype=np.min_scalar_type(len(values)))
        for axis in axes:
            classes, place = axis.classes
            index = index[..., None] * index.dtype.type(len(classes)) + place.astype(index.dtype)
        return Scales(values, cast("NDArray[np.intp]", index))

    def perturb(self, counts: IntArray, layout: Layout, noise: PricedNoise) -> IntArray:
        """Add the noise of `scales` to `answer` in place, a slab at a time."""
        axes = self.axes(layout)
        coefficients = self.answer(counts, layout)
        split = standard.slab_start(axes)
        slabs = coefficients.reshape(-1, *standard.slots(axes[split:]))
        regions = _regions(axes[split:])
        for begin, end, weight in _batches(axes, split):
            _add_noise(slabs[begin:end], regions, reference_scale(axes), weight, noise)
        return coefficients


@proven
@dataclass(frozen=True)
class WaveletCells(_Transformed):
    """The cells, rebuilt from noisy wavelet coefficients without holding those.

    The module's docstring has the proof. The draws are taken in the same order as `Wavelet` takes them, so
    with the same entropy both see the same noise.
    """

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Give the counts, which is what the cells would be without noise."""
        return counts.reshape(layout.shape)

    def scales(self, layout: Layout) -> Fraction:
        """λ, the scale of a coefficient of weight one; what gathers in a range is the business of the axes."""
        return reference_scale(self.axes(layout))

    def variances(self, layout: Layout) -> Fraction:
        """The variance of a coefficient of weight one."""
        return reference_scale(self.axes(layout))

    def perturb(self, counts: IntArray, layout: Layout, noise: PricedNoise) -> NDArray[np.float64]:
        """Draw coefficients of pure noise, transform them back, and add the counts in the last pass."""
        return _Rebuild(self.axes(layout), noise).cells(counts).reshape(layout.shape)


class _Rebuild:
    """Rebuilds cells slab by slab: this thread draws noise while another one transforms the slab before.

    Axes outside the slab are inverted afterwards, in place on an array that has a row for each coefficient of
    that axis and only cells along the later ones. So beside the counts there is one array of the cube's size
    (a few rows more if the first axis is transformed) and slabs.
    """

    def __init__(self, axes: Sequence[Axis], noise: PricedNoise) -> None:
        self.axes, self.noise = axes, noise
        self.sizes = tuple(axis.size for axis in axes)
        self.split = standard.slab_start(axes)
        slab = standard.slots(axes[self.split :])
        self.most = standard.batch(slab) if self.split else 1
        self.shape = (self.most, *slab)
        self.regions = _regions(axes[self.split :])
        self.scale = reference_scale(axes)
        self.denominator = standard.denominator(axes)
        self.threads = THREADS if prod(self.sizes) >= _WORTH_THREADS else 1
        self.pool = ThreadPoolExecutor(1) if self.threads > 1 else None
        self.scratch: list[IntArray] = []
        self.running: list[Future[None] | None] = []
        self.turn = 0
        # Where each row of cells starts in a batch of slabs.
        rows = np.arange(prod(self.shape[:-1]), dtype=np.int64).reshape(self.shape[:-1])
        kept = rows[(slice(None), *standard.corner(axes[self.split : -1]))]
        self.offsets: IntArray = kept.reshape(-1) * slab[-1]

    def cells(self, counts: IntArray) -> NDArray[np.float64]:
        """Give count + noise for every cell, flat."""
        size, first = prod(self.sizes), self.axes[0]
        # A transformed first axis is inverted where the result will stand; it needs its few extra rows for that.
        inside = len(self.axes) == 1 or (self.split > 0 and not isinstance(first, PlainAxis))
        out = np.empty((first.slots if inside else first.size, size // first.size), dtype=np.int64)
        room = out if inside else None
        target = out.reshape(-1)[:size]
        try:
            self._fill(0, Fraction(1), target, counts, room)
            self._drain()
        finally:
            if self.pool is not None:
                self.pool.shutdown()
        # The answer is a view of the room it was made in, and rows beyond it still hold draws of pure noise, from
        # which the noise of the cells could be computed and taken away again.
        out.reshape(-1)[size:] = 0
        return target.view(np.float64)

    def _fill(
        self, place: int, factor: Fraction, target: IntArray, counts: IntArray | None, room: IntArray | None
    ) -> None:
        """Write the cells of the axes from ``place`` on: with counts as floats, without them as numerators of noise."""
        if place == self.split:
            self._fill_slabs(1, factor, target, counts, room)
            return
        axis, step = self.axes[place], prod(self.sizes[place + 1 :])
        plain, last = isinstance(axis, PlainAxis), place + 1 == self.split
        rows = target if plain else np.empty((axis.slots, step), dtype=np.int64) if room is None else room
        flat = rows.reshape(-1)
        for begin, end, weight in _runs(axis, self.most if last else 1):
            part = slice(begin * step, end * step)
            given = counts[part] if plain and counts is not None else None
            if last:
                self._fill_slabs(end - begin, factor * weight, flat[part], given, None)
            else:
                self._fill(place + 1, factor * weight, flat[part], given, None)
        if plain:
            return
        self._drain()
        standard.across(rows, [axis], 0, lambda axis: axis.inverse, self.threads)

        def store(begin: int, end: int) -> None:
            given = None if counts is None else counts[begin:end]
            self._store(flat[begin:end], np.zeros(1, dtype=np.int64), target[begin:end], given)

        together(store, target.size, self.threads)

    def _fill_slabs(
        self, count: int, factor: Fraction, target: IntArray, counts: IntArray | None, room: IntArray | None
    ) -> None:
        turn, whole = (-1, room.reshape(self.shape)) if room is not None else self._scratch()
        slabs = whole[:count]
        slabs.fill(0)
        _add_noise(slabs, self.regions, self.scale, factor, self.noise)
        offsets = self.offsets[: count * self.offsets.size // self.most]

        def finish() -> None:
            standard.within(slabs, self.axes[self.split :], lambda axis: axis.inverse)
            self._store(slabs.reshape(-1), offsets, target, counts)

        if self.pool is None or turn < 0:
            finish()
        else:
            self.running[turn] = self.pool.submit(finish)

    def _scratch(self) -> tuple[int, IntArray]:
        """Give slabs to draw into: two take turns, unless they are so large that memory matters more than time."""
        if not self.scratch:
            both = self.pool is not None and 16 * prod(self.shape) <= prod(self.sizes)
            self.scratch = [np.empty(self.shape, dtype=np.int64) for _ in range(2 if both else 1)]
            self.running = [None] * len(self.scratch)
        turn = self.turn = (self.turn + 1) % len(self.scratch)
        self._wait(turn)
        return turn, self.scratch[turn]

    def _wait(self, turn: int) -> None:
        future, self.running[turn] = self.running[turn], None
        if future is not None:
            future.result()

    def _drain(self) -> None:
        for turn in range(len(self.running)):
            self._wait(turn)

    def _store(
        self, numerators: IntArray, offsets: IntArray, target: IntArray, counts: IntArray | None
    ) -> None:
        length = target.size // offsets.size
        if counts is None:
            standard.copy_rows(numerators, offsets, length, target)
            return
        denominator = self.denominator
        # min(x, c) moves by at most one when x does: a public ceiling keeps one step one step.
        ceiling = _LARGEST // denominator
        standard.add_numerators(
            counts, numerators, offsets, length, denominator, ceiling, target.view(np.float64)
        )


def _runs(axis: Axis, most: int) -> Iterator[tuple[int, int, Fraction]]:
    """Neighbouring slots of one weight, at most ``most`` at a time."""
    values, index = axis.classes
    ends = [axis.slots]
    if len(values) > 1:
        ends = [*(np.flatnonzero(np.diff(index)) + 1).tolist(), axis.slots]
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        for start in range(begin, end, most):
            yield start, min(start + most, end), values[int(index[begin])]


def _batches(axes: Sequence[Axis], split: int) -> Iterator[tuple[int, int, Fraction]]:
    """Neighbouring slabs of one weight, in the order of memory: the order in which all noise is drawn."""
    if split == 0:
        yield 0, 1, Fraction(1)
        return
    outer, axis, offset = axes[: split - 1], axes[split - 1], 0
    most = standard.batch(standard.slots(axes[split:]))
    for each in product(*(other.classes[1].tolist() for other in outer)):
        factor = _weight(outer, each)
        for begin, end, weight in _runs(axis, most):
            yield offset + begin, offset + end, factor * weight
        offset += axis.slots


def _weight(axes: Sequence[Axis], which: Sequence[int]) -> Fraction:
    return prod((axis.classes[0][i] for axis, i in zip(axes, which, strict=True)), start=Fraction(1))


def _regions(axes: Sequence[Axis]) -> list[tuple[Fraction, Region]]:
    """Parts of a slab whose coefficients all have one weight."""
    found: list[tuple[Fraction, Region]] = []
    for each in product(*(range(len(axis.classes[0])) for axis in axes)):
        places = [_places(axis, which) for axis, which in zip(axes, each, strict=True)]
        if all(isinstance(place, slice) for place in places):
            region: Region = tuple(places)
        else:
            region = np.ix_(*(np.r_[place] for place in places))
        found.append((_weight(axes, each), region))
    return found


def _places(axis: Axis, which: int) -> slice | IntArray:
    """The slots of one class, as a range if they are one."""
    values, index = axis.classes
    if len(values) == 1:
        return slice(0, axis.slots)
    slots = np.flatnonzero(index == which)
    run = int(slots[-1]) + 1 - int(slots[0]) == slots.size
    return slice(int(slots[0]), int(slots[-1]) + 1) if run else slots


def _add_noise(
    slabs: IntArray,
    regions: list[tuple[Fraction, Region]],
    reference: Fraction,
    factor: Fraction,
    noise: PricedNoise,
) -> None:
    for inner, region in regions:
        weight = factor * inner
        scale, variance = reference * weight, reference * weight**2
        where = (slice(None), *region)
        part = slabs[where]
        if isinstance(region[0], slice) and part.flags.c_contiguous:
            noise.add(part, scale, variance, part)
        else:
            slabs[where] = noise.add(np.ascontiguousarray(part), scale, variance)
