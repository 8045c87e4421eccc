"""Which attribute tells classes apart best, in every part at once."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.grouping import part_sums
from dphist.private.questions import Candidates, IntArray, Layout, own_array, proven, seal

_LARGEST_TABLE = 1 << 32


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
        if layout.parts * max(self.sizes) * self.classes > _LARGEST_TABLE:
            raise MechanismError("best attributes: values and classes are too many to be counted")
        for place, size in zip(self.places, self.sizes, strict=True):
            if bool(((place < 0) | (place >= size)).any()):
                raise MechanismError("best attributes: a value lies outside its attribute")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every attribute in every part."""
        part = np.zeros(layout.size, dtype=np.int64) if layout.labels is None else layout.labels
        scores = np.empty((layout.parts, len(self.places)), dtype=np.int64)
        for a, (place, size) in enumerate(zip(self.places, self.sizes, strict=True)):
            where = (part * size + place) * self.classes + self.target
            table = part_sums(counts, where, layout.parts * size * self.classes)
            scores[:, a] = table.reshape(layout.parts, size, self.classes).max(axis=2).sum(axis=1)
        starts = np.arange(layout.parts + 1, dtype=np.int64) * len(self.places)
        yield Candidates(scores.reshape(-1), starts, 1)
