"""A gate that knows both neighbours, and so how much likelier every answer is on one of them than on the other.

The attacker of differential privacy knows everything but which of two neighbouring data sets was used. So may the
audit: a `Twin` is a right on one data set that follows what happens to the other, verb by verb. When a question is
answered, by the gate itself and with its own noise, the twin computes the log-ratio of the answer's probabilities
under the law that the question *claims*: for Laplace noise Σ (|y − q(x′)| − |y − q(x)|) ÷ scale, for Gaussian noise
Σ ((y − q(x′))² − (y − q(x))²) ÷ 2σ², for a choice the difference of its log-weights. The sum over all questions, the
*loss* of a run, is the most telling statistic there is if the claim is true, and a good one if the noise is a little
wrong.

Two things follow. Runs can be ranked by their loss without learning anything from data, and a loss above ε shows by
itself that a promise was broken. What the loss cannot see is a law that differs from the claimed one; that is
what counting runs is for.

A partition's probability has no formula. The twin keeps which one was chosen among which costs, to be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number, exact
from dphist.model.histogram import Histogram
from dphist.model.law import Kind, NoiseLaw
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import Noisy, PrivateCounts, open_gate
from dphist.private.pricing import UnitBudget
from dphist.private.queries.counting import Totals
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import (
    Candidates,
    Costs,
    IntArray,
    Layout,
    Query,
    Score,
)
from dphist.private.transcript import Recorded
from dphist_bench.attacks.wavelets import Recording, coefficients

# Rates, beside the claimed one, that choices are bet to be made at.
BETS = (0.25, 0.5, 2.0, 4.0, 16.0)


class Finished(BaseException):
    """Every right has been used: what a mechanism does from here on tells nothing more."""


@dataclass(eq=False)
class Tally:
    """What one run let out, and how much that tells."""

    stop_early: bool = False
    loss: float = 0.0
    """ln of how much likelier the answers are on the data that were used than on the neighbour."""
    covered: bool = True
    """Whether every question's law has a formula, or is in ``partitions``."""
    asked: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    answers: list[NDArray[np.float64]] = field(default_factory=list)
    partitions: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    """Costs' data on this side and on the other, and the partition that won."""
    won: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(BETS)))
    """The logarithm of what bets on choices at other rates have won: see `dphist_bench.attacks.law`."""
    noise: list[NDArray[np.float64]] = field(default_factory=list)
    """The noise of every answer, in units of the scale that it claims."""
    laws: list[NoiseLaw] = field(default_factory=list)
    """What those answers claim of it."""
    finer: dict[int, tuple[NDArray[np.float64], NoiseLaw]] = field(default_factory=dict)
    """Of those that are looks, by place: the noise of the finer answers behind them, told or not, and its claim."""
    book: Recorded = field(default_factory=Recorded)
    unused: int = 1

    def keep(self, verb: str, answer: NDArray[Any]) -> None:
        """Write an answer down; with no right left, stop."""
        self.asked.append((verb, answer.shape))
        self.answers.append(answer.reshape(-1).astype(np.float64))
        self.unused -= 1
        if self.stop_early and self.unused == 0:
            raise Finished


