"""Published tables of few attributes, out of a domain whose cells nobody can write out, and answers from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError, TooLargeError
from dphist.inference.estimate import Estimate
from dphist.inference.tables.published import TableEstimate, sums_of_tables
from dphist.inference.tables.residuals import Axes
from dphist.model.domain import Domain
from dphist.model.phrases import counted
from dphist.model.workload import Workload
from dphist.release.answers import Projection
from dphist.release.cells.cells import LARGEST_ARRAY, DenseCells, Estimated, Holder, alike, fitting
from dphist.release.columns import (
    Column,
    free,
    label_columns,
    label_rows,
    text_array,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Cells that a table is made for when somebody asks for one.
_LARGEST_TABLE = 1 << 24
TOTAL = "total"


@dataclass(frozen=True, eq=False)
class TableCells(Estimated):
    """The cells of every published table: of the announced ones, and of all smaller ones inside them.

    The tables have no negative cells and agree with each other. A question that bounds the attributes of one of them is
    answered from it; any other is *not measured*: a model's guess between the bounds that the measured tables allow
    where the mechanism fitted a model, and no number at all where it did not.

    Args:
        domain: What is counted.
        tables: The published counts, by the axes that each table keeps.

    Example:
        >>> import dphist, numpy as np, pandas as pd
        >>> names = [f"q{i}" for i in range(30)]
        >>> domain = dphist.Domain([dphist.Nominal(name, ["no", "perhaps", "yes"]) for name in names])
        >>> answers = pd.DataFrame({name: ["yes", "no"] * 500 for name in names})
        >>> release = dphist.publish(answers, domain, epsilon=10, mechanism="residuals")
        >>> release.cells.form, len(release.cells.tables), domain.size
        ('tables', 466, 205891132094649)
        >>> abs(release.answer("q3 = 'yes' and q8 = 'yes'").value - 500) < 400
        True
    """

    domain: Domain
    tables: Mapping[Axes, FloatArray]
    form: ClassVar[str] = "tables"
    # A question has two bounds on every one of perhaps a hundred attributes.
    at_once: ClassVar[int] = 1 << 14

    @cached_property
    def order(self) -> tuple[Axes, ...]:
        """The tables in the order of the file: the total, single attributes, pairs and so on."""
        return tuple(sorted(self.tables, key=lambda axes: (len(axes), axes)))

    @cached_property
    def starts(self) -> IntArray:
        """The first row of every table, and one past the last."""
        return np.cumsum([0, *(self.tables[axes].size for axes in self.order)]).astype(np.int64)

    @property
    def numbers(self) -> FloatArray:
        """The published numbers, table after table."""
        return np.concatenate([self.tables[axes].reshape(-1) for axes in self.order])

    def dense(self, release: Holder) -> FloatArray:
        """What the model guesses of every cell of the product, where it can be written out; measured they were not."""
        domain, estimate = self.domain, release._estimate
        if estimate.model is not None and domain.size <= LARGEST_ARRAY:
            with fitting():
                counts: FloatArray = estimate.counts
                return counts
        raise TooLargeError(
            f"counts: this release holds {counted(len(self.tables), 'table')} of few attributes out of a domain of "
            f"{domain.size:,} combinations, which nobody counted: ask answer(), project() on the attributes of one "
            "table, or to_pandas() for all tables"
        )

    def name(self, axes: Axes) -> str:
        """What the file calls a table: its attributes' names."""
        return ", ".join(self.domain.names[axis] for axis in axes) if axes else TOTAL

    def table_column(self) -> str:
        """The name of the column that says which table a row belongs to."""
        return free("table", {column.name for column in label_columns(self.domain)})

    def places(self, rows: IntArray) -> list[NDArray[np.signedinteger[Any]]]:
        """Where some rows, in order, lie on every axis: −1 where their table does not keep it."""
        which = self.tables_of(rows)
        places = np.full((len(self.domain.shape), rows.size), -1, dtype=np.int32)
        for number in np.unique(which):
            axes, inside = self.order[number], slice(*np.searchsorted(which, [number, number + 1]))
            shape = [self.domain.shape[axis] for axis in axes]
            if axes:
                places[list(axes), inside] = np.unravel_index(rows[inside] - self.starts[number], shape)
        return list(places)

    def tables_of(self, rows: IntArray) -> IntArray:
        """The numbers of the tables that some rows are of."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def label_rows(self, labels: Sequence[Column], rows: IntArray) -> dict[str, Any]:
        """The table of some rows, and each attribute's labels, empty where a table does not keep it."""

        def names(tables: IntArray) -> Any:
            return text_array([self.name(self.order[number]) for number in tables])

        table = Column(self.table_column(), 0, "", len(self.order), names)
        return {table.name: table.rows(self.tables_of(rows))} | label_rows(labels, self.places(rows))

    # ---- asking -----------------------------------------------------------------------------------------

    def sums(self, release: Holder, workload: Workload) -> FloatArray:
        """Answer every question from its table, or by the model's guess, or not at all."""
        boxes = sums_of_tables(self.tables, self.domain.shape, workload.low, workload.high)
        unknown = np.isnan(boxes)
        if unknown.any():
            boxes[unknown] = self._guesses(release, workload.low[unknown], workload.high[unknown])
        if workload.query is None:
            return boxes
        whole = np.zeros(len(workload))
        np.add.at(whole, workload.query, boxes)
        return whole

    def _guesses(self, release: Holder, low: IntArray, high: IntArray) -> FloatArray:
        estimate = release._estimate
        if estimate.model is None:
            return np.full(len(low), np.nan)
        with fitting():
            return np.asarray(estimate.total * estimate.model.boxes(low, high), dtype=np.float64)

    def project(self, release: Holder, names: Sequence[str], confidence: float) -> Projection:
        """Give one table, with an interval for every cell; of one that was not measured, what a model guesses."""
        domain = release.domain.project(names)
        if domain.size > _LARGEST_TABLE:
            raise TooLargeError(f"that table has {domain.size:,} counts; name fewer attributes")
        axes = tuple(release.domain.axis(name) for name in names)
        kept = tuple(sorted(axis for axis in axes if self.domain.shape[axis] > 1))
        if kept not in self.tables and release._estimate.model is None:
            raise QueryError(
                f"not measured: no published table has {', '.join(names)} together; publish with "
                f"workload='marginals:{','.join(names)}', or with the mechanism mixture for a model's guess"
            )
        return super().project(release, names, confidence)

    def codes(self, release: Holder, count: int | None = None, seed: int = 0) -> tuple[IntArray, ...]:
        """Draw synthetic records from the model of the tables by a public seed: places on every attribute."""
        estimate = release._estimate
        draw = getattr(estimate.model, "sample", None)
        if draw is None:
            raise QueryError(
                "records: tables of few attributes do not say how all attributes go together; publish with the "
                "mechanism mixture, which fits a model to them"
            )
        with fitting():
            wanted = max(0, round(estimate.total)) if count is None else count
        if wanted < 0:
            raise QueryError("count must not be negative")
        return tuple(np.asarray(places, dtype=np.int64) for places in draw(wanted, seed))

    # ---- trusting ---------------------------------------------------------------------------------------

    def polish(self, step: str, release: Holder) -> TableCells | DenseCells:
        """Tables are nowhere negative as they are; each rounded they would disagree, so the product is rounded."""
        if step == "nonnegative":
            return self
        if release._estimate.model is None or self.domain.size > LARGEST_ARRAY:
            raise QueryError(
                f"{step}: tables that agree with each other cannot be rounded or moved one by one; round what you show"
            )
        return DenseCells(self.dense(release)).polish(step, release)

    def replayed(self, release: Holder) -> TableCells | DenseCells:
        """The tables that a replay gives; what it says of itself is read off the same one."""
        estimate = release._replay()
        release.__dict__["_estimate"] = estimate
        with fitting():
            return cells_of(self.domain, estimate)

    def same(self, other: object, *, exact: bool = False) -> bool:
        """Whether every table is the same."""
        return (
            isinstance(other, TableCells)
            and self.order == other.order
            and all(alike(self.tables[axes], other.tables[axes], exact=exact) for axes in self.order)
        )

    def describe(self) -> str:
        """Say how many tables are published."""
        largest = max(len(axes) for axes in self.order)
        return f"{counted(len(self.order), 'table')} of up to {counted(largest, 'attribute')}"


def cells_of(domain: Domain, estimate: Estimate | TableEstimate) -> DenseCells | TableCells:
    """The cells of a release of this estimate: all where they were measured, else the measured tables."""
    if isinstance(estimate, TableEstimate):
        for table in estimate.tables.values():
            table.setflags(write=False)
        return TableCells(domain, dict(estimate.tables))
    counts = estimate.counts.reshape(domain.shape)
    counts.setflags(write=False)
    return DenseCells(counts)
