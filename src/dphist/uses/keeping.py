"""What synthetic records keep of a release: each published table beside the same table of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.arguments import explained
from dphist.errors import QueryError
from dphist.extras import need
from dphist.release import Release
from dphist.release.cells import TableCells
from dphist.uses.columns import column, column_names

if TYPE_CHECKING:
    import pandas


@explained
def records_keep(release: Release, records: Any) -> pandas.DataFrame:
    """Say how far the tables of records are from the published ones. Reads what is public alone.

    Args:
        release: What the records were made from.
        records: The records: a data frame, or a mapping of columns.

    Returns:
        A row for each published table, worst first: its name, how many cells it has, the total variation between its
        shares and the records' (0 is the same, 1 has nothing in common) and the largest difference of one cell's share.

    Example:
        >>> import dphist, pandas as pd
        >>> from dphist.uses import records_keep
        >>> names = [f"q{i}" for i in range(20)]
        >>> domain = dphist.Domain([dphist.Nominal(name, ["no", "yes"]) for name in names])
        >>> rows = pd.DataFrame({name: ["yes", "no"] * 500 for name in names})
        >>> release = dphist.publish(
        ...     rows, domain, epsilon=50, mechanism="mixture(classes=4, steps=20)", workload="marginals:q0,q1"
        ... )
        >>> bool(records_keep(release, release.records(500))["variation"].max() < 0.5)
        True
    """
    need("pandas", "frames")
    import pandas as pd

    domain = release.domain
    missing = [name for name in domain.names if name not in set(column_names(records))]
    if missing:
        raise QueryError(f"records: there is no column {', '.join(missing)}")
    codes = [attribute.cells(column(records, attribute.name)) for attribute in domain.attributes]
    rows = []
    for axes, table in _tables(release).items():
        inside = np.all([codes[axis] >= 0 for axis in axes], axis=0)
        cells = np.ravel_multi_index([codes[axis][inside] for axis in axes], table.shape)
        made = np.bincount(cells, minlength=table.size) / max(1, len(inside))
        held = np.maximum(table.reshape(-1), 0.0)
        apart = np.abs(made - held / max(float(held.sum()), 1e-300))
        name = ", ".join(domain.names[axis] for axis in axes)
        rows.append((name, table.size, float(0.5 * apart.sum()), float(apart.max(initial=0.0))))
    found = pd.DataFrame(rows, columns=["table", "cells", "variation", "largest"])
    return found.sort_values("variation", ascending=False, kind="stable", ignore_index=True)


def _tables(release: Release) -> dict[tuple[int, ...], Any]:
    """Every published table; of a cube, its attributes one by one and by two."""
    if isinstance(release.cells, TableCells):
        return {axes: table for axes, table in release.cells.tables.items() if axes}
    from itertools import combinations

    names = release.domain.names
    kinds = [axes for ways in (1, 2) for axes in combinations(range(len(names)), ways)]
    return {axes: release.project(*(names[axis] for axis in axes)).counts for axes in kinds}
