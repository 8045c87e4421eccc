"""The plainest choices: scores that are sums of counts, of which one step moves each by one at most."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.grouping import part_sums
from dphist.kernels.summed_area import add_box_sums, running_sums
from dphist.private.questions import Candidates, IntArray, Layout, own_array, proven, seal

# No count is above it, and differences of two such fit 64 bits.
HIGHEST = 2**61


@proven
@dataclass(frozen=True, eq=False)
class Medians:
    """Cut each part near its median along an axis, by how unequal the two sides would be.

    ``slot[i]`` is the place of cell i along its part's axis and ``lengths[p]`` how many places part p has; both are
    public. Candidate c of a part puts the slots 0 … c on one side and the others on the other; its score is
    −|records below − records above|. A part with a single slot has one candidate, which cuts nothing.

    Why the range keeps the promise. One step changes one cell of one part by one. For every candidate of that
    part the cell is on one side or the other, so (below − above) changes by exactly one, up or down, and the score
    by at most one either way: changes differ by at most 2, the range. Other parts do not change at all. Which slot
    a cell was given does not matter for this, only that it does not depend on the counts. (The range is 2 and not
    less: a record left of the median worsens cuts to its left and to the far right, and improves those between.)
    """

    slot: IntArray
    lengths: IntArray

    def __post_init__(self) -> None:
        seal(self, "slot", "lengths")

    def draws(self, layout: Layout) -> int:
        """One choice in every part."""
        if self.slot.shape != (layout.size,) or self.lengths.shape != (layout.parts,):
            raise MechanismError("medians need one slot for each cell and one length for each part")
        if bool((self.lengths < 1).any()) or bool(
            ((self.slot < 0) | (self.slot >= self.lengths[layout.part])).any()
        ):
            raise MechanismError("medians: a slot lies outside its part")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every cut of every part."""
        first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.lengths, dtype=np.int64)])
        places = first[layout.part] + self.slot
        slots = part_sums(counts, places, int(first[-1]))
        running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(slots)])
        owner = np.repeat(np.arange(layout.parts), self.lengths)
        total = (running[first[1:]] - running[first[:-1]])[owner]
        below = running[1:] - running[first[:-1]][owner]
        # Twice a sum could leave 64 bits; the difference of the two sides cannot.
        scores = -np.abs(below - (total - below))
        # The last slot of a part is no cut, unless it is the only one.
        last = np.zeros(slots.size, dtype=bool)
        last[first[1:] - 1] = self.lengths > 1
        starts = np.concatenate(
            [np.zeros(1, dtype=np.int64), np.cumsum(np.maximum(self.lengths - 1, 1), dtype=np.int64)]
        )
        yield Candidates(scores[~last], starts, 2)


@proven
@dataclass(frozen=True, eq=False)
class BestAttributes:
    """Choose the attribute after whose split most records of a part would be guessed right.

    ``places[a][i]`` is the value of cell i on candidate attribute a, below ``sizes[a]``; ``target[i]`` its class, below
    ``classes``; all public. The score of an attribute is Σ over its values of the count of the value's commonest class.

    Why the range keeps the promise. One step raises (or lowers) one count, in one value of each attribute, by one, so
    the largest of that value's class counts rises (falls) by zero or one and no other changes. All candidates of the
    part move the same way by zero or one: their changes differ by at most one, the range.
    """

    places: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    target: IntArray
    classes: int

    def __post_init__(self) -> None:
        seal(self, "target")
        object.__setattr__(self, "places", tuple(own_array(place) for place in self.places))
        if len(self.places) != len(self.sizes):
            raise MechanismError("best attributes need a size for each candidate")

    def draws(self, layout: Layout) -> int:
        """One choice in every part."""
        if not self.places or any(place.shape != (layout.size,) for place in (*self.places, self.target)):
            raise MechanismError("best attributes need candidates, each with one value for each cell")
        if bool(((self.target < 0) | (self.target >= self.classes)).any()):
            raise MechanismError("best attributes: a class lies outside its attribute")
        if layout.parts * max(self.sizes) * self.classes > 1 << 32:
            raise MechanismError("best attributes: values and classes are too many to be counted")
        for place, size in zip(self.places, self.sizes, strict=True):
            if bool(((place < 0) | (place >= size)).any()):
                raise MechanismError("best attributes: a value lies outside its attribute")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every attribute in every part."""
        scores = np.empty((layout.parts, len(self.places)), dtype=np.int64)
        for a, (place, size) in enumerate(zip(self.places, self.sizes, strict=True)):
            where = (layout.part * size + place) * self.classes + self.target
            table = part_sums(counts, where, layout.parts * size * self.classes)
            scores[:, a] = table.reshape(layout.parts, size, self.classes).max(axis=2).sum(axis=1)
        starts = np.arange(layout.parts + 1, dtype=np.int64) * len(self.places)
        yield Candidates(scores.reshape(-1), starts, 1)


@proven
@dataclass(frozen=True, eq=False)
class Disagreements:
    """Score boxes of cells by how far the true count in each is from a public guess.

    ``low`` and ``high`` bound the boxes (half-open, one row a box), ``guess`` holds whole numbers below 2⁶¹.

    Why the range is 2: one step moves each true count by one or not at all, so each |count − guess| by at
    most one either way. (No sum wraps: counts sum to at most 2⁶² behind the gate, and boxes lie inside the cells.)
    """

    low: IntArray
    high: IntArray
    guess: IntArray

    def __post_init__(self) -> None:
        seal(self, "low", "high", "guess")
        if self.low.ndim != 2 or self.low.shape != self.high.shape or self.guess.shape != self.low.shape[:1]:
            raise MechanismError("disagreements: give a row of bounds and a guess for each box")
        # Counts stay below 2⁶², so a difference from such a guess stays in 64 bits.
        if self.guess.size and max(abs(int(self.guess.min())), abs(int(self.guess.max()))) >= 2**61:
            raise MechanismError("disagreements: guesses must be below 2^61")

    def draws(self, layout: Layout) -> int:
        """One choice."""
        shape = np.array(layout.shape, dtype=np.int64)
        inside = self.low.shape[1] == shape.size and bool(
            ((self.low >= 0) & (self.low <= self.high) & (self.high <= shape)).all()
        )
        if layout.parts != 1 or not len(self.low) or not inside:
            raise MechanismError("disagreements: boxes must lie inside the cells, which must be one part")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every box."""
        table = running_sums(counts.reshape(layout.shape))
        strides = np.array(table.strides, dtype=np.int64) // table.itemsize
        answers = np.zeros(len(self.low), dtype=np.int64)
        add_box_sums(table.reshape(-1), strides, self.low, self.high, np.arange(len(self.low)), answers)
        scores = np.abs(answers - self.guess)
        yield Candidates(scores, np.array([0, scores.size], dtype=np.int64), 2)


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
