"""What a mechanism for wide tables hands over: published tables that agree with each other, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.errors import TooLargeError
from dphist.inference.estimate import Errors, Estimate
from dphist.inference.tables.residuals import Axes, bounded_kinds
from dphist.inference.tables.synthesis import RakedModel
from dphist.model.phrases import mended

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Model(Protocol):
    """A distribution over whole records that says something of every table, measured or not."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        ...

    def table(self, axes: Axes) -> FloatArray:
        """The probability of every cell of a table, its axes as named."""
        ...

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """The probability of every box."""
        ...


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """Published tables of few attributes, what is known of their errors, and a word on how they came about.

    Args:
        tables: By their attributes, ascending; with each table every smaller one inside it, the total under ``()``.
        errors: Intervals for boxes inside these tables, and bounds elsewhere.
        note: How it came about.
        model: What says something of tables that were not measured, if there is such a model: a guess.
        made_by: The mechanism with all that it chose filled in, where it chose: replaying that chooses nothing again.
    """

    tables: Mapping[Axes, FloatArray]
    errors: Errors
    note: str = ""
    model: Model | None = None
    made_by: object = None

    def __post_init__(self) -> None:
        """One of a thing is said as one, as in `Estimate`."""
        object.__setattr__(self, "note", mended(self.note))

    @property
    def total(self) -> float:
        """The published number of records."""
        return float(self.tables[()])

    @property
    def counts(self) -> FloatArray:
        """A number for every cell of the product, as the model guesses it: worked out whenever it is asked for."""
        if self.model is None:
            raise TooLargeError(
                "counts: tables of few attributes were published, and nothing is said of other counts"
            )
        every = tuple(range(len(self.model.shape)))
        return np.asarray(self.total * self.model.table(every), dtype=np.float64)


def in_cells(found: Estimate | TableEstimate) -> Estimate:
    """The same with a number for every cell, guessed where only tables say something."""
    if isinstance(found, Estimate):
        return found
    return Estimate(found.counts, found.errors, found.note, found.made_by)


def with_cube(found: TableEstimate, shape: Sequence[int]) -> Estimate | TableEstimate:
    """Tables over a product that can be written out, with a guess of all its cells: raked where they have no model."""
    every = tuple(axis for axis, size in enumerate(shape) if size > 1)
    if every in found.tables:
        return Estimate(found.tables[every].reshape(shape), found.errors, found.note, found.made_by)
    return found if found.model is not None else replace(found, model=RakedModel(tuple(shape), found.tables))


def sums_of_tables(
    tables: Mapping[Axes, FloatArray], shape: Sequence[int], low: IntArray, high: IntArray
) -> FloatArray:
    """Sum boxes of the table of the attributes that each is bounded on; not a number where there is none."""
    from dphist.kernels.summed_area import box_sums

    summed = np.full(len(low), np.nan)
    for axes, here in bounded_kinds(shape, low, high):
        if axes in tables:
            values = tables[axes]
            # Differences of running sums round; tables are nowhere negative, and neither is what is added up in them.
            sums = box_sums(values, low[here][:, axes], high[here][:, axes]) if axes else float(values)
            summed[here] = np.maximum(sums, 0.0)
    return summed
