"""What stands on an estimate: a number for every cell of the domain, or published tables of few attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError, QueryError, TooLargeError, VerificationError
from dphist.inference.estimate import Estimate, How
from dphist.inference.tables.published import TableEstimate, sums_of_tables
from dphist.inference.tables.residuals import Axes
from dphist.inference.topdown import integers_topdown, nonnegative_topdown
from dphist.model.domain import Domain
from dphist.model.phrases import counted
from dphist.model.transcript import OTHERWISE
from dphist.model.workload import Workload
from dphist.release.answers import Answers, Projection, answers_with
from dphist.release.columns import Column, free, label_columns, label_rows, text_array

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Pair = tuple[FloatArray, FloatArray]
Contents = Any
"""The release whose numbers cells are: `dphist.release.contents` stands on this file, which cannot import it."""

LARGEST_ARRAY = 1 << 27
"""Cells that an array is made for when somebody asks for one."""

_LARGEST_TABLE = 1 << 24
"""And for one table that somebody asks for."""
TOTAL = "total"
"""What the table of no attributes is called."""

# How far a replay on another kind of processor may be off: parts of a count, and of the largest one.
_DIGITS, _OF_LARGEST = 1e-9, 1e-12


class Estimated:
    """What cells share that stand on an estimate: its errors say how far any sum of cells is off."""

    at_once: ClassVar[int] = 1 << 18
    """Single cells that are asked about at a time: a hundred million need memory for a quarter of a million."""

    @property
    def numbers(self) -> FloatArray:
        """The published numbers, row after row."""
        raise NotImplementedError

    def places(self, rows: IntArray) -> Sequence[NDArray[np.signedinteger[Any]]]:
        """Where some rows lie on every axis: below zero where they add up over it."""
        raise NotImplementedError

    def label_rows(self, labels: Sequence[Column], rows: IntArray) -> dict[str, Any]:
        """The labels of some rows, texts as a dictionary of those that come."""
        return label_rows(labels, self.places(rows))

    def sums(self, release: Contents, workload: Workload) -> FloatArray:
        """The published answers."""
        raise NotImplementedError

    def answers(
        self, release: Contents, workload: Workload, confidence: float, **how: Unpack[How]
    ) -> Answers:
        """Sum the cells, or answer better where the estimate can, and ask its errors for intervals."""
        value, errors = self.sums(release, workload), release._estimate.errors
        if release.polish:
            how["estimated"] = release._unpolished.sums(release, workload)
        else:
            value = errors.answer(workload, value)
        found = errors.interval(workload, value, confidence, **how)
        return answers_with(value, found, confidence, errors.words, how)

    def replayed(self, release: Contents) -> DenseCells | TableCells:
        """The numbers of the estimate that a replay gives."""
        estimate = release._replay()
        # Whoever read the release from a file and verifies it need not replay it once more to know its errors.
        # What it knew of them before may have been taken from the file.
        release.__dict__["_estimate"] = estimate
        with fitting():
            return cells_of(release.domain, estimate)

    def as_questions(self, domain: Domain, begin: int, end: int) -> Workload:
        """Some rows, each as the question that it answers."""
        places = np.stack(list(self.places(np.arange(begin, end))), axis=1).astype(np.int64)
        return Workload(domain, np.maximum(places, 0), np.where(places < 0, domain.shape, places + 1))

    def bounds(self, release: Contents, begin: int, end: int, confidence: float) -> Pair:
        """Ask the estimate's errors about single rows."""
        numbers, how = self.numbers, How()
        low, high = [np.zeros(0)], [np.zeros(0)]
        for start in range(begin, end, self.at_once):
            stop = min(start + self.at_once, end)
            if release.polish:
                how["estimated"] = release._unpolished.numbers[start:stop]
            asked = self.as_questions(release.domain, start, stop)
            found = release._estimate.errors.interval(asked, numbers[start:stop], confidence, **how)
            low.append(found.low)
            high.append(found.high)
        return np.concatenate(low), np.concatenate(high)

    def project(self, release: Contents, names: Sequence[str], confidence: float) -> Projection:
        """Answer the questions that the marginal is made of."""
        domain, asked = release.domain.project(names), Workload.marginals(release.domain, [list(names)])
        parts = [
            self.answers(release, each, confidence)
            for each in (asked.chunks(self.at_once) if len(asked) > self.at_once else [asked])
        ]
        value, low, high = (
            np.concatenate([getattr(part, side) for part in parts]).reshape(domain.shape)
            for side in ("value", "low", "high")
        )
        first, guessed = parts[0], None
        if first.guessed is not None:
            guessed = np.concatenate([np.asarray(part.guessed) for part in parts]).reshape(domain.shape)
        return Projection(domain, value, low, high, confidence, first.method, first.details, guessed)


