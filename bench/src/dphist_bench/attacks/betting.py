"""Refute a claim by winning money against it.

Take an event A, and one run on each of two neighbours. If the claim ε is true, P(A) ≤ e^ε · P′(A), so a ticket
that pays 1 when A happens on the first and costs e^ε when it happens on the second loses on average. Whoever bets
a share of their capital on such tickets, run after run, has no more than they began with, on average and at any time
they care to stop; so they reach a thousandfold with probability at most 1/1000 (Ville's inequality). A large capital
refutes the claim, 1 ÷ (largest capital so far) is a p-value, and nobody needs to say beforehand how many runs there
will be. Which event to bet on and how much may depend on all earlier runs, never on the one that is bet on.

Of a claim (ε, δ) it is P(A) ≤ e^ε · P′(A) + δ, so the ticket costs δ besides, whatever happens. All else is the same.

Half of the capital bets that the first side is likelier, half on the other. A ladder of claims below and above ε is
bet against in the same way; the highest rung up to which all have fallen is a lower bound on the true ε. (In this
order only the first true rung could fall wrongly, so the whole ladder errs as rarely as one bet.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Shares of the capital, as parts of what one lost ticket may take.
_STAKES = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9])
_THRESHOLDS = 96
# How many standard errors worse than it looked an event is taken to be: luck in earlier runs does not last.
_MODESTY = 0.5


# Runs that are made before the first bet, to learn from.
LESSON = 200


def next_batch(made: int, most: int, *, first: int = LESSON) -> int:
    """How many runs a side to collect next: half as many as were made, so that bets keep up with lessons."""
    return min(most - made, max(first, made // 2))


@dataclass(frozen=True, eq=False)
class Look:
    """One statistic of the runs: as it was in earlier runs, to pick an event by, and in those that are bet on."""

    earlier_one: FloatArray
    earlier_other: FloatArray
    now_one: FloatArray
    now_other: FloatArray


class Ladder:
    """Claims of which those fall that a growing capital refutes, and how much each of them has grown at most."""

    rungs: FloatArray
    _most: FloatArray

    def bound(self, alpha: float) -> float:
        """Bound from below what is lost, wrongly with probability at most ``alpha`` over all times of looking."""
        fallen = self._most >= -np.log(alpha)
        height = int(fallen.size if fallen.all() else np.argmin(fallen))
        return float(self.rungs[height - 1]) if height else 0.0


class Contest(Ladder):
    """Bets against a claim and a ladder of claims around it, batch after batch; all of them at the same δ."""

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.delta = delta
        rungs = np.concatenate([np.arange(1, 61) / 50, np.arange(13, 61) / 10])
        # A hair above the claim itself: who refutes that has refuted the claim.
        self.rungs = epsilon * np.where(rungs == 1, 1 + 1e-9, rungs)
        self.claim = int(np.flatnonzero(rungs == 1)[0])
        self.runs = 0
        self._capital = np.zeros((2, self.rungs.size))
        self._most = np.zeros(self.rungs.size)
        self._path: list[FloatArray] = []

    @property
    def chance(self) -> float:
        """A p-value for the claim, valid whenever one looks."""
        return float(np.exp(-self._most[self.claim]))

    def fell(self, alpha: float) -> bool:
        """Whether the claim is refuted at this error."""
        return bool(self._most[self.claim] >= -np.log(alpha))

    def fell_after(self, alpha: float) -> int | None:
        """Say after how many runs a side the claim fell, if it did."""
        path = np.concatenate([np.empty(0), *self._path])
        reached = np.flatnonzero(path >= -np.log(alpha))
        return int(reached[0]) + 1 if reached.size else None

    def watch(self, runs: int) -> None:
        """Let runs pass without a bet, to learn from."""
        self._path.append(np.zeros(runs))
        self.runs += runs

    def bet(self, looks: Sequence[Look]) -> None:
        """Bet on the next runs: on the statistic, event and stake that would have won most on earlier ones."""
        size = looks[0].now_one.size
        gains = np.zeros((2, size, self.rungs.size))
        for direction, sign in enumerate((1.0, -1.0)):
            best = np.zeros(self.rungs.size)
            for look in looks:
                likely, rare = (look.earlier_one, look.earlier_other)[:: int(sign)]
                now_likely, now_rare = (look.now_one, look.now_other)[:: int(sign)]
                growth, threshold, stake = _plan(sign * likely, sign * rare, self.rungs, self.delta)
                better = growth > best
                if not better.any():
                    continue
                best[better] = growth[better]
                gains[direction][:, better] = _gains(
                    sign * now_likely,
                    sign * now_rare,
                    self.rungs[better],
                    threshold[better],
                    stake[better],
                    self.delta,
                )
        paths = self._capital[:, None, :] + np.cumsum(gains, axis=1)
        whole = np.logaddexp(paths[0], paths[1]) - np.log(2)
        self._most = np.maximum(self._most, whole.max(axis=0, initial=0.0))
        self._path.append(whole[:, self.claim])
        self._capital += gains.sum(axis=1)
        self.runs += size


def _plan(
    likely: FloatArray, rare: FloatArray, rungs: FloatArray, delta: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Choose for every rung the event {score ≥ t} and the stake by which capital would have grown fastest."""
    nothing = np.zeros(rungs.size)
    if likely.size < 8 or rare.size < 8:
        return nothing, nothing, nothing
    both = np.concatenate([likely, rare])
    thresholds = np.unique(np.quantile(both, np.linspace(0.001, 0.999, _THRESHOLDS), method="higher"))
    p = 1 - np.searchsorted(np.sort(likely), thresholds) / likely.size
    q = 1 - np.searchsorted(np.sort(rare), thresholds) / rare.size
    p = np.maximum(0.0, p - _MODESTY * np.sqrt((p * (1 - p) + 1 / likely.size) / likely.size))
    q = np.minimum(1.0, q + _MODESTY * np.sqrt((q * (1 - q) + 1 / rare.size) / rare.size) + 0.5 / rare.size)
    # What happens to the capital (in logarithms) if the event came on the likely side only, the other only, on both, on
    # neither.
    cases = np.stack(_outcomes(rungs[:, None], _STAKES[None, :], delta))
    chances = np.stack([p * (1 - q), (1 - p) * q, p * q, (1 - p) * (1 - q)], axis=1)
    growth = np.tensordot(chances, cases, axes=1).transpose(1, 0, 2).reshape(rungs.size, -1)
    place = growth.argmax(axis=1)
    return (
        growth[np.arange(rungs.size), place],
        thresholds[place // _STAKES.size],
        _STAKES[place % _STAKES.size],
    )


def _outcomes(
    rungs: FloatArray, stakes: FloatArray, delta: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    # The most that one ticket can lose is e^ε + δ; a stake is a part of the capital over that.
    share = stakes / (np.exp(rungs) + delta)
    return (
        np.log1p(share * (1 - delta)),
        np.log1p(-stakes) + 0 * rungs,
        np.log1p(share - stakes),
        np.log1p(-share * delta),
    )


def _gains(
    likely: FloatArray,
    rare: FloatArray,
    rungs: FloatArray,
    thresholds: FloatArray,
    stakes: FloatArray,
    delta: float,
) -> FloatArray:
    """Give the growth of the capital run by run: float64[runs, rungs]."""
    won, lost = likely[:, None] >= thresholds, rare[:, None] >= thresholds
    only, other, both, neither = _outcomes(rungs, stakes, delta)
    return np.asarray(np.where(won, np.where(lost, both, only), np.where(lost, other, neither)))
