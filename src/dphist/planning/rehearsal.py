"""A rehearsal before paying: what of the records would be counted, what not and why, and how good the release would be.

Everything here but the forecast is a fact about the records, as private as they are. It is for the eyes of whoever
holds them: it is printed and forgotten, no release or ledger holds any of it, and whoever changes the schema after it
should change how values are *read*, not move bounds to where the records happen to lie.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.registry import memory_of
from dphist.memory import available_memory
from dphist.model.domain import Attribute, Domain, Nominal, Ordinal
from dphist.model.domain.zones import UTC
from dphist.model.exact import Number, exact
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, Quantity, check_measures
from dphist.model.phrases import counted
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.forecast import Forecast, release_forecasts
from dphist.private.discovery import price_of, terms, threshold
from dphist.sources.coded import coded
from dphist.sources.count import keys_of, occupied
from dphist.sources.engine import ALLOWED, Tallied
from dphist.sources.open import lasting
from dphist.sources.unmatched import Unmatched, measure_name, reason, unmatched

PRIVATE = "PRIVATE: for whoever holds the records; as secret as they are, and in no release. Do not share or log it."


@dataclass(frozen=True, eq=False)
class AttributeRehearsal:
    """One attribute: how many rows have no cell there, for which reasons, and the most frequent such values.

    Args:
        name: The attribute.
        missed: Rows without a cell on it.
        other: Whether they are counted in the cell for everything else.
        reasons: Rows by reason, the most frequent first.
        values: The five most frequent values that match nothing, with their rows and the reason; None is a missing one.
        zoned: Rows that have a time with an offset there.
        zone: Whose calendar says in which day these lie.
    """

    name: str
    missed: int
    other: bool
    reasons: tuple[tuple[str, int], ...]
    values: tuple[tuple[str | None, int, str], ...]
    zoned: int = 0
    zone: str = ""


@dataclass(frozen=True, eq=False)
class KeysRehearsal:
    """The attribute whose keys are discovered: how many there are, and how many of them would be shown.

    Args:
        name: The attribute.
        found: Keys that some counted row holds.
        threshold: The noisy count from which on a key is shown; None where no delta was given.
        above: Keys with a cell of ``threshold`` rows or more before noise.
        deviation: The standard deviation of the noise of a key's count.
    """

    name: str
    found: int
    threshold: int | None = None
    above: int = 0
    deviation: float | None = None


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What a custodian should know before paying. Private: print it, read it, forget it.

    Args:
        rows: Rows of the source, lines that cannot be read included.
        dropped: Rows that would not be counted, for want of a cell or as more than the unit keeps of a person.
        unreadable: Lines that are no UTF-8, and lines with another number of fields.
        attributes: What happened on each attribute, and then on each measure.
        people: How many people have how many rows, if the unit has an id.
        nobody: Rows without an id.
        beyond: Rows of people who have more than the unit keeps.
        elsewhere: Rows that are counted in a cell for everything else.
        unit: Who is protected.
        cells: How many cells the release would have; for each key, where keys are discovered.
        memory: Bytes that publishing takes, and bytes that are free.
        forecasts: The error to expect of an answer, by what is asked.
        epsilon: What the forecasts are for.
        seconds: How long reading took; publishing reads once more.
        keys: What is known of keys that are discovered.
    """

    rows: int
    dropped: int
    unreadable: tuple[int, int]
    attributes: tuple[AttributeRehearsal, ...]
    people: Mapping[int, int]
    nobody: int
    beyond: int
    elsewhere: int
    unit: Unit
    cells: int
    memory: tuple[int, int]
    forecasts: Mapping[str, Forecast]
    epsilon: str
    seconds: float
    keys: KeysRehearsal | None = None

    @property
    def share(self) -> float:
        """Which part of the rows would not be counted in cells of their own; all, where there are none."""
        return (self.dropped + self.elsewhere) / self.rows if self.rows else 1.0

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __reduce__(self) -> Any:
        raise InputError("a rehearsal is private and is not stored; print it")

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


