"""Noise every count, then merge neighbours that differ by less than the noise (Xu et al., 2013)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.arrays import FloatArray, IntArray
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, NoisyCells
from dphist.kernels.buckets.segmentation import LARGEST_SUM, segment
from dphist.kernels.grouping import part_middles
from dphist.mechanisms.options import Bounds, Count, checked
from dphist.model.exact import Number, positive
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts
from dphist.private.pricing import UnitBudget
from dphist.private.queries import Identity

# Both were chosen by measured error (docs/mechanisms/noisefirst-structurefirst.md shows the command).
_LOG_PRICE_MEAN = 3.0  # noise variances per bucket and per ln n
_LOG_PRICE_MEDIAN = 0.9  # noise scales per bucket and per ln n


@checked
@dataclass(frozen=True, kw_only=True)
class NoiseFirst:
    """Noise every cell, then merge runs of neighbours whose noise outweighs their difference.

    The noisy counts already are private; everything after them is arithmetic on released numbers and costs
    nothing. That is also why `improve` can be applied to what somebody else published. Buckets minimise
    squared deviations from their means (or absolute ones from their medians) plus a price per bucket: the
    search over every number of buckets k that the paper does by n dynamic programs, min over k of T[n, k] +
    price·k, is one penalised segmentation, because minimising over k and over partitions into k buckets is
    minimising over all partitions. On several axes the cells are taken in C order.

    Differences from the paper. Its price of two noise variances (three noise scales for medians) is the risk
    of a *fixed* structure; a structure picked on the noisy data looks better than it is, and on constant
    data that price still leaves a bucket for every six or seven cells. The default price grows with ln n
    instead: isolating the largest of n Laplace draws, about ln n scales, must not pay for the two buckets it
    needs. Levels below zero become zero. Algorithm 2 prints ``SSE(D, ·)`` once, which would read the true
    counts; only noisy ones are read here.

    Example:
        >>> from dphist.mechanisms import NoiseFirst
        >>> from dphist.testing import run
        >>> run(NoiseFirst(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    statistic: Literal["mean", "median"] = "mean"
    """What a bucket publishes for its cells, and whose loss shapes the buckets."""
    bins: Count | None = None
    """A number of buckets (Algorithms 1 and 5), or None to find it together with them (Algorithm 2)."""
    price: Literal["log", "paper"] | Annotated[Fraction, Bounds(0)] = "log"
    """A bucket's price when ``bins`` is None: "log", "paper", or a number of noise variances (medians: scales)."""
    keep: bool = False
    """Keep the noisy counts in buckets too uneven to gain from averaging (Equations 22 and 23)."""
    cut: bool = True
    """Raise levels below zero to zero; no count is negative."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once and merge what came back."""
        noisy = data.measure(Identity())
        return self._merge(noisy.values, noisy.law, exact=True)

    def improve(self, published: Any, scale: Number | None = None) -> Any:
        """Merge cells that are already published: costs no budget, and asks nobody's leave.

        ``published`` is a release made by ``laplace``, and a release comes back, which verifies; or an array
        of counts with independent Laplace noise of ``scale``, and an `Estimate` comes back.
        """
        if hasattr(published, "transcript"):
            values, noise = _published_cells(published)
            return published.remade(self, self._merge(values, noise, exact=True))
        if scale is None:
            raise MechanismError("noisefirst: scale must say how much noise the published counts carry")
        law = NoiseLaw("laplace", positive(scale, "scale"))
        return self._merge(np.asarray(published), law, exact=False)

    def _merge(self, values: ArrayLike, law: NoiseLaw, *, exact: bool) -> Estimate:
        scale = float(law.scale)
        counts = np.asarray(values)
        flat = counts.reshape(-1)
        if flat.size == 0 or not np.isfinite(flat).all():
            raise MechanismError("noisefirst: published counts must be finite numbers, at least one")
        row, unit = _on_lattice(flat, scale)
        starts = self._starts(row, scale / unit)
        sizes = np.diff(np.append(starts, row.size))
        levels = _levels(row, starts, self.statistic) * unit
        estimate = np.repeat(levels, sizes)
        if self.keep:
            kept = self._uneven(flat, estimate, starts, sizes, scale)
            estimate = np.where(np.repeat(kept, sizes), flat, estimate)
        if self.cut:
            estimate = np.maximum(estimate, 0.0)
        errors = NoisyCells(counts.astype(np.float64), law, exact)
        return Estimate(estimate.reshape(counts.shape), errors, f"{starts.size} buckets")

    def _starts(self, row: IntArray, scale: float) -> IntArray:
        loss: Literal["squared", "absolute"] = "squared" if self.statistic == "mean" else "absolute"
        if self.bins is not None:
            return segment(row, bins=self.bins, loss=loss)
        if self.statistic == "mean":
            variances = {"paper": 2.0, "log": _LOG_PRICE_MEAN * log(row.size)}
            each = variances[self.price] if isinstance(self.price, str) else float(self.price)
            return segment(row, price=each * 2.0 * scale**2, loss=loss)
        scales = {"paper": 3.0, "log": _LOG_PRICE_MEDIAN * log(row.size)}
        each = scales[self.price] if isinstance(self.price, str) else float(self.price)
        return segment(row, price=each * scale, loss=loss)

    def _uneven(
        self, flat: NDArray[Any], estimate: FloatArray, starts: IntArray, sizes: IntArray, scale: float
    ) -> NDArray[np.bool_]:
        """Find the buckets whose own noisy counts promise less error than their level."""
        apart = np.abs(flat - estimate)
        if self.statistic == "mean":
            losses = np.add.reduceat(apart**2, starts)
            return np.asarray(losses >= 4.0 * (sizes - 1) * scale**2)
        losses = np.add.reduceat(apart, starts)
        return np.asarray(losses >= (4.0 * (sizes - 1) + 1.0) * scale)


def _published_cells(published: Any) -> tuple[IntArray, NoiseLaw]:
    """Find every cell's noisy count in a release, and the law of its noise."""
    entries = list(published.transcript)
    if len(entries) != 1 or entries[0].verb != "measure" or entries[0].question.get("ask") != "Identity":
        raise MechanismError(
            "noisefirst: only a release that noised every cell once ('laplace') can be improved"
        )
    spent = replace(published.guarantee.budget, amount=entries[0].cost, epsilon=None, delta=None)
    unit_budget = UnitBudget.of(spent, published.guarantee.unit)
    if entries[0].question.get("noise") == "gaussian":
        return entries[0].answer, unit_budget.law(Identity.moves)
    return entries[0].answer, NoiseLaw("laplace", 1 / unit_budget.pure)


def _on_lattice(flat: NDArray[Any], scale: float) -> tuple[IntArray, float]:
    """Write counts as integers times a unit: 1 unless they are fractions, or too far apart for 64 bits."""
    unit = 1.0
    if not np.issubdtype(flat.dtype, np.integer):
        while unit > scale / 64.0 and bool((flat != np.rint(flat / unit) * unit).any()):
            unit /= 2.0
    span = float(flat.max()) - float(flat.min())
    while span / unit * flat.size > LARGEST_SUM / 2:
        unit *= 2.0
    if unit == 1.0 and np.issubdtype(flat.dtype, np.integer):
        return np.ascontiguousarray(flat, dtype=np.int64), unit
    return np.rint(flat / unit).astype(np.int64), unit


def _levels(row: IntArray, starts: IntArray, statistic: str) -> FloatArray:
    ends = np.append(starts, row.size)
    sizes = np.diff(ends)
    if statistic == "mean":
        # Relative to the least, so that no sum overflows where all counts are enormous.
        least = row.min()
        return np.asarray(np.add.reduceat(row - least, starts) / sizes + least, dtype=np.float64)
    middles = part_middles(row, np.arange(row.size, dtype=np.int64), ends)
    return np.asarray(np.where(sizes % 2 == 0, middles / 2.0, middles), dtype=np.float64)
