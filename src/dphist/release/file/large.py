"""Large dense releases, written as they are made: 2²⁰ cells at a time, pages by two threads while a third writes.

A cell's labels follow from its place, so their pages are put together from runs instead of being encoded. Where noise
is the same everywhere a cell's bounds follow from its estimate, and are computed once for every different estimate.
The file is one that Arrow could have written (`dphist.release.file.parquet_pages`), without a second copy of anything
as long as the cube.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import around, cell_widths
from dphist.kernels.coding import pack
from dphist.release.bounds import block_bounds, coarse_step
from dphist.release.cells import DenseCells
from dphist.release.columns import Column, along, axis_strides
from dphist.release.contents import Contents
from dphist.release.file import parquet_pages as pages

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1 << 20
# Row groups under way: enough that nobody waits for anybody.
_AHEAD = 4
# An axis with more values would fill a dictionary as long as a row group.
_LARGEST_AXIS = 1 << 16
# Runs shorter than this are packed instead.
_RUN = 8


def suits(release: Contents, columns: int, labels: list[Column], known: list[Any]) -> bool:
    """Whether a release can be written so: dense, nothing beside the estimate, every label a value."""
    cells = release.cells
    return (
        isinstance(cells, DenseCells)
        and columns == 1
        and not release.polish
        and release._written is None
        and cell_widths(release._estimate.errors, 0, 1, 0.95) is not None
        and all(column.size <= _LARGEST_AXIS for column in labels)
        and not any(values.null_count for values in known)
    )


def write(
    release: Contents,
    path: Path,
    confidence: float,
    schema: pyarrow.Schema,
    labels: list[Column],
    known: list[Any],
) -> None:
    """Write the file: row groups in their order, then what the footer says of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema):
        pass
    empty = sink.getvalue().to_pybytes()
    told = pq.ParquetFile(pa.BufferReader(empty)).metadata.schema
    columns = [
        pages.Column(each.name, each.physical_type, each.max_definition_level == 1)
        for each in (told.column(i) for i in range(len(told)))
    ]
    size = release.cells.numbers.size
    strides = axis_strides(release.domain)
    coded = [
        _Labels(column, _Values.of(values), strides[own.axis], min(_ROWS, size))
        for column, own, values in zip(columns, labels, known, strict=False)
    ]
    numbers = _Numbers(release, confidence, columns[len(labels) :])

    def group(begin: int) -> list[pages.Chunk]:
        end = min(begin + _ROWS, size)
        return [each.chunk(begin, end) for each in coded] + numbers.chunks(begin, end)

    described = []
    with path.open("wb") as file:
        file.write(pages.MAGIC)
        offset = len(pages.MAGIC)
        for begin, chunks in _ahead(group, size):
            rows = min(_ROWS, size - begin)
            described.append(pages.described(columns, chunks, offset, rows))
            for chunk in chunks:
                for part in chunk.parts:
                    file.write(part)
                offset += chunk.size
        file.write(pages.footer(empty, described, size))


def _ahead(make: Any, size: int) -> Iterator[tuple[int, list[pages.Chunk]]]:
    """Make row groups on two threads, and hand them out in their order."""
    waiting: deque[tuple[int, Future[list[pages.Chunk]]]] = deque()
    with ThreadPoolExecutor(2) as pool:
        for begin in range(0, size, _ROWS):
            waiting.append((begin, pool.submit(make, begin)))
            if len(waiting) == _AHEAD:
                first, made = waiting.popleft()
                yield first, made.result()
        while waiting:
            first, made = waiting.popleft()
            yield first, made.result()