@explained
def rehearse(
    source: Any,
    domain: Domain,
    unit: Unit | str | Mapping[str, Any] | None = None,
    *,
    epsilon: Number = 1,
    delta: Number | None = None,
    workload: Workload | str | Mapping[str, Any] | None = None,
    records: int = 100_000,
    measures: Sequence[Measure] = (),
) -> Rehearsal:
    """Read the records, spend nothing, and say what publishing them would do.

    The answer is for the custodian alone: it is about the records, without any noise. It says how many rows have no
    cell and why (dates as d/m/Y, decimal commas, YES for yes, a wrong encoding, values out of range or missing), how
    many rows people have, and what cells, memory and error to expect.

    Args:
        source: What `publish` reads.
        domain: What the cells are.
        unit: Who is protected, as for `publish`.
        epsilon: What the forecasts of error are for.
        delta: Where keys are discovered: the chance that their threshold is for.
        workload: What will be asked; cells, ranges and tables of one attribute by default.
        records: A public guess at the number of records, for forecasts. It is not taken from the records.
        measures: What will be added up: rows without a value are not counted either.

    Returns:
        What was found; print it.

    Example:
        >>> import dphist, pyarrow
        >>> answers = pyarrow.table({"smokes": ["yes", "no", "YES", "no", None, "no"]})
        >>> rehearsal = dphist.rehearse(answers, dphist.Domain([dphist.Nominal("smokes", ["yes", "no"])]))
        >>> rehearsal.rows, rehearsal.dropped
        (6, 2)
        >>> rehearsal.attributes[0].values[0]
        ('YES', 1, 'written in other letters than the schema (YES for yes)')
    """
    if not isinstance(domain, Domain):
        raise InputError(f"domain: expected a dphist.Domain, not a {type(domain).__name__}")
    if isinstance(source, Histogram):
        raise InputError("source: a histogram has no rows left to rehearse with; give the records")
    protected = Unit.parse(unit)
    unknown = domain.undeclared
    if unknown is not None and workload is not None:
        raise InputError(
            "workload: nobody can say what will be asked of names that are not known; leave it out"
        )
    asked = None if workload is None else Workload.parse(domain, workload)
    started = time.perf_counter()
    added = check_measures(measures, protected, domain)
    seen = lasting(Tallied(source))
    found = unmatched(seen, domain, protected, added)
    keys = None
    # Counted as they will be for the release: what the unit keeps of a person is said by nothing else.
    if unknown is not None:
        keys = _keys(seen, domain, unknown, protected, epsilon, delta)
    elif Auto().goes_wide(domain, asked):
        coded(seen, domain, protected)
    else:
        occupied(seen, domain, protected, [Quantity(each) for each in added])
    seconds = time.perf_counter() - started
    tally = seen.tally
    cells = math.prod(each.size for each in domain.attributes if each is not unknown)
    return Rehearsal(
        rows=tally.rows or 0,
        dropped=tally.dropped or 0,
        unreadable=(tally.encoding, tally.ragged),
        attributes=(
            *(_attribute(found, each, each.name) for each in domain.attributes),
            *(_attribute(found, _values(each), measure_name(each, domain)) for each in added),
        ),
        people=dict(sorted(found.people.items())),
        nobody=found.nobody,
        beyond=(found.tally.placed or 0) - (tally.placed or 0),
        elsewhere=tally.elsewhere,
        unit=protected,
        cells=cells,
        memory=(
            cells * (memory_of(Auto()) if keys is None else memory_of(Laplace()) * keys.found),
            available_memory(),
        ),
        forecasts=release_forecasts(domain, epsilon, asked, records=records, unit=protected, measures=added)
        if keys is None
        else {},
        epsilon=str(epsilon),
        seconds=seconds,
        keys=keys,
    )


def _keys(
    source: Any, domain: Domain, unknown: Nominal, unit: Unit, epsilon: Number, delta: Number | None
) -> KeysRehearsal:
    """How many keys there are, and which threshold they would meet: facts about the records, as all of it is."""
    _, counts = keys_of(source, domain, unit)
    if delta is None:
        return KeysRehearsal(unknown.name, len(counts))
    budget, chance = terms(epsilon, exact(delta, "delta"), unit, counts.shape[1])
    price = price_of(budget, unit)
    level = threshold(price.kind, price.law.size, unit, chance, counts.shape[1])
    above = int((counts >= level).any(axis=1).sum())
    return KeysRehearsal(unknown.name, len(counts), level, above, float(price.law.deviation))


def _values(measure: Measure) -> Ordinal:
    """A measure as an attribute of one bin, to say why a value is none: what lies beyond its bounds is clipped."""
    return Ordinal(measure.name, edges=[float(measure.low), float(measure.high)])


def _attribute(found: Unmatched, attribute: Attribute, name: str) -> AttributeRehearsal:
    values = [(text, rows, reason(attribute, text)) for text, rows in found.values[name]]
    reasons: dict[str, int] = {}
    for _, rows, why in values:
        # Each spelling has a reason of its own in words; together they are one.
        short = why.partition(" (")[0] if why.startswith("written in other letters") else why
        reasons[short] = reasons.get(short, 0) + rows
    rest = found.missed[name] - sum(rows for _, rows, _ in values)
    if rest:
        reasons["many different values that match nothing"] = rest
    ordered = tuple(sorted(reasons.items(), key=lambda pair: -pair[1]))
    zoned, zone = found.zoned.get(name, 0), getattr(getattr(attribute, "scale", None), "zone", "")
    return AttributeRehearsal(
        name, found.missed[name], attribute.other, ordered, tuple(values[:5]), zoned, zone
    )


