"""Records as codes: one small whole number for every row and column, and tables of few columns counted from them.

A domain of forty columns has more cells than there are atoms; nobody can hold its histogram. Its records are forty
codes a row, and any *table* (the counts over a few columns) is counted from them in one pass. What is held here is as
secret as the records; only `dphist.private` hands anything on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.errors import InputError, TooLargeError
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram, sum_others

IntArray = NDArray[np.int64]
Axes = tuple[int, ...]

# Rows handed to the kernel at a time, and how many of them it counts before it turns to the next table.
_CHUNK = 1 << 16
# Cells of all tables that are counted together; eight bytes each.
LARGEST_TABLES = 1 << 27


class Countable(Protocol):
    """Records of which tables can be counted: coded columns in memory, or rows that stay in an engine."""

    @property
    def domain(self) -> Domain:
        """What the codes mean."""
        ...

    def tables(self, tables: Sequence[Axes]) -> list[IntArray]:
        """Count the tables of these columns (axes of the domain), all in one pass; each in its own shape."""
        ...


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """Codes in memory: ``columns[j][i]`` is the cell of row i on attribute j, in the narrowest type that holds it.

    Args:
        domain: What the codes mean.
        columns: An array of codes for every attribute, all equally long.
    """

    domain: Domain
    columns: tuple[NDArray[Any], ...]

    def __post_init__(self) -> None:
        # Compiled counting adds one wherever a code points to, so codes that no cell has must not come that far.
        shape = self.domain.shape
        if len(self.columns) != len(shape) or len({len(column) for column in self.columns}) > 1:
            raise InputError("columns: an array of codes for every attribute, all equally long")
        for attribute, column in zip(self.domain.attributes, self.columns, strict=True):
            whole = np.issubdtype(column.dtype, np.integer)
            if not whole or (
                column.size and not 0 <= int(column.min()) <= int(column.max()) < attribute.size
            ):
                raise InputError(
                    f"columns: codes of {attribute.name} must be whole, from 0 to {attribute.size - 1}"
                )

    @staticmethod
    def nobody(domain: Domain) -> CodedColumns:
        """No records at all."""
        return CodedColumns(domain, tuple(np.zeros(0, dtype=code_type(size)) for size in domain.shape))

    @property
    def rows(self) -> int:
        """How many records there are: as secret as they are."""
        return len(self.columns[0])

    def tables(self, tables: Sequence[Axes]) -> list[IntArray]:
        """Count the tables of these columns, all in one pass."""
        return count_blocks(self.domain, tables, self._blocks(sorted({a for axes in tables for a in axes})))

    def _blocks(self, used: Sequence[int]) -> Iterator[NDArray[Any]]:
        kind = code_type(max((self.domain.shape[axis] for axis in used), default=1))
        for begin in range(0, self.rows, _CHUNK):
            block = np.zeros((len(self.columns), min(_CHUNK, self.rows - begin)), dtype=kind)
            for axis in used:
                block[axis] = self.columns[axis][begin : begin + _CHUNK]
            yield block


@dataclass(frozen=True, eq=False)
class HistogramTables:
    """Records that were counted already: a table is a sum over the other axes.

    Args:
        histogram: The counts of a small domain.
    """

    histogram: Histogram

    @property
    def domain(self) -> Domain:
        """What is counted."""
        return self.histogram.domain

    def tables(self, tables: Sequence[Axes]) -> list[IntArray]:
        """Sum the counts over all attributes that a table does not keep."""
        counts = self.histogram.counts
        return [sum_others(counts, axes) for axes in tables]


def count_blocks(
    domain: Domain,
    tables: Sequence[Axes],
    blocks: Iterable[NDArray[Any]],
    done: Callable[[int], None] = lambda rows: None,
) -> list[IntArray]:
    """Count tables over blocks of codes (columns × rows) as they come; memory is that of the tables.

    ``done`` is told how many rows were counted, after each block.
    """
    shape = domain.shape
    cells = [math.prod(shape[axis] for axis in axes) for axes in tables]
    check_tables(cells)
    found = [np.zeros(size, dtype=np.int64) for size in cells]
    for block in blocks:
        for begin in range(0, block.shape[1], _CHUNK):
            part = block[:, begin : begin + _CHUNK]
            for axes, counts in zip(tables, found, strict=True):
                cell = np.zeros(part.shape[1], dtype=np.int64)
                for axis in axes:
                    cell *= shape[axis]
                    cell += part[axis]
                if counts.size > _CHUNK:
                    np.add.at(counts, cell, 1)
                else:
                    counts += np.bincount(cell, minlength=counts.size)
        done(block.shape[1])
    return [
        counts.reshape([shape[axis] for axis in axes]) for axes, counts in zip(tables, found, strict=True)
    ]


def check_tables(cells: Sequence[int]) -> None:
    """Refuse tables that together have more cells than are held at once: a public fact."""
    if sum(cells) > LARGEST_TABLES:
        raise TooLargeError(
            f"the tables have {sum(cells):,} counts together (the largest {max(cells):,}), more than the "
            f"{LARGEST_TABLES:,} that are held at once: name fewer tables, use wider bins, or "
            "publish the counts that are not empty with the mechanism sparselaplace"
        )


def code_type(size: int) -> type[np.unsignedinteger[Any] | np.signedinteger[Any]]:
    """The narrowest type for the codes of an attribute of ``size`` values."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.int32
