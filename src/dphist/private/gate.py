"""The gate: the only door between private counts and everything public.

A `PrivateCounts` is a *right* (a *query handle* in the literature): private cells fused with the budget that may be
spent on them. Every verb uses the right up, so a question cannot be asked twice at one price. A mechanism hands out
shares and may know the noise law of a share (`PrivateCounts.law`), which decides accuracy, never privacy: the noise is
computed here from the very number that is charged.

A budget is an exact amount of pure ε or of concentrated ρ; no verb cares which. Under ε a query's answers get Laplace
noise of its L1 promise, under ρ Gaussian noise of its L2 promise; what has a proof for Laplace noise only gets, under
ρ, the ε that ρ pays for (`dphist.private.pricing`).

Why this is private. Accounting is per cell: each cell of a right may still cause ``budget`` of
loss. Neighbouring data differ by one step in one cell, so

* `split` hands each part of the budget to its own question about the same cells: losses add (sequential composition,
  also when later questions depend on earlier answers);
* `partition` and `select` regroup cells into disjoint parts: one step touches one part, so every part may spend
  the whole budget (parallel composition). All cells of a right hold the same remaining budget, so any public
  regrouping of them is allowed at any time;
* `arrange` and `coarsen` are maps under which one step stays one step; `of` changes public words alone;
* `measure`, `choose` and `segment` lose at most the budget by the promises of `dphist.private.questions`. Only
  questions with a proof are asked, and of each the gate asks a copy of its own, so that the promise is computed from
  the very numbers that are used;
* `look` and `again` answer one question twice for the price of once (`dphist.private.gradual`).

A person who may own several rows, or be replaced, is several steps. A right holds the *person's* budget, and what one
step may cost of it is worked out in `dphist.private.pricing`, which has the proof: ε ÷ steps under ε; under ρ what the
squared L2 norm of the person's change leaves, steps² at worst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from operator import index
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import MechanismError, RightUsed
from dphist.kernels.grouping import labels_ok, largest_label, part_sums, two_ways
from dphist.model.budget import Budget
from dphist.model.coded import Countable
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.exact import Number, shares
from dphist.model.histogram import Histogram
from dphist.model.law import Kind
from dphist.model.measure import Sums
from dphist.model.phrases import counted
from dphist.model.transcript import Transcript
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.facts import Noisy, part_workload
from dphist.private.gradual import Gradual
from dphist.private.held import Held
from dphist.private.noise import Noise
from dphist.private.pricing import UnitBudget, add_noise, floats_in_place, select
from dphist.private.questions import (
    LARGEST_SUM,
    Costs,
    FusedQuery,
    IntArray,
    Layout,
    Query,
    Score,
    describe,
    is_proven,
    own_copy,
)
from dphist.private.sparse import Occupied
from dphist.private.transcript import Book, Recorded, Replay

__all__ = ["Noisy", "PrivateCounts", "open_gate", "open_replay"]

_Question = TypeVar("_Question")

# Answers that are worth rounding where they stand: a copy of this many is noticed.
_MANY = 1 << 24


class PrivateCounts(Gradual):
    """The right to ask one question about some cells at one price. Read the module's docstring for the proof."""

    __slots__ = ("__weakref__", "_book", "_noise", "_path", "_right", "_signed", "_unproven")

    def __init__(
        self,
        counts: IntArray | None,
        layout: Layout,
        unit_budget: UnitBudget,
        book: Book,
        noise: Noise | None,
        path: str,
        unproven: bool = False,
    ) -> None:
        # A one-element list popped once: two threads cannot both take the right.
        self._right: list[IntArray | None] = [counts]
        self._layout, self._budget = layout, unit_budget
        self._book, self._noise, self._path, self._unproven = book, noise, path, unproven
        self._signed = False
        self._finer = None

    # ---- verbs that hand the right on -------------------------------------------------------------------

    def split(self, *parts: Number) -> tuple[PrivateCounts, ...]:
        """Share the budget among several questions about the same cells; shares must sum to exactly 1."""
        fractions = shares(parts)
        counts = self._take()
        return tuple(
            self._child(counts, self._layout, self._budget.share(share), f"{self._path}/s{i}")
            for i, share in enumerate(fractions)
        )

    def partition(self, labels: ArrayLike, parts: int | None = None) -> PrivateCounts:
        """Regroup the cells into disjoint parts by public labels; every part has the whole budget."""
        groups, count = self._grouped(labels, parts)
        return self._view(lambda counts: counts, self.shape, groups, count, self.domain, self._layout.cells)

    def select(self, mask: ArrayLike) -> tuple[PrivateCounts, PrivateCounts]:
        """Separate the chosen parts from the rest: disjoint cells, each side with the whole budget."""
        self._insist_on_cells()
        chosen = _owned(mask, bool)
        if chosen.shape != (self.parts,):
            raise MechanismError("mask must have one entry for each part")
        counts = self._take()
        sides, separated = [], two_ways(self._layout.part, chosen)
        for side, keep in enumerate((chosen, ~chosen)):
            cells, renumbered = separated[2 * side : 2 * side + 2]
            layout = Layout((cells.size,), renumbered, int(keep.sum()), None, self.workload, cells)
            kept = None if counts is None else counts[cells]
            sides.append(self._child(kept, layout, self._budget, f"{self._path}/d{side}"))
            sides[-1]._finer = None if self._finer is None else self._finer.of(keep)
        return sides[0], sides[1]

    def separate(self, names: Sequence[str]) -> list[PrivateCounts]:
        """Give a right of its own to every combination of values of some attributes: disjoint cells, whole budget each.

        For mechanisms that run once per value. The rights come in C order of the attributes as named; each is over
        the other attributes. A person with rows in several parts is covered: accounting is per step, and ``steps``
        counts all of their rows wherever they lie.
        """
        self._insist_on_cells()
        if self.domain is None or self.labels is not None:
            raise MechanismError("only a whole domain can be separated by its attributes")
        axes = [self.domain.axis(name) for name in names]
        rest = [name for name in self.domain.names if name not in names]
        if not rest or len(set(axes)) != len(axes):
            raise MechanismError(
                "separate by distinct attributes, and leave at least one to count in every part"
            )
        inner = self.domain.project(rest)
        kept = [self.domain.axis(name) for name in rest]
        layout = Layout(inner.shape, None, 1, inner, part_workload(self.workload, inner, kept))
        counts = self._take()
        parts = int(np.prod([self.shape[axis] for axis in axes], dtype=np.int64))
        rows: Any = (
            [None] * parts
            if counts is None
            else np.ascontiguousarray(counts.reshape(self.shape).transpose([*axes, *kept])).reshape(parts, -1)
        )
        return [
            self._child(rows[part], layout, self._budget, f"{self._path}/d{part}") for part in range(parts)
        ]

    def arrange(self, order: ArrayLike) -> PrivateCounts:
        """Reorder the cells, or keep some of them, by public indices: new cell i is old cell ``order[i]``."""
        self._insist_on_cells()
        cells = _owned(order, np.int64)
        if cells.ndim != 1 or not labels_ok(cells, self.size) or np.unique(cells).size != cells.size:
            # A cell named twice would move twice in one step.
            raise MechanismError("order must name distinct cells")
        return self._view(lambda counts: counts[cells], (cells.size,), None, 1, None, cells)

    def of(self, domain: Domain, workload: Workload | None = None) -> PrivateCounts:
        """Say what these cells are: those of a domain, in C order. Public words: nothing about a count changes.

        Promises are read off the domain (a wavelet's depends on the hierarchy), once for the noise and once for the
        answer, and both must find the same: so none but our own types, whose sizes and trees do not change.
        """
        # Records keep their columns: called by other shapes, tables would not be those that their noise is made for.
        self._insist_on_cells()
        plain = type(domain) is Domain and all(type(each) in (Ordinal, Nominal) for each in domain.attributes)
        if not plain:
            raise MechanismError("domain must be a Domain of Ordinal and Nominal attributes, as they are")
        if domain.size != self.size or self.parts != 1:
            raise MechanismError("one part with as many cells as the domain has can be called its cells")
        if workload is not None and workload.domain != domain:
            raise MechanismError("workload must be about the domain that the cells are said to be of")
        return self._child(
            self._take(), Layout(domain.shape, None, 1, domain, workload), self._budget, self._path
        )

    def coarsen(self, labels: ArrayLike, parts: int | None = None) -> PrivateCounts:
        """Merge cells: new cell g is the sum of the cells labelled g, so one step stays one step."""
        groups, count = self._grouped(labels, parts)
        merged = replace(self._budget, change=self._budget.change.merged())
        return self._view(
            lambda counts: part_sums(counts, groups, count), (count,), None, 1, None, None, merged
        )

    # ---- verbs that ask ---------------------------------------------------------------------------------

    def measure(self, query: Query, noise: Kind | None = None, *, floats: bool = False) -> Noisy:
        """Answer a query with exact discrete noise: Laplace under ε, Gaussian under ρ where there is an L2 promise.

        Args:
            query: What is asked.
            noise: Insist on one kind. Laplace noise can be had under ρ too; Gaussian noise under ε is refused.
            floats: Have the answers to very many questions rounded to floats where they stand, instead of being copied
                by whoever wants floats. That is a function of the noisy answers, so it costs nothing.
        """
        query = self._question(query)
        if getattr(query, "of_counts", False):
            self._insist_on_counts()
        layout = self._layout
        price = self._budget.price(query, layout, noise)
        unit = Fraction(getattr(query, "unit", 1))
        # Before anything is paid: noise that cannot be drawn is a public fact.
        price.check()

        def draw(counts: IntArray) -> NDArray[Any]:
            source = price.noise(self._noise_source())
            if isinstance(query, FusedQuery):
                return query.perturb(counts, layout, source)
            noisy = add_noise(query.answer(counts, layout), price.sizes, source)
            return floats_in_place(noisy) if floats and noisy.size >= _MANY else noisy

        # Under ε there is one kind; under ρ the transcript says which.
        kind = {} if self._budget.currency == "epsilon" else {"noise": price.kind}
        return Noisy(self._ask("measure", query, draw, **kind), price.law, unit)

    def choose(self, score: Score) -> IntArray:
        """Choose candidates by the exponential mechanism: an array of draws × parts."""
        self._insist_on_counts()
        score = self._question(score)
        layout, draws = self._layout, score.draws(self._layout)
        if draws < 1:
            raise MechanismError("a score that makes no draw must not be asked: it would spend for nothing")
        rate = self._budget.choice(draws)

        def draw(counts: IntArray) -> IntArray:
            picks = np.empty((draws, layout.parts), dtype=np.int64)
            stages = score.stages(counts, layout)
            candidates = next(stages)
            for i in range(draws):
                picks[i] = select(candidates, rate, self._noise_source())
                if i + 1 < draws:
                    candidates = stages.send(picks[i].copy())
            stages.close()
            return picks

        return self._ask("choose", score, draw)

    def segment(self, costs: Costs) -> IntArray:
        """Partition the cells by least noisy cost; only the partition leaves, as the starts of its buckets."""
        self._insist_on_counts()
        costs = self._question(costs)
        layout, price = self._layout, self._budget.laplace()
        price.check(costs.check(layout))

        def draw(counts: IntArray) -> IntArray:
            # A copy: what a kernel returns may be part of a larger array, in which other partitions' costs were kept.
            return costs.segment(counts, layout, price.noise(self._noise_source())).copy()

        return self._ask("segment", costs, draw)

    # ---- one-shot ---------------------------------------------------------------------------------------

    def _insist_on_counts(self) -> None:
        """Refuse, before anything is paid, what has a proof for counts only."""
        if self._signed:
            raise MechanismError(
                "these are sums, which may be negative: this question has its proof for counts alone"
            )

    def _insist_on_cells(self) -> None:
        """Refuse, before anything is used up, to visit cells that nobody can write out."""
        if not all(held is None or isinstance(held, np.ndarray) for held in tuple(self._right)):
            raise MechanismError(
                "this mechanism regroups every combination, and the domain has too many for that"
            )

    def _take(self) -> IntArray | None:
        try:
            return self._right.pop()
        except IndexError:
            raise RightUsed(
                "this right has been used; split the budget first to ask more than one question"
            ) from None

    def _question(self, question: _Question) -> _Question:
        """Take a copy that nobody else holds, of a question whose promise has been proved for its exact type."""
        if isinstance(next(iter(self._right), None), Held) and not hasattr(question, "tables"):
            raise MechanismError(
                "of records only tables are asked: measure TableTotals or RangedTables, choose by TableErrors"
            )
        if self._unproven:
            return question
        if not is_proven(question):
            raise MechanismError(
                f"{type(question).__name__} carries no proof that the gate knows: ask a question of dphist.private "
                "as it is, or add one there, with its proof and its test"
            )
        return own_copy(question)

    def _ask(
        self, verb: str, question: object, draw: Callable[[IntArray], NDArray[Any]], **more: str
    ) -> NDArray[Any]:
        counts = self._take()
        return self._book.ask(
            self._path,
            verb,
            describe(question) | more,
            self._budget.amount,
            None if counts is None else lambda: draw(counts),
        )

    def _child(
        self, counts: IntArray | None, layout: Layout, unit_budget: UnitBudget, path: str
    ) -> PrivateCounts:
        child = PrivateCounts(counts, layout, unit_budget, self._book, self._noise, path, self._unproven)
        child._signed = self._signed
        return child

    def _view(
        self,
        change: Callable[[IntArray], IntArray],
        shape: tuple[int, ...],
        labels: IntArray | None,
        parts: int,
        domain: Domain | None,
        cells: IntArray | None,
        unit_budget: UnitBudget | None = None,
    ) -> PrivateCounts:
        counts = self._take()
        layout = Layout(shape, labels, parts, domain, self.workload, cells)
        return self._child(
            None if counts is None else change(counts), layout, unit_budget or self._budget, self._path
        )

    def _grouped(self, labels: ArrayLike, parts: int | None) -> tuple[IntArray, int]:
        """A label for each cell, and how many parts there are; refused if one names no part."""
        self._insist_on_cells()
        groups = _owned(labels, np.int64).reshape(-1)
        if groups.size != self.size:
            raise MechanismError("labels must have one entry for each cell")
        largest = int(largest_label(groups))
        # A plain number: one of an author's own could compare as it likes.
        count = largest + 1 if parts is None else int(index(parts))
        # Where a label is below zero the largest is said to be 2⁶³ − 1.
        if largest >= min(count, 2**63 - 1):
            raise MechanismError("labels must lie in 0 … parts − 1")
        # Every part has an answer, cells or not, for which there must be memory.
        if count > self.size + 2**24:
            raise MechanismError("parts must be at most 16,777,216 more than there are cells")
        return groups, count

    def _noise_source(self) -> Noise:
        if self._noise is None:
            raise MechanismError("a replay draws no noise")
        return self._noise

    def _refuse(self, *_: object) -> NoReturn:
        raise RightUsed("a right to private counts cannot be copied or pickled")

    __copy__ = __deepcopy__ = __reduce_ex__ = __reduce__ = _refuse

    def __repr__(self) -> str:
        state = "unused" if self._right else "used"
        return f"<PrivateCounts {'×'.join(map(str, self.shape))} in {counted(self.parts, 'part')}, {state}>"