def _lines(facts: Rehearsal) -> list[str]:
    lines = [PRIVATE, ""]
    part = facts.dropped / max(facts.rows, 1)
    lines.append(f"rows       {facts.rows:,}, of which {facts.dropped:,} ({part:.1%}) would not be counted")
    if facts.elsewhere:
        lines.append(
            f"           {counted(facts.elsewhere, 'row')} counted only as everything else (other = true)"
        )
    if facts.share > ALLOWED:
        share = math.ceil(100 * facts.share) / 100
        lines.append(f"           publish stops before it pays, unless it is told --allow-dropped {share:g}")
    for lost, why in zip(
        facts.unreadable,
        (
            "not UTF-8, and left out: is the file Latin-1? iconv -f latin1 -t utf-8 converts it",
            "without the fields of the others, and left out",
        ),
        strict=True,
    ):
        if lost:
            lines.append(f"           {counted(lost, 'line')} {why}")
    for each in facts.attributes:
        one = each.missed == 1
        fate = f"{'is' if one else 'are'} counted as everything else (other = true)"
        if not each.other:
            fate = "fits none of its values" if one else "fit none of its values"
        lines.append(
            f"{each.name}: {counted(each.missed, 'row')} {fate}"
            if each.missed
            else f"{each.name}: every row fits"
        )
        lines += [f"    {rows:,}  {why}" for why, rows in each.reasons]
        if each.values:
            shown = ", ".join(
                f"{'(nothing)' if v is None else repr(v)} × {rows:,}" for v, rows, _ in each.values
            )
            lines.append(f"    most frequent: {shown}")
        if each.zoned:
            lines.append(
                f"    {counted(each.zoned, 'row')} with an offset from UTC, by the day in {each.zone}"
                + '; zone = "Europe/Berlin" in the schema takes another' * (each.zone == UTC)
            )
    if facts.keys is not None:
        lines += _shown(facts.keys)
    if facts.unit.id is not None:
        lines += _people(facts)
    needed, free = facts.memory
    of_each = " for each name" if facts.keys is not None else ""
    lines.append(
        f"counts     {facts.cells:,}{of_each}; publishing takes up to {_bytes(needed)}, {_bytes(free)} are free"
        if needed < 2**60
        else f"counts     {facts.cells:.3g}: too many to write out, so tables of few attributes are published"
    )
    for name, forecast in facts.forecasts.items():
        lines.append(
            f"error      {name}: {forecast.said} at epsilon {facts.epsilon} (forecast; no record was used)"
        )
    for said in dict.fromkeys(each.intervals for each in facts.forecasts.values() if each.intervals):
        lines.append(f"intervals  {said}")
    lines.append(
        f"time       reading took {facts.seconds:.1f} s; publishing reads once more. Nothing was spent."
    )
    return lines


def _shown(keys: KeysRehearsal) -> list[str]:
    found = f"names      {keys.found:,} of {keys.name} have rows that are counted"
    if keys.threshold is None:
        return [found, "           give a delta, such as 1e-9, to be told how many of them would be shown"]
    reach = f"           {keys.above:,} have {keys.threshold:,} rows or more"
    return [
        found,
        f"{reach}, from which on a noisy count is shown; near it chance decides",
        f"           the noise of a name's count has a standard deviation of {keys.deviation:,.3g} rows",
    ]


def _people(facts: Rehearsal) -> list[str]:
    people = sum(facts.people.values())
    if not people:
        return [f"people     no row has a {facts.unit.id}"]
    limit = facts.unit.rows
    over = sum(n for rows, n in facts.people.items() if rows > limit)
    most = max(facts.people)
    middle, seen = most, 0
    for rows, n in facts.people.items():
        seen += n
        if 2 * seen >= people:
            middle = rows
            break
    lines = [
        f"people     {people:,}; half have {middle:,} rows or fewer, one has {most:,}",
        f"           with more than the {limit:,} that are counted: {over:,}; rows left out for it: {facts.beyond:,}",
    ]
    if facts.nobody:
        lines.append(f"           rows without a {facts.unit.id}, left out: {facts.nobody:,}")
    return lines


def _bytes(number: int) -> str:
    size = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
