"""Attack one mechanism's claim on several pairs of neighbours, by a gate that knows both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.audit.attack import Report, alpha_per_attack
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.mechanisms.options import show
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.exact import Number, positive
from dphist.model.unit import Unit
from dphist_bench.attacks.betting import next_batch
from dphist_bench.attacks.evidence import FIRST_BATCH, Evidence, Run, Runs
from dphist_bench.attacks.twin import Finished, Stage, Tally

Observe = Callable[[Any], NDArray[np.float64]]


def strongest(
    pairs: Sequence[Pair] | None, confidence: float, attack: Callable[[Pair, float], float]
) -> tuple[float, str]:
    """Attack on every pair, each with its part of the chance to be wrong."""
    chosen = list(worst_pairs() if pairs is None else pairs)
    alpha = alpha_per_attack(confidence, len(chosen))
    found = [(float(attack(each, alpha)), each.name) for each in chosen]
    return max(found, key=lambda one: one[0])


def audit(
    mechanism: Mechanism,
    *,
    epsilon: Number = 1,
    runs: int = 20_000,
    pairs: Sequence[Pair] | None = None,
    confidence: float = 0.999,
    observe: Observe | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Search for evidence that a mechanism loses more than ε.

    Everything that is published is looked at: the questions asked, their answers, the estimated counts, and what
    ``observe`` derives from them. A sound mechanism is refuted with probability at most 1 − confidence.
    """
    claim = positive(epsilon, "epsilon")

    def attack(each: Pair, alpha: float) -> float:
        if progress is not None:
            progress(f"{show(mechanism)}: {each.name}")
        return pursue(mechanism, each, claim, runs, observe=observe).contest.bound(alpha)

    best, where = strongest(pairs, confidence, attack)
    return Report(show(mechanism), float(claim), best, confidence, runs, where, attacked=runs > FIRST_BATCH)


def pursue(
    mechanism: Mechanism,
    pair: Pair,
    epsilon: Number,
    runs: int,
    *,
    observe: Observe | None = None,
    stop_early: bool = False,
    enough: Callable[[Evidence], bool] = lambda _: False,
) -> Evidence:
    """Bet against a claim on one pair until so many runs a side are made, or it is ``enough``."""
    evidence = Evidence(float(positive(epsilon, "epsilon")))
    while (made := len(evidence.one)) < runs and not enough(evidence):
        size = next_batch(made, runs, first=FIRST_BATCH)
        evidence.add(*(collect(mechanism, pair, epsilon, size, side, observe, stop_early) for side in (0, 1)))
    return evidence


def collect(
    mechanism: Mechanism,
    pair: Pair,
    budget: Number | Budget,
    runs: int,
    side: int,
    observe: Observe | None = None,
    stop_early: bool = False,
    unit: Unit | None = None,
) -> Runs:
    """Run a mechanism many times on one side of a pair and keep everything it would publish; a number is pure ε.

    With ``stop_early`` a run ends with its last answer. What would follow is a function of the answers, as replays
    check for every mechanism of this package, so it tells nothing that they do not.
    """
    used, neighbour = (pair.one, pair.other) if side == 0 else (pair.other, pair.one)
    sign = 1.0 if side == 0 else -1.0
    found: Runs = []
    stage = Stage(used, neighbour, budget, unit)
    for _ in range(runs):
        tally = Tally(stop_early=stop_early)
        seen = tally.answers
        try:
            estimate = mechanism.estimate(stage.open(tally))
        except Finished:
            pass
        else:
            seen.append(estimate.counts.reshape(-1))
            if observe is not None:
                seen.append(observe(estimate))
        choices = tuple(
            (here, there, won) if side == 0 else (there, here, won) for here, there, won in tally.partitions
        )
        numbers = np.concatenate(seen)
        found.append(Run(tuple(tally.asked), numbers, sign * tally.loss, choices, tally.covered))
    return found


def losses(
    mechanism: Mechanism, pair: Pair, budget: Budget, runs: int, side: int, unit: Unit | None = None
) -> NDArray[np.float64]:
    """The losses of many runs on one side of a pair, by the claimed laws; equal ones to the last bit."""
    found = collect(mechanism, pair, budget, runs, side, stop_early=True, unit=unit)
    return np.round(np.array([run.loss for run in found]), 9)
