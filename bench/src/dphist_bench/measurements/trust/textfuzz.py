# ruff: noqa: E501, S311, TID251 -- lists of odd words; made-up files, nothing that is released
"""One record of a text file changed, and every other read the same or the file refused: tried over and over.

A file of some lines (CSV with both kinds of line ends) or objects (JSON, one a line and in an array) gets one record more,
loses one, or has one replaced by something odd: quotes, carriage returns, separators, brackets, bytes that are no text,
in any order. The rows that our reader cuts are compared as multisets: all others must be there, and the odd record
may be one row at most. So that a million can be tried, the reader is called without DuckDB behind it, which gets rows as values;
``--whole`` of the tries also go through `count`, from file to histogram.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.sources import count
from dphist.sources.files.delimited import _batch
from dphist.sources.files.lines import Refused
from dphist.sources.files.objects import _array, _line_by_line
from dphist_bench.measuring import Failure, Line

_RECORDS = 12
_WORDS = [
    b'"', b'"', b'""', b",", b",", b"\r", b" ", b"3", b"a", b"3,a", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xe2\x82", b"\xc3",
    b"\\", b"'", b";", b"\t", b"|", b"#", b"\x1a", b"\x0b", b"\x0c", b"\xc2\x85", b"\xe2\x80\xa8", b"\xc3\xa9", b"NULL", b"nan",
    b"x,y", b"a" * 70, b'"a"', b'"3","a"', b",,", b"-1", b"1e999",
]  # fmt: skip
_SIGNS = [
    b"{", b"}", b"[", b"]", b'"', b'\\"', b"\\", b":", b",", b'"x"', b'"y"', b'"x":3', b'"y":"a"', b"\\u0022", b"\\ud800",
    b"null", b"3", b"\r", b" ", b"\x00", b"\xff", b"\xef\xbb\xbf", b'{"x":3,"y":"a"}', b"\xc3\xa9", b"//", b"1e999", b"tru", b"\t",
]  # fmt: skip
_DOMAIN = Domain([Ordinal("x", range(9)), Nominal("y", ["a", "b"], other=True)])
_PLACES = np.array([0, 1], dtype=np.int64)

Rows = Counter[tuple[str | None, ...]]


class Kind:
    """One format: its records, how they make a file, how the file is read, and what odd records are made of."""

    def __init__(
        self, name: str, words: list[bytes], join: Callable[[list[bytes]], bytes], suffix: str
    ) -> None:
        self.name, self.words, self.join, self.suffix = name, words, join, suffix
        csv = suffix == ".csv"
        self.records = [
            (b"%d,%s" if csv else b'{"x":%d,"y":"%s"}') % (i % 9, b"ab"[i % 2 : i % 2 + 1])
            for i in range(_RECORDS)
        ]

    def odd(self, chance: random.Random) -> bytes:
        """A record that nobody would write."""
        found = b"".join(chance.choices(self.words, k=chance.randint(0, 8)))
        if self.suffix == ".json" and chance.random() < 0.6:
            # Brackets that fit are rare by chance.
            found = b"{" + found + b"}"
        elif self.suffix == ".csv" and chance.random() < 0.5:
            found = b"3," + found
        return found

    def read(self, text: bytes) -> Rows:
        """The rows that the reader cuts; what is refused raises."""
        if self.suffix == ".csv":
            head, _, rest = text.partition(b"\n")
            batch, *_ = _batch(rest, ord(","), head.endswith(b"\r"), _PLACES, ["x", "y"])
            return Counter(zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True))
        if text.startswith(b"["):
            parts = list(_array(text[1:], iter(())))
            return Counter((found.strip(),) for part in parts for found in part.to_pylist())
        return Counter((found.strip(),) for found in _line_by_line(text).to_pylist())


KINDS = [
    Kind("CSV, LF", _WORDS, lambda records: b"".join(r + b"\n" for r in [b"x,y", *records]), ".csv"),
    Kind("CSV, CR LF", _WORDS, lambda records: b"".join(r + b"\r\n" for r in [b"x,y", *records]), ".csv"),
    Kind("JSON, one a line", _SIGNS, lambda records: b"".join(r + b"\n" for r in records), ".json"),
    Kind("JSON, an array", _SIGNS, lambda records: b"[" + b",\n".join(records) + b"]", ".json"),
]


def changed(kind: Kind, chance: random.Random) -> tuple[list[bytes], list[bytes]]:
    """The records with one changed, and those that are the same."""
    at = chance.randrange(_RECORDS + 1)
    before, after = kind.records[:at], kind.records[at:]
    way = chance.randrange(8)
    if way == 0:
        kept = before + after[1:]
        return kept, kept
    if way == 1:
        return [*before, kind.odd(chance), *after[1:]], before + after[1:]
    return [*before, kind.odd(chance), *after], kind.records


Read = Callable[[Kind, bytes], Rows]


def run(kind: Kind, tries: int, seed: int, read: Read | None = None) -> list[int]:
    """How many files were read with every other record as before, were refused, and were read otherwise."""
    read, chance = read or (lambda kind, text: kind.read(text)), random.Random(seed)
    fine = refused = wrong = 0
    for _ in range(tries):
        records, others = changed(kind, chance)
        try:
            rows, expected = (read(kind, kind.join(each)) for each in (records, others))
        except (Refused, SourceError):
            refused += 1
            continue
        good = expected <= rows and rows.total() - expected.total() <= _more(kind, records, others)
        fine, wrong = fine + good, wrong + (not good)
        if not good and wrong <= 3:
            sys.stdout.write(f"  {kind.name}: read otherwise: {kind.join(records)!r}\n")
    return [fine, refused, wrong]


def _more(kind: Kind, records: list[bytes], others: list[bytes]) -> int:
    """How many rows the odd record may be: one, but in an array it is as many objects as stand in it."""
    if records is others:
        return 0
    if kind.name != "JSON, an array":
        return 1
    (odd,) = list((Counter(records) - Counter(others)).elements()) or [b""]
    return max(1, odd.count(b"{"))


def measure(
    *, quick: Annotated[bool, "a few thousand"], tries: int = 1_000_000, whole: int = 2_000, seed: int = 1
) -> Iterator[Line]:
    """Give how many changed records were tried and what became of the others."""
    tries, whole = (4_000, 40) if quick else (tries, whole)
    totals = np.zeros(3, dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:

        def counted(kind: Kind, text: bytes) -> Rows:
            """What is counted in the end, through DuckDB."""
            path = Path(folder) / f"d{kind.suffix}"
            path.write_bytes(text)
            cells = np.ndenumerate(count(str(path), _DOMAIN).counts)
            return Counter({tuple(map(str, cell)): int(many) for cell, many in cells})

        for kind in KINDS:
            for words, found in (
                (kind.name, run(kind, tries // len(KINDS), seed)),
                (f"{kind.name}, to the histogram", run(kind, whole // len(KINDS), seed, counted)),
            ):
                yield _row(words, found)
                totals += found
    yield _row("all", totals.tolist())
    if totals[2]:
        yield Failure("a record changed how another is read")


def _row(words: str, found: Sequence[int]) -> Line:
    counted = zip(("as before", "refused", "otherwise"), found, strict=True)
    return {"records changed": words, "tried": sum(found), **dict(counted)}
