"""Tables of few attributes, measured directly: for people who ask for marginals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.intervals import Spread
from dphist.mechanisms.options import checked
from dphist.mechanisms.posterior import PosteriorNoise
from dphist.mechanisms.spatial import denoise_field
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Axes = tuple[int, ...]

_FITTING_ROUNDS = 50


def tables_of(workload: Workload) -> tuple[Axes, ...]:
    """Which tables the boxes of a workload are cells of: the axes on which each box is bounded."""
    full = (workload.low == 0) & (workload.high == np.array(workload.domain.shape))
    kinds = np.unique(~full, axis=0)
    return tuple(tuple(int(a) for a in np.flatnonzero(row)) for row in kinds)


@dataclass(frozen=True, eq=False)
class TableNoise:
    """Intervals for boxes that one of the measured tables can answer; for the rest nothing narrower than everything."""

    axes: tuple[Axes, ...]
    shape: tuple[int, ...]
    tables: tuple[PosteriorNoise, ...]
    total: float
    method: str = (
        "posterior interval of the measured table that answers the question, learned from the same noisy counts; "
        "how attributes go together beyond the measured tables was not measured, and such answers have no interval"
    )

    def spread(self, workload: Workload) -> Spread:
        """Answer each box from the smallest table that can."""
        low, high = workload.low, workload.high
        bounded = ~((low == 0) & (high == np.array(self.shape)))
        # Any count lies between zero and the total: two deviations of this cover all of it.
        variance = np.full(len(low), max(self.total, 1.0) ** 2)
        largest = np.sqrt(variance / 2.0)
        for axes, noise in zip(self.axes, self.tables, strict=True):
            others = [axis for axis in range(len(self.shape)) if axis not in axes]
            mine = ~bounded[:, others].any(axis=1)
            if mine.any():
                keep = list(axes)
                spread = noise.spread_boxes(
                    np.ascontiguousarray(low[mine][:, keep]), np.ascontiguousarray(high[mine][:, keep])
                )
                better = spread.variance < variance[mine]
                where = np.flatnonzero(mine)[better]
                variance[where], largest[where] = spread.variance[better], spread.largest[better]
        return Spread(variance, largest)


@checked
@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Measure the tables people ask for, each with an equal share, and fit the whole to them.

    Every cell of a table is noised, inferred from its neighbours as in `Posterior`, and the full table is the one of
    largest entropy with these marginals (iterative proportional fitting). ``tables`` are tuples of axes; none
    given, they are read off the workload, or all single attributes are taken.

    Private because each table's cells are disjoint, so one step moves one of them by one, and the tables split the
    budget.
    """

    tables: tuple[Axes, ...] | None = None

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every table once, then fit."""
        axes = self._tables(data)
        grid = np.indices(data.shape, dtype=np.int32, sparse=True)
        fitted: list[FloatArray] = []
        unknown: list[FloatArray] = []
        errors: list[PosteriorNoise] = []
        for right, table in zip(data.split(*[Fraction(1, len(axes))] * len(axes)), axes, strict=True):
            shape = tuple(data.shape[a] for a in table)
            labels = np.zeros((1,) * len(data.shape), dtype=np.int64)
            for axis in table:
                labels = labels * data.shape[axis] + grid[axis]
            labels = np.broadcast_to(labels, data.shape)
            noisy = right.partition(labels, math.prod(shape)).measure(Totals())
            values, scale = noisy.values.reshape(shape), float(noisy.scale)
            counts, model = denoise_field(values, scale)
            fitted.append(counts)
            unknown.append(np.full(shape, 2.0 * scale**2) if model is None else model.within + model.between)
            within, between = (None, None) if model is None else (model.within, model.between)
            errors.append(PosteriorNoise(within, between, counts - values, scale))
        total = _agree(fitted, unknown)
        names = ", ".join("×".join(f"axis {a}" for a in table) for table in axes)
        return Estimate(
            _fit(data.shape, axes, fitted, total),
            TableNoise(axes, data.shape, tuple(errors), total),
            f"{len(axes)} tables were measured directly, each with an equal share ({names})",
        )

    def _tables(self, data: PrivateCounts) -> tuple[Axes, ...]:
        axes = self.tables
        if axes is None and data.workload is not None and data.workload.kind == "marginals":
            axes = tables_of(data.workload)
        if axes is None:
            axes = tuple((axis,) for axis in range(len(data.shape)))
        # A table that is part of another is answered by it.
        axes = tuple(t for t in axes if t and not any(set(t) < set(u) for u in axes))
        if not axes:
            axes = ((0,),)
        if any(not 0 <= axis < len(data.shape) for table in axes for axis in table):
            raise MechanismError("tables: every axis must be one of the domain's")
        return axes


def _agree(tables: list[FloatArray], variances: list[FloatArray]) -> float:
    """Move tables to a common total, in place: each cell by its share of what is unknown of its table.

    Scaling instead would put the whole difference on the largest cell, which is known as well as any other.
    """
    unknown = [float(variance.sum()) + 1e-12 for variance in variances]
    total = sum(float(t.sum()) / u for t, u in zip(tables, unknown, strict=True))
    total = max(0.0, total / sum(1.0 / u for u in unknown))
    for i, (table, variance, u) in enumerate(zip(tables, variances, unknown, strict=True)):
        tables[i] = np.maximum(table + variance * ((total - float(table.sum())) / u), 0.0)
    return total


def _fit(
    shape: tuple[int, ...], axes: tuple[Axes, ...], tables: list[FloatArray], total: float
) -> FloatArray:
    """Give the table of largest entropy with these marginals, scaled to a common total."""
    targets = []
    for counts in tables:
        mass = float(counts.sum())
        targets.append(counts * (total / mass) if mass > 0.0 else np.full(counts.shape, total / counts.size))
    joint = np.full(shape, total / math.prod(shape))
    disjoint = sum(len(t) for t in axes) == len({a for t in axes for a in t})
    for _ in range(1 if disjoint else _FITTING_ROUNDS):
        furthest = 0.0
        for table, target in zip(axes, targets, strict=True):
            others = tuple(a for a in range(len(shape)) if a not in table)
            now = joint.sum(axis=others)
            factor = np.divide(target, now, out=np.zeros(now.shape), where=now > 0.0)
            furthest = max(furthest, float(np.abs(now - target).max(initial=0.0)))
            joint *= factor.reshape([shape[a] if a in table else 1 for a in range(len(shape))])
        if furthest <= 1e-9 * max(total, 1.0):
            break
    return joint
