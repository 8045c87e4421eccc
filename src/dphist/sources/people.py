"""At most L rows a person: which of them are kept, and why that hides a person.

**Theorem.** With ``Unit(rows=L, id=…)`` what a person adds to the counts is a function of that person's rows and of
public facts (the domain, the unit, the types a table declares). So adding or removing a person, whatever their rows
hold, changes nobody else's part, and the counts by at most L steps; replacing one, by at most 2L.

*What is a function of one row.* Every engine computes two things from a row by itself. The first is the *person*: the
id as text, see below, or nobody, in which case the row is dropped. The second is the *cell*: its number in the
domain, or none, and then the row is dropped too. Neither looks at another row, at a column that the domain does not
name, or at a type that other rows could have given to the column (`dphist.sources.keys` and `dphist.sources.open` say
why for each source).

*What is a function of a person's rows.* Let a person have n rows in cells, and c₀ ≤ c₁ ≤ … ≤ cₙ₋₁ the numbers of
these cells in order. If n ≤ L all are kept. Else let h be the first 60 bits of MD5("dphist|" + id) and r = h mod n:
the rows at the places

    pᵢ = ⌊(r + i·n) / L⌋,   i = 0 … L − 1

are kept. They are L different places below n, because r + i·n rises by n > L from one to the next and stays below
L·n. The sorted cells of a person are the same in every order of the rows, on every engine, in any number of threads:
rows of one person in one cell are the same to the histogram, so it does not matter which of them stands at a place.
Nothing but the id, the n cells and L was used. ∎

*With cells* (``Unit(cells=k, per_cell=c, id=…)``). Let the person's rows lie in d different cells, in order. If d >
k, the cells at the places ⌊(r + i·d) / k⌋ are kept, with r = h mod d; of the m rows in a kept cell all are if m ≤ c,
else those at the places ⌊(s + i·m) / c⌋ with s = ⌊h / d⌋ mod m, which knows nothing of r. Again nothing but the id,
the cells and k, c was used. A person adds at most c to each of at most k cells: ck steps, and c²k in squares. Every
cell of a person is kept with the probability k/d, and every row of a kept cell with min(1, c/m); the rows of one cell
being the same to the counts, which of them it is only matters with measures.

*Keys that nobody declared* (`dphist.sources.discovering`) have no number in a domain. Any order that is a function of
the cell alone will do in the proof: it is that of the key's text.

*With measures* rows of one cell are no longer the same, so the order is that of cells, then of the values in whole
steps: rows that are equal in all of these are the same to the counts and to the sums. A limit on what a person adds
up to is applied to the rows that are kept (`limited`), so it is a function of that person's rows, too.

*Fairness.* As r runs over 0 … n − 1, the numbers r + i·n run over 0 … L·n − 1, each once, and exactly L of them have
the quotient p. So a uniform r keeps every row with the probability L/n, and each cell holds, over all people, what
uniform picking would leave in expectation; of one person with m of n rows in a cell either ⌊Lm/n⌋ or ⌈Lm/n⌉ are kept
(it is *systematic sampling*), which varies less than picking L rows at random. r is uniform up to n/2⁶⁰ if MD5
behaves like a random function on ids; that MD5 resists no deliberate collisions does not matter, for an id decides
about its own rows alone and people are told apart by their ids, not by the hash.

*An id as text.* Whole numbers are written in digits whatever type they are stored in: 1, 1.0 and Decimal("1.00") are
the same id, "1" too, and "01" and "1.0" in a column of text are others. So an id does not change when a missing value
makes floats of a frame's integers. Texts are compared byte by byte, never under a collation. NULL, NaN, an infinity
and a number with a fraction are nobody. A float of 2⁵³ or more (2²⁴ in 32 bits) may stand for several whole numbers,
hence for several people: a column with one is refused. Times, lists and the like are refused by their type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.sources.engine import LARGEST_SUM, Bound, Column, Integers

# What the hash is taken of besides the id, so that a table that was sampled by a hash of its ids is no special case.
SALT = "dphist|"
# Hexadecimal digits of the hash that are used: 60 bits fit every engine's integers.
DIGITS = 15
# Nobody's rows are as many; engines multiply places by this number.
_MOST = 2**31 - 1
# Bits of an amount that are added up by themselves where sums might overflow.
_HALF = 30
# Places that are worked out together.
_TOGETHER = 1 << 20


def kept(person: str, cells: Sequence[int], rows: int) -> list[int]:
    """The cells of the rows that are kept of one person: what every engine must agree with.

    Args:
        person: the id as text.
        cells: the numbers of the cells of this person's rows, in any order.
        rows: how many may be kept.

    Returns:
        The cells that are counted, in order.

    Example:
        >>> kept("ann", [5, 3, 3, 9], 4)
        [3, 3, 5, 9]
        >>> len(kept("ann", [5, 3, 3, 9], 2))
        2
    """
    ordered, total = sorted(cells), len(cells)
    if total <= rows:
        return ordered
    first = (
        int(hashlib.md5(f"{SALT}{person}".encode(), usedforsecurity=False).hexdigest()[:DIGITS], 16) % total
    )
    return [ordered[(first + place * total) // rows] for place in range(rows)]


def kept_by_cell(person: str, cells: Sequence[int], most_cells: int, per_cell: int) -> list[int]:
    """The same where at most ``per_cell`` rows are kept in each of at most ``most_cells`` cells.

    Args:
        person: the id as text.
        cells: the numbers of the cells of this person's rows, in any order.
        most_cells: in how many cells rows may be kept.
        per_cell: how many in each.

    Returns:
        The cells that are counted, in order.

    Example:
        >>> kept_by_cell("ann", [5, 3, 3, 3, 9], 3, 2)
        [3, 3, 5, 9]
        >>> len(set(kept_by_cell("ann", [5, 3, 3, 9], 2, 2)))
        2
    """
    chosen = kept(person, sorted(set(cells)), most_cells)
    return sorted(cell for cell in chosen for _ in range(min(per_cell, list(cells).count(cell))))


def counted(
    people: Any,
    cells: Integers,
    bound: Bound,
    starts: Callable[[Any], Integers],
    values: Sequence[tuple[Integers, int | None]] = (),
) -> tuple[Integers, ...]:
    """The same for many people at once: the cells of their kept rows, how many rows each, and sums of their values.

    The place p is some ⌊(r + i·n) / L⌋ exactly if r − p·L is below L modulo n. Only people of more
    than may be kept are hashed.

    Args:
        people: a person for every row, equal ones side by side: an array of numbers, or an Arrow column of texts.
        cells: the rows' cells, each person's in order.
        bound: how many may be kept of each.
        starts: gives the hashes of people.
        values: what each row adds for each measure, rows of one person in one cell in the order of these; and what a
            person may add up to in absolute values, or None.

    Returns:
        Cells, each once, how many rows of them are kept, and the sums of each of the values.
    """
    import pyarrow.compute

    if not len(cells):
        return cells, cells, *(cells for _ in values)
    changes = np.empty(len(cells), dtype=bool)
    changes[0] = True
    numbers = isinstance(people, np.ndarray)
    if numbers:
        np.not_equal(people[1:], people[:-1], out=changes[1:])
    else:
        changes[1:] = pyarrow.compute.not_equal(people.slice(1), people.slice(0, len(people) - 1)).to_numpy()
    begins = np.flatnonzero(changes)

    def hashes(of: npt.NDArray[np.bool_]) -> Integers:
        """The hashes of some of the people, in order."""
        firsts = np.zeros(len(cells), dtype=bool)
        firsts[begins[of]] = True
        return starts(people[begins[of]] if numbers else people.filter(pyarrow.array(firsts)))

    totals = np.diff(begins, append=len(cells))
    if bound.cells is None:
        many = totals > bound.rows
        chosen = at_places(totals, many, hashes(many) if many.any() else cells[:0], most(bound.rows))
    elif not values:
        return _counted_by_cell(changes, cells, bound, hashes)
    else:
        chosen = _by_cell(changes, cells, totals, bound, hashes)
    if not values:
        return _tallied(cells[chosen])
    picked = cells[chosen]
    place: Integers
    if _few_cells(picked):
        place, rows = picked, np.bincount(picked)
        found = np.flatnonzero(rows)
        kept, there = rows[found], found
    else:
        found, place, kept = np.unique(picked, return_inverse=True, return_counts=True)
        place, there = place.reshape(-1), np.arange(found.size)
    sums = []
    for amounts, limit in values:
        cut = amounts[chosen]
        if limit is not None:
            cut = limited(cut, (np.cumsum(changes) - 1)[chosen], limit)
        sums.append(added_up(place, cut, int(there[-1]) + 1 if there.size else 0)[there])
    return found, kept.astype(np.int64), *sums


def _few_cells(cells: Integers) -> bool:
    """Whether cells are counted by place: where there are about as many rows as cells."""
    return bool(cells.size) and int(cells.max()) <= 4 * cells.size


def _tallied(cells: Integers) -> tuple[Integers, Integers]:
    """Each cell once, and how often it occurs."""
    if not _few_cells(cells):
        found, kept = np.unique(cells, return_counts=True)
        return found, kept.astype(np.int64)
    rows = np.bincount(cells)
    found = np.flatnonzero(rows)
    return found, rows[found].astype(np.int64)


def at_places(
    totals: Integers, many: npt.NDArray[np.bool_], starts: Integers, rows: int
) -> npt.NDArray[np.bool_]:
    """Which members of each group are kept: all of most groups, ``rows`` of those that are too large.

    Args:
        totals: The sizes of the groups, whose members stand one after the other.
        many: Which groups are larger than ``rows``.
        starts: A hash for each of those.
        rows: How many of them are kept.

    Returns:
        True for the members that are kept.

    Example:
        >>> import numpy as np
        >>> at_places(np.array([2, 3]), np.array([False, True]), np.array([4]), 2).tolist()
        [True, True, True, False, True]
    """
    chosen: npt.NDArray[np.bool_] = np.repeat(~many, totals)
    if many.any():
        begins = (np.cumsum(totals) - totals)[many]
        sizes = totals[many]
        first = starts % sizes
        # Place by place for all groups: fewer numbers than members, as these have more than `rows`. The
        # quotient is split, so that no product is larger than a group.
        whole, rest = np.divmod(sizes, rows)
        at_once = max(1, _TOGETHER // len(sizes))
        for low in range(0, rows, at_once):
            place = np.arange(low, min(low + at_once, rows), dtype=np.int64)[:, None]
            chosen[begins + place * whole + (first + place * rest) // rows] = True
    return chosen


def _counted_by_cell(
    changes: npt.NDArray[np.bool_],
    cells: Integers,
    bound: Bound,
    hashes: Callable[[npt.NDArray[np.bool_]], Integers],
) -> tuple[Integers, Integers]:
    """Cells and how many rows of them are kept: rows of one cell are alike, so only cells are picked."""
    groups = changes.copy()
    groups[1:] |= cells[1:] != cells[:-1]
    edges = np.flatnonzero(groups)
    different = np.diff(np.flatnonzero(changes[edges]), append=len(edges))
    many = different > most(bound.cells or 1)
    among = at_places(different, many, hashes(many) if many.any() else cells[:0], most(bound.cells or 1))
    chosen = cells[edges[among]]
    if bound.per_cell == 1:
        return _tallied(chosen)
    return _tallied(np.repeat(chosen, np.minimum(np.diff(edges, append=len(cells))[among], bound.per_cell)))


def _by_cell(
    changes: npt.NDArray[np.bool_],
    cells: Integers,
    totals: Integers,
    bound: Bound,
    hashes: Callable[[npt.NDArray[np.bool_]], Integers],
) -> npt.NDArray[np.bool_]:
    """Which rows are kept where cells are bounded: first cells of a person, then rows of a cell."""
    groups = changes.copy()
    groups[1:] |= cells[1:] != cells[:-1]
    edges = np.flatnonzero(groups)
    sizes = np.diff(edges, append=len(cells))
    person = (np.cumsum(changes) - 1)[edges]
    different = np.bincount(person, minlength=len(totals))
    full = sizes > bound.per_cell
    many = different > most(bound.cells or 1)
    needed = many.copy()
    needed[person[full]] = True
    hashed = np.zeros(len(totals), dtype=np.int64)
    if needed.any():
        hashed[needed] = hashes(needed)
    among = at_places(different, many, hashed[many], most(bound.cells or 1))
    inside = at_places(sizes, full, (hashed // different)[person[full]], most(bound.per_cell))
    return np.repeat(among, sizes) & inside


def limited(amounts: Integers, person: Integers, limit: int) -> Integers:
    """Cut the values of people who have more than the limit in absolute values, all of a person's by one factor.

    Σ ⌊|v|·limit ÷ t⌋ ≤ limit where t = Σ |v|: in whole numbers, so that it holds exactly, and a function of that
    person's kept rows alone.

    Args:
        amounts: A value for every kept row.
        person: The person of each, as a number from 0 on.
        limit: What one person may add up to.

    Returns:
        The values that count, with their signs.

    Example:
        >>> import numpy as np
        >>> limited(np.array([30, -60, 5]), np.array([0, 0, 1]), 10).tolist()
        [3, -6, 5]
    """
    size = np.abs(amounts)
    totals = np.zeros(int(person[-1]) + 1 if person.size else 0, dtype=np.int64)
    np.add.at(totals, person, size)
    total = totals[person]
    return np.where(total <= limit, amounts, np.sign(amounts) * (size * limit // np.maximum(total, 1)))


def added_up(places: Integers, amounts: Integers, size: int) -> Integers:
    """The exact sums of amounts by place, each cut at ±2⁶⁰: a row moves a sum that is cut by no more than its amount.

    Args:
        places: The place of each amount, below ``size``.
        amounts: Whole numbers between −2⁶⁰ and 2⁶⁰.
        size: How many places there are.

    Returns:
        A sum for each place.

    Example:
        >>> import numpy as np
        >>> added_up(np.array([0, 1, 0]), np.array([5, -2, 1]), 2).tolist()
        [6, -2]
    """
    total = np.zeros(size, dtype=np.int64)
    if not amounts.size or int(np.abs(amounts).max()) * amounts.size < LARGEST_SUM:
        np.add.at(total, places, amounts)
        return total
    # High and low halves by themselves: neither overflows, however many rows there are.
    low = np.zeros(size, dtype=np.int64)
    np.add.at(total, places, amounts >> _HALF)
    np.add.at(low, places, amounts & ((1 << _HALF) - 1))
    most = LARGEST_SUM >> _HALF
    total = np.clip(total + (low >> _HALF), -most - 1, most)
    return np.clip((total << _HALF) + (low & ((1 << _HALF) - 1)), -LARGEST_SUM, LARGEST_SUM)


def whole_text(value: float) -> str | None:
    """A float as the text of a whole number, if it stands for just one."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else None


def most(rows: int) -> int:
    """The limit in a number that engines can multiply; to keep fewer is always private."""
    return min(rows, _MOST)


def exact_below(column: Column) -> int:
    """From where on a float of this column may stand for several whole numbers."""
    return 2**24 if column.type.lower() in ("float", "float32", "float4", "real") else 2**53


def is_decimal(column: Column) -> bool:
    """Whether a column of real numbers holds decimal ones, which are exact."""
    return column.family == "real" and column.type.lower().startswith("decimal")


def refuse_floats(column: Column) -> SourceError:
    """The error for ids that are too large for floats."""
    return SourceError(
        f"the id {column.name} holds floats of {'2^24' if exact_below(column) < 2**53 else '2^53'} or more, each of "
        "which may stand for several people's numbers; store it as integers (Int64 in pandas) or as text"
    )


def refuse_type(column: Column) -> SourceError:
    """The error for a column that cannot tell people apart."""
    return SourceError(
        f"the id {column.name} holds {column.type}; ids are whole numbers, text, dates, truth values or UUIDs: "
        "make it text"
    )
