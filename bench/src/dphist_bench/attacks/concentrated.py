"""Refute a claim of ρ by winning money against it.

ρ-zCDP says of two neighbours with laws P and P′ that D_α(P‖P′) ≤ ρα for every α > 1. At α = 2 that is
E′[(dP/dP′)²] ≤ e^2ρ, so by Cauchy and Schwarz, for any function g ≥ 0 of what is published,

    E[g] = E′[g · dP/dP′] ≤ e^ρ √E′[g²] ≤ e^ρ (t·E′[g²] + 1/t) ÷ 2   for any t > 0.

A ticket that pays g on the first side and costs e^ρ(t·g² + 1/t)/2 on the other loses on average if the claim is true.
Whoever bets on such tickets with g, t and stake chosen by earlier runs has no more than they began with, on average and
at any time (Ville's inequality): see `betting`, which does the same for pure ε with events. The best g is
the likelihood ratio itself; here it is learned, as the ratio of two histograms of the loss that the twin computes by
the claimed laws, and cut off where there is little to learn from.

Second moments see rare leaks, and need many runs to see what every run shows a little of. So other tickets are of first
moments. As α falls to 1 the claim says that the relative entropy of P to P′ is at most ρ, so for any function f
(Donsker and Varadhan)

    E[f] ≤ ρ + ln E′[e^f] ≤ ρ + t·E′[e^f] − 1 − ln t   for any t > 0:

a ticket that pays f on the first side and costs the rest loses on average if the claim is true. Here f is the loss,
times a factor that earlier runs chose (noise of half the deviation makes the true loss four times the claimed one) and
cut off above and below.

A quarter of the capital is on each kind and side. A ladder of claims gives a lower bound on the true ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.audit.attack import Judged
from dphist.audit.neighbours import Pair
from dphist.mechanisms.options import show
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.exact import Number, positive
from dphist.model.unit import Unit
from dphist_bench.attacks.attack import losses, strongest
from dphist_bench.attacks.betting import LESSON, Ladder, next_batch

FloatArray = NDArray[np.float64]

_RUNGS = np.concatenate([np.arange(2, 20) / 20, [1.0 + 1e-9], np.arange(21, 61) / 20])
_BINS = 24
_STAKES = np.array([0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8])
# Factors of the loss that are tried, and where it is cut off.
_TILTS, _TOPS, _BOTTOM = (0.5, 0.75, 1.0, 1.5, 2.5, 4.0), (1.0, 2.0, 3.0), -3.0


@dataclass(frozen=True)
class RhoReport(Judged):
    """What the attack found: with the stated confidence, the true ρ is at least ``rho_lower``."""

    mechanism: str
    rho: float
    rho_lower: float
    confidence: float
    runs: int
    pair: str
    attacked: bool = True

    @property
    def figures(self) -> tuple[str, float, float]:
        """ρ, the claim, and what is lost at least."""
        return "ρ", self.rho, self.rho_lower


def audit_rho(
    mechanism: Mechanism,
    *,
    rho: Number = "1/2",
    runs: int = 20_000,
    pairs: Sequence[Pair] | None = None,
    confidence: float = 0.999,
    unit: Unit | None = None,
) -> RhoReport:
    """Search for evidence that a mechanism loses more than ρ.

    A sound mechanism is refuted with probability at most 1 − confidence.
    """
    claim, made = float(positive(rho, "rho")), []

    def attack(each: Pair, alpha: float) -> float:
        contest, needed = _contest(mechanism, each, Budget.of(rho=rho), unit, runs, alpha)
        made.append(needed)
        return contest.bound(alpha)

    best, where = strongest(pairs, confidence, attack)
    return RhoReport(show(mechanism), claim, best, confidence, max(made), where, runs > LESSON)


class Contest(Ladder):
    """Bets against a ladder of claims, batch after batch of losses of both sides."""

    def __init__(self, rho: float) -> None:
        self.rungs = rho * _RUNGS
        self._capital = np.zeros((4, self.rungs.size))
        self._most = np.zeros(self.rungs.size)
        self._seen: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))

    def add(self, one: FloatArray, other: FloatArray) -> None:
        """Bet on new losses with what earlier ones taught, then learn from them."""
        if self._seen[0].size:
            gains = np.zeros((4, one.size, self.rungs.size))
            for side in (0, 1):
                seen, now = self._seen[:: 1 - 2 * side], (one, other)[:: 1 - 2 * side]
                gains[side] = self._bets(*seen, *now)
                # A loss is of the first side to the other: seen from there it has the other sign.
                gains[2 + side] = self._tilted(*((1 - 2 * side) * losses for losses in (*seen, *now)))
            paths = self._capital[:, None, :] + np.cumsum(gains, axis=1)
            whole = np.logaddexp.reduce(paths, axis=0) - np.log(4)
            self._most = np.maximum(self._most, whole.max(axis=0, initial=0.0))
            self._capital += gains.sum(axis=1)
        self._seen = np.append(self._seen[0], one), np.append(self._seen[1], other)

    def _bets(
        self, likely: FloatArray, rare: FloatArray, now_likely: FloatArray, now_rare: FloatArray
    ) -> FloatArray:
        """The growth of the capital, by run and by rung; half of the past learns g, the other half the stake."""
        g = _ratio(likely[0::2], rare[0::2])
        first, second = g(likely[1::2]), g(rare[1::2])
        t = 1.0 / np.sqrt(max(float(np.mean(second**2)), 1e-12))
        most = float(g(np.append(likely, rare)).max())
        price = np.exp(self.rungs)[:, None]
        # Never less than −worst: g is at least 0 and at most `most`, on any run.
        worst = price[:, 0] * (t * most**2 + 1.0 / t) / 2.0

        def values(one: FloatArray, other: FloatArray) -> FloatArray:
            paid = np.minimum(g(one), most)
            cost = price * (t * np.minimum(g(other), most) ** 2 + 1.0 / t) / 2.0
            return np.asarray((paid - cost) / worst[:, None], dtype=np.float64)

        n = min(first.size, second.size)
        past = values(likely[1::2][:n], rare[1::2][:n])
        growth = np.stack([np.log1p(stake * past).mean(axis=1) for stake in _STAKES])
        stake = np.where(growth.max(axis=0) > 0, _STAKES[growth.argmax(axis=0)], 0.0)
        return np.asarray(np.log1p(stake[:, None] * values(now_likely, now_rare)).T, dtype=np.float64)

    def _tilted(
        self, likely: FloatArray, rare: FloatArray, now_likely: FloatArray, now_rare: FloatArray
    ) -> FloatArray:
        """The same by first moments: for every rung the factor, cut and stake by which the past grew most."""
        n, rungs = min(likely.size, rare.size), self.rungs[:, None]
        most = np.zeros(self.rungs.size)
        gains = np.zeros((now_likely.size, self.rungs.size))
        for tilt in _TILTS:
            for top in _TOPS:
                t = 1.0 / float(np.mean(np.exp(np.clip(tilt * rare, _BOTTOM, top))))
                # Never less than −worst, on any run.
                worst = rungs - _BOTTOM + t * np.exp(top) - 1.0 - np.log(t)

                def values(
                    one: FloatArray,
                    other: FloatArray,
                    tilt: float = tilt,
                    top: float = top,
                    t: float = t,
                    worst: FloatArray = worst,
                ) -> FloatArray:
                    paid = np.clip(tilt * one, _BOTTOM, top)
                    cost = t * np.exp(np.clip(tilt * other, _BOTTOM, top)) - 1.0 - np.log(t)
                    return np.asarray((paid - rungs - cost) / worst, dtype=np.float64)

                past = values(likely[:n], rare[:n])
                growth = np.stack([np.log1p(stake * past).mean(axis=1) for stake in _STAKES])
                better = growth.max(axis=0) > most
                if better.any():
                    most = np.maximum(most, growth.max(axis=0))
                    stake = _STAKES[growth.argmax(axis=0)][:, None]
                    gains[:, better] = np.log1p(stake * values(now_likely, now_rare)).T[:, better]
        return gains


def _contest(
    mechanism: Mechanism, pair: Pair, budget: Budget, unit: Unit | None, runs: int, alpha: float
) -> tuple[Contest, int]:
    rho = float(budget.amount)
    contest, made = Contest(rho), 0
    # Whoever has won may stop: the bound holds at any time.
    while made < runs and contest.bound(alpha) <= rho:
        size = next_batch(made, runs)
        contest.add(*(losses(mechanism, pair, budget, size, side, unit) for side in (0, 1)))
        made += size
    return contest, made


def _ratio(likely: FloatArray, rare: FloatArray) -> Any:
    """A step function: how much likelier each stretch of the loss is on the first side, by counting."""
    both = np.concatenate([likely, rare])
    edges = np.unique(np.quantile(both, np.linspace(0, 1, _BINS + 1)[1:-1], method="nearest"))
    a = np.bincount(np.searchsorted(edges, likely, side="right"), minlength=edges.size + 1)
    b = np.bincount(np.searchsorted(edges, rare, side="right"), minlength=edges.size + 1)
    ratio = (a + 1.0) / (b + 1.0) * ((b.sum() + 1.0) / (a.sum() + 1.0))
    return lambda values: ratio[np.searchsorted(edges, values, side="right")]
