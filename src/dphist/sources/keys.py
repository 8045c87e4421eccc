"""What a row means for an attribute, said in the words of any engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.model.domain import Attribute, Nominal
from dphist.model.domain.scales import Bins, Dates, IntArray, Integers, Steps
from dphist.model.domain.zones import UTC, turns
from dphist.model.measure import Quantity
from dphist.sources.engine import Column, Expression, Family, Key, Value
from dphist.sources.sql.words import SqlWords

# A list this short is searched by position; a longer one is tested by hash and looked up here.
_SHORT = 64
# Division of integers below this is exact to the unit in 64-bit floats, which some engines divide by.
_DIVISIBLE = 2**48
# Every whole number below this is a float of its own.
EXACT = 2**53
_EPOCH_DAY = 719_163  # 1970-01-01 as Python counts days


@dataclass(frozen=True, slots=True)
class Reading:
    """The key of an attribute, and how its values become cells."""

    key: Key
    cells: Callable[[npt.NDArray[Any]], IntArray]


def read(attribute: Attribute, column: Column, engine: SqlWords) -> Reading:
    """Work out the key of one attribute from one column."""
    if isinstance(attribute, Nominal):
        attribute.size  # noqa: B018 -- refused where the categories are to be discovered
        return _categories(attribute, attribute.categories, column, engine)
    match attribute.scale:
        case Integers(values=values):
            return _integers(attribute, values, column, engine)
        case Bins(edges=edges):
            return _bins(attribute, edges, column, engine)
        case Steps(categories=categories):
            return _categories(attribute, categories, column, engine)
        case Dates() as dates:
            return _dates(attribute, dates, column, engine)


def place(attribute: Attribute, column: Column, engine: SqlWords) -> Key:
    """The number of an attribute's cell as the engine itself computes it, for bounding.

    Which rows of a person are kept depends on the order of their cells (see `dphist.sources.people`), so this is the
    same number on every engine, whatever type the column has there.
    """
    if isinstance(attribute, Nominal):
        attribute.size  # noqa: B018 -- the same
        key = _found(attribute, attribute.categories, column, engine)
    elif isinstance(attribute.scale, Steps):
        key = _found(attribute, attribute.scale.categories, column, engine)
    else:
        key = read(attribute, column, engine).key
        match attribute.scale:
            case Integers(values=values):
                key = replace(key, value=engine.steps(key.value, values.start, values.step))
            case Bins(edges=edges):
                last = len(edges) - 2
                if isinstance(edges, range):
                    # The last bin is closed: its upper edge would begin one bin more.
                    key = replace(key, value=engine.when(engine.before(key.value, last), key.value, last))
    if attribute.other_cell is None:
        return key
    value = key.value if key.inside is None else engine.when(key.inside, key.value, None)
    return Key(None, engine.otherwise(value, attribute.other_cell), True)


def amount(quantity: Quantity, column: Column, engine: SqlWords) -> Value:
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
    scaled = value if measure.size == 1 else engine.times(value, engine.literal(float(1 / measure.size)))
    if measure.size > 1:
        # Less than half a step is none; PostgreSQL gives a table up for one product that is too small for a float.
        near = engine.between(value, -float(measure.size) / 4, float(measure.size) / 4)
        scaled = engine.when(near, engine.literal(0.0), scaled)
    steps = engine.floor(engine.plus(scaled, engine.literal(0.5)))
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
        return centred(engine.times(away, away))
    return centred(found, None if measure.per_person is None else measure.limit)


def _found(attribute: Attribute, categories: Sequence[Any], column: Column, engine: SqlWords) -> Key:
    """The place of a value in a list, by halving the sorted list; NULL where it is not in it."""
    kind = type(categories[0])
    if kind is str and len(categories) <= _SHORT:
        key = read(attribute, column, engine).key
        return replace(key, value=engine.steps(key.value, 1, 1))
    listed: Callable[[Any], Any] = int
    if kind is bool:
        value = read(attribute, column, engine).key.value
    elif kind is int:
        value, family = _whole(column, engine, (min(categories), max(categories)))
        listed = float if family == "real" else int
    else:
        if column.family not in ("text", "undeclared"):
            raise _mismatch(column, "text")
        # Engines compare bytes here (see ``text``), and UTF-8 sorts as the code points that Python sorts by.
        value, listed = engine.text(engine.column(column)), str
    places = sorted((listed(category), place) for place, category in enumerate(categories))

    def halve(start: int, stop: int) -> Expression:
        if stop - start == 1:
            category, place = places[start]
            return engine.when(engine.same(value, engine.literal(category)), place, None)
        middle = (start + stop) // 2
        before = engine.before(value, engine.literal(places[middle][0]))
        return engine.when(before, halve(start, middle), halve(middle, stop))

    return Key(None, halve(0, len(places)), attribute.other)


def _mismatch(column: Column, expected: str) -> SourceError:
    return SourceError(f"the column {column.name} holds {column.type}, but the domain expects {expected}")


def _whole(column: Column, engine: SqlWords, ends: Sequence[float]) -> tuple[Expression, Family]:
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


def _number(column: Column, engine: SqlWords) -> tuple[Expression, Family]:
    """The column as integers or as floats; text is no number, except where no type is declared."""
    value = engine.column(column)
    if column.family == "undeclared":
        return engine.parse(value, "real"), "real"
    if column.family == "real":
        return engine.real(value), "real"
    if column.family != "integer":
        raise _mismatch(column, "numbers")
    return value, "integer"


def _integers(attribute: Attribute, values: range, column: Column, engine: SqlWords) -> Reading:
    value, family = _whole(column, engine, (values[0], values[-1]))
    first, step = values.start, values.step
    if family == "real":
        inside = engine.between(value, _float_above(first), _float_below(values[-1]))
        whole = engine.floor(value)
        # The floor is only taken inside the bounds, where it exists: NaN and infinities have none.
        fits = engine.same(value, whole)
        if step > 1:
            fits = engine.when(fits, engine.is_multiple(whole, first, step), None)
        key = Key(engine.when(inside, fits, None), whole, attribute.other)
    else:
        inside, whole = engine.between(value, first, values[-1]), engine.integer(value)
        if step > 1:
            inside = engine.when(inside, engine.is_multiple(whole, first, step), None)
        key = Key(inside, whole, attribute.other)
    return Reading(key, lambda found: (found.astype(np.int64) - first) // step)


def _bins(
    attribute: Attribute, edges: range | tuple[int | float, ...], column: Column, engine: SqlWords
) -> Reading:
    value, family = _whole(column, engine, (edges[0], edges[-1]))
    last = len(edges) - 2
    if family == "integer":
        # For integers x ≥ 2.5 says the same as x ≥ 3, without a detour through floats.
        bounds: list[Any] = [math.ceil(edges[0]), math.floor(edges[-1])]
        rounded: Callable[[Any], Any] = math.ceil
    else:
        bounds, rounded = [_float_above(edges[0]), _float_below(edges[-1])], _float_above
    inside = engine.between(value, *bounds)
    if isinstance(edges, range) and edges[-1] - edges[0] < _DIVISIBLE:
        # Floor first: it is exact, while the difference of two floats may round up to an edge.
        whole = engine.integer(value) if family == "integer" else engine.floor(value)
        key = engine.steps(whole, edges.start, edges.step)
    else:
        key = _search(value, [rounded(edge) for edge in edges], engine)
    # The last bin is closed: its upper edge would begin one bin more.
    return Reading(Key(inside, key, attribute.other), lambda found: np.minimum(found.astype(np.int64), last))


def _search(value: Expression, edges: Sequence[Any], engine: SqlWords) -> Expression:
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


def _categories(attribute: Attribute, categories: Sequence[Any], column: Column, engine: SqlWords) -> Reading:
    value, kind = engine.column(column), type(categories[0])
    # Engines hash a long list in a filter, but walk it in a CASE. To count the rest too, group by the values
    # themselves and tell them apart here.
    long_and_other = attribute.other and len(categories) > _SHORT
    if kind is bool:
        if column.family == "undeclared":
            value = engine.parse(value, "truth")
        elif column.family != "truth":
            raise _mismatch(column, "truth values")
        inside: Expression | None = engine.one_of(value, categories)
        value = engine.truth(value)
    elif kind is int:
        value, family = _whole(column, engine, (min(categories), max(categories)))
        inside = engine.one_of(value, [float(c) for c in categories] if family == "real" else categories)
        if family == "integer" and long_and_other:
            # Numbers beyond the list may be beyond what can be handed over; they are all the same to it.
            reach = engine.between(value, min(categories), max(categories))
            value = engine.when(reach, engine.integer(value), None)
        value = value if long_and_other else engine.integer(value)
    else:
        if column.family not in ("text", "undeclared"):
            raise _mismatch(column, "text")
        value = engine.distinct_text(column) if long_and_other else engine.text(value)
        if len(categories) <= _SHORT:
            position = engine.position(value, categories)
            return Reading(Key(None, position, attribute.other), lambda found: found.astype(np.int64) - 1)
        inside = engine.one_of(value, categories)
    places = {category: place for place, category in enumerate(categories)}

    def look_up(found: npt.NDArray[Any]) -> IntArray:
        return np.fromiter((places.get(value, -1) for value in found.tolist()), np.int64, found.size)

    return Reading(Key(None if long_and_other else inside, value, attribute.other), look_up)


def _dates(attribute: Attribute, dates: Dates, column: Column, engine: SqlWords) -> Reading:
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
        return Reading(
            Key(inside, engine.steps(days, first, dates.days), attribute.other),
            lambda found: found.astype(np.int64),
        )
    begins = [dates.begin(cell).toordinal() - _EPOCH_DAY for cell in range(dates.size + 1)]
    return Reading(Key(inside, _search(days, begins, engine), attribute.other), lambda f: f.astype(np.int64))


def _days(value: Expression, dates: Dates, family: Family, engine: SqlWords) -> Expression:
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


def _ahead(moment: Expression, dates: Dates, engine: SqlWords) -> Expression:
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
