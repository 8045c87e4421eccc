"""The one grower: boxes are measured front by front, and a rule says which to split, which to stop, which to pool.

A `Front` is a batch of disjoint boxes that have all spent the same. It fuses the boxes with the right to ask about
their cells, so whoever grows a tree cannot lose track of who has paid what. A rule takes a front and uses its verbs:
`runs`, `grid` and `into` make smaller boxes (free: public arithmetic), `measure` asks for their totals with a
share of the budget, `finish` asks once more, with all that is left, for the boxes that are not split further, one by
one or in pools; `part` sends boxes different ways.

Why a tree that is grown like this is private. At any time every cell lies in one box of one front, or is finished. A
question to a front is a total for each of its disjoint boxes: one step moves one total by one and pays that share.
What a cell has paid along its path sums to the budget at most, since every share is split off the front's own right,
and `finish` spends all that is left and lets the cells go. Every decision reads public facts and answers that were
already paid for. So: adaptive sequential composition along a path, parallel composition across boxes.

Nothing here costs a Python object for a box: a front is a few arrays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
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
        self._second: list[tuple[IntArray, IntArray, FloatArray, float]] = []
        self._finer: list[tuple[IntArray, FloatArray, float]] = []

    def add(
        self, parent: IntArray, low: IntArray, high: IntArray, values: FloatArray, variance: float, level: int
    ) -> IntArray:
        """Note boxes and their totals; gives their numbers."""
        n = parent.size
        self._boxes.append((parent, low, high, values, np.full(n, variance), np.full(n, level)))
        self.count += n
        return np.arange(self.count - n, self.count, dtype=np.int64)

    def again(self, node: IntArray, unit: IntArray, values: FloatArray, variance: float) -> None:
        """Note a second measurement of boxes, alone or together: box i is one of those in ``unit[i]``."""
        self._second.append((node, unit, values, variance))

    def finer(self, node: IntArray, values: FloatArray, variance: float) -> None:
        """Note finer answers about boxes, which take the place of those that were there."""
        self._finer.append((node, values, variance))

    def tree(self) -> tuple[MeasuredTree, IntArray]:
        """Everything as a tree, and the level of each box; levels keep the order of the nodes if there are no pools."""
        parent, low, high, value, variance, level = (
            np.concatenate([part[k] for part in self._boxes]) for k in range(6)
        )
        seen, seen_variance = value.copy(), np.full(value.size, np.inf)
        pool = np.zeros(value.size, dtype=bool)
        pools: list[tuple[NDArray[Any], ...]] = []
        for node, values, fine in self._finer:
            seen_variance[node] = variance[node]
            value[node], variance[node] = values, fine
        for node, unit, values, later in self._second:
            members = np.bincount(unit, minlength=values.size)
            alone = members[unit] == 1
            once = node[alone]
            seen_variance[once] = variance[once]
            value[once], variance[once] = twice(
                value[once], variance[once], values[unit[alone]], np.full(1, later)
            )
            order = np.flatnonzero(~alone)[np.argsort(unit[~alone], kind="stable")]
            if order.size:
                opens = np.flatnonzero(np.diff(unit[order], prepend=-1))
                joint = values[members > 1]
                pools.append((node[order], opens, joint, np.full(joint.size, later)))
        if pools:
            # A pool is a node between its blocks and their parent; it takes its place before the first of them.
            inside = np.concatenate([each[0] for each in pools])
            shift = np.cumsum([0, *(each[0].size for each in pools)])
            opens = np.concatenate([each[1] + at for each, at in zip(pools, shift[:-1], strict=True)])
            ends = np.append(opens[1:], inside.size)
            first, n = inside[opens], value.size
            parent = np.concatenate([parent, parent[first]])
            parent[inside] = n + np.repeat(np.arange(opens.size), ends - opens)
            order = np.argsort(np.concatenate([np.arange(n), first - 0.5]))
            back = np.empty(order.size, dtype=np.int64)
            back[order] = np.arange(order.size)
            parent = np.where(parent < 0, -1, back[parent])[order]
            low = np.concatenate([low, np.minimum.reduceat(low[inside], opens, axis=0)])[order]
            high = np.concatenate([high, np.maximum.reduceat(high[inside], opens, axis=0)])[order]
            value = np.concatenate([value, *(each[2] for each in pools)])[order]
            variance = np.concatenate([variance, *(each[3] for each in pools)])[order]
            seen = np.concatenate([seen, np.zeros(opens.size)])[order]
            seen_variance = np.concatenate([seen_variance, np.full(opens.size, np.inf)])[order]
            pool = order >= n
        tree = MeasuredTree.of(
            *(self.shape, parent, low, high, value, variance),
            pool=pool, seen=seen, seen_variance=seen_variance, kind=self.kind, gradual=self.gradual,
        )  # fmt: skip
        return tree, level


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
        node = self.nodes.add(self.node, self.low, self.high, values, variance, self.level)
        return rest._with(node=node, totals=values, scale=float(noisy.scale), variance=variance)

    def finish(self, done: BoolArray, unit: IntArray | None = None) -> Front:
        """Ask for the totals of some boxes with all they have left, which ends them; gives the front of the others.

        ``unit`` numbers the pools of those that are measured together, for boxes that were measured one by one before.
        """
        if not done.any():
            return self
        asked, other = self._parted(), self.right
        if not done.all():
            asked, other = asked.select(done)
        rest = self._only(~done, other)
        node = self.node[done]
        if asked.looked and unit is None:
            finer = asked.again()
            self.nodes.finer(node, finer.values.astype(np.float64), float(finer.variance))
            return rest
        if unit is None:
            unit = np.arange(node.size)
        elif asked.labels is not None:
            asked = asked.partition(unit[asked.labels], int(unit.max()) + 1)
        noisy = asked.measure(Totals())
        self.nodes.kind = noisy.law.kind
        values, variance = noisy.values.astype(np.float64), float(noisy.variance)
        if self.totals is None:
            self.nodes.add(node, self.low[done], self.high[done], values, variance, self.level)
        else:
            self.nodes.again(node, unit, values, variance)
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


def grow(
    data: PrivateCounts, rule: Rule, shape: tuple[int, ...] | None = None
) -> tuple[MeasuredTree, IntArray]:
    """Grow a tree: the rule is asked what to do with every front, first come first served, until none is left.

    All of the right is spent if the rule finishes every box. Cells may be taken in another ``shape``, such as one row.
    Gives the tree, and the level that the rule gave each box (in the order of the nodes if nothing was pooled).
    """
    front = Front.whole(data, shape)
    waiting = deque([front])
    while waiting:
        waiting.extend(each for each in rule(waiting.popleft()) if len(each))
    return front.nodes.tree()


def pool_units(family: IntArray, together: BoolArray) -> IntArray:
    """Number the pools of finished boxes: in each family those that are ``together`` are one, every other its own."""
    if not family.size:
        return family
    # Within a family those who pool come first, and only the first of them opens a pool.
    order = np.lexsort((~together, family))
    mine, joint = family[order], together[order]
    opens = np.append(True, (np.diff(mine) != 0) | ~joint[1:])
    unit = np.empty(family.size, dtype=np.int64)
    unit[order] = np.cumsum(opens) - 1
    return unit
