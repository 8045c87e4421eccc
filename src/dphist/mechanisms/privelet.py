"""Privelet: noise on wavelet coefficients, so that a range of any length gathers only a little of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Literal

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.linear import METHODS, WaveletNoise
from dphist.kernels.wavelets import standard
from dphist.kernels.wavelets.axes import Axis, PlainAxis
from dphist.mechanisms.options import checked
from dphist.model.domain import Domain
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity
from dphist.private.queries.wavelet import (
    Wavelet,
    WaveletCells,
    numerators_fit,
    reference_law,
    wavelet_axes,
)


@checked
@dataclass(frozen=True, kw_only=True)
class Privelet:
    """Noise wavelet coefficients instead of cells (Xiao, Wang and Gehrke 2011).

    Ordered attributes are cut in halves again and again (Haar), nominal ones along their hierarchy; each
    coefficient says how a part differs from its siblings. A range needs only the few coefficients at its two
    ends, so its noise grows with a power of the logarithm of the domain rather than with the length of the
    range.

    Private because one record moves 1 + log₂ m' of an axis's differences by one (m' its padded size), or one
    sum on each level of its hierarchy, and the noise scale is the product of these numbers over the axes,
    divided by ε. Thresholding reads noisy coefficients only.

    Differences from the paper: noise goes on leaf-sum differences, which are integers, so every draw is
    exact; the mean of a family of siblings is subtracted from its *noisy sums*, which needs up to four times
    less variance for the same ε (``calibration="paper"`` gives the printed noise); CompThresh is mended as in
    `kernels.wavelets.threshold`; nodes with a single child are passed over.

    ``plain`` names attributes that are not transformed (S_A of Privelet+): worthwhile for small domains.
    ``"auto"`` takes those with |A| ≤ P(A)² · H(A). ``threshold=True`` is Privelet*: it shrinks coefficients
    that may be nothing but noise, which helps small ranges of smooth or sparse data and biases the estimate.

    Args:
        plain: Attributes that are not transformed (S_A of Privelet+), or "auto".
        threshold: Whether to shrink coefficients that may be nothing but noise (Privelet*).
        calibration: Our tighter noise, or the "paper"'s.

    Example:
        >>> from dphist.mechanisms import Privelet
        >>> from dphist.testing import run
        >>> run(Privelet(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    plain: str | tuple[str, ...] = "auto"
    threshold: bool = False
    calibration: Literal["tight", "paper"] = "tight"

    def __post_init__(self) -> None:
        if self.plain != "auto":
            names = (self.plain,) if isinstance(self.plain, str) else tuple(self.plain)
            object.__setattr__(self, "plain", names)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for the coefficients once and rebuild the cells."""
        plain = self._plain(data.shape, data.domain, data.law().exponent)
        axes = self.transformed(data.shape, data.domain, data.law().exponent)
        if all(isinstance(axis, PlainAxis) for axis in axes):
            # Nothing to transform: this is the Laplace mechanism, whose intervals are exact.
            noisy = data.measure(Identity(), floats=True)
            return Estimate(
                noisy.values.astype(np.float64, copy=False), IndependentNoise(noisy.law, exact=True)
            )
        if not self.threshold and numerators_fit(axes, data.law(moves="any")):
            noisy = data.measure(WaveletCells(plain, self.calibration))
            return Estimate(noisy.values, WaveletNoise(axes, noisy.law, METHODS[False]))
        noisy = data.measure(Wavelet(plain, self.calibration))
        # The noise of a coefficient of weight one; where weights differ the law knows of each, the axes of the weights.
        law = reference_law(axes, data.law(moves="any"))
        coefficients = noisy.values.astype(np.float64)
        if self.threshold:
            _shrink(coefficients, axes, float(law.scale))
        cells = standard.inverse(coefficients, axes)
        errors = WaveletNoise(axes, law, METHODS[self.threshold])
        return Estimate(np.divide(cells, float(standard.denominator(axes)), order="C"), errors)

    def axes(self, domain: Domain) -> tuple[Axis, ...]:
        """Say how each attribute of a domain is transformed; public."""
        return self.transformed(domain.shape, domain)

    def transformed(self, shape: Sequence[int], domain: Domain | None, power: int = 2) -> tuple[Axis, ...]:
        """The same where cells may have no domain, and for Gaussian noise with a power of 1."""
        return wavelet_axes(shape, domain, self._plain(shape, domain, power), self.calibration)

    def _plain(self, shape: Sequence[int], domain: Domain | None, power: int = 2) -> tuple[int, ...]:
        if self.plain == "auto":
            every = wavelet_axes(shape, domain, (), self.calibration)
            return tuple(place for place, axis in enumerate(every) if small(axis, power))
        names = self.plain
        known = domain.names if domain is not None else ()
        for name in names:
            if name not in known:
                raise MechanismError(
                    f"plain: there is no attribute {name}; there are {', '.join(known) or 'no names here'}"
                )
        return tuple(place for place, name in enumerate(known) if name in names)


def small(axis: Axis, power: int = 2) -> bool:
    """Whether a range gathers less noise, at worst, when this axis is left plain: |A| ≤ P(A)² · H(A), sizes padded.

    Under Gaussian noise (``power`` 1) the variance of a coefficient grows with P(A), not with its square.
    """
    return isinstance(axis, PlainAxis) or axis.padded <= axis.sensitivity**power * axis.bound


def _shrink(coefficients: FloatArray, axes: Sequence[Axis], scale: float) -> None:
    """Privelet*: soft-threshold the subbands of every sub-matrix, in place."""
    standard.sweep(coefficients, axes, lambda axis: axis.centre)
    plain = [place for place, axis in enumerate(axes) if isinstance(axis, PlainAxis)]
    others = [place for place in range(len(axes)) if place not in plain]
    order, starts = _subbands([axes[place] for place in others])
    deviations = np.ones(1)
    for place in others:
        deviations = np.outer(deviations, axes[place].deviations).reshape(-1)
    # Sub-matrices first, so that each is one row; only a plain axis among the later ones needs a copy for that.
    arranged = np.ascontiguousarray(coefficients.transpose(plain + others))
    rows = arranged.reshape(-1, order.size)
    shrink_subbands(rows, order, starts, deviations, 2.0 * scale**2)
    if not np.shares_memory(arranged, coefficients):
        coefficients.transpose(plain + others)[...] = arranged


def _subbands(axes: Sequence[Axis]) -> tuple[IntArray, IntArray]:
    """The coefficients of a sub-matrix by subband: those that lie on the same level along every axis."""
    levels = [
        [np.flatnonzero(axis.depths == depth) for depth in range(int(axis.depths.max()) + 1)] for axis in axes
    ]
    bands = []
    for each in product(*levels):
        places = np.zeros(1, dtype=np.int64)
        for axis, slots in zip(axes, each, strict=True):
            places = np.add.outer(places * axis.slots, slots).reshape(-1)
        bands.append(places)
    starts = np.cumsum([0, *(band.size for band in bands)], dtype=np.int64)
    return np.concatenate(bands), starts


def thresholds(sizes: FloatArray, variance: float) -> FloatArray:
    """Find the θ of CompThresh (mended) from the absolute normalised coefficients of a subband, a row for each.

    ``variance`` is that of the noise in each, 2λ². The clean variance is estimated as σ² = Σc² ÷ (|S| − 1) −
    2λ², and θ makes Σ max(|c| − θ, 0)² equal (|S| − 1)σ². That sum falls as θ rises from one coefficient to the
    next, and between two it is a quadratic. If σ² ≤ 0 all is noise and everything goes; one coefficient alone has no
    spread and stays.
    """
    count = sizes.shape[1]
    if count < 2:
        return np.zeros(len(sizes))
    ordered = np.sort(sizes, axis=1)[:, ::-1]
    sums, squares = np.cumsum(ordered, axis=1), np.cumsum(ordered * ordered, axis=1)
    wanted = squares[:, -1:] - (count - 1) * variance
    left = squares - 2.0 * ordered * sums + np.arange(1.0, count + 1) * ordered * ordered
    above = np.maximum((left < wanted).sum(axis=1), 1)[:, None]
    alpha, beta = (np.take_along_axis(each, above - 1, axis=1) for each in (squares, sums))
    # α − 2βθ + iθ² = wanted, its smaller root.
    root = np.sqrt(np.maximum(beta * beta - above * (alpha - wanted), 0.0))
    exact = np.divide(alpha - wanted, beta + root, out=np.zeros_like(beta), where=beta > 0.0)
    return np.asarray(np.where(wanted <= 0.0, ordered[:, :1], np.minimum(exact, ordered[:, :1]))[:, 0])


def shrink_subbands(
    coefficients: FloatArray, order: IntArray, starts: IntArray, deviations: FloatArray, variance: float
) -> None:
    """Soft-threshold every subband of every sub-matrix, in place.

    ``coefficients[m]`` are those of sub-matrix m; subband s of it lies at ``order[starts[s]:starts[s + 1]]``.
    Dividing by ``deviations`` gives every coefficient noise of the same ``variance``.
    """
    for begin, end in pairwise(starts.tolist()):
        slots = order[begin:end]
        values, deviation = coefficients[:, slots], deviations[slots]
        sizes = np.abs(values)
        bars = thresholds(sizes / deviation, variance)[:, None] * deviation
        coefficients[:, slots] = np.copysign(np.maximum(sizes - bars, 0.0), values)
