"""Which mechanism publishes tables of few attributes, by what each is expected to be off by.

For records of many columns: tables with a model fitted to them (`Mixture`), which are expected to be off by no more
than plain ones; where ranges were announced and a tree serves them better than cells added up, the tables that have one
(`Residuals`). For a cube that fits in memory and tables that
were announced: residuals, or the tables that `dphist.mechanisms.choosing.forecast` plans.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.choosing.request import ALIKE, rough
from dphist.mechanisms.mixture import Mixture, counted
from dphist.mechanisms.residuals import Residuals, announced, asked_ranges
from dphist.mechanisms.wide.plan import planned_variances, wanted_tables
from dphist.mechanisms.wide.ranges import asked_squares, plan_axes
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts


def publish_tables(data: PrivateCounts) -> tuple[str, Residuals | Mixture, TableEstimate]:
    """Use a right up by the way that is expected to be off by least: the reason, who was chosen, and the tables."""
    plain_tables, mixture = Residuals(), Mixture()
    trees = plan_axes(data.whole, asked_ranges(data, None), gaussian=data.law().gaussian)
    if trees:
        parts = [
            math.sqrt(tree.squares / asked_squares(data.whole.attributes[axis]))
            for axis, tree in trees.items()
        ]
        names = ", ".join(data.whole.names[axis] for axis in trees)
        said = f"and blocks of all sizes along {names} with them (residuals), whose ranges will typically be off by"
        said = f"{said} {float(np.mean(parts)):.0%} of what sums of single counts would be"
        return said, plain_tables, plain_tables.estimate_tables(data)
    pairs = {
        pair for axes in announced(data, None, mixture.ways) for pair in combinations(sorted(set(axes)), 2)
    }
    if not any(data.shape[a] > 1 and data.shape[b] > 1 for a, b in pairs):
        return "by themselves (residuals)", plain_tables, plain_tables.estimate_tables(data)
    rest, outlook = counted(data, mixture.tables, mixture.ways)
    # Tables that are moved towards a model are expected to be off by no more than they would be by themselves.
    off, other = float(outlook.likely @ outlook.ways.min(axis=0)), outlook.plain
    than = "about as many" if other <= ALIKE * off else f"{rough(100.0 * other)}%"
    said = (
        "and a model fitted to them (mixture): in tables of two attributes about "
        f"{rough(100.0 * off)}% of the records will typically be misplaced, without the model {than}"
    )
    # Counting records is the first thing that a mixture does by itself.
    return said, mixture, mixture.after_count(rest, outlook)


def residual_error(law: NoiseLaw, shape: Sequence[int], tables: Sequence[Axes]) -> float:
    """The root mean squared error of cells of announced tables, all cells alike, if residuals are measured."""
    every = [tuple(sorted(axis for axis in axes if shape[axis] > 1)) for axes in tables]
    variances, _ = planned_variances(law, shape, wanted_tables(shape, every), every, by_cells=True)
    cells = np.array([math.prod(shape[axis] for axis in axes) for axes in every], dtype=np.float64)
    return math.sqrt(float(variances @ cells / cells.sum()))
