"""People and their rows: an ordinary crowd, and one person more of any content."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from numpy.random import Generator  # noqa: TID251 -- data only

from dphist.model.domain import Domain, Nominal, Ordinal

Row = dict[str, Any]

#: What is counted; the id is ``user``, and the rows hold columns besides.
DOMAIN = Domain(
    [
        Ordinal("age", range(100)),
        Nominal("sex", ["F", "M"]),
        Ordinal("day", dates=("2024-01-01", "2024-03-01", "10d"), other=True),
    ]
)
_DAY = dt.datetime(2024, 1, 1)
_AGES: list[Any] = [
    None, 5, 5.0, 2.5, -1, 10**6, 2**53, 2**53 + 1, 2**62, 1e300, float("nan"), float("inf"), Decimal("7"),
    Decimal("7.25"), Decimal("1e-12"), True, "5", " 5", "05", "five", "", "5e0", "\x00", "𝟝",
]  # fmt: skip
_SEXES: list[Any] = [
    None, "F", "m", "f", "", "Ｆ", "F ", "F\n", "F\u0301", "\U0001f600", 1, 0.5, True, "'; --", "{F}", '"',
]  # fmt: skip
_DAYS: list[Any] = [
    None, _DAY, dt.date(2024, 1, 5), dt.datetime(2024, 1, 5, 23, 59, 59, 999999), dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31), dt.datetime(2024, 1, 5, tzinfo=dt.UTC), "2024-01-05", "soon", 7, 1.5,
]  # fmt: skip
_EXTRAS: list[Any] = [
    None, 3, 2.5, "x", Decimal("1.10"), True, 2**63 - 1, [1, 2], {"deep": 1}, dt.date(2024, 1, 1), b"\x00", "ß" * 300,
]  # fmt: skip


_ODD = {"age": _AGES, "sex": _SEXES, "day": _DAYS, "cost": _AGES, "extra": _EXTRAS}


@dataclass(frozen=True)
class Table:
    """An ordinary crowd and people of any content; ``rows`` are all of their rows in some order."""

    crowd: list[Row]
    strangers: tuple[list[Row], ...]
    rows: list[Row]

    def joined_by(self, person: list[Row], draw: Generator) -> Table:
        """A neighbour: one person more, first, last or anywhere among the others."""
        rows = person + self.rows if draw.random() < 0.3 else self.rows + person
        if draw.random() < 0.3:
            rows = [rows[place] for place in draw.permutation(len(rows))]
        return Table(self.crowd, (*self.strangers, person), rows)


def crowd(draw: Generator, people: int, rows: int, *, text: bool = False, large: bool = False) -> list[Row]:
    """Ordinary people: plain types, nothing missing, several rows each; ids as numbers or as texts of mixed case."""
    shift = 2**53 if large else 0
    made: list[Row] = []
    for place in range(people):
        user: Any = ("aA"[place % 2] + f"nn{place // 2}") if text else place + shift
        made += [
            {
                "user": user,
                "age": int(draw.integers(0, 100)),
                "sex": "FM"[int(draw.integers(0, 2))],
                "day": _DAY + dt.timedelta(days=int(draw.integers(0, 60))),
                "cost": int(draw.integers(-20, 60)),
                "extra": int(draw.integers(0, 5)),
            }
            for _ in range(rows)
        ]
    return [made[place] for place in draw.permutation(len(made))]


def stranger(draw: Generator, number: int, *, text: bool = False) -> list[Row]:
    """One person more: rows of any content under an id that nobody else has, or under none."""

    def pick(values: list[Any]) -> Any:
        return values[int(draw.integers(0, len(values)))]

    texts = ["ANN", "ann\u0000z", "Ann ", "\ufb00", "1.0", "007"]
    numbers: list[Any] = [-1, 10**9, 10**12, -(10**15)]
    numbers = [-100.5 - number, *(one - number for one in numbers)]
    user = pick([None, *(f"{one}{number}" for one in texts)] if text else [None, *numbers])
    rows = []
    for _ in range(int(draw.integers(1, 6))):
        ordinary = crowd(draw, 1, 1)[0]
        row: Row = {"user": user}
        for name, odd in _ODD.items():
            # Mostly one thing is odd: a row of nonsense is refused before its oddest value can do harm.
            row[name] = pick(odd) if draw.random() < 0.3 else ordinary[name]
        if draw.random() < 0.2:
            row[pick(["zz", "Age", "user ", "a,b", "é"])] = pick(_EXTRAS)
        if draw.random() < 0.1:
            del row["extra"]
        rows.append(row)
    return rows