def _owned(given: ArrayLike, kind: type[Any]) -> NDArray[Any]:
    """A copy that nobody else holds: what has been checked stays so, whatever its owner's threads do to theirs."""
    return np.array(given, dtype=kind, order="C")


def open_gate(
    data: Histogram | Sums | Countable | Occupied,
    budget: Number | Budget,
    unit: Unit,
    *,
    workload: Workload | None = None,
    noise: Noise | None = None,
    pay: Callable[[], None] | None = None,
    unproven: bool = False,
) -> tuple[PrivateCounts, Transcript]:
    """Fuse private counts with a budget; returns the one right to ask, and the transcript that will fill up.

    Of a domain of any size either tables of its records can be asked (`dphist.private.held`), or which of its cells are
    `Above` a threshold (`dphist.private.sparse`). A bare number is pure ε. ``pay`` is called once, before the first
    noise is drawn, and must make the spending durable; if it raises, nothing has been drawn. Sums of values are cells
    of either sign, of which ``unit`` says how many *steps* somebody moves (`dphist.model.measure.Quantity.in_steps`);
    they are measured, not chosen or segmented by, since the proofs of scores and costs, and of queries that say
    ``of_counts``, are about counts. ``unproven`` lets questions without a proof be asked, as they are: for tests and
    audits of mechanisms that may be wrong, on counts that are nobody's. Nothing that publishes sets it.
    """
    signed = isinstance(data, Sums)
    if isinstance(data, Histogram | Sums):
        # min(x, c) moves by at most one when x does, and so does max(x, −c): a public ceiling keeps one step one step.
        ceiling = LARGEST_SUM // max(1, data.domain.size)
        held: Any = data.counts.reshape(-1)
        if held.size and (held.max() > ceiling or (signed and held.min() < -ceiling)):
            held = np.clip(held, -ceiling, ceiling)
    else:
        held = data if isinstance(data, Occupied) else Held(data)
    transcript = Recorded(pay=pay)
    layout = Layout(data.domain.shape, None, 1, data.domain, workload)
    source = Noise.system() if noise is None else noise
    right = PrivateCounts(held, layout, UnitBudget.of(budget, unit), transcript, source, "root", unproven)
    right._signed = signed
    return right, transcript


def open_replay(
    domain: Domain,
    budget: Number | Budget,
    unit: Unit,
    transcript: Transcript,
    *,
    workload: Workload | None = None,
) -> tuple[PrivateCounts, Replay]:
    """Open a gate with a transcript behind it and no data at all."""
    book = Replay(transcript)
    layout = Layout(domain.shape, None, 1, domain, workload)
    return PrivateCounts(None, layout, UnitBudget.of(budget, unit), book, None, "root"), book
