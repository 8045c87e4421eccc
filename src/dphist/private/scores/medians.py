"""Where to cut boxes so that both sides hold as many records: noisy medians, all boxes of a level at once."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.grouping import part_sums
from dphist.private.questions import Candidates, IntArray, Layout, proven, seal


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
        part = np.zeros(layout.size, dtype=np.int64) if layout.labels is None else layout.labels
        if self.slot.shape != (layout.size,) or self.lengths.shape != (layout.parts,):
            raise MechanismError("medians need one slot for each cell and one length for each part")
        if bool((self.lengths < 1).any()) or bool(
            ((self.slot < 0) | (self.slot >= self.lengths[part])).any()
        ):
            raise MechanismError("medians: a slot lies outside its part")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every cut of every part."""
        part = np.zeros(layout.size, dtype=np.int64) if layout.labels is None else layout.labels
        first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.lengths, dtype=np.int64)])
        places = first[part] + self.slot
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