class Twin(PrivateCounts):
    """A right on one data set with its neighbour beside it. For attacks only: it exists where both are known."""

    __slots__ = ("_shadow", "_tally", "_told")

    _shadow: PrivateCounts
    _tally: Tally
    _told: NDArray[np.float64] | None
    """How much each part's total told when it was looked at."""

    def split(self, *parts: Number) -> tuple[PrivateCounts, ...]:
        """Share the budget on both sides."""
        return tuple(self._pair(list(super().split(*parts)), list(self._shadow.split(*parts))))

    def select(self, mask: Any) -> tuple[PrivateCounts, PrivateCounts]:
        """Separate parts on both sides."""
        told = self._told
        one, other = self._pair(list(super().select(mask)), list(self._shadow.select(mask)))
        if told is not None:
            chosen = np.asarray(mask, dtype=bool)
            for side, kept in ((one, chosen), (other, ~chosen)):
                cast("Twin", side)._told = told[kept]
        return one, other

    def separate(self, names: Any) -> list[PrivateCounts]:
        """Separate by attributes on both sides."""
        return self._pair(super().separate(names), self._shadow.separate(names))

    def of(self, domain: Domain, workload: Workload | None = None) -> PrivateCounts:
        """Say what the cells are on both sides."""
        return self._pair([super().of(domain, workload)], [self._shadow.of(domain, workload)])[0]

    def measure(self, query: Query, noise: Kind | None = None, *, floats: bool = False) -> Noisy:
        """Let the gate answer, then compare."""
        counts, layout = self._known(), self._layout
        draws: list[IntArray] = []
        if isinstance(query, WaveletCells):
            self._noise = cast("Any", Recording(self._noise_source(), draws))
        noisy = super().measure(query, noise, floats=floats)
        other = _counts(self._shadow)
        known: tuple[Query, Noisy] | None = query, noisy
        if isinstance(query, WaveletCells):
            known = coefficients(query, noisy, draws, counts, layout, self._budget)
        elif hasattr(query, "perturb") and not isinstance(query, Wavelet):
            known = None
        if known is None:
            self._tally.covered = False
        else:
            self._compare(*known, counts, other)
        self._tally.keep("measure", noisy.values)
        return noisy

    def look(self, share: Number) -> tuple[Noisy, Twin]:
        """Let the gate answer, then compare; under ρ it is a split and a measurement, which are followed anyway."""
        if self._budget.currency != "epsilon":
            return super().look(share)
        counts, layout = self._known(), self._layout
        noisy, later = super().look(share)
        part = exact(share, "share")
        spent, rest = self._shadow.split(part, 1 - part)
        self._pair([later], [rest])
        # What was looked at is used up, as the right that is asked here is.
        self._tally.unused += 1
        here, there = (Totals().answer(each, layout) for each in (counts, _counts(spent)))
        told, drawn = _log_ratios(noisy, here, there)
        later._told = told
        self._keep_ratios(noisy.law, told, drawn)
        behind = later._finer
        if behind is not None and behind.values is not None:
            fine = Noisy(behind.values, behind.law)
            self._tally.finer[len(self._tally.noise) - 1] = (_log_ratios(fine, here, here)[1], behind.law)
        self._tally.keep("look", noisy.values)
        return noisy, later

    def again(self) -> Noisy:
        """Let the gate answer, and compare: what was looked at is made of this answer, and told nothing beside it."""
        counts, layout, told = self._known(), self._layout, self._told
        noisy = super().again()
        here, there = (Totals().answer(each, layout) for each in (counts, _counts(self._shadow)))
        loss = float(_log_ratios(noisy, here, there)[0].sum()) - (0.0 if told is None else float(told.sum()))
        # Its noise is not kept: parts that are asked for again were picked by what it showed when they were looked at.
        self._tally.loss += loss
        self._tally.keep("again", noisy.values)
        return noisy

    def _compare(self, query: Query, noisy: Noisy, counts: IntArray, other: IntArray) -> None:
        here, there = query.answer(counts, self._layout), query.answer(other, self._layout)
        self._keep_ratios(noisy.law, *_log_ratios(noisy, here, there))

    def _keep_ratios(self, law: NoiseLaw, told: NDArray[np.float64], drawn: NDArray[np.float64]) -> None:
        self._tally.noise.append(drawn)
        self._tally.laws.append(law)
        self._tally.loss += float(told.sum())

    def choose(self, score: Score) -> IntArray:
        """Let the gate choose, then compare."""
        counts, layout = self._known(), self._layout
        picks = super().choose(score)
        rate = float(self._budget.choice(len(picks)))
        here, won = _log_chance(score, counts, layout, picks, rate)
        self._tally.loss += here - _log_chance(score, _counts(self._shadow), layout, picks, rate)[0]
        self._tally.won += won
        self._tally.keep("choose", picks)
        return picks

    def segment(self, costs: Costs) -> IntArray:
        """Let the gate partition, and keep which partition of what it was."""
        counts = self._known()
        starts = super().segment(costs)
        other = _counts(self._shadow)
        self._tally.partitions.append((counts.tobytes(), other.tobytes(), starts.tobytes()))
        self._tally.keep("segment", starts)
        return starts

    def _known(self) -> IntArray:
        # An empty list is a right used twice: the gate itself then says so.
        counts = self._right[0] if self._right else None
        return np.empty(0, dtype=np.int64) if counts is None else counts

    def _child(
        self, counts: IntArray | None, layout: Layout, unit_budget: UnitBudget, path: str
    ) -> PrivateCounts:
        child = Twin(counts, layout, unit_budget, self._book, self._noise, path, unproven=True)
        child._tally, child._told = self._tally, None
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
        mine = super()._view(change, shape, labels, parts, domain, cells, unit_budget)
        theirs = self._shadow._view(change, shape, labels, parts, domain, cells, unit_budget)
        return self._pair([mine], [theirs])[0]

    def _pair(self, mine: list[PrivateCounts], theirs: list[PrivateCounts]) -> list[PrivateCounts]:
        for one, other in zip(mine, theirs, strict=True):
            assert isinstance(one, Twin)
            one._shadow = other
            # A right on no cells has nothing to tell, and mechanisms may leave it.
            self._tally.unused += one.size > 0
        self._tally.unused -= 1
        return mine


