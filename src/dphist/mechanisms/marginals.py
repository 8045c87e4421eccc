"""Tables of few attributes, measured directly: for people who ask for marginals, and for cubes of many attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

import numpy as np

from dphist.arrays import FloatArray
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.neighbours import denoise_field
from dphist.inference.tables.fitting import agreeing, rake, settle
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.published import RakedModel, TableEstimate
from dphist.inference.tables.residuals import Axes, TableResiduals
from dphist.inference.tables.shrinking import Shrinking, neighbours
from dphist.inference.tables.shrunk import Departures, Shrunk, TableNoise
from dphist.mechanisms.options import checked
from dphist.mechanisms.trees.growing import box_labels
from dphist.model.phrases import counted
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals

# Raking goes over at most 4·10⁸ cells, tables times rounds times cells: about a second.
_MOST_RAKED = 4e8
_RAKING_ROUNDS = 30
# A cube's tables of at most 3 attributes are published as least squares has them; larger ones follow its cells.
_HIGHEST_RAKED = 3
# The same where tables are shrunk: on made-up cubes three cost single cells up to a third and won nothing.
_HIGHEST_SHRUNK = 2
# Raking stops when no cell of a table is missed by more than this part of the table's own noise.
_CLOSE = 0.1
# The cube that is raked starts from its own denoised cells plus this part of what the tables alone would put there, or
# of the cell's noise where that is less. Flat from 1 % to 5 % on made-up cubes.
_DOUBT = 0.02
# Where cells give way by what is left to doubt of them that is their variance and this part of what tables would put
# there, and tables are gone over at most 10 times (30 rounds and 10 are off by the same on made-up cubes).
_NEVER_SURE, _GIVING_ROUNDS = 0.02, 10
# Tables with at most 65,536 cells are denoised before they are settled; for larger ones it takes too long.
_MOST_DENOISED = 1 << 16


def tables_of(workload: Workload) -> tuple[Axes, ...]:
    """Which tables the boxes of a workload are cells of: the axes on which each box is bounded."""
    if workload.tables is not None:
        # Boxes are not bounded on an attribute of one value.
        sizes = workload.domain.shape
        rows = {tuple(a in t and sizes[a] > 1 for a in range(len(sizes))) for t in workload.tables}
        return tuple(tuple(a for a, bounded in enumerate(row) if bounded) for row in sorted(rows))
    full = (workload.low == 0) & (workload.high == np.array(workload.domain.shape))
    kinds = np.unique(~full, axis=0)
    return tuple(tuple(int(a) for a in np.flatnonzero(row)) for row in kinds)


@checked
@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Measure some tables of the cube, each with its share, and publish them; the cube too, if it is one of them.

    Tables overlap, so what each says of smaller ones is averaged by precision: least squares, residual by residual
    (see `dphist.inference.tables.residuals`), with exact variances for everything inside a measured table. Published is
    the nearest without negative cells: totals are settled first and handed down, table by table, and a cube is raked
    to them (see `dphist.inference.tables.fitting`). What lies inside no measured table is what chance alone would give:
    a guess between bounds that the measured tables allow (`dphist.inference.tables.frechet`), made when it is asked.

    ``tables`` are tuples of axes; none given, they are read off the workload, or all single attributes are taken.
    ``shares`` are what each of them costs, and sum to 1; equal if not given.

    Private because each table's cells are disjoint, so one step moves one of them by one, and the tables split the
    budget; all that follows reads noisy tables only.

    Args:
        tables: The axes of each table; every single attribute by default.
        shares: What each table costs; they sum to 1. Equal by default.
        nonnegative: Whether to fit a cube without negative cells; without, it is plain least squares, which sums of
            signed values need.
        estimator: What is made of noisy tables. ``"plain"`` infers their cells from neighbours. ``"weighed"`` moves
            each table towards what the smaller ones inside it suggest, as far as noise explains the difference, and has
            intervals about that.

    Example:
        >>> from dphist.mechanisms import Marginals
        >>> from dphist.testing import run
        >>> run(Marginals(tables=((0,), (1,))), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    tables: tuple[Axes, ...] | None = None
    shares: tuple[Fraction, ...] | None = None
    nonnegative: bool = True
    estimator: Literal["plain", "weighed"] = "plain"

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Ask for every table once, then fit: the cube if it is one of them, else tables."""
        axes, shares = self._tables(data)
        values: list[FloatArray] = []
        scales: list[float] = []
        for right, table in zip(data.split(*shares), axes, strict=True):
            labels = box_labels([np.arange(n) * (axis in table) for axis, n in enumerate(data.shape)])
            shape = tuple(data.shape[a] for a in table)
            noisy = right.partition(labels, math.prod(shape)).measure(Totals())
            values.append(noisy.values.astype(np.float64).reshape(shape))
            scales.append(float(noisy.scale))
        measured = MeasuredTables(data.shape, axes, tuple(values), tuple(scales), noisy.law.kind)
        called = [f"axis {a}" for a in range(len(data.shape))] if data.domain is None else data.domain.names
        names = ", ".join("×".join(called[a] for a in table) or "the total" for table in axes)
        how = "an equal share" if len(set(shares)) == 1 else "a share of its own"
        were = "was measured directly" if len(axes) == 1 else f"were measured directly, each with {how}"
        note = f"{counted(len(axes), 'table')} {were} ({names})"
        if not self.nonnegative:
            return Estimate(measured.table(measured.everything), TableNoise(measured), note)
        ordered, gaussian = neighbours(data.domain), noisy.law.gaussian
        if measured.everything in axes:
            if self.estimator == "plain":
                return Estimate(fit_cube(measured), TableNoise(measured), note)
            cube, shrunk = shrunk_cube(measured, ordered=ordered)
            return Estimate(cube, TableNoise(measured, cube, shrunk), note)
        if self.estimator == "plain":
            tables, near = agreeing(data.shape, axes, denoised(measured, axes, gaussian=gaussian)), None
        else:
            singles = tuple((axis,) for axis in measured.everything)
            better = Shrinking(measured, ordered)
            tables = near = agreeing(data.shape, axes, denoised(measured, singles, gaussian=gaussian), better)
        return TableEstimate(tables, TableNoise(measured, near=near), note, RakedModel(data.shape, tables))

    def _tables(self, data: PrivateCounts) -> tuple[tuple[Axes, ...], tuple[Fraction, ...]]:
        axes = self.tables
        if axes is None and data.workload is not None and data.workload.kind == "marginals":
            axes = tables_of(data.workload)
        if axes is None:
            axes = tuple((axis,) for axis in range(len(data.shape)))
        if any(not 0 <= axis < len(data.shape) for table in axes for axis in table):
            raise MechanismError("tables: every axis must be one of the domain's")
        if self.shares is not None:
            if len(self.shares) != len(axes) or sum(self.shares) != 1 or min(self.shares) <= 0:
                raise MechanismError("shares: give one above zero for each table; they must sum to 1")
            return tuple(tuple(sorted(set(table))) for table in axes), self.shares
        # A table that is part of another is answered by it.
        axes = tuple(sorted({tuple(sorted(set(t))) for t in axes if t}))
        axes = tuple(t for t in axes if not any(set(t) < set(u) for u in axes)) or ((0,),)
        return axes, (Fraction(1, len(axes)),) * len(axes)


