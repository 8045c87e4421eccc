"""Ask a release in SQL, or a file that holds one."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from dphist.arguments import explained
from dphist.release import Release, load
from dphist.release.sql import Rows


@explained
def ask_sql(
    release: Release | str | PathLike[str],
    query: str,
    *,
    rows: int | None = None,
    parameters: Sequence[Any] = (),
) -> Rows:
    """Run one SELECT over the table ``release``, which has the columns of the saved file: labels, ``estimate``, bounds.

    The query sees that table and nothing else: no files, no network, no extensions, no Python objects. Sums of
    estimates are estimates, but sums of bounds are far too wide: for intervals of sums, and for which sums were not
    measured at all, ask the release itself or `dphist.uses.Cube`.

    Args:
        release: A release, or the path of one.
        query: One SELECT.
        rows: At most so many rows; all unless told.
        parameters: Values for the query's ``?``.

    Returns:
        The rows and the names of their columns.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> from dphist.uses import ask_sql
        >>> ask_sql(release, "select sex, count(*) as cells from release group by sex order by sex").rows
        [('F', 100), ('M', 100)]
    """
    held = release if isinstance(release, Release) else load(release)
    return held.sql(query, rows=rows, parameters=parameters)
