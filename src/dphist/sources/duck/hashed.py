"""Undeclared keys on DuckDB: told apart by a hash while rows are sorted, and by their texts before anything is said.

**What is computed.** The rule of `dphist.sources.people`, a person's cells being in the order of (code, text), where
the code of a key in the known cell j of M is

    code = (⌊hash(key) / 2^(b + 1)⌋ · 2^b) + j,   b the number of bits of M − 1,

with DuckDB's own hash: a function of the cell alone, so the theorem there holds. Nothing else depends on the hash.

**How.** If no two keys of the table have the same leading bits, codes and cells are one and the same thing, and the
order of codes is the order of (code, text). So it is enough to sort pairs of 64-bit numbers, a person and a code. That
no two have is looked at, not hoped for: the keys, each once, come with their bits from DuckDB's own GROUP BY, which
gives the texts of those that are published as well. If two do, the statement in SQL is run, which orders by the same
(code, text): another way to the same counts. So nobody's rows decide about another's, not even rows that were made to
collide; they only make it slow. People whose ids are texts are taken as numbers in the same way: by bits of a hash that
no two of them share, or not at all.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values went through quote() and literal()

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.kernels.pairs import side_by_side
from dphist.sources.duck.allowance import rows_at_once
from dphist.sources.duck.duck import Duck
from dphist.sources.engine import Bound, Integers
from dphist.sources.people import counted

# Known cells a key may have: what they take of the code, the hash lacks.
_BITS = 16
# The bits of somebody whose id is a text.
_PERSON = "(hash({}) >> 1)"


@dataclass(frozen=True, eq=False)
class HashedKeys:
    """Keys by their bits, whose texts are looked for when they are wanted: few are ever published."""

    texts: Any
    bits: Integers
    wanted: Integers

    def __len__(self) -> int:
        return len(self.wanted)

    def take(self, rows: npt.NDArray[Any]) -> Any:
        """The texts of some keys, as an Arrow array."""
        return self.named(self.wanted[np.asarray(rows, dtype=np.int64)])

    def named(self, wanted: Integers) -> Any:
        """The texts behind some bits."""
        if not wanted.size:
            return self.texts.slice(0, 0)
        ordered = np.sort(wanted)
        # In a short list every one of many is looked up soon.
        place = np.minimum(np.searchsorted(ordered, self.bits), ordered.size - 1)
        there = np.flatnonzero(ordered[place] == self.bits)
        there = there[np.argsort(self.bits[there])]
        return self.texts.take(there[np.searchsorted(self.bits[there], wanted)])


def _told_apart(duck: Duck, text: str, bits: str) -> HashedKeys | None:
    """Every value of a text ``key`` of a row, with bits of its hash; None if two have the same."""
    listed = duck.table_of(
        f"SELECT key, CAST({bits} AS BIGINT) AS bits FROM (SELECT {text} AS key FROM {duck.relation}) AS keys "
        "WHERE key IS NOT NULL GROUP BY key"
    )
    known = _whole(listed.column("bits"))
    ordered = np.sort(known)
    if (ordered[1:] == ordered[:-1]).any():
        return None
    return HashedKeys(listed.column("key").combine_chunks(), known, known)


def hashed_keys(
    duck: Duck, key: str, cell: str, bound: Bound, size: int
) -> tuple[HashedKeys, Integers, Integers, Integers] | None:
    """Keys and how many of their rows are kept, by known cell; None where the statement in SQL has to say it.

    Args:
        duck: The records.
        key: The key of a row, in SQL.
        cell: Its known cell, in SQL; NULL for none.
        bound: What a person may add.
        size: How many known cells there are.

    Returns:
        The keys, and for every cell that keeps rows the number of its key, its known cell and how many; None if two
        keys, or two people whose ids are texts, have the same bits.
    """
    bits = (size - 1).bit_length()
    if bits > _BITS:
        return None
    listed = _told_apart(duck, key, duck.key_bits(size))
    if listed is None:
        return None
    number, starts = "CAST(person AS BIGINT)", duck.starts
    if not duck.numbers(bound.id):
        people_of = _told_apart(duck, duck.person(bound.id), _PERSON.format("key"))
        if people_of is None:
            return None
        number = f"CAST({_PERSON.format('person')} AS BIGINT)"

        def starts(people: Any) -> Integers:
            return duck.starts(people_of.named(people))

    (rows,) = duck.table_of(f"SELECT count(*) AS n FROM {duck.relation}").column(0).to_pylist()
    parts = -(-int(rows) // rows_at_once(duck.connection))
    placed = duck.placed_keys(key, cell, bound)
    answers = []
    for part in range(max(1, parts)):
        some = "" if parts <= 1 else f" WHERE hash(person) % {parts} = {part}"
        sql = f"SELECT {number} AS person, {duck.key_order(size)} AS code FROM ({placed}) AS placed{some}"
        table = duck.table_of(sql)
        people, codes = _whole(table.column("person")), _whole(table.column("code"))
        # There may be a hundred million of them: nothing is held longer than it is needed.
        del table
        pairs = side_by_side(people, codes)
        del people, codes
        answers.append(counted(*pairs, bound, starts))
        del pairs
    codes, kept = (np.concatenate(found) for found in zip(*answers, strict=True))
    if len(answers) > 1:
        codes, place = np.unique(codes, return_inverse=True)
        total = np.zeros(len(codes), dtype=np.int64)
        np.add.at(total, place.reshape(-1), kept)
        kept = total
    # Codes are in order, so a key's are side by side.
    found = codes >> bits
    changes = np.ones(len(found), dtype=bool)
    changes[1:] = found[1:] != found[:-1]
    keys = HashedKeys(listed.texts, listed.bits, found[changes])
    return keys, np.cumsum(changes) - 1, codes & ((1 << bits) - 1), kept


def _whole(column: Any) -> Integers:
    """A column of whole numbers without a NULL."""
    found = np.empty(len(column), dtype=np.int64)
    begin = 0
    for chunk in column.chunks:
        found[begin : begin + len(chunk)] = chunk.to_numpy()
        begin += len(chunk)
    return found
