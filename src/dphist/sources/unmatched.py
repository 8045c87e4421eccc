"""What a rehearsal reads: every row that has no cell, attribute by attribute, which values did not match, and why.

One pass: every row has a flag for each thing that may be wrong with it (no cell at all, none on some attribute, no
person), and GROUPING SETS count the rows of each flag by the value that goes with it; a second pass counts the rows of
people. All of it is as private as the records, and goes to the custodian who asked. Why a value has no cell is told
from the value and the schema alone.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dphist.model.domain import Attribute, Domain, Nominal
from dphist.model.domain.scales import Bins, Dates, Integers, Steps, day_of
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources.count import ID, MEASURE, column_of, needed_columns
from dphist.sources.engine import Column, Tally
from dphist.sources.keys import amount, place
from dphist.sources.open import open_source
from dphist.sources.sql import Sql
from dphist.tracebacks import closed

# Flags that are no attribute: a row, a row without a cell, a row of nobody.
_ROW, _DROPPED, _NOBODY = -1, -2, -3
# Below this, an attribute by its place: a row that has a time with an offset there.
_ZONED = -10
MISSING = "missing"
_NOTHING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "--", ".", "?", "#n/a", "missing", "unknown"}
_COMMA = re.compile(r"[-+]?\d{1,3}(?:[. ]?\d{3})*,\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:[, '\u00a0\u202f]\d{3})+(?:\.\d+)?")
_DAY = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}(?:[ T].*)?")
# UTF-8 that was read as Latin-1 and written again, and the sign for what could not be read.
_BROKEN = re.compile(r"[ÃÂ][\u0080-\u00ff\u2018-\u201d€™]|\ufffd")


@dataclass(eq=False)
class Unmatched:
    """What was found: rows, rows without a cell, and for each attribute the values that match none of its cells.

    ``values`` maps an attribute to texts (None for missing) and how many rows have them, the most frequent first;
    ``missed`` says how many rows of an attribute have no cell, also beyond those values, and ``zoned`` how many of one
    of dates have times with an offset. ``people`` maps numbers of rows to numbers of people who have as many;
    ``nobody`` counts rows without an id.
    """

    tally: Tally
    missed: dict[str, int] = field(default_factory=dict)
    values: dict[str, list[tuple[str | None, int]]] = field(default_factory=dict)
    zoned: dict[str, int] = field(default_factory=dict)
    people: dict[int, int] = field(default_factory=dict)
    nobody: int = 0


@closed
def unmatched(source: Any, domain: Domain, unit: Unit, measures: Sequence[Measure] = ()) -> Unmatched:
    """Read a source, and give what has no cell, or no value of a measure: as private as the records."""
    quantities = [Quantity(measure) for measure in measures]
    engine = open_source(source, needed_columns(domain, unit, quantities), unit)
    columns = [column_of(engine, attribute.name) for attribute in domain.attributes]
    fails = [
        _fails(attribute, column, engine)
        for attribute, column in zip(domain.attributes, columns, strict=True)
    ]
    # A value that is counted as "other" is worth knowing, but the row has a cell.
    loses = [
        fail for fail, attribute in zip(fails, domain.attributes, strict=True) if attribute.other_cell is None
    ]
    names = list(domain.names)
    for quantity in quantities:
        names.append(measure_name(quantity.measure, domain))
        columns.append(column_of(engine, quantity.measure.source, MEASURE))
        fails.append(f"(({engine._sql(amount(quantity, columns[-1], engine).amount)}) IS NULL)")
        loses.append(fails[-1])
    # Under each flag, when a row has it and which value goes with it.
    flags = {number: (fail, _shown(engine, columns[number])) for number, fail in enumerate(fails)}
    for number, attribute in enumerate(domain.attributes):
        if (moment := _moment(attribute, columns[number], engine)) is not None:
            flags[_ZONED - number] = f"({moment}) IS NOT NULL", "NULL"
    statements = []
    if unit.id is not None:
        person = column_of(engine, unit.id, ID)
        nobody = f"({engine.person(person)}) IS NULL"
        loses.append(nobody)
        flags[_NOBODY] = nobody, "NULL"
        statements.append(engine.rows_per_person_statement(person))
    flags[_ROW] = "TRUE", "NULL"
    flags[_DROPPED] = " OR ".join(loses) or "FALSE", "NULL"
    flagged, *people = (
        list(zip(*(column.to_pylist() for column in each.columns), strict=True))
        for each in engine.tables([_statement(engine, flags), *statements])
    )
    found = Unmatched(Tally(), dict.fromkeys(names, 0), {name: [] for name in names})
    engine.watch(found.tally)
    found.people = dict(people[0]) if people else {}
    placed = 0
    for number, value, rows, total in flagged:
        if number in (_ROW, _DROPPED):
            placed += rows if number == _ROW else -rows
        elif number == _NOBODY:
            found.nobody = rows
        elif number <= _ZONED:
            found.zoned[names[_ZONED - number]] = rows
        else:
            found.missed[names[number]] = total
            found.values[names[number]].append((value, rows))
    found.tally.placed = placed
    return found


def measure_name(measure: Measure, domain: Domain) -> str:
    """How a measure is called beside the attributes, one of which may have its name."""
    return f"{measure.name} (added up)" if measure.name in domain.names else measure.name


def _fails(attribute: Attribute, column: Column, engine: Sql) -> str:
    """Whether a row has no cell on an attribute, or only the one for everything else."""
    if isinstance(attribute, Nominal) and attribute.discover:
        # Any text may turn out to be a key.
        return f"(({engine.text(engine.column(column))}) IS NULL)"
    key = place(attribute, column, engine)
    value = engine._sql(key.value)
    if attribute.other_cell is not None:
        return f"(({value}) = {attribute.other_cell})"
    inside = "TRUE" if key.inside is None else f"coalesce({key.inside}, FALSE)"
    return f"(CASE WHEN {inside} THEN ({value}) IS NULL ELSE TRUE END)"


def _moment(attribute: Attribute, column: Column, engine: Sql) -> str | None:
    """A value of a column of dates that is a time with an offset; None where there are none."""
    if isinstance(attribute, Nominal) or not isinstance(attribute.scale, Dates):
        return None
    value = engine.column(column)
    if column.family == "undeclared":
        return engine.parse(value, "zoned time")
    return value if column.family == "zoned time" else None


def _shown(engine: Sql, column: Column) -> str:
    text = column.family == "text"
    shown = engine.distinct_text(column) if text else f"CAST({engine.quote(column.name)} AS {engine.string})"
    return f"substr({shown}, 1, 60)"


def _statement(engine: Sql, flags: Mapping[int, tuple[str, str]]) -> str:
    """Of each flag the rows that have it, by the value beside it, the most frequent first."""
    asked: list[str] = []
    which: list[str] = []
    value: list[str] = []
    for number, (condition, text) in flags.items():
        flag, shown = f"f{len(which)}", f"t{len(which)}"
        asked.append(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS {flag}")
        asked.append(f"CASE WHEN {condition} THEN CAST({text} AS {engine.string}) END AS {shown}")
        # A flag is never NULL, so the one that is there says which set a group belongs to.
        which.append(f"WHEN {flag} = 1 THEN {number}")
        value.append(f"WHEN {flag} = 1 THEN {shown}")
    flagged = f"SELECT {', '.join(asked)} FROM {engine.relation}"
    sets = [f"f{place}, t{place}" for place in range(len(flags))]
    counted = (
        f"SELECT {', '.join(sets)}, count(*) AS n FROM ({flagged}) AS flagged "
        f"GROUP BY GROUPING SETS (({'), ('.join(sets)}))"
    )
    told = (
        f"SELECT CASE {' '.join(which)} END AS flag, CASE {' '.join(value)} END AS value, n "
        f"FROM ({counted}) AS counted"
    )
    ranked = (
        "SELECT flag, value, n, CAST(sum(n) OVER (PARTITION BY flag) AS BIGINT) AS total, "
        f"row_number() OVER (PARTITION BY flag ORDER BY n DESC, value ASC) AS place FROM ({told}) AS told"
    )
    # Of every attribute the most frequent values are looked at.
    return (
        f"SELECT flag, value, n, total FROM ({ranked}) AS ranked WHERE flag IS NOT NULL AND place <= 2000 "
        "ORDER BY flag, place"
    )


def reason(attribute: Attribute, text: str | None) -> str:
    """Say in a few words why this value is in no cell of the attribute, and what to do.

    Example:
        >>> import dphist
        >>> reason(dphist.Nominal("smokes", ["yes", "no"]), "YES")
        'written in other letters than the schema (YES for yes)'
        >>> reason(dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo")), "31/12/2024")
        'a date written another way: write it as 2024-12-31'
    """
    if text is None or text.strip().lower() in _NOTHING:
        return MISSING
    text = text.strip()
    if isinstance(attribute, Nominal):
        return _category(attribute.categories, text)
    match attribute.scale:
        case Steps(categories=categories):
            return _category(categories, text)
        case Dates() as dates:
            return _date(text, dates)
        case Integers(values=values):
            return _number(text, values[0], values[-1], values.step)
        case Bins(edges=edges):
            return _number(text, edges[0], edges[-1], None)


def _category(categories: Sequence[str | int | bool], text: str) -> str:
    folded = {str(category).strip().casefold(): category for category in categories}
    meant = folded.get(text.casefold())
    if meant is not None:
        return f"written in other letters than the schema ({text} for {meant})"
    if _BROKEN.search(text):
        return "in another encoding: convert the file to UTF-8 (iconv -f latin1 -t utf-8)"
    return "not in the schema's list"


def _date(text: str, dates: Dates) -> str:
    day = day_of(text, dates.zone)
    if day is None:
        if _DAY.fullmatch(text):
            return "a date written another way: write it as 2024-12-31"
        return "not a date"
    return "before the schema's first date" if day < dates.start else "at or after the schema's end"


def _number(text: str, low: float, high: float, step: int | None) -> str:
    try:
        value = float(text)
    except ValueError:
        if _THOUSANDS.fullmatch(text):
            return "a number with signs between its thousands: write 1234"
        if _COMMA.fullmatch(text):
            return "a decimal comma: write 3.5, not 3,5"
        return "a number with a unit or a sign beside it" if re.search(r"\d", text) else "not a number"
    if math.isnan(value):
        return MISSING
    if value < low:
        return "below the schema's range"
    if value > high:
        return "above the schema's range"
    return "between the schema's values" if step is not None else "outside every bin"