@dataclass(frozen=True, eq=False)
class _Values:
    """The different labels of an axis as Parquet has them, their number, and which of them each of its cells has."""

    dictionary: tuple[bytes, int]
    codes: NDArray[np.int64]
    width: int
    numbers: NDArray[Any] | None
    """What each cell has, where that is a number whose least and largest can be told."""

    @staticmethod
    def of(values: pyarrow.Array) -> _Values:
        """Have Arrow write the labels of one axis, and take the page from there."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        found = values.dictionary_encode()
        sink = pa.BufferOutputStream()
        table = pa.table({"label": found.dictionary})
        with pq.ParquetWriter(
            sink, table.schema, compression="none", dictionary_pagesize_limit=1 << 30
        ) as writer:
            writer.write_table(table)
        data = sink.getvalue().to_pybytes()
        chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0)
        page = data[chunk.dictionary_page_offset : chunk.data_page_offset]
        codes = np.asarray(found.indices.to_numpy(), dtype=np.int64)
        whole = pa.types.is_int64(values.type)
        return _Values(
            (pages.page_body(page), len(found.dictionary)),
            codes,
            pages.code_width(len(found.dictionary)),
            values.to_numpy() if whole else None,
        )


@dataclass(frozen=True, eq=False)
class _Labels:
    """A column of labels: which of an axis's cells come is a matter of counting."""

    column: pages.Column
    values: _Values
    stride: int
    rows: int

    def chunk(self, begin: int, end: int) -> pages.Chunk:
        """The column's part in a row group."""
        codes, width = self.values.codes, self.values.width
        first, last = begin // self.stride, -(-end // self.stride)
        if self.stride >= _RUN:
            left = (first + 1) * self.stride - begin
            body = pages.runs(
                codes[np.arange(first, last) % codes.size], self.stride, width, left, end - begin
            )
        else:
            body = self._cycle(begin, end)
        dictionary, span = self.values.dictionary, self._span(first, last)
        return pages.compressed(self.column, end - begin, width, body, dictionary, span)

    def _span(self, first: int, last: int) -> tuple[bytes, bytes] | None:
        """The least and the largest of the labels that come, of which a round has all."""
        numbers = self.values.numbers
        if numbers is None:
            return None
        here = numbers[np.arange(first, min(last, first + numbers.size)) % numbers.size]
        return here.min().tobytes(), here.max().tobytes()

    @property
    def _period(self) -> int:
        return self.values.codes.size * self.stride

    @cached_property
    def _packed(self) -> NDArray[np.uint8]:
        """The cycle of labels, packed: long enough for a row group that begins at any of its places.

        A place may be taken from a later round instead, so that it begins with a whole byte: row groups begin at
        multiples of eight, so one of eight rounds has it there.
        """
        whole = along(self.values.codes, self.stride, 0, self.rows + 9 * self._period).astype(np.float64)
        count, width = int(self.values.codes.max()) + 1, self.values.width
        words = np.zeros(whole.size * width // 64 + 2, dtype=np.uint64)
        pack(whole, 1.0, 0, np.arange(count, dtype=np.uint32), width, words)
        return words.view(np.uint8)

    def _cycle(self, begin: int, end: int) -> bytes:
        period, width = self._period, self.values.width
        place = begin % period
        while place % _RUN:
            place += period
        first, count = place // _RUN * width, (end - begin + 7) // 8 * width
        return pages.packed_head(end - begin) + self._packed[first : first + count].tobytes()


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Estimate, low and high."""

    release: Contents
    confidence: float
    columns: list[pages.Column]

    @cached_property
    def _width(self) -> float | None:
        """How far bounds reach, where that is the same for all cells and the bounds are not rounded."""
        size = self.release.cells.numbers.size
        widths = cell_widths(self.release._estimate.errors, 0, min(size, _ROWS), self.confidence)
        return widths if isinstance(widths, float) and not self._step else None

    @cached_property
    def _step(self) -> float:
        return coarse_step(self.release, self.confidence)

    def chunks(self, begin: int, end: int) -> list[pages.Chunk]:
        """The columns' parts in a row group."""
        values = self.release.cells.numbers[begin:end]
        found = pages.Coded.of(values)
        estimate = pages.plain(self.columns[0], values) if found is None else found.chunk(self.columns[0])
        if found is not None and self._width is not None:
            # Equal estimates have equal bounds: the same arithmetic on the few that there are.
            few = around(found.found, self._width, found.found)
            ends = [found.chunk(self.columns[1], few.low), found.chunk(self.columns[2], few.high)]
        else:
            low, high = block_bounds(self.release, begin, end, self.confidence)
            ends = [
                pages.numbers(column, each, self._step or 1.0)
                for column, each in zip(self.columns[1:], (low, high), strict=True)
            ]
        return [estimate, *ends]
