"""Many pairs of neighbours by one count: towns that share a table and nothing else.

Every person, of the crowd or a stranger, lives in one town, and all rows of theirs say so in a public attribute. A
table T without strangers is counted once; then T with one stranger in each of some towns.

*Why this is sound.* The theorem of sources says that a person's part of the counts is a function of that person's rows
and of public facts. If it holds, a town's cells hold the sum of its people's parts: with a stranger they differ by that
stranger's part, at most L steps, and without one they do not differ at all. So a town with a stranger that differs by
more than L steps, or one without that differs at all, refutes the theorem. (It need not refute the promised distance of
any one pair on the way from one table to the other: a person could move others' rows and still stay within L. The test
is stricter there than the promise.) The other way round the test is weaker than pairs
one by one in one respect: what a stranger does to everybody may be hidden by what another one did before (a column that
is text already cannot become text again). Hence half of the towns get no stranger and must not move at all, batches are
of all sizes from one stranger on, and some pairs are compared one by one besides, in a town alone.

A batch that is refused is halved, until the strangers with whom a table is refused are alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator  # noqa: TID251 -- data only

from dphist.errors import DphistError, SourceError
from dphist.model.unit import Unit
from dphist_bench.records.doors import DOORS, Door, Found
from dphist_bench.records.people import Row, Table, crowd, stranger
from dphist_bench.records.sources import Put, UnrepresentableError

# People of the crowd in a town, the fewest in all, and how often others join the same crowd.
_PEOPLE, _FEWEST, _ROUNDS = 2, 20, 8
# What makers of sources raise for rows that they cannot hold: there is no such table.
_NO_TABLE = (UnrepresentableError, TypeError, ValueError, OverflowError)


@dataclass
class Tally:
    """What came of the pairs of one source."""

    pairs: int = 0
    refused: int = 0
    impossible: int = 0
    worst: float = 0.0
    seconds: float = 0.0
    #: By door: pairs compared, and the largest distance over what was promised.
    doors: dict[str, tuple[int, float]] = field(default_factory=dict)

    @property
    def compared(self) -> int:
        """Pairs of which both sides were counted."""
        return self.pairs - self.refused

    def passed(self, door: str, pairs: int, worst: float) -> None:
        """Take in pairs that were compared through a door."""
        known, largest = self.doors.get(door, (0, 0.0))
        self.doors[door] = known + pairs, max(largest, worst)
        self.worst = max(self.worst, worst)

    def note(self, error: Exception) -> None:
        """Count a pair whose larger table was refused by us, or could not be made at all."""
        if isinstance(error, DphistError):
            self.pairs += 1
            self.refused += 1
        else:
            self.impossible += 1

    def add(self, other: Tally) -> None:
        """Take in the pairs of another round."""
        self.pairs += other.pairs
        self.refused += other.refused
        self.impossible += other.impossible
        self.worst = max(self.worst, other.worst)
        self.seconds += other.seconds
        for door, (pairs, worst) in other.doors.items():
            self.passed(door, pairs, worst)


def compare_towns(
    put: Put,
    pairs: int,
    seed: int,
    units: tuple[Unit, ...],
    *,
    towns: int = 64,
    seconds: float = math.inf,
    doors: Sequence[Door] = DOORS[:1],
) -> Tally:
    """Compare pairs through one source, up to half as many at a time as there are towns."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    found, begun = Tally(), time.perf_counter()
    left = list(doors)
    while (
        found.pairs < pairs and found.impossible < 20 * pairs + 100 and time.perf_counter() - begun < seconds
    ):
        unit = units[int(draw.integers(0, len(units)))]
        text = bool(draw.random() < 0.4)
        door = left[int(draw.integers(0, len(left)))]
        large = not text and bool(draw.random() < 0.1)
        people = crowd(draw, max(_FEWEST, _PEOPLE * towns), 3, text=text, large=large)
        rows = _in_towns(people, towns, text=text)
        table = Table(rows, (), rows)
        try:
            before = door.read(put(table), range(towns), unit)
        except SourceError:
            # Keys are not discovered by every engine; whatever else refuses ordinary people is no campaign.
            if door.name != "keys":
                raise
            left.remove(door)
            continue
        scene = Scene(put, table, door, unit, towns, before)
        for _ in range(_ROUNDS):
            if found.pairs >= pairs or time.perf_counter() - begun >= seconds:
                break
            most = 1 + int(draw.integers(0, max(1, min(towns // 2, pairs - found.pairs))))
            chosen = sorted(draw.permutation(towns)[:most].tolist())
            joining = {
                town: [{**row, "town": town} for row in stranger(draw, town, text=text)] for town in chosen
            }
            _compare(scene, joining, found, draw)
    found.seconds = time.perf_counter() - begun
    return found


@dataclass(frozen=True)
class Scene:
    """A crowd, how it is read, and what was read of it."""

    put: Put
    table: Table
    door: Door
    unit: Unit
    towns: int
    before: Found


def _in_towns(rows: list[Row], towns: int, *, text: bool) -> list[Row]:
    """Two people a town. Texts that differ in case alone share one, and would show in its cells."""
    return [{**row, "town": int(str(row["user"])[3:] if text else row["user"]) % towns} for row in rows]


def _compare(scene: Scene, joining: dict[int, list[Row]], found: Tally, draw: Generator) -> None:
    larger = scene.table
    for person in joining.values():
        larger = larger.joined_by(person, draw)
    try:
        after = scene.door.read(scene.put(larger), range(scene.towns), scene.unit)
    except (*_NO_TABLE, DphistError) as error:
        if len(joining) == 1:
            found.note(error)
            return
        half = len(joining) // 2
        for some in (list(joining)[:half], list(joining)[half:]):
            _compare(scene, {town: joining[town] for town in some}, found, draw)
        return
    moved = scene.door.ratio(scene.before, after, scene.unit, scene.towns)
    found.pairs += len(joining)
    worst = float(moved[list(joining)].max())
    moved[list(joining)] = 0
    # Where nobody joined nothing may move: somebody who lives elsewhere was touched.
    found.passed(scene.door.name, len(joining), math.inf if moved.any() else worst)
