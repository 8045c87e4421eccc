"""Sums that were published beside the counts: which there are, and the columns that they fill."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import QueryError
from dphist.inference.intervals import possible
from dphist.release.cells import Cells, TableCells
from dphist.release.columns import free
from dphist.release.contents import Contents, MeasuredSums

FloatArray = NDArray[np.float64]


def measured(release: Contents, name: str, *, squared: bool = False, clipped: bool = False) -> MeasuredSums:
    """The sums of a measure by its name, or a refusal that says which there are."""
    for sums in release.sums:
        quantity = sums.quantity
        if sums.measure.name == name and (quantity.squared, quantity.clipped) == (squared, clipped):
            return sums
    if clipped and any(sums.measure.name == name for sums in release.sums):
        raise QueryError(f"{name}: clipped records were not counted; publish with clipped=True")
    if squared and any(sums.measure.name == name for sums in release.sums):
        raise QueryError(
            f"{name}: its squares were not published, which variances need; publish with squares=True"
        )
    known = ", ".join(dict.fromkeys(sums.measure.name for sums in release.sums))
    raise QueryError(
        f"there is no measure {name!r}; " + (f"there are {known}" if known else "there are none")
    )


def possible_sums(
    low: ArrayLike, high: ArrayLike, least: float, most: float
) -> tuple[FloatArray, FloatArray]:
    """An interval of a sum, cut to what sums of values between two ends can be: of none below zero none is.

    The number stays as it is: sums of groups add up.
    """
    return possible(low, high, 0.0 if least >= 0 else -np.inf, 0.0 if most <= 0 else np.inf)


def sum_columns(
    release: Contents, taken: set[str], rows: tuple[Cells, FloatArray] | None = None
) -> dict[str, FloatArray]:
    """The estimated sums of every row in the measures' own values, by the name of their column.

    ``rows`` are the cells whose rows they are, with the count of each; by default the release's own.
    """
    columns: dict[str, FloatArray] = {}
    cells, counts = rows or (release.cells, release.cells.numbers)
    for sums in release.sums:
        if sums.quantity.plain:
            steps = sums.release.counts
            if isinstance(cells, TableCells):
                every = range(steps.ndim)
                beyond = [tuple(axis for axis in every if axis not in axes) for axes in cells.order]
                steps = np.concatenate([steps.sum(axis=axes).reshape(-1) for axes in beyond])
            steps = steps.reshape(-1) + sums.quantity.centre * counts
            columns[free(f"sum_{sums.measure.name}", taken | set(columns))] = steps * float(
                sums.quantity.step
            )
    return columns


def column_words(release: Contents, taken: set[str]) -> dict[str, str]:
    """What these columns hold, for people."""
    plain = [sums.measure for sums in release.sums if sums.quantity.plain]
    return {
        name: f"the estimated sum of {measure.name} over the cell's records, each value clipped to "
        f"{float(Fraction(measure.low)):g} to {float(Fraction(measure.high)):g}; noise was added on purpose, and where "
        "the cell's attributes were not measured together it is a guess, which adds up to what was measured"
        for name, measure in zip(sum_columns(release, taken), plain, strict=True)
    }