@dataclass(frozen=True, eq=False)
class DenseCells(Estimated):
    """A number for every cell, as an array of the domain's shape.

    Args:
        counts: The estimates, in the domain's shape.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> release.cells.form, release.cells.numbers.size
        ('dense', 200)
    """

    counts: FloatArray
    form: ClassVar[str] = "dense"

    @property
    def numbers(self) -> FloatArray:
        """The published numbers in C order."""
        return self.counts.reshape(-1)

    def dense(self, release: Contents) -> FloatArray:
        """The array itself."""
        return self.counts

    def places(self, rows: IntArray) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        """Where some rows, each a cell, lie on every axis."""
        return np.unravel_index(rows, self.counts.shape)

    def sums(self, release: Contents, workload: Workload) -> FloatArray:
        """Answer from running sums that are kept: a release is asked again and again, and never changes."""
        if workload.kind in ("cells", "prefixes"):
            return np.asarray(workload.answer(self.counts), dtype=np.float64)
        return np.asarray(workload.answer_from(self._running_sums), dtype=np.float64)

    @cached_property
    def _running_sums(self) -> FloatArray:
        from dphist.kernels.summed_area import running_sums

        return running_sums(self.counts)

    def polish(self, step: str, release: Contents) -> DenseCells:
        """Raise negative counts, round to whole numbers, or move to a public total, all from the top down."""
        domain = release.domain
        if step == "integer":
            return DenseCells(integers_topdown(self.counts, domain))
        if step.startswith("nonnegative"):
            public = step.removeprefix("nonnegative total ") if " " in step else None
            total = None if public is None else float(public)
            return DenseCells(nonnegative_topdown(self.counts, domain, total))
        raise VerificationError(f"unknown polishing step {step!r}")

    def same(self, other: object, *, exact: bool = False) -> bool:
        """Whether every count is the same."""
        return isinstance(other, DenseCells) and alike(self.counts, other.counts, exact=exact)

    def describe(self) -> str:
        """Every cell: nothing to add."""
        return ""


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

    def dense(self, release: Contents) -> FloatArray:
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

    def sums(self, release: Contents, workload: Workload) -> FloatArray:
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

    def _guesses(self, release: Contents, low: IntArray, high: IntArray) -> FloatArray:
        estimate = release._estimate
        if estimate.model is None:
            return np.full(len(low), np.nan)
        with fitting():
            return np.asarray(estimate.total * estimate.model.boxes(low, high), dtype=np.float64)

    def project(self, release: Contents, names: Sequence[str], confidence: float) -> Projection:
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

    def codes(self, release: Contents, count: int | None = None, seed: int = 0) -> tuple[IntArray, ...]:
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

    def polish(self, step: str, release: Contents) -> TableCells | DenseCells:
        """Tables are nowhere negative as they are; each rounded they would disagree, so the product is rounded."""
        if step == "nonnegative":
            return self
        if release._estimate.model is None or self.domain.size > LARGEST_ARRAY:
            raise QueryError(
                f"{step}: tables that agree with each other cannot be rounded or moved one by one; round what you show"
            )
        return DenseCells(self.dense(release)).polish(step, release)

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


def alike(one: FloatArray, other: FloatArray, *, exact: bool = False) -> bool:
    """Whether numbers of a release are those of its replay.

    Processors add long sums up in different orders, so that the last of sixteen digits differ: 10⁻¹⁵ to 10⁻¹⁴ of the
    largest count where tables were fitted. Numbers that agree to nine digits, or to twelve of the largest, are the
    same. Whole numbers are not rounded by anybody.
    """
    if exact or one.shape != other.shape or np.array_equal(one, other) or np.array_equal(one, np.rint(one)):
        return np.array_equal(one, other)
    largest = max(float(np.abs(one).max()), 1.0)
    return bool(np.allclose(one, other, rtol=_DIGITS, atol=max(_DIGITS, _OF_LARGEST * largest)))


@contextmanager
def fitting() -> Iterator[None]:
    """While something is made of a transcript: whatever stumbles over it says that it does not fit."""
    try:
        yield
    except DphistError:
        raise
    except Exception:
        # Only answers that no mechanism asked for can make one stumble; which line it was tells a reader nothing.
        raise VerificationError(f"the transcript does not fit the mechanism: {OTHERWISE}") from None