def fit_cube(measured: MeasuredTables) -> FloatArray:
    """Publish a measured cube without negative cells: it is raked to its tables, settled from the total down."""
    wanted = _to_settle(measured, _HIGHEST_RAKED)
    settled = settle(measured.shape, wanted, denoised(measured, wanted, gaussian=measured.kind == "gaussian"))
    alone, enough, rounds = _even(measured, wanted, settled)
    variance = measured.cell_variance(measured.everything)
    own = _denoise(measured.table(measured.everything), variance, gaussian=measured.kind == "gaussian")
    # A cell that was called empty by mistake must still be filled: by no more than a small part of its noise.
    start = own + np.minimum(_DOUBT * alone, _DOUBT * math.sqrt(variance))
    return rake(start, {axes: settled[axes] for axes in wanted}, rounds, enough)


def _even(
    measured: MeasuredTables, wanted: Sequence[Axes], settled: Mapping[Axes, FloatArray]
) -> tuple[FloatArray, float, int]:
    """What tables alone would put into a cube; how near raking must come to them, and in how many rounds."""
    cells = math.prod(measured.shape)
    enough = _CLOSE * min(math.sqrt(measured.cell_variance(axes)) for axes in wanted)
    rounds = max(2, min(_RAKING_ROUNDS, int(_MOST_RAKED / (cells * len(wanted)))))
    even = np.full(measured.shape, float(settled[()]) / cells)
    targets = {axes: settled[axes] for axes in wanted}
    return rake(even, targets, min(rounds, 3), enough), enough, rounds


