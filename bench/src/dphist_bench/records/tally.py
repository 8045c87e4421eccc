"""What came of pairs of neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dphist.errors import DphistError


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
    #: Strangers who were let in where others were refused, by whether ids were texts.
    welcome: dict[bool, list[list[dict[str, Any]]]] = field(default_factory=lambda: {False: [], True: []})

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
