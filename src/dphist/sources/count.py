"""Counting: rows into the cells of a domain, or by keys that nobody declared.

Which of a person's rows count is decided as everywhere (`dphist.sources.people`), for keys by a key and a known cell
together. What is found is as private as the records; `dphist.private.discovery` says which keys may leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dphist.errors import SourceError, TooLargeError
from dphist.memory import available_memory
from dphist.model.domain import Attribute, Domain
from dphist.model.domain.scales import IntArray
from dphist.model.histogram import Histogram
from dphist.model.measure import Quantity
from dphist.model.unit import Unit
from dphist.sources.engine import Bound, Column, tally_of
from dphist.sources.keys import amount, place
from dphist.sources.open import open_source
from dphist.sources.sql import Sql
from dphist.tracebacks import closed

# What a column is wanted for, beside the attributes of the domain.
ID = "the id of the unit: id, --id"
MEASURE = "what a measure adds up: measures, --measure"


@closed
def count(source: Any, domain: Domain | None = None, unit: Unit | None = None) -> Histogram:
    """Count the rows of a source in the cells of a domain.

    The source is a path or glob of CSV, Parquet or JSON files, ``"file.duckdb::table"``, a pandas, polars
    or pyarrow table, an Ibis table on one of the engines of `docs/engines.md`, or a `Histogram`, which passes through.

    With ``unit.id``, at most ``unit.rows`` rows of each person are counted, picked by a hash of the id among that
    person's cells in order. `dphist.sources.people` proves that a person's part then depends on that person's rows
    alone, and that the pick is fair. Rows without an id, and rows in no cell, are dropped before.

    Args:
        source: the records, or a `Histogram`.
        domain: what the cells are; may be left out for a `Histogram`.
        unit: who is protected, one row by default.

    Returns:
        The exact counts, as secret as the records.

    Raises:
        SourceError: the source cannot be read as the domain says.
        TooLargeError: the cells do not fit in memory.
    """
    unit = unit or Unit()
    if isinstance(source, Histogram):
        return pass_through(source, domain, unit)
    return count_and_sum(source, domain, unit, ())[0]


@closed
def count_and_sum(
    source: Any, domain: Domain | None, unit: Unit, quantities: Sequence[Quantity]
) -> tuple[Histogram, list[IntArray]]:
    """Count the rows and add up what they have of each quantity, cell by cell, less its centre."""
    if isinstance(source, Histogram):
        raise SourceError("measures: a histogram holds counts alone; give the records that sums are made of")
    domain = declared(domain)
    check_memory(domain)
    cells, rows, sums = occupied(source, domain, unit, quantities)
    return Histogram(domain, _cube(domain, cells, rows)), [_cube(domain, cells, each) for each in sums]


def declared(domain: Domain | None) -> Domain:
    """A domain that there must be, where records are read."""
    if domain is None:
        raise SourceError(
            "domain: declare the values of each column; taken from the records, they would tell about people"
        )
    return domain


def _cube(domain: Domain, cells: IntArray, values: IntArray) -> IntArray:
    """The values of all cells; those that hold no row have none."""
    cube = np.zeros(domain.size, dtype=np.int64)
    cube[cells] = values
    return cube.reshape(domain.shape)


@closed
def rows_of_people(source: Any, person: str) -> tuple[IntArray, IntArray]:
    """Numbers of rows, and how many people have as many: as secret as the records. One person is one step of it."""
    engine = open_source(source, [person], Unit(id=person))
    return engine.rows_per_person(column_of(engine, person, ID))


@closed
def columns_of(source: Any, needed: Sequence[str], unit: Unit) -> list[Column]:
    """The columns by name, with their declared types: public, and refused here if there are none."""
    engine = open_source(source, list(dict.fromkeys([*needed, *([unit.id] if unit.id else [])])), unit)
    return [column_of(engine, name, "columns, --column") for name in needed]


@closed
def occupied_cells(source: Any, domain: Domain | None, unit: Unit) -> tuple[Domain, IntArray, IntArray]:
    """The domain, the flat cells that hold rows and how many: for domains that no array can hold."""
    if isinstance(source, Histogram):
        histogram = pass_through(source, domain, unit)
        flat = histogram.counts.reshape(-1)
        cells = np.flatnonzero(flat)
        return histogram.domain, cells, flat[cells]
    domain = declared(domain)
    if domain.size >= 2**62:
        raise TooLargeError(
            f"the domain has {domain.size:,} combinations, more than can be numbered: use wider bins or "
            "fewer attributes"
        )
    cells, rows, _ = occupied(source, domain, unit)
    return domain, cells, rows


@closed
def occupied(
    source: Any, domain: Domain, unit: Unit, quantities: Sequence[Quantity] = ()
) -> tuple[IntArray, IntArray, Sequence[IntArray]]:
    """The flat cells that hold rows, how many, and sums, each cell once; secret as the counts."""
    engine = open_source(source, needed_columns(domain, unit, quantities), unit)
    added = [amount(each, column_of(engine, each.measure.source, MEASURE), engine) for each in quantities]
    bound = bound_of(engine, unit)
    cells = [place(each, column_of(engine, each.name), engine) for each in domain.attributes]
    flat, rows, sums = engine.count(engine.flat(cells, domain.shape), bound, added)
    tell(source, engine, domain.attributes, numbers_of(domain.attributes, flat), rows)
    return flat, rows, sums


def tell(
    source: Any,
    engine: Sql,
    attributes: Sequence[Attribute],
    code: Callable[[int], IntArray],
    rows: IntArray,
) -> None:
    """Tell the custodian, who asked, how many rows there were, how many count, and how many of these lie elsewhere.

    ``code`` gives the numbers of the cells on an attribute, by its place, ``rows`` how many rows lie in each cell.
    """
    tally = tally_of(source)
    if tally is None:
        return
    engine.watch(tally)
    tally.placed = int(rows.sum())
    lie = [code(place) == cell for place, cell in other_cells(attributes)]
    tally.elsewhere = int(rows[np.logical_or.reduce(lie)].sum()) if lie else 0


def numbers_of(attributes: Sequence[Attribute], flat: IntArray) -> Callable[[int], IntArray]:
    """The numbers of cells on one attribute, from those in all of the domain."""
    sizes = [each.size for each in attributes]
    return lambda place: flat // math.prod(sizes[place + 1 :]) % sizes[place]


def other_cells(attributes: Sequence[Attribute]) -> list[tuple[int, int]]:
    """Which attributes, by their places, have a cell for everything else, and which it is."""
    return [(place, each.other_cell) for place, each in enumerate(attributes) if each.other_cell is not None]


def needed_columns(domain: Domain, unit: Unit, quantities: Sequence[Quantity] = ()) -> list[str]:
    """The columns that counting reads, each once.

    One that is not needed is not looked at: what it holds, or that somebody has it, changes nothing.
    """
    person = [] if unit.id is None else [unit.id]
    return list(dict.fromkeys([*domain.names, *person, *(each.measure.source for each in quantities)]))


def column_of(engine: Sql, name: str, wanted: str = "an attribute of the domain") -> Column:
    """A column by its name; ``wanted`` says what for, where there is none."""
    for column in engine.columns:
        if column.name == name:
            return column
    # The names that there are stay unsaid: the first line of a file without a header is somebody's record.
    raise SourceError(
        f"there is no column {name} ({wanted}); `dphist schema new` shows the holder of the data what columns a file "
        "has"
    )


def bound_of(engine: Sql, unit: Unit) -> Bound | None:
    """How a unit bounds what a person adds; None where rows are protected."""
    if unit.id is None:
        return None
    return Bound(column_of(engine, unit.id, ID), unit.rows, unit.cells, unit.per_cell or 1)


def pass_through(histogram: Histogram, domain: Domain | None, unit: Unit) -> Histogram:
    """A histogram that may stand for records of this domain and unit."""
    if domain is not None and domain != histogram.domain:
        raise SourceError(
            "domain: the histogram has another one; leave it out or project the histogram first"
        )
    if unit.id is not None:
        raise SourceError("unit: a histogram has no column of ids; bound the rows first and give rows alone")
    return histogram


def check_memory(domain: Domain) -> None:
    """Refuse a cube that does not fit in memory, before any of it is allocated."""
    needed, free = domain.size * 8, available_memory()
    # A release holds the counts, the noisy answers and the estimate at the same time.
    if 3 * needed > free:
        axes = " × ".join(f"{a.name} {a.size:,}" for a in domain.attributes)
        raise TooLargeError(
            f"the domain has {domain.size:,} combinations ({axes}); its counts take {needed:,} bytes, "
            f"a release three times that, and {free:,} bytes are available: use the mechanism sparselaplace, "
            "which skips empty combinations, or wider bins or fewer attributes"
        )


@closed
def keys_of(source: Any, domain: Domain, unit: Unit) -> tuple[Any, IntArray]:
    """Every key of a domain's undeclared attribute, in any order, and how many rows it has in each known cell."""
    unknown = domain.undeclared
    if unknown is None:
        raise SourceError("names are discovered of an attribute that says so: Nominal(…, discover=True)")
    known = [each for each in domain.attributes if each is not unknown]
    engine = open_source(source, needed_columns(domain, unit), unit)
    column = column_of(engine, unknown.name)
    if column.family not in ("text", "undeclared", "integer"):
        raise SourceError(
            f"{unknown.name}: names that are discovered must be text or whole numbers; make it text"
        )
    sizes = [each.size for each in known]
    cells = [place(each, column_of(engine, each.name), engine) for each in known]
    flat = engine.flat(cells, sizes) if known else "0"
    bound = bound_of(engine, unit)
    size = math.prod(sizes)
    statement = engine.keys_statement(engine.distinct_text(column), flat, bound)
    (found,) = engine.asked([statement], None if bound is None else bound.id)
    names, counts = _matrix(found, size)
    tell(source, engine, known, numbers_of(known, np.arange(size)), counts.sum(axis=0))
    return names, counts


def _matrix(found: Any, cells: int) -> tuple[Any, IntArray]:
    """Keys, each once, and a row of counts for each."""
    encoded = found.column("key").combine_chunks().dictionary_encode()
    cell, rows = (found.column(name).to_numpy().astype(np.int64) for name in ("cell", "n"))
    names = encoded.dictionary
    # Keys times known cells that are held at once.
    if len(names) * cells > 2**28:
        raise SourceError(
            "the known attributes have too many combinations to be held for every name; leave some out"
        )
    counts = np.zeros((len(names), cells), dtype=np.int64)
    np.add.at(counts, (encoded.indices.to_numpy(), cell), rows)
    return names, counts
