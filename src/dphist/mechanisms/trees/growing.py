"""The one grower: boxes are measured front by front, and a rule says which to split and which to stop.

A `Front` is a batch of disjoint boxes that have all spent the same. It fuses the boxes with the right to ask about
their cells, so whoever grows a tree cannot lose track of who has paid what. A rule takes a front and uses its verbs:
`runs`, `grid` and `into` make smaller boxes (free: public arithmetic), `measure` asks for their totals with a
share of the budget, `finish` asks once more, with all that is left, for the boxes that are not split further; `part`
sends boxes different ways.

Why a tree that is grown like this is private. At any time every cell lies in one box of one front, or is finished. A
question to a front is a total for each of its disjoint boxes: one step moves one total by one and pays that share.
What a cell has paid along its path sums to the budget at most, since every share is split off the front's own right,
and `finish` spends all that is left and lets the cells go. Every decision reads public facts and answers that were
already paid for. So: adaptive sequential composition along a path, parallel composition across boxes.

Nothing here costs a Python object for a box: a front is a few arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.arrays import BoolArray, FloatArray, IntArray
from dphist.inference.measured import MeasuredTree, twice
from dphist.kernels.grouping import cut
from dphist.model.law import Kind
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals


class Nodes:
    """What was measured, as it comes."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.count = shape, 0
        self.kind: Kind = "laplace"
        self.gradual = False
        self._boxes: list[tuple[NDArray[Any], ...]] = []
        self._second: list[tuple[IntArray, FloatArray, float]] = []
        self._finer: list[tuple[IntArray, FloatArray, float]] = []

    def add(
        self, parent: IntArray, low: IntArray, high: IntArray, values: FloatArray, variance: float
    ) -> IntArray:
        """Note boxes and their totals; gives their numbers."""
        n = parent.size
        self._boxes.append((parent, low, high, values, np.full(n, variance)))
        self.count += n
        return np.arange(self.count - n, self.count, dtype=np.int64)

    def again(self, node: IntArray, values: FloatArray, variance: float) -> None:
        """Note a second measurement of boxes."""
        self._second.append((node, values, variance))

    def finer(self, node: IntArray, values: FloatArray, variance: float) -> None:
        """Note finer answers about boxes, which take the place of those that were there."""
        self._finer.append((node, values, variance))

    def tree(self) -> MeasuredTree:
        """Everything as a tree."""
        parent, low, high, value, variance = (
            np.concatenate([part[k] for part in self._boxes]) for k in range(5)
        )
        seen, seen_variance = value.copy(), np.full(value.size, np.inf)
        for node, values, fine in self._finer:
            seen_variance[node] = variance[node]
            value[node], variance[node] = values, fine
        for node, values, later in self._second:
            seen_variance[node] = variance[node]
            value[node], variance[node] = twice(value[node], variance[node], values, np.full(1, later))
        return MeasuredTree.of(
            *(self.shape, parent, low, high, value, variance),
            seen=seen, seen_variance=seen_variance, kind=self.kind, gradual=self.gradual,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Front:
    """Disjoint boxes that have spent the same, with the right to ask about their cells."""

    nodes: Nodes
    right: PrivateCounts
    cells: IntArray
    """Which cells these are, of all there are."""
    box: IntArray
    """The box of every cell: 0, 1, … among those here."""
    low: IntArray
    """Where each box begins, a row each."""
    high: IntArray
    """One past where it ends."""
    node: IntArray
    """The node of each box; until it is measured, the node that it lies in."""
    left: Fraction
    """What is left of the whole budget."""
    level: int
    """Whatever the rule counts by; −1 before anything was split or measured."""
    family: IntArray
    """For each box, which of the boxes before the last split it lies in."""
    above: FloatArray
    """The measured totals of those."""
    totals: FloatArray | None = None
    """The boxes' noisy totals; None until they are measured."""
    scale: float = np.inf
    """Noise scale of the totals."""
    variance: float = np.inf
    """Noise variance of the totals."""
    plan: Any = None
    """What the rule has decided to do with these boxes, for when their turn comes."""

    @classmethod
    def whole(cls, data: PrivateCounts, shape: tuple[int, ...] | None = None) -> Front:
        """One box that holds everything; cells may be taken in another shape, such as one row."""
        shape = data.shape if shape is None else shape
        return cls(
            nodes=Nodes(shape),
            right=data,
            cells=np.arange(data.size, dtype=np.int64),
            box=np.zeros(data.size, dtype=np.int64),
            low=np.zeros((1, len(shape)), dtype=np.int64),
            high=np.array([shape], dtype=np.int64),
            node=np.full(1, -1, dtype=np.int64),
            left=Fraction(1),
            level=-1,
            family=np.zeros(1, dtype=np.int64),
            above=np.zeros(1),
        )

    def __len__(self) -> int:
        return len(self.low)

    @property
    def records(self) -> FloatArray:
        """The boxes' noisy totals; nothing is known of boxes that were not measured."""
        return np.zeros(len(self)) if self.totals is None else self.totals

    @property
    def sizes(self) -> FloatArray:
        """How many cells each box has."""
        size = np.ones(len(self))
        for axis in range(self.low.shape[1]):
            size *= self.high[:, axis] - self.low[:, axis]
        return size

    # ---- smaller boxes: public arithmetic ---------------------------------------------------------------

    def into(self, box: IntArray, low: IntArray, high: IntArray, owner: IntArray, level: int) -> Front:
        """Take other boxes within these: a box for every cell, their bounds, and the box each lies in."""
        bounds = {"box": box, "low": low, "high": high, "node": self.node[owner], "level": level}
        return self._with(**bounds, family=owner, above=self.records, totals=None)

    def runs(self, key: IntArray, level: int) -> Front:
        """Split intervals of a line wherever the cells' key changes."""
        begins = np.flatnonzero((np.diff(key, prepend=-1) != 0) | (np.diff(self.box, prepend=-1) != 0))
        lengths = np.diff(np.append(begins, key.size))
        low = self.cells[begins]
        box = np.repeat(np.arange(begins.size, dtype=np.int64), lengths)
        return self.into(box, low[:, None], (low + lengths)[:, None], self.box[begins], level)

    def grid(self, coarse: tuple[int, ...], fine: tuple[int, ...], level: int) -> Front:
        """Split blocks of a grid of ``coarse`` sides into those of ``fine`` sides, each a multiple of the other's."""
        shape = self.nodes.shape
        places, fan = [], 1
        for axis in reversed(range(len(shape))):
            across = coarse[axis] // fine[axis]
            places.append(np.arange(shape[axis], dtype=np.int64) // fine[axis] % across * fan)
            fan *= across
        columns, rows = places[0], np.zeros(1, dtype=np.int64)
        for place in reversed(places[1:]):
            rows = (rows[:, None] + place).reshape(-1)
        box, owner, witness = cut(self.cells, self.box, len(self), rows, columns, fan)
        side = np.array(fine, dtype=np.int64)
        low = np.stack(np.unravel_index(witness, shape), axis=1).astype(np.int64) // side * side
        return self.into(box, low, np.minimum(low + side, np.array(shape, dtype=np.int64)), owner, level)

    # ---- questions ------------------------------------------------------------------------------------------

    def pay(self, share: Fraction) -> tuple[PrivateCounts, Front]:
        """Split a share of the whole budget off, as a right on the boxes; and the front with what is left."""
        if share == self.left:
            return self.right.partition(self.box, len(self)), self._with(left=Fraction(0))
        now, rest = self.right.split(share / self.left, 1 - share / self.left)
        return now.partition(self.box, len(self)), self._with(right=rest, left=self.left - share)

    def measure(self, share: Fraction, *, gradual: bool = False) -> Front:
        """Ask for every box's total with a share of the whole budget; ``gradual`` if boxes may be `finish`ed after it.

        Under ε these are then known as well as if all had been spent on them at once (`PrivateCounts.look`).
        """
        if not gradual or share == self.left:
            now, rest = self.pay(share)
            noisy = now.measure(Totals())
        else:
            noisy, right = self.right.partition(self.box, len(self)).look(share / self.left)
            rest = self._with(right=right, left=self.left - share)
            self.nodes.gradual |= right.looked
        self.nodes.kind = noisy.law.kind
        values, variance = noisy.values.astype(np.float64), float(noisy.variance)
        node = self.nodes.add(self.node, self.low, self.high, values, variance)
        return rest._with(node=node, totals=values, scale=float(noisy.scale), variance=variance)

    def finish(self, done: BoolArray) -> Front:
        """Ask for the totals of some boxes with all they have left, which ends them; gives the front of the others."""
        if not done.any():
            return self
        asked, other = self._parted(), self.right
        if not done.all():
            asked, other = asked.select(done)
        rest = self._only(~done, other)
        node = self.node[done]
        if asked.looked:
            finer = asked.again()
            self.nodes.finer(node, finer.values.astype(np.float64), float(finer.variance))
            return rest
        noisy = asked.measure(Totals())
        self.nodes.kind = noisy.law.kind
        values, variance = noisy.values.astype(np.float64), float(noisy.variance)
        if self.totals is None:
            self.nodes.add(node, self.low[done], self.high[done], values, variance)
        else:
            self.nodes.again(node, values, variance)
        return rest

    def part(self, choice: IntArray) -> list[Front]:
        """Send boxes different ways: a front for each number in ``choice``, in order, each with all that is left."""
        fronts, rest = [], self
        for number in range(int(choice.max()) + 1):
            here = choice == number
            mine, rest = rest._part(here)
            fronts.append(mine)
            choice = choice[~here]
        return fronts

    def _part(self, mask: BoolArray) -> tuple[Front, Front]:
        """Separate boxes from the rest: disjoint cells, each side with all that is left."""
        if mask.all():
            return self, self._only(~mask, self.right)
        chosen, rest = self._parted().select(mask)
        return self._only(mask, chosen), self._only(~mask, rest)

    def _parted(self) -> PrivateCounts:
        """The right, a part for every box; one that was looked at is parted so already."""
        looked = self.totals is not None and self.right.looked
        return self.right if looked else self.right.partition(self.box, len(self))

    def _only(self, mask: BoolArray, right: PrivateCounts) -> Front:
        """The boxes of a mask, with the right on their cells that `select` gave."""
        none = np.zeros(0, dtype=np.int64)
        return self._with(
            right=right,
            cells=self.cells[right.cells] if mask.any() else none,
            # It numbered the boxes that are left from 0 on.
            box=right.labels if mask.any() else none,
            low=self.low[mask],
            high=self.high[mask],
            node=self.node[mask],
            family=self.family[mask],
            totals=None if self.totals is None else self.totals[mask],
        )

    def _with(self, **changes: Any) -> Front:
        """As `dataclasses.replace`, which is slower than the arithmetic on a small front."""
        other = object.__new__(Front)
        other.__dict__.update(self.__dict__, **changes)
        return other


Rule = Callable[[Front], Iterable[Front]]


def grow(data: PrivateCounts, rule: Rule, shape: tuple[int, ...] | None = None) -> MeasuredTree:
    """Grow a tree: the rule is asked what to do with every front, first come first served, until none is left.

    All of the right is spent if the rule finishes every box. Cells may be taken in another ``shape``, such as one row.
    """
    front = Front.whole(data, shape)
    waiting = deque([front])
    while waiting:
        waiting.extend(each for each in rule(waiting.popleft()) if len(each))
    return front.nodes.tree()


def box_labels(places: Sequence[IntArray]) -> IntArray:
    """Number the boxes that cells lie in, by the number of their block along every axis, in C order."""
    labels = np.zeros((1,) * len(places), dtype=np.int64)
    for axis, place in enumerate(places):
        along = [-1 if other == axis else 1 for other in range(len(places))]
        labels = labels * (int(place[-1]) + 1) + place.reshape(along)
    return np.broadcast_to(labels, [place.size for place in places])
