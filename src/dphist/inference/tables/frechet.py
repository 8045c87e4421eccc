"""Bounds for counts that nobody measured: what the measured tables alone allow (Fréchet 1935).

**What is proven.** A question asks for the records that meet a condition on every attribute of a set B. Where no
measured table holds B, write n(S) for the count of the weaker question that keeps the conditions on S ⊂ B alone. For
any tables S that were measured, and with C₁, …, C_k among them whose attributes make up B,

    n(B) ≤ min over S of n(S),
    n(B) ≥ n(C₁) + Σ over j > 1 of (n(Cⱼ) − n(Sⱼ)),   Sⱼ = Cⱼ ∩ (C₁ ∪ … ∪ Cⱼ₋₁).

*Above*: who meets all conditions meets fewer of them. *Below*: let X be the records that meet the conditions on
C₁ ∪ … ∪ Cⱼ₋₁, Y those that meet Cⱼ's. Both meet the conditions on Sⱼ, so X ∪ Y has n(Sⱼ) records at most, and
|X ∩ Y| = |X| + |Y| − |X ∪ Y| ≥ |X| + n(Cⱼ) − n(Sⱼ); go on by induction. Where tables have nothing in common Sⱼ is empty
and n(Sⱼ) the number of records: Fréchet's own bound.

Each n(S) that is looked at lies in an interval. Of m of them, each holding with probability 1 − α/m, all hold at once
with 1 − α at least (Bonferroni), so putting upper ends in place of counts above and of Sⱼ, lower ends in place of Cⱼ,
gives bounds that hold with 1 − α: a theorem for any data wherever the intervals are one. What is looked at follows from
which tables were measured and which attributes are asked, never from a noisy number.

Of two attributes that were measured one by one the bounds are the best there are: without noise there are data with
these tables at either end. Of more they need not be; what all tables together rule out would take a linear programme
for every question. An attribute that is in no measured table may have all records that meet the rest, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Interval, Words, each_of
from dphist.inference.tables.residuals import Axes, bounded_kinds, bounded_on, kinds_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Known = Callable[[Axes], Iterable[Axes]]
Ask = Callable[[IntArray, IntArray, IntArray | None, int, float], Interval]
Boxes = tuple[IntArray, IntArray]
Chain = tuple[tuple[Axes, ...], tuple[Axes, ...]]

BOUNDS = Words(
    "bounds: not measured together, so a guess between what the measured tables allow",
    "Fréchet's inequalities over intervals of the measured tables that hold all at once; how these attributes go "
    "together was not measured, and the estimate is what a model makes of the tables",
)
"""What is said of them."""

# At most 64 tables are looked at, of more only one chain that makes up the attributes; at most 16 chains are tried.
_MOST, _CHAINS = 64, 16


@dataclass(frozen=True)
class Cover:
    """The measured tables that bound a question, chosen by public facts.

    Args:
        pieces: The largest measured tables inside the question's attributes: each is a bound from above.
        chains: Pieces that make up the attributes, and what each has in common with those before it.
    """

    pieces: tuple[Axes, ...]
    chains: tuple[Chain, ...] = ()

    @cached_property
    def looked(self) -> tuple[Axes, ...]:
        """Every table whose interval is looked at, once."""
        cuts = (cut for _, common in self.chains for cut in common)
        return tuple(dict.fromkeys((*self.pieces, *cuts)))

    def each(self, confidence: float) -> float:
        """How sure each of them must be, for all to hold at once."""
        return each_of(confidence, len(self.looked))

    def bounds(self, ends: Mapping[Axes, Interval]) -> Interval:
        """Put the intervals of all tables that are looked at together, in any shapes that fit each other."""
        high = ends[self.pieces[0]].high
        for axes in self.pieces[1:]:
            high = np.minimum(high, ends[axes].high)
        low = np.zeros_like(high)
        for pieces, common in self.chains:
            least = sum((ends[axes].low for axes in pieces), np.zeros(()))
            most = sum((ends[axes].high for axes in common), np.zeros(()))
            low = np.maximum(low, least - most)
        return Interval(low, high)


def cover(asked: Axes, measured: Iterable[Axes]) -> Cover:
    """Choose what to look at for questions about some attributes.

    Example:
        >>> cover((0, 1, 2), [(0,), (0, 1), (2,)]).chains
        ((((0, 1), (2,)), ((),)),)
        >>> cover((0, 1, 2), [(0, 1), (0, 2), (1, 2)]).looked
        ((0, 1), (0, 2), (1, 2), (0,), (2,), (1,))
        >>> cover((0, 1), [(0,), ()])
        Cover(pieces=((0,),), chains=())
    """
    pieces: list[Axes] = []
    for axes in sorted(set(measured), key=lambda axes: (-len(axes), axes)):
        if not any(len(axes) < len(larger) and set(axes) <= set(larger) for larger in pieces):
            pieces.append(axes)
    if set().union(*pieces) != set(asked):
        return Cover(tuple(pieces[:_MOST]))
    if len(pieces) > _MOST:
        only = _chain(pieces)
        return Cover(only[0], (only,))
    chains: dict[object, Chain] = {}
    for start in range(min(len(pieces), _CHAINS)):
        # Ties go to whoever comes next, so that from every start something else is tried.
        found = _chain(pieces[start:] + pieces[:start])
        chains.setdefault((frozenset(found[0]), tuple(sorted(found[1]))), found)
    return Cover(tuple(pieces), tuple(chains.values()))


def _chain(pieces: Sequence[Axes]) -> Chain:
    """From the first piece on, always one that adds something and has as much as possible in common with the rest."""
    chain, common, seen = [pieces[0]], [], set(pieces[0])
    left = [axes for axes in pieces if not set(axes) <= seen]
    while left:
        best = max(left, key=lambda axes: len(seen & set(axes)))
        chain.append(best)
        common.append(tuple(sorted(seen & set(best))))
        seen |= set(best)
        left = [axes for axes in left if not set(axes) <= seen]
    return tuple(chain), tuple(common)


@dataclass(frozen=True, eq=False)
class Bounding:
    """Bounds for questions about any attributes, from questions inside measured tables.

    Args:
        shape: How many values each attribute has.
        known: The measured tables inside some attributes.
        ask: The intervals of questions inside measured tables: the first cells of their boxes, one past the last, the
            question of each box, how many questions, how sure; not a number where a question was not measured.
    """

    shape: Sequence[int]
    known: Known
    ask: Ask

    def bounds(self, boxes: Boxes, query: IntArray | None, confidence: float) -> Interval:
        """Bound every question; without ``query`` box i is question i.

        A question of several boxes that are all combinations of some intervals on every attribute is one condition on
        each attribute, like a box; the boxes of any other are bounded one by one and added up.
        """
        if query is None:
            return self._single(boxes, confidence)
        count = int(query.max()) + 1
        found = _unknown(count)
        asked = np.zeros((count, len(self.shape)), dtype=bool)
        np.logical_or.at(asked, query, bounded_on(self.shape, *boxes))
        plain = np.bincount(query, minlength=count) == _combinations(boxes, query, count)
        for axes, here in kinds_of(asked):
            _put(found, here[plain[here]], boxes, query, partial(self._conditions, axes, confidence))
            _put(found, here[~plain[here]], boxes, query, partial(self._sums, confidence))
        return found

    def _single(self, boxes: Boxes, confidence: float) -> Interval:
        """Bound boxes that are a question each."""
        low, high = boxes
        found = _unknown(len(low))
        for axes, here in bounded_kinds(self.shape, low, high):
            each = self._conditions(axes, confidence, (low[here], high[here]), None, here.size)
            found.low[here], found.high[here] = each.low, each.high
        return found

    def _conditions(
        self, axes: Axes, confidence: float, boxes: Boxes, query: IntArray | None, count: int
    ) -> Interval:
        """Bound questions with a condition on each of the same attributes."""
        chosen = cover(axes, self.known(axes))
        if not chosen.pieces:
            return _unknown(count)
        each = chosen.each(confidence)
        return chosen.bounds(
            {inside: self._weaker(inside, boxes, query, count, each) for inside in chosen.looked}
        )

    def _weaker(
        self, axes: Axes, boxes: Boxes, query: IntArray | None, count: int, confidence: float
    ) -> Interval:
        """Ask what keeps the conditions on some attributes alone: boxes that become the same count once."""
        low, high = (each[:, list(axes)] for each in boxes)
        if query is not None:
            rows = np.unique(np.column_stack([query, low, high]), axis=0)
            low, high = rows[:, 1 : 1 + len(axes)], rows[:, 1 + len(axes) :]
            return self.ask(*self._widened(axes, low, high), rows[:, 0], count, confidence)
        return self.ask(*self._widened(axes, low, high), None, len(low), confidence)

    def _widened(self, axes: Axes, low: IntArray, high: IntArray) -> Boxes:
        """Boxes that are bounded on some attributes alone."""
        begin = np.zeros((len(low), len(self.shape)), dtype=np.int64)
        end = np.tile(np.array(self.shape, dtype=np.int64), (len(low), 1))
        begin[:, list(axes)], end[:, list(axes)] = low, high
        return begin, end

    def _sums(self, confidence: float, boxes: Boxes, query: IntArray, count: int) -> Interval:
        """Bound every box of a question by itself, each with its part of the error probability, and add them up."""
        found = Interval(np.zeros(count), np.zeros(count))
        many = np.bincount(query, minlength=count)[query]
        for number in np.unique(many).tolist():
            mine = np.flatnonzero(many == number)
            low, high = (each[mine] for each in boxes)
            sure = each_of(confidence, number)
            box = self.ask(low, high, None, mine.size, sure)
            unknown = np.isnan(box.low)
            rest = self._single((low[unknown], high[unknown]), sure)
            box.low[unknown], box.high[unknown] = rest.low, rest.high
            np.add.at(found.low, query[mine], box.low)
            np.add.at(found.high, query[mine], box.high)
        return found


def _unknown(count: int) -> Interval:
    return Interval(np.full(count, np.nan), np.full(count, np.nan))


def _combinations(boxes: Boxes, query: IntArray, count: int) -> FloatArray:
    """How many boxes a question has if all its intervals on every attribute are combined."""
    found = np.ones(count)
    for low, high in zip(boxes[0].T, boxes[1].T, strict=True):
        rows = np.unique(np.stack([query, low, high], axis=1), axis=0)
        found *= np.bincount(rows[:, 0], minlength=count)
    return found


def _put(
    found: Interval,
    some: IntArray,
    boxes: Boxes,
    query: IntArray,
    bound: Callable[[Boxes, IntArray, int], Interval],
) -> None:
    """Bound some of the questions, by themselves."""
    if not some.size:
        return
    place = np.full(found.low.size, -1, dtype=np.int64)
    place[some] = np.arange(some.size)
    mine = place[query] >= 0
    each = bound((boxes[0][mine], boxes[1][mine]), place[query[mine]], some.size)
    found.low[some], found.high[some] = each.low, each.high
