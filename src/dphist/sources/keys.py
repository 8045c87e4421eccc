"""What a row means for an attribute, said in the words of any engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from dphist.errors import SourceError
from dphist.model.domain import Attribute, Nominal
from dphist.model.domain.scales import Bins, Dates, Integers, Steps
from dphist.model.domain.zones import UTC, turns
from dphist.model.measure import Quantity
from dphist.sources.engine import Column, Expression, Family, Key, Value
from dphist.sources.sql import Sql

# Lists and edges this few are searched by position or by halving; for more an engine may have a way of its own.
_SHORT = 64
# Every whole number below this is a float of its own.
EXACT = 2**53
_EPOCH_DAY = 719_163  # 1970-01-01 as Python counts days


def place(attribute: Attribute, column: Column, engine: Sql) -> Key:
    """The number of an attribute's cell, as the engine itself computes it from one column.

    Which rows of a person are kept depends on the order of their cells (see `dphist.sources.people`), so this is the
    same number on every engine, whatever type the column has there.
    """
    if isinstance(attribute, Nominal):
        attribute.size  # noqa: B018 -- refused where the categories are to be discovered
        key = _categories(attribute.categories, column, engine)
    else:
        match attribute.scale:
            case Integers(values=values):
                key = _integers(values, column, engine)
            case Bins(edges=edges):
                key = _bins(edges, column, engine)
            case Steps(categories=categories):
                key = _categories(categories, column, engine)
            case Dates() as dates:
                key = _dates(dates, column, engine)
    if attribute.other_cell is None:
        return key
    value = key.value if key.inside is None else engine.when(key.inside, key.value, None)
    return Key(None, engine.otherwise(value, attribute.other_cell))


def amount(quantity: Quantity, column: Column, engine: Sql) -> Value:
    """What a row adds for a measure, in whole steps: ⌊value ÷ step + ½⌋ within the bounds, NULL for no value.

    The quantity's centre is taken off row by row: a sum is cut where it would not fit in 64 bits, and one that was cut
    first and centred afterwards would move by the centre, not by the reach. Every engine computes in 64-bit floats,
    whatever type the column has, so the same row gives the same number. The result is cut to the bounds once more: what
    the gate relies on must not depend on how a float is rounded.
    """
    measure = quantity.measure
    if column.family not in ("integer", "real", "undeclared"):
        raise SourceError(
            f"measure {measure.name}: the column {column.name} holds {column.family} ({column.type}), and numbers "
            "alone can be added up; name a column of numbers"
        )
    value = engine.real(_number(column, engine)[0])
    low, high = measure.lowest, measure.highest
    scaled = value if measure.size == 1 else f"({value} * {engine.literal(float(1 / measure.size))})"
    if measure.size > 1:
        # Less than half a step is none; PostgreSQL gives a table up for one product that is too small for a float.
        near = engine.between(value, -float(measure.size) / 4, float(measure.size) / 4)
        scaled = engine.when(near, engine.literal(0.0), scaled)
    steps = engine.floor(f"({scaled} + {engine.literal(0.5)})")
    steps = engine.when(engine.before(steps, low), low, engine.when(engine.before(steps, high), steps, high))
    # NaN lies above every number, infinity among them: it is no value.
    known = engine.between(value, -math.inf, math.inf)
    below = engine.before(value, engine.literal(float(Fraction(measure.low))))
    inside = engine.before(value, engine.literal(float(Fraction(measure.high))))

    def centred(counted: Expression, limit: int | None = None) -> Value:
        return Value(engine.steps(counted, quantity.centre, 1) if quantity.centre else counted, limit)

    if quantity.clipped:
        beyond = engine.before(engine.literal(float(Fraction(measure.high))), value)
        outside = engine.when(below, 1, engine.when(beyond, 1, 0))
        found = engine.when(known, outside, None)
        return centred(found if measure.missing is None else engine.otherwise(found, 0))
    clipped = engine.when(below, low, engine.when(inside, steps, high))
    found = engine.when(known, clipped, None)
    if measure.missing is not None:
        found = engine.otherwise(found, int(Fraction(measure.missing) / measure.size))
    if quantity.squared:
        away = engine.steps(found, measure.middle, 1)
        return centred(f"({away} * {away})")
    return centred(found, None if measure.per_person is None else measure.limit)


def _categories(categories: Sequence[Any], column: Column, engine: Sql) -> Key:
    """The place of a value in a list; NULL where it is not in it."""
    kind = type(categories[0])
    value, listed = engine.column(column), kind
    if kind is bool:
        if column.family == "undeclared":
            value = engine.parse(value, "truth")
        elif column.family != "truth":
            raise _mismatch(column, "truth values")
        value, listed = engine.truth(value), int
    elif kind is int:
        value, family = _whole(column, engine, (min(categories), max(categories)))
        listed = float if family == "real" else int
    else:
        if column.family not in ("text", "undeclared"):
            raise _mismatch(column, "text")
        # Engines compare bytes here (see ``text``), and UTF-8 sorts as the code points that Python sorts by.
        value = engine.text(value)
        if len(categories) <= _SHORT:
            return Key(None, engine.steps(engine.position(value, categories), 1, 1))
    places = {listed(category): place for place, category in enumerate(categories)}
    found = engine.look_up(value, places) if len(categories) > _SHORT else None
    if found is not None:
        return Key(None, found)
    ordered = sorted(places.items())

    def halve(start: int, stop: int) -> Expression:
        if stop - start == 1:
            category, place = ordered[start]
            return engine.when(f"({value} = {engine.literal(category)})", place, None)
        middle = (start + stop) // 2
        before = engine.before(value, engine.literal(ordered[middle][0]))
        return engine.when(before, halve(start, middle), halve(middle, stop))

    return Key(None, halve(0, len(ordered)))


def _mismatch(column: Column, expected: str) -> SourceError:
    return SourceError(f"the column {column.name} holds {column.type}, but the domain expects {expected}")


def _whole(column: Column, engine: Sql, ends: Sequence[float]) -> tuple[Expression, Family]:
    """The column as numbers, to be compared with those of the domain between two ends.

    A frame's integers become floats when somebody's value is missing or 2.5. Below 2⁵³ that changes nothing. Above,
    one row would change what others hold, so such a column is refused where the domain reaches that far.
    """
    value, family = _number(column, engine)
    if column.inferred and family == "real" and any(abs(end) >= EXACT for end in ends):
        raise SourceError(
            f"the column {column.name} holds floats, which do not tell whole numbers from 2^53 on apart, and the "
            "domain reaches so far; give it as integers (Int64 in pandas), or from a file or a database"
        )
    return value, family


def _number(column: Column, engine: Sql) -> tuple[Expression, Family]:
    """The column as integers or as floats; text is no number, except where no type is declared."""
    value = engine.column(column)
    if column.family == "undeclared":
        return engine.parse(value, "real"), "real"
    if column.family == "real":
        return engine.real(value), "real"
    if column.family != "integer":
        raise _mismatch(column, "numbers")
    return value, "integer"


def _integers(values: range, column: Column, engine: Sql) -> Key:
    value, family = _whole(column, engine, (values[0], values[-1]))
    first, step = values.start, values.step
    if family == "real":
        within = engine.between(value, _float_above(first), _float_below(values[-1]))
        whole = engine.floor(value)
        # The floor is only taken inside the bounds, where it exists: NaN and infinities have none.
        inside = engine.when(within, f"({value} = {whole})", None)
    else:
        inside, whole = engine.between(value, first, values[-1]), engine.integer(value)
    if step > 1:
        inside = engine.when(inside, f"(({whole} - {first}) % {step} = 0)", None)
    return Key(inside, engine.steps(whole, first, step))


def _bins(edges: range | tuple[int | float, ...], column: Column, engine: Sql) -> Key:
    value, family = _whole(column, engine, (edges[0], edges[-1]))
    last = len(edges) - 2
    if family == "integer":
        # For integers x ≥ 2.5 says the same as x ≥ 3, without a detour through floats.
        bounds: list[Any] = [math.ceil(edges[0]), math.floor(edges[-1])]
        rounded: Callable[[Any], Any] = math.ceil
    else:
        bounds, rounded = [_float_above(edges[0]), _float_below(edges[-1])], _float_above
    inside = engine.between(value, *bounds)
    # Division of integers below this is exact to the unit in 64-bit floats, which some engines divide by.
    if isinstance(edges, range) and edges[-1] - edges[0] < 2**48:
        # Floor first: it is exact, while the difference of two floats may round up to an edge.
        whole = engine.integer(value) if family == "integer" else engine.floor(value)
        number = engine.steps(whole, edges.start, edges.step)
        # The last bin is closed: its upper edge would begin one bin more.
        return Key(inside, engine.when(engine.before(number, last), number, last))
    return Key(inside, _search(value, [rounded(edge) for edge in edges], engine))


def _search(value: Expression, edges: Sequence[Any], engine: Sql) -> Expression:
    """The bin of a value known to lie between the edges, by halving: log₂(bins) comparisons a row.

    An engine that goes over rows in blocks visits, for every block, all branches that some row of it takes: there
    thousands of edges are searched otherwise.
    """
    found = engine.bin(value, edges) if len(edges) > _SHORT else None
    if found is not None:
        return found

    def halve(start: int, stop: int) -> Expression:
        if stop - start == 1:
            return start
        middle = (start + stop) // 2
        return engine.when(engine.before(value, edges[middle]), halve(start, middle), halve(middle, stop))

    return halve(0, len(edges) - 1)


def _float_above(number: float) -> float:
    """The smallest float that is not below a number, which Python compares exactly."""
    near = float(number)
    return near if near >= number else math.nextafter(near, math.inf)


def _float_below(number: float) -> float:
    near = float(number)
    return near if near <= number else math.nextafter(near, -math.inf)


def _dates(dates: Dates, column: Column, engine: Sql) -> Key:
    if column.family not in ("date", "time", "zoned time", "undeclared"):
        raise _mismatch(column, "dates or times")
    value, first = engine.column(column), dates.start.toordinal() - _EPOCH_DAY
    if column.family == "undeclared" or (column.family == "zoned time" and dates.zone != UTC):
        days = _days(value, dates, column.family, engine)
        # What has no day is not between any two.
        inside = engine.between(days, first, dates.stop.toordinal() - _EPOCH_DAY - 1)
    else:
        begin, end = engine.day(dates.start, column.family), engine.day(dates.stop, column.family)
        # NULL before NULL is not true, so a missing date fails both comparisons.
        inside = engine.when(engine.before(value, begin), False, engine.before(value, end))
        days = engine.days(value, column.family)
    if dates.days:
        return Key(inside, engine.steps(days, first, dates.days))
    begins = [dates.begin(cell).toordinal() - _EPOCH_DAY for cell in range(dates.size + 1)]
    return Key(inside, _search(days, begins, engine))


def _days(value: Expression, dates: Dates, family: Family, engine: Sql) -> Expression:
    """Days since 1970-01-01 in the zone of the dates; NULL where there are none, and far beyond them.

    Each text by itself: one with an offset names a moment, as a zoned time does, any other the day that it says.
    """
    moment = engine.parse(value, "zoned time") if family == "undeclared" else value
    ahead = None if dates.zone == UTC else _ahead(moment, dates, engine)
    days = engine.days(moment, "zoned time", ahead)
    return (
        engine.otherwise(days, engine.days(engine.parse(value, "time"), "time"))
        if family == "undeclared"
        else days
    )


def _ahead(moment: Expression, dates: Dates, engine: Sql) -> Expression:
    """How many seconds the clocks of the dates' zone were ahead of UTC at a moment; NULL far beyond the dates."""
    found = turns(dates.zone, dates.start, dates.stop)

    def halve(start: int, stop: int) -> Expression:
        if stop - start == 1:
            return found[start][1]
        middle = (start + stop) // 2
        earlier = engine.before(moment, engine.moment(found[middle][0]))
        return engine.when(earlier, halve(start, middle), halve(middle, stop))

    within = engine.when(engine.before(moment, engine.moment(found[-1][0])), halve(0, len(found) - 1), None)
    return engine.when(engine.before(moment, engine.moment(found[0][0])), None, within)
