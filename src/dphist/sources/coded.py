"""Records as codes: what a right over records holds, for domains of any number of columns.

A row becomes one code an attribute: the number of its cell there, computed from that row alone (`place`, which says
the same on every engine). A row without a cell on some attribute is dropped, as everywhere. With ``unit.id`` the
theorem of `dphist.sources.people` holds word for word: a person's rows are put in the order of their codes, attribute
by attribute, which is the order of the cells' numbers, whether or not such a number fits an integer; which of them are
kept is a function of the id, of that order and of the limit, hence of that person's rows and public facts.

Files and data frames are read once into columns of the narrowest type, if these fit in memory; else every pass streams
them through the same kernel. PostgreSQL and Spark count by GROUP BY where the rows are, all tables in a statement, and
only counts come back. Which of these ways was taken changes no count.
"""

# ruff: noqa: S608 -- of an engine's own words, and of whole numbers

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphist.memory import available_memory
from dphist.model.coded import (
    Axes,
    CodedColumns,
    Countable,
    HistogramTables,
    IntArray,
    check_tables,
    code_type,
    count_blocks,
)
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.sources.count import (
    bound_of,
    column_of,
    declared,
    needed_columns,
    other_cells,
    pass_through,
    tell,
)
from dphist.sources.duck.duck import Duck
from dphist.sources.engine import Bound, Key, Tally, tally_of
from dphist.sources.keys import place
from dphist.sources.open import lasting, open_source
from dphist.sources.sql import Sql
from dphist.tracebacks import closed

# Codes of at most 512 MiB, or a quarter of the free memory if that is less, are kept for the next pass.
_KEPT = 1 << 29
# An engine is asked for tables of at most 16,384 cells that hold several of the wanted ones inside them.
_BLOCK = 1 << 14


@closed
def coded(source: Any, domain: Domain | None = None, unit: Unit | None = None) -> Countable:
    """Read the records of a source as codes of a domain of any size: any table of these can be counted."""
    unit = unit or Unit()
    if isinstance(source, Histogram):
        return HistogramTables(pass_through(source, domain, unit))
    return _coded(lasting(source), declared(domain), unit)


