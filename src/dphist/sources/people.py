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

*Keys that nobody declared* (`dphist.sources.count`) have no number in a domain. Any order that is a function of
the cell alone will do in the proof: it is that of the key's text.

*With measures* rows of one cell are no longer the same, so the order is that of cells, then of the values in whole
steps: rows that are equal in all of these are the same to the counts and to the sums. A limit on what a person adds
up to is applied to the rows that are kept, so it is a function of that person's rows, too.

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

from dphist.errors import SourceError
from dphist.sources.engine import Column

# What the hash is taken of besides the id, so that a table that was sampled by a hash of its ids is no special case.
SALT = "dphist|"
# Hexadecimal digits of the hash that are used: 60 bits fit every engine's integers.
DIGITS = 15


def whole_text(value: float) -> str | None:
    """A float as the text of a whole number, if it stands for just one."""
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else None


def most(rows: int) -> int:
    """The limit in a number that engines can multiply; to keep fewer is always private."""
    # Nobody's rows are as many; engines multiply places by this number.
    return min(rows, 2**31 - 1)


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