class Stage:
    """Two neighbours and a budget, for many runs: what the gate does once for all of them is done once."""

    def __init__(
        self, used: Histogram, neighbour: Histogram, budget: Number | Budget, unit: Unit | None = None
    ) -> None:
        self._right, _ = open_gate(used, budget, unit or Unit())
        self.budget = self._right._budget.amount
        self._used = _counts(self._right)
        self._neighbour = _counts(open_gate(neighbour, budget, unit or Unit())[0])

    def open(self, tally: Tally) -> PrivateCounts:
        """Give a right on the data that are used, with the neighbour beside it."""
        right = self._right
        facts = right._layout, right._budget, tally.book, right._noise, right._path
        # What may be wrong is what an audit is for: here, and nowhere else, questions need no proof.
        twin = Twin(self._used, *facts, unproven=True)
        twin._tally, twin._told = tally, None
        twin._shadow = PrivateCounts(self._neighbour, *facts)
        return twin


def _counts(right: PrivateCounts) -> IntArray:
    counts = right._take()
    return np.empty(0, dtype=np.int64) if counts is None else counts


def _log_ratios(
    noisy: Noisy, here: IntArray, there: IntArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much likelier each answer is here than there by the law it claims, and its noise in units of that law's."""
    away, further = noisy.values - there, noisy.values - here
    law = noisy.law
    if law.gaussian:
        # (a² − b²) = (a − b)(a + b): exact in integers, and no cancellation.
        loss = (away - further) * (away + further) / (2.0 * law.variance)
        drawn = further / law.deviation
    else:
        scale = float(law.scale) if isinstance(law.scale, Fraction) else law.scale
        loss, drawn = (np.abs(away) - np.abs(further)) / scale, further / scale
    told, units = (np.asarray(each, dtype=np.float64).reshape(-1) for each in (loss, drawn))
    return told, units


def _log_chance(
    score: Score, counts: IntArray, layout: Layout, picks: IntArray, rate: float
) -> tuple[float, NDArray[np.float64]]:
    """Sum the log-probabilities of choices that were made, and the logarithms of what bets win."""
    total, stages = np.zeros(1 + len(BETS)), score.stages(counts, layout)
    candidates = next(stages)
    for i, pick in enumerate(picks):
        total += _log_weights(candidates, pick, rate)
        if i + 1 < len(picks):
            candidates = stages.send(pick.copy())
    stages.close()
    return float(total[0]), total[1:]


def _log_weights(candidates: Candidates, pick: IntArray, rate: float) -> list[float]:
    firsts, sizes = candidates.starts[:-1], np.diff(candidates.starts)
    # From the largest, in integers: scores may be far beyond what a float holds exactly.
    below = candidates.scores - np.repeat(np.maximum.reduceat(candidates.scores, firsts), sizes)
    rates = rate / np.broadcast_to(candidates.ranges, sizes.shape)
    weights = below * np.repeat(rates, sizes)
    chance = weights - np.repeat(np.log(np.add.reduceat(np.exp(weights), firsts)), sizes)
    told = chance[firsts + pick]
    won = [
        float(((bet - 1.0) * told - np.log(np.add.reduceat(np.exp(bet * chance), firsts))).sum())
        for bet in BETS
    ]
    return [float(told.sum()), *won]
