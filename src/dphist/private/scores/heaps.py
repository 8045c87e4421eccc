"""On which value of an attribute records heap up, if on any."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dphist.errors import MechanismError
from dphist.private.questions import Candidates, IntArray, Layout, proven

# No count is above it, and differences of two such fit 64 bits.
HIGHEST = 2**61


@proven
@dataclass(frozen=True)
class Heaps:
    """Choose the value of an attribute that has most records, by how far it is above its attribute's bar; or none.

    Candidate 0 is none, with a score of 0. The others are the values of the first attribute, of the second, and so on:
    the score is how many records have that value, less the public bar of the attribute. Of a cell x no more than the
    public height h is counted, max(0, min(x, h)), so that one tall cell is no heap by itself.

    Why the range keeps the promise. One step changes one cell by one, what is counted of it by one or not at all, and
    the cell has one value of each attribute: the scores of these values all rise by one, or all fall by one, or none
    changes, and no other does. So changes differ by at most one, the range. Bars and height are public and move
    nothing.

    Args:
        bars: For every attribute, from how many records on a value is preferred to none.
        height: How many records of a cell are counted at most.
    """

    bars: tuple[int, ...]
    height: int

    def __post_init__(self) -> None:
        if not all(0 <= bar <= HIGHEST for bar in self.bars):
            raise MechanismError("heaps: a bar must lie from 0 to 2^61")
        if not 1 <= self.height <= HIGHEST:
            raise MechanismError("heaps: the height must lie from 1 to 2^61")

    def draws(self, layout: Layout) -> int:
        """One choice."""
        if layout.labels is not None or len(self.bars) != len(layout.shape):
            raise MechanismError("heaps: give a bar for each attribute of a whole domain")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every value of every attribute."""
        cube = np.clip(counts, 0, self.height).reshape(layout.shape)
        axes = range(cube.ndim)
        scores = [np.zeros(1, dtype=np.int64)]
        for axis, bar in enumerate(self.bars):
            totals = cube.sum(axis=tuple(other for other in axes if other != axis), dtype=np.int64)
            scores.append(totals - bar)
        found = np.concatenate(scores)
        yield Candidates(found, np.array([0, found.size]), 1)


def heap_at(pick: int, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """The attribute and its value that the gate's answer to `Heaps` stands for; None for none.

    Example:
        >>> heap_at(0, (2, 3)), heap_at(2, (2, 3)), heap_at(3, (2, 3))
        (None, (0, 1), (1, 0))
    """
    if pick == 0:
        return None
    ends = np.cumsum(shape)
    axis = int(np.searchsorted(ends, pick - 1, side="right"))
    return axis, int(pick - 1 - (ends[axis] - shape[axis]))
