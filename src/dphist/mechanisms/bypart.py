"""One run of a mechanism for every value of a public attribute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, Estimate
from dphist.inference.intervals import Spread
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.options import checked
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]


@checked
@dataclass(frozen=True, kw_only=True)
class ByPart:
    """Cut the cube along public attributes and run a mechanism on every piece by itself.

    Pieces are disjoint in cells, so each gets the whole budget (parallel composition): one step changes one cell, and
    so the answers about one piece. People may have rows in several pieces; the gate counts all of their rows as
    steps, wherever they lie. Every value gets a run, also one that no record has.

    Args:
        by: Public attributes, by name.
        inner: What runs on every part.

    Example:
        >>> from dphist.mechanisms import ByPart, Laplace
        >>> from dphist.testing import run
        >>> run(ByPart(by=("x0",), inner=Laplace()), [[9, 9], [0, 1]], epsilon=1, seed=1).counts.shape
        (2, 2)
    """

    by: tuple[str, ...] = ()
    inner: Mechanism = field(default_factory=Laplace)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Run the pieces in order and put them together."""
        rights = data.separate(self.by)
        domain = data.domain
        assert domain is not None  # noqa: S101 -- separate insists on it
        estimates = [self.inner.estimate(right) for right in rights]
        counts = joined(domain, self.by, [estimate.counts for estimate in estimates])
        return Estimate(counts, PartErrors(domain, self.by, tuple(estimate.errors for estimate in estimates)))


def joined(domain: Domain, by: tuple[str, ...], parts: list[FloatArray]) -> FloatArray:
    """Put the pieces of a cube back where they belong."""
    axes = [domain.axis(name) for name in by]
    kept = [axis for axis in range(len(domain.shape)) if axis not in axes]
    order = [*axes, *kept]
    stacked = np.stack([np.asarray(part, dtype=np.float64).reshape(-1) for part in parts])
    shaped = stacked.reshape([domain.shape[axis] for axis in order])
    return np.ascontiguousarray(shaped.transpose(np.argsort(order)))


@dataclass(frozen=True, eq=False)
class PartErrors:
    """Errors of a cube whose pieces carry independent noise: variances of the pieces that a range meets add up."""

    domain: Domain
    by: tuple[str, ...]
    errors: tuple[Errors, ...]

    @property
    def method(self) -> str:
        """Say how the pieces' intervals are obtained."""
        return (
            f"piece by piece of {', '.join(self.by)}: {self.errors[0].method}"
            if self.by
            else self.errors[0].method
        )

    @property
    def centre(self) -> Callable[[Workload], FloatArray] | None:
        """What intervals stand on, where the pieces' estimates say so."""
        return self._centre if hasattr(self.errors[0], "centre") else None

    def spread(self, workload: Workload) -> Spread:
        """Add the spreads of the pieces that each box meets."""
        boxes = len(workload.low)
        variance, largest, terms = np.zeros(boxes), np.zeros(boxes), np.zeros(boxes, dtype=np.int64)
        scales: set[Any] = set()
        for part, met, inside in self._meetings(workload):
            found = self.errors[part].spread(inside)
            variance[met] += found.variance
            largest[met] = np.maximum(largest[met], found.largest)
            scales.add(found.scale if found.terms is not None else None)
            if found.terms is not None:
                terms[met] += found.terms
        if len(scales) == 1 and (scale := scales.pop()) is not None:
            return Spread(variance, largest, terms, scale)
        return Spread(variance, largest)

    def _centre(self, workload: Workload) -> FloatArray:
        total = np.zeros(len(workload.low))
        for part, met, inside in self._meetings(workload):
            error: Any = self.errors[part]
            total[met] += error.centre(inside)
        if workload.query is None:
            return total
        gathered = np.zeros(len(workload))
        np.add.at(gathered, workload.query, total)
        return gathered

    def _meetings(self, workload: Workload) -> Any:
        """The pieces that any box meets, which boxes those are, and what they ask there."""
        axes, kept, inner = self._axes
        low, high = workload.low, workload.high
        shape = tuple(self.domain.shape[axis] for axis in axes)
        for part in range(len(self.errors)):
            place = np.unravel_index(part, shape) if shape else ()
            met = np.ones(len(low), dtype=bool)
            for axis, cell in zip(axes, place, strict=True):
                met &= (low[:, axis] <= cell) & (cell < high[:, axis])
            if met.any():
                yield part, met, Workload(inner, low[met][:, kept], high[met][:, kept])

    @cached_property
    def _axes(self) -> tuple[list[int], list[int], Domain]:
        axes = [self.domain.axis(name) for name in self.by]
        kept = [axis for axis in range(len(self.domain.shape)) if axis not in axes]
        return axes, kept, self.domain.project([self.domain.names[axis] for axis in kept])
