"""What a rehearsal reads: every row that has no cell, attribute by attribute, with the values that did not match.

One pass over files and frames: each row is turned into a short list (one entry for the row itself, one for every
attribute without a cell, one for its person), the lists are laid end to end and counted. All of it is as private as the
records, and goes to the custodian who asked.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dphist.model.domain import Attribute, Domain, Nominal
from dphist.model.domain.scales import Dates
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources.count import ID, MEASURE, column_of, needed_columns
from dphist.sources.databases.remote import Remote
from dphist.sources.duck.duck import Duck
from dphist.sources.engine import Column
from dphist.sources.keys import amount, place
from dphist.sources.open import open_source
from dphist.sources.sql.statements import Sql
from dphist.sources.tally import Tally
from dphist.tracebacks import closed

# Entries that are no attribute: the row, a row without a cell, a person, nobody.
_ROW, _DROPPED, _PERSON, _NOBODY = -1, -2, -3, -4
# Below this, an attribute by its place: a row that has a time with an offset there.
_ZONED = -10
# Distinct values of an attribute that are looked at, the most frequent first, and characters of each.
_MOST = 2000
_LONGEST = 60


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
    """Read a source once, and give what has no cell.

    Args:
        source: what `count` reads.
        domain: what the cells are.
        unit: who is protected; with an id, rows are counted by person.
        measures: what is added up: a row without a value is not counted either, and is told by the measure's name.

    Returns:
        What was found, as private as the records.
    """
    quantities = [Quantity(measure) for measure in measures]
    engine = open_source(source, needed_columns(domain, unit, quantities), unit)
    columns = [column_of(engine, attribute.name) for attribute in domain.attributes]
    fails = [
        _fails(attribute, column, engine)
        for attribute, column in zip(domain.attributes, columns, strict=True)
    ]
    person = None if unit.id is None else engine.person(column_of(engine, unit.id, ID))
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
    if person is not None:
        loses.append(f"({person}) IS NULL")
    texts = [_shown(engine, column) for column in columns]
    zoned = {
        _ZONED - place: f"({moment}) IS NOT NULL"
        for place, (attribute, column) in enumerate(zip(domain.attributes, columns, strict=False))
        if (moment := _moment(attribute, column, engine)) is not None
    }
    found = Unmatched(Tally(rows=0))
    if isinstance(engine, Duck):
        rows = engine._run(_statement(engine, fails, texts, loses, person, zoned)).fetchall()
        engine.watch(found.tally)
    else:
        rows = _remotely(engine, fails, texts, loses, person, zoned)
    _sort_out(found, rows, names)
    return found


def measure_name(measure: Measure, domain: Domain) -> str:
    """How a measure is called beside the attributes, one of which may have its name."""
    return f"{measure.name} (added up)" if measure.name in domain.names else measure.name


def _fails(attribute: Attribute, column: Column, engine: Duck | Remote) -> str:
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


def _moment(attribute: Attribute, column: Column, engine: Duck | Remote) -> str | None:
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
    return f"substr({shown}, 1, {_LONGEST})"


def _statement(
    engine: Duck,
    fails: Sequence[str],
    texts: Sequence[str],
    loses: Sequence[str],
    person: str | None,
    zoned: Mapping[int, str],
) -> str:
    """Every row as a list of entries, laid end to end and counted: one pass, whatever the number of attributes."""
    entries = [f"{{'a': {_ROW}, 'v': NULL::VARCHAR}}"]
    if loses:
        entries.append(f"CASE WHEN {' OR '.join(loses)} THEN {{'a': {_DROPPED}, 'v': NULL::VARCHAR}} END")
    entries += [
        f"CASE WHEN {fail} THEN {{'a': {number}, 'v': {text}}} END"
        for number, (fail, text) in enumerate(zip(fails, texts, strict=True))
    ]
    entries += [
        f"CASE WHEN {is_zoned} THEN {{'a': {number}, 'v': NULL::VARCHAR}} END"
        for number, is_zoned in zoned.items()
    ]
    if person is not None:
        entries.append(
            f"{{'a': CASE WHEN ({person}) IS NULL THEN {_NOBODY} ELSE {_PERSON} END, "
            f"'v': CAST({person} AS VARCHAR)}}"
        )
    lists = f"SELECT unnest([{', '.join(entries)}]) AS e FROM {engine.relation}"
    counted = f"SELECT e.a AS a, e.v AS v, count(*) AS n FROM ({lists}) AS l WHERE e IS NOT NULL GROUP BY ALL"
    people = f"CASE WHEN a = {_PERSON} THEN CAST(n AS VARCHAR) ELSE v END"
    merged = (
        f"SELECT a, {people} AS w, sum(CASE WHEN a = {_PERSON} THEN 1 ELSE n END)::BIGINT AS m "
        f"FROM ({counted}) AS c GROUP BY ALL"
    )
    ranked = (
        f"SELECT a, w, m, row_number() OVER (PARTITION BY a ORDER BY m DESC, w) AS place, "
        f"sum(m) OVER (PARTITION BY a)::BIGINT AS total FROM ({merged}) AS m"
    )
    few = f"place <= {_MOST} OR a = {_PERSON}"
    return f"SELECT a, w, m, total FROM ({ranked}) AS r WHERE {few} ORDER BY a, place"


def _remotely(
    engine: Remote,
    fails: Sequence[str],
    texts: Sequence[str],
    loses: Sequence[str],
    person: str | None,
    zoned: Mapping[int, str],
) -> list[tuple[int, str | None, int, int]]:
    """The same of a table elsewhere: a statement for the rows, one for each attribute and one for people."""
    relation = engine.relation
    lost = " OR ".join(loses) or "FALSE"
    asked = [
        f"SELECT count(*), coalesce(sum(CASE WHEN {lost} THEN 1 ELSE 0 END), 0), "
        + ", ".join(
            f"coalesce(sum(CASE WHEN {each} THEN 1 ELSE 0 END), 0)" for each in (*fails, *zoned.values())
        )
        + f" FROM {relation}"
    ]
    for fail, text in zip(fails, texts, strict=True):
        asked.append(
            f"SELECT {text} AS v, count(*) AS n FROM {relation} WHERE {fail} GROUP BY 1 ORDER BY 2 DESC LIMIT {_MOST}"
        )
    if person is not None:
        each = f"SELECT {person} AS p, count(*) AS n FROM {relation} GROUP BY 1"
        asked.append(
            f"SELECT CASE WHEN p IS NULL THEN -1 ELSE n END AS rows_of, count(*) AS people, sum(n) AS n "
            f"FROM ({each}) AS each_person GROUP BY 1"
        )
    first, *answers = engine._answers(asked)
    (rows,), (dropped,), *sums = first
    missed, offsets = sums[: len(fails)], sums[len(fails) :]
    found: list[tuple[int, str | None, int, int]] = [(_ROW, None, int(rows), int(rows))]
    found.append((_DROPPED, None, int(dropped), int(dropped)))
    found += [(number, None, int(n), int(n)) for number, (n,) in zip(zoned, offsets, strict=True)]
    for number, (total,) in enumerate(missed):
        values, counts = answers[number]
        found += [(number, value, int(n), int(total)) for value, n in zip(values, counts, strict=True)]
    if person is not None:
        for rows_of, people, n in zip(*answers[-1], strict=True):
            if rows_of < 0:
                found.append((_NOBODY, None, int(n), int(n)))
            else:
                found.append((_PERSON, str(int(rows_of)), int(people), 0))
    return found


def _sort_out(found: Unmatched, rows: Sequence[tuple[int, str | None, int, int]], names: list[str]) -> None:
    found.missed = dict.fromkeys(names, 0)
    found.values = {name: [] for name in names}
    seen = dropped = 0
    for number, value, count, total in rows:
        if number == _ROW:
            seen = count
        elif number == _DROPPED:
            dropped = count
        elif number == _PERSON:
            many = int(value or 0)
            found.people[many] = found.people.get(many, 0) + count
        elif number == _NOBODY:
            found.nobody += count
        elif number <= _ZONED:
            found.zoned[names[_ZONED - number]] = count
        else:
            name = names[number]
            found.missed[name] = total
            found.values[name].append((value, count))
    found.tally.rows = max(found.tally.rows or 0, seen)
    found.tally.placed = seen - dropped