def shrunk_cube(
    measured: MeasuredTables, *, ordered: tuple[bool, ...] | None = None
) -> tuple[FloatArray, Shrunk]:
    """Publish a measured cube without negative cells, every table of it moved towards what smaller ones suggest.

    What that leaves to doubt comes with it. Cells then move until their sums are the tables, in proportion to it.
    """
    every, better = measured.everything, Shrinking(measured, ordered, variances=True)
    wanted, singles = _to_settle(measured, _HIGHEST_SHRUNK), tuple((axis,) for axis in every)
    settled = settle(
        measured.shape, wanted, denoised(measured, singles, gaussian=measured.kind == "gaussian"), better
    )
    model, enough, rounds = _even(measured, wanted, settled)
    found = better(every, measured.table(every), model)
    targets = {axes: settled[axes] for axes in wanted}
    if measured.axes == (every,) and len(every) > 2:
        # Tables of the same noisy cells tell no more than the cells do, and their noise would come back; but many small
        # cells that were shrunk to nothing are missed in the sum of all. Two attributes gain too little by it.
        targets = {(): np.asarray(settled[()])}
    doubt = better.levels[every][-1] + _NEVER_SURE * model
    found = rake(found, targets, min(rounds, _GIVING_ROUNDS), enough, doubt)
    left = {axes: Departures.of(levels) for axes, levels in better.levels.items()}
    return found, Shrunk(measured, found, max(map(len, wanted), default=0), left)


def _to_settle(measured: MeasuredTables, highest: int) -> tuple[Axes, ...]:
    """Which tables a measured cube is raked to: all of ``highest`` attributes, or fewer where that takes too long."""
    every, cells = measured.everything, math.prod(measured.shape)
    order = min(highest, len(every) - 1)
    while order > 1 and math.comb(len(every), order) * cells * 3 > _MOST_RAKED:
        order -= 1
    return tuple(combinations(every, max(order, 0)))


def denoised(
    measured: TableResiduals, wanted: Sequence[Axes], *, gaussian: bool
) -> Callable[[Axes], FloatArray]:
    """Least squares for every table; those at the bottom, whose cells are fewest records, inferred from neighbours."""

    def table(axes: Axes) -> FloatArray:
        values = measured.table(axes)
        if axes in wanted and 1 < values.size <= _MOST_DENOISED:
            return _denoise(values, measured.cell_variance(axes), gaussian=gaussian)
        return values

    return table


def _denoise(values: FloatArray, variance: float, *, gaussian: bool) -> FloatArray:
    """Cells from their neighbours."""
    whole = np.rint(values).astype(np.int64)
    counts, _ = denoise_field(whole, math.sqrt(variance / 2.0), gaussian=gaussian)
    return np.asarray(counts, dtype=np.float64).reshape(values.shape)
