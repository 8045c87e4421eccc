"""Wavelet coefficients of a cube: the question behind Privelet, asked in integers.

Along each axis a linear map W gives integer coefficients whose noise scales sₖ keep the promise
Σₖ |W[k, x]| ÷ sₖ ≤ 1 for every cell x (proved for each kind of axis in `dphist.kernels.wavelets`). The
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
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.wavelets import standard
from dphist.kernels.wavelets.axes import Axis, PlainAxis
from dphist.kernels.wavelets.haar import HaarAxis
from dphist.kernels.wavelets.nominal import Calibration, NominalAxis
from dphist.model.domain import Nominal
from dphist.model.law import NoiseLaw
from dphist.private.pricing import floats_in_place
from dphist.private.questions import LARGEST_SUM, IntArray, Layout, PricedNoise, Scales, proven

if TYPE_CHECKING:
    from dphist.model.domain import Domain

# Numerators stay below this, or they would not mean what they should: three quarters of what 64 bits hold.
_LARGEST = 3 * 2**61

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
    # Nobody counts more records than 2³⁴ in one cell, nor lets the gate more pass in all, whatever the cube.
    fullest = min(2**34, LARGEST_SUM // prod(axis.size for axis in axes))
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
        """Add the noise of `scales` to `answer` in place."""
        return _add_noise(self.answer(counts, layout), self.axes(layout), noise)


@proven
@dataclass(frozen=True)
class WaveletCells(_Transformed):
    """The cells, rebuilt from noisy wavelet coefficients.

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
        """Draw coefficients of pure noise, transform them back, and add the counts."""
        axes = self.axes(layout)
        drawn = _add_noise(np.zeros(standard.slots(axes), dtype=np.int64), axes, noise)
        gathered, denominator = standard.inverse(drawn, axes), standard.denominator(axes)
        # min(x, c) moves by at most one when x does: a public ceiling keeps one step one step. The answer is no view of
        # what was drawn: what lies beyond the cells there would give their noise away.
        cells = np.minimum(counts.reshape(layout.shape), _LARGEST // denominator)
        cells *= denominator
        cells += gathered
        rebuilt = floats_in_place(cells)
        rebuilt /= denominator
        return rebuilt


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


def _add_noise(coefficients: IntArray, axes: Sequence[Axis], noise: PricedNoise) -> IntArray:
    """Add to every coefficient noise of its own weight, in place, a slab at a time."""
    split, reference = standard.slab_start(axes), reference_scale(axes)
    slabs, regions = coefficients.reshape(-1, *standard.slots(axes[split:])), _regions(axes[split:])
    for begin, end, factor in _batches(axes, split):
        for inner, region in regions:
            weight = factor * inner
            scale, variance = reference * weight, reference * weight**2
            where = (slice(begin, end), *region)
            part = slabs[where]
            if isinstance(region[0], slice) and part.flags.c_contiguous:
                noise.add(part, scale, variance, part)
            else:
                slabs[where] = noise.add(np.ascontiguousarray(part), scale, variance)
    return coefficients
