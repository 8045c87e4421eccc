"""Refute a claim of (ε, δ) by winning money against it.

Whatever the event A, the claim says P(A) ≤ e^ε · P′(A) + δ. A ticket that pays 1 when A happens on the first side, and
costs e^ε when it happens on the other and δ in any case, loses on average if the claim is true;
`betting` has the rest. Two kinds of releases are attacked: mechanisms behind the gate, by the loss that the twin
computes from the laws they claim, and keys that nobody declared (`dphist.private.discovery`), by whether a key shows
that only one person brought, and by the noisy count of a key that all share.

A claim with a δ of 10⁻⁹ fails by events that nobody will see happen. Claims are attacked at a δ of a hundredth or so:
noise and thresholds are computed by the same code for every δ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.audit.attack import Report, alpha_per_attack
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.mechanisms.options import show
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.exact import Number, exact, positive
from dphist.model.unit import Unit
from dphist.private.discovery import discover
from dphist_bench.attacks.attack import losses
from dphist_bench.attacks.betting import LESSON, Contest, Look, next_batch

FloatArray = NDArray[np.float64]
# Scores of so many runs on one side (0 or 1): the likelier a run is on the first side, the larger.
Scores = Callable[[int, int], FloatArray]

# Records of everybody else under the key that all share.
_OTHERS = 40


def audit_delta(
    mechanism: Mechanism,
    *,
    epsilon: Number = 1,
    delta: Number = "1/100",
    budget: Budget | None = None,
    runs: int = 20_000,
    pairs: Sequence[Pair] | None = None,
    confidence: float = 0.999,
    unit: Unit | None = None,
) -> Report:
    """Search for evidence that a mechanism is not (ε, δ)-private.

    A sound mechanism is refuted with probability at most 1 − confidence. It spends ``budget``, or the ρ that (ε, δ)
    buys: noise keeps far more than that implies, so a sharper claim about the same noise finds smaller mistakes.
    """
    claim = positive(epsilon, "epsilon"), exact(delta, "delta")
    spent, who = budget or Budget.of(epsilon, delta=delta), unit or Unit()

    def on(pair: Pair) -> Scores:
        return lambda side, size: losses(mechanism, pair, spent, size, side, who)

    attacks = [(pair.name, on(pair)) for pair in (worst_pairs() if pairs is None else pairs)]
    return _report(show(mechanism), attacks, claim, runs, confidence)


def audit_discovery(
    *,
    epsilon: Number = 1,
    delta: Number = "1/100",
    budget: Budget | None = None,
    hidden: Number | None = None,
    unit: Unit | None = None,
    runs: int = 20_000,
    confidence: float = 0.999,
) -> Report:
    """Search for evidence that keys which nobody declared are not found (ε, δ)-privately.

    ``budget`` pays for the noise, pure ε unless told; ``hidden`` is what the threshold takes of δ, by default all.
    """
    claim = positive(epsilon, "epsilon"), exact(delta, "delta")
    spent, who = budget or Budget.of(epsilon), unit or Unit()
    taken = claim[1] if hidden is None else exact(hidden, "hidden")
    keys, each = (who.cells, who.per_cell or 1) if who.cells else (1, who.rows)
    nobody = np.full((1, 1), _OTHERS, dtype=np.int64)
    alone = np.concatenate([nobody, np.full((keys, 1), each, dtype=np.int64)])
    moved = nobody + each

    def shown(side: int, count: int) -> FloatArray:
        """How many keys show that only one person brought: on the other side there are none."""
        rows = (alone, nobody)[side]
        kept, _ = _found(rows, count, spent, who, taken)
        return np.bincount(kept[kept % len(rows) > 0] // len(rows), minlength=count).astype(np.float64)

    def counted(side: int, count: int) -> FloatArray:
        """The noisy count of the key that all share; none where it does not show."""
        kept, values = _found((moved, nobody)[side], count, spent, who, taken)
        scores = np.full(count, -1e9)
        scores[kept] = values.reshape(-1)
        return scores

    attacks = [("a person with keys of their own", shown), ("a person more under a shared key", counted)]
    return _report("discovered keys", attacks, claim, runs, confidence)


def _found(
    rows: NDArray[np.int64], runs: int, budget: Budget, unit: Unit, delta: Fraction
) -> tuple[NDArray[np.int64], Any]:
    """Many runs at once: rows are looked at one by one, each with noise of its own, so copies of them are runs."""
    copies = np.tile(rows, (runs, 1))
    kept, transcript = discover(copies, budget, unit, delta, sort=lambda numbers: numbers)
    return kept, transcript[0].answer


def _report(
    name: str,
    attacks: Sequence[tuple[str, Scores]],
    claim: tuple[Fraction, Fraction],
    runs: int,
    confidence: float,
) -> Report:
    epsilon, delta = map(float, claim)
    # A bound can be wrong in two ways, by the ladder and by the claim alone: each has half of the doubt.
    alpha = alpha_per_attack(confidence, 2 * len(attacks))
    best, where = -np.inf, ""
    for pair, scores in attacks:
        contest = Contest(epsilon, delta)
        past = np.empty(0), np.empty(0)
        # Whoever has won may stop: the bound holds at any time.
        while contest.runs < runs and not contest.fell(alpha):
            size = next_batch(contest.runs, runs)
            now = scores(0, size), scores(1, size)
            if past[0].size:
                contest.bet([Look(*past, *now)])
            else:
                contest.watch(size)
            past = np.append(past[0], now[0]), np.append(past[1], now[1])
        bound = contest.bound(alpha)
        # The ladder falls rung by rung from below; the claim alone may fall before them all.
        if contest.fell(alpha):
            bound = max(bound, float(contest.rungs[contest.claim]))
        if bound > best:
            best, where = bound, pair
    return Report(name, epsilon, float(best), confidence, runs, where, delta, attacked=runs > LESSON)