def _coded(source: Any, domain: Domain, unit: Unit) -> Countable:
    engine, keys, bound = _opened(source, domain, unit)
    tally = tally_of(source)
    if not isinstance(engine, Duck):
        if tally is not None:
            _tell(engine, tally, domain, keys, bound)
        return Passes(source, domain, unit)
    blocks: list[Any] = []
    room, held = min(_KEPT, available_memory() // 4), 0
    for block in engine.coded_blocks(keys, domain.shape, bound):
        held += sum(column.nbytes for column in block)
        if held > room:
            if tally is not None:
                _tell(engine, tally, domain, keys, bound)
            return Passes(source, domain, unit)
        blocks.append(list[Any](block))
    columns = []
    for axis, size in enumerate(domain.shape):
        # Column by column, letting go of the blocks' own: codes are never held twice.
        parts = [block[axis] for block in blocks]
        columns.append(np.concatenate(parts) if parts else np.zeros(0, dtype=code_type(size)))
        for block in blocks:
            block[axis] = None
    tell(source, engine, domain.attributes, columns.__getitem__, np.ones(len(columns[0]), dtype=np.uint8))
    return CodedColumns(domain, tuple(columns))


@dataclass(frozen=True, eq=False)
class Passes:
    """Records that stay where they are: every call goes over them once more."""

    source: Any
    domain: Domain
    unit: Unit

    @closed
    def tables(self, tables: Sequence[Axes]) -> list[IntArray]:
        """Count the tables of these columns, all in one pass."""
        engine, keys, bound = _opened(self.source, self.domain, self.unit)
        if isinstance(engine, Duck):
            blocks = engine.coded_blocks(keys, self.domain.shape, bound)
            return count_blocks(self.domain, tables, _stacked(self.domain, blocks))
        return _counted(engine, self.domain, keys, bound, tables)


def _opened(source: Any, domain: Domain, unit: Unit) -> tuple[Sql, list[Key], Bound | None]:
    engine = open_source(source, needed_columns(domain, unit), unit)
    columns = [column_of(engine, attribute.name) for attribute in domain.attributes]
    keys = [place(each, column, engine) for each, column in zip(domain.attributes, columns, strict=True)]
    return engine, keys, bound_of(engine, unit)


def _tell(engine: Sql, tally: Tally, domain: Domain, keys: Sequence[Key], bound: Bound | None) -> None:
    """Say how many rows count, where the codes that come back do not say it."""
    codes = engine.codes(keys, domain.shape, bound)
    lie = " OR ".join(f"c{place} = {cell}" for place, cell in other_cells(domain.attributes)) or "FALSE"
    told = f"SELECT CASE WHEN {lie} THEN 'elsewhere' ELSE 'placed' END AS key FROM ({codes}) AS coded"
    (found,) = engine.tables([f"SELECT key, count(*) AS n FROM ({told}) AS told GROUP BY key"])
    rows = dict(zip(found.column("key").to_pylist(), found.column("n").to_pylist(), strict=True))
    engine.watch(tally)
    tally.placed, tally.elsewhere = sum(rows.values()), rows.get("elsewhere", 0)


def _stacked(domain: Domain, blocks: Iterator[list[Any]]) -> Iterator[Any]:
    kind = code_type(max(domain.shape))
    for block in blocks:
        yield np.stack([np.asarray(column, dtype=kind) for column in block])


def _counted(
    engine: Sql, domain: Domain, keys: Sequence[Key], bound: Bound | None, tables: Sequence[Axes]
) -> list[IntArray]:
    """Count where the rows are, in one statement, of which only the cells that hold rows come back.

    An engine handles every row once for each table, so it is asked for few larger tables; the wanted ones are added up
    from those.
    """
    sizes = domain.shape
    check_tables([math.prod(sizes[axis] for axis in axes) for axes in tables])
    blocks = blocks_of(sizes, tables)
    ends = np.cumsum([math.prod(sizes[axis] for axis in block) for block in blocks])
    held, rows = engine.count_tables(keys, sizes, bound, blocks)
    every = np.zeros(ends[-1] if len(ends) else 0, dtype=np.int64)
    every[held] = rows
    found = dict(zip(blocks, np.split(every, ends[:-1]), strict=True))
    counts = []
    for axes in tables:
        # The smallest block that holds it: the fewest numbers to add up.
        block = min((each for each in blocks if set(axes) <= set(each)), key=lambda each: found[each].size)
        whole = found[block].reshape([sizes[axis] for axis in block])
        summed = whole.sum(axis=tuple(i for i, axis in enumerate(block) if axis not in axes))
        kept = [axis for axis in block if axis in axes]
        counts.append(np.array(np.transpose(summed, [kept.index(axis) for axis in axes]), order="C"))
    return counts


def blocks_of(sizes: Sequence[int], tables: Sequence[Axes]) -> list[Axes]:
    """Tables that hold all the wanted ones inside them, few of them, and none of very many cells.

    A pair that no block holds yet starts one; it grows by the attribute that brings most such pairs with it, as long as
    it has few cells. Tables of other numbers of attributes are blocks by themselves, if they lie in no other.

    Example:
        >>> blocks_of((4, 4, 4), [(0, 1), (0, 2), (1, 2), (0,)])
        [(0, 1, 2)]
    """
    wanted = sorted({tuple(sorted(axes)) for axes in tables}, key=lambda axes: (-len(axes), axes))
    blocks: list[Axes] = [axes for axes in wanted if len(axes) > 2]
    missing = np.zeros((len(sizes), len(sizes)), dtype=bool)
    for a, b in (axes for axes in wanted if len(axes) == 2):
        missing[a, b] = missing[b, a] = True
    for block in blocks:
        missing[np.ix_(block, block)] = False
    for a, b in (axes for axes in wanted if len(axes) == 2):
        if not missing[a, b]:
            continue
        grown, cells = [a, b], sizes[a] * sizes[b]
        while True:
            brings = missing[grown].sum(axis=0)
            brings[grown] = 0
            brings[np.array(sizes) * cells > _BLOCK] = 0
            axis = int(brings.argmax())
            if not brings[axis]:
                break
            grown.append(axis)
            cells *= sizes[axis]
        missing[np.ix_(grown, grown)] = False
        blocks.append(tuple(sorted(grown)))
    for axes in wanted:
        if len(axes) < 2 and not any(set(axes) <= set(block) for block in blocks):
            blocks.append(axes)
    return blocks
