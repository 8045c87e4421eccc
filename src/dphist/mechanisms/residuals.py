"""Tables of few attributes out of very many: their residuals are measured, each with its best share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.fitting import agreeing
from dphist.inference.tables.published import TableEstimate, with_cube
from dphist.inference.tables.residuals import Axes, Measured, TableResiduals, subsets
from dphist.inference.tables.shrinking import Shrinking, neighbours
from dphist.mechanisms.marginals import denoised
from dphist.mechanisms.options import Bounds, checked
from dphist.mechanisms.wide.plan import Kinds, plan_tables, wanted_tables
from dphist.mechanisms.wide.ranges import plan_axes
from dphist.model.domain import Domain, Nominal
from dphist.model.phrases import counted
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.tables import RangedTables, TableTotals

# More cannot be fitted together; a file may ask for all of sixteen attributes out of sixty.
_MOST_TABLES = 1 << 20
# Domains of more cells are published as tables.
_SMALL_CUBE = 1 << 16


@checked
@dataclass(frozen=True, kw_only=True)
class Residuals:
    """Measure what the announced tables say beyond each other, and publish tables that agree.

    A table of few attributes is the sum of its *residuals* (main effects and interactions): one for every subset of its
    attributes, shared by all tables that contain it. Measuring residuals instead of tables pays for each only once. The
    shares are the best for the announced tables (`dphist.mechanisms.wide.plan`): in closed form under ρ (residual
    planning, Xiao et al. 2023), by a small search under ε, where whole tables are cheaper to measure. Least squares
    gives every covered table, range and cell an unbiased answer of exactly known variance; published are the nearest
    tables without negative cells that agree with each other. What lies in no announced table was not measured.

    It works on domains of any number of columns, because only tables are ever counted.

    Ranges of a long ordered attribute, and groups of a hierarchy, add up the noise of many cells. Where they will be
    asked (``ranges``) the contrasts of a tree over its values are measured inside every residual instead
    (`dphist.model.contrasts`): a range is few of them, so its noise grows with the logarithm of its length. Single
    values of that attribute are known less well for it.

    Private because it asks one question, whose promise is proved with it (`dphist.private.queries`); all that
    follows reads its noisy answer and public sizes.

    Args:
        tables: The axes of each announced table; read off the workload by default, else all of ``ways`` attributes.
        ways: How many attributes the tables have when none are announced.
        ranges: The axes whose ranges or groups will be asked inside tables; read off the workload by default.
        shrink: Whether tables are moved towards what smaller ones suggest, as far as noise explains the difference
            (`dphist.inference.tables.shrinking`).
            Intervals stand on least squares as before. Where ranges are asked for, tables are not moved.
        by_cells: Whether every cell of the announced tables counts alike when shares are planned, not every table:
            large tables then have more of the budget. Where kinds of tables have weights, these count.

    Example:
        >>> from dphist.mechanisms import Residuals
        >>> from dphist.testing import run
        >>> run(Residuals(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    tables: tuple[Axes, ...] | None = None
    ways: Annotated[int, Bounds(1, 16)] = 2
    ranges: tuple[int, ...] | None = None
    shrink: bool = False
    by_cells: bool = False

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables are published rather than a cube: of a small domain the cube is nicer to have."""
        return domain.size > _SMALL_CUBE

    def measured(self, data: PrivateCounts) -> tuple[tuple[Axes, ...], TableResiduals]:
        """Ask one question, and give the wanted tables and all that is known of them."""
        wanted = wanted_tables(data.shape, announced(data, self.tables, self.ways))
        kinds = () if self.tables else announced_kinds(data)
        ranges = asked_ranges(data, self.ranges)
        found = measure_residuals(data, wanted, ranges, kinds, by_cells=self.by_cells)
        return wanted, found

    def estimate_tables(self, data: PrivateCounts) -> TableEstimate:
        """Measure and publish tables, whatever the size of the domain."""
        gaussian = data.law().gaussian
        wanted, residuals = self.measured(data)
        if self.shrink and not residuals.trees:
            singles = [(axis,) for axis in range(len(data.shape))]
            table = denoised(residuals, singles, gaussian=gaussian)
            settled = agreeing(data.shape, wanted, table, Shrinking(residuals, neighbours(data.domain)))
        else:
            settled = agreeing(data.shape, wanted, residuals.table)
        return TableEstimate(settled, ResidualNoise(residuals), _note(data, wanted))

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Publish tables that have a guess beside them: the cube that has them, nothing else assumed."""
        return with_cube(self.estimate_tables(data), data.shape)


def announced(data: PrivateCounts, tables: tuple[Axes, ...] | None, ways: int) -> Sequence[Axes]:
    """The tables that will be asked for: as told, as the workload says, or all of ``ways`` attributes."""
    if tables is None:
        tables = tuple(dict.fromkeys(axes for part in _parts(data) for axes in part.tables or ())) or None
    if tables is None:
        count = len(data.shape)
        if (many := math.comb(count, min(ways, count))) > _MOST_TABLES:
            raise MechanismError(
                f"ways: {many:,} tables are more than can be fitted; announce those you need"
            )
        tables = tuple(combinations(range(count), min(ways, count)))
    if any(not 0 <= axis < len(data.shape) for axes in tables for axis in axes):
        raise MechanismError("tables: every axis must be one of the domain's")
    return tables


def announced_kinds(data: PrivateCounts) -> Kinds:
    """The parts of an announced mixture that are tables, each with its weight; none if all count alike."""
    parts = [] if data.workload is None else data.workload.parts
    kinds = tuple((float(weight), tuple(part.tables)) for weight, part in parts if part.tables)
    return kinds if len(kinds) > 1 else ()


def _parts(data: PrivateCounts) -> list[Workload]:
    """What was announced: one kind of questions, or each part of a mixture."""
    if data.workload is None:
        return []
    return [part for _, part in data.workload.parts] or [data.workload]


def asked_ranges(data: PrivateCounts, ranges: tuple[int, ...] | None) -> tuple[int, ...]:
    """The axes whose ranges will be asked: as told, or as the workload says."""
    if ranges is None:
        return tuple(sorted({axis for part in _parts(data) for axis in part.ranges}))
    for axis in ranges:
        attribute = data.whole.attributes[axis] if 0 <= axis < len(data.shape) else None
        if attribute is None or (isinstance(attribute, Nominal) and attribute.hierarchy.levels <= 2):
            raise MechanismError("ranges: each must be the axis of an ordered attribute, or of a hierarchy")
    return ranges


def measure_residuals(
    data: PrivateCounts,
    wanted: Sequence[Axes],
    ranges: Sequence[int] = (),
    kinds: Kinds = (),
    *,
    by_cells: bool = False,
) -> TableResiduals:
    """Use a right up on the best residuals (under ρ) or tables (under ε) for some wanted tables.

    None of these lies inside another (`wanted_tables`); ``ranges`` are the axes whose ranges will be asked inside them.
    """
    shape, gaussian = data.shape, data.law().gaussian
    trees = plan_axes(data.whole, ranges, gaussian=gaussian)
    plan = plan_tables(shape, wanted, trees, kinds, gaussian=gaussian, by_cells=by_cells)
    if trees or gaussian:
        weights = tuple((axis, each.weights) for axis, each in trees.items())
        noisy = data.measure(RangedTables(plan.tables, plan.shares, weights, centred=gaussian))
    else:
        noisy = data.measure(TableTotals(plan.tables, plan.shares, plan.differences))
    variance, scale = np.asarray(noisy.law.variance), np.asarray(noisy.law.scale, dtype=np.float64)
    # A block holds more than was announced: what nobody asked for stays unknown.
    about = None if gaussian or trees else frozenset(inner for axes in wanted for inner in subsets(axes))
    found, begin = [], 0
    for place, axes in enumerate(plan.tables):
        chosen = plan.differences[place]
        sides = [1 if axis in chosen else shape[axis] - (axis in trees) for axis in axes]
        values = noisy.values[begin : begin + math.prod(sides)].astype(np.float64).reshape(sides)
        # The first answer is of every tree's root: what the table has, without what the roots have.
        roots = math.prod(float(trees[axis].noise.noise[0]) for axis in axes if axis in trees)
        heavy = math.prod(float(trees[axis].noise.scale[0]) for axis in axes if axis in trees)
        # In units of the table: residuals are multiplied by the number of values.
        units = math.prod(shape[axis] for axis in axes if axis not in trees) if gaussian else 1
        found.append(
            Measured(
                axes,
                values / units,
                float(variance[begin]) / roots / units**2,
                0.0 if gaussian else float(scale[begin]) / heavy,
                chosen,
                residual=gaussian,
                about=about,
            )
        )
        begin += values.size
    return TableResiduals(shape, found, {axis: each.noise for axis, each in trees.items()})


def _note(data: PrivateCounts, wanted: Sequence[Axes]) -> str:
    ways = sorted({len(axes) for axes in wanted})
    kinds = " and ".join(str(each) for each in ways[:-1]) + " and " * (len(ways) > 1)
    return (
        f"{counted(len(wanted), 'table')} of {kinds}{counted(ways[-1], 'attribute')} out of {len(data.shape)} "
        "measured together, residual by residual, with the shares that serve them best"
    )
