"""Attack one mechanism's claim on several pairs of neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dphist.audit.betting import LESSON, next_batch
from dphist.audit.evidence import FIRST_BATCH, Evidence, Runs
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.audit.twin import Finished, Stage, Tally
from dphist.errors import InputError
from dphist.inference.estimate import Estimate
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import show
from dphist.model.budget import Budget
from dphist.model.exact import Number, positive
from dphist.model.unit import Unit

Observe = Callable[[Estimate], NDArray[np.float64]]


class Judged(ABC):
    """What every report says, whatever the currency of its claim."""

    mechanism: str
    confidence: float
    runs: int
    pair: str
    lesson: ClassVar[int] = LESSON
    """How many runs are learned from before the first bet."""

    @property
    @abstractmethod
    def figures(self) -> tuple[str, float, float]:
        """The symbol of the currency, the claim, and what is lost at least."""

    @property
    def passed(self) -> bool:
        """Whether the claim stands: no evidence that the loss is larger than claimed."""
        _, claim, lower = self.figures
        return lower <= claim

    def to_json(self) -> dict[str, Any]:
        """Give plain values.

        Returns:
            A mapping of plain values.
        """
        return {**self.__dict__, "passed": self.passed}

    def __str__(self) -> str:
        symbol, claim, lower = self.figures
        verdict = "claim stands" if self.passed else "CLAIM REFUTED"
        if self.passed and self.runs <= self.lesson:
            verdict = "NOT ATTACKED: so few runs are only learned from and refute nothing"
        return (
            f"{self.mechanism}: {verdict}. Claimed {symbol} = {claim:g}; with {self.confidence:.2%} confidence "
            f"{symbol} ≥ {lower:.3f} ({self.runs:,} runs a side, strongest on: {self.pair})"
        )


@dataclass(frozen=True)
class Report(Judged):
    """What the attack found: with the stated confidence, the true ε is at least ``epsilon_lower``.

    Args:
        mechanism: What was attacked.
        epsilon: What it claims.
        epsilon_lower: What it loses at least.
        confidence: How sure that is.
        runs: Runs a side.
        pair: The neighbours on which it showed most.

    Example:
        >>> Report("mine", 1.0, 1.7, 0.999, 500, "one record more").passed
        False
    """

    mechanism: str
    epsilon: float
    epsilon_lower: float
    confidence: float
    runs: int
    pair: str
    lesson: ClassVar[int] = FIRST_BATCH

    @property
    def figures(self) -> tuple[str, float, float]:
        """ε, the claim, and what is lost at least."""
        return "ε", self.epsilon, self.epsilon_lower


def share_of_doubt(confidence: float, attacks: int) -> float:
    """The chance to be wrong that each of several attacks may have.

    Without doubt nothing is ever refuted, and an attack that is not made refutes nothing: both would look like a pass.
    """
    if not 0 < confidence < 1:
        raise InputError(
            "confidence must lie between 0 and 1, such as 0.999: of what is certain nobody is convinced"
        )
    if not attacks:
        raise InputError("pairs must hold at least one pair of neighbours")
    return (1 - confidence) / attacks


def strongest(
    pairs: Sequence[Pair] | None, confidence: float, attack: Callable[[Pair, float], float]
) -> tuple[float, str]:
    """Attack on every pair, each with its part of the chance to be wrong.

    Args:
        pairs: Neighbours; the worst we know unless told.
        confidence: How sure all of it together must be.
        attack: Gives a lower bound for a pair that is wrong with no more than the chance it is told.

    Returns:
        The largest bound, and on which pair it was found.
    """
    chosen = list(worst_pairs() if pairs is None else pairs)
    alpha = share_of_doubt(confidence, len(chosen))
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

    Args:
        mechanism: What to attack.
        epsilon: The claim.
        runs: How often to run it on each side.
        pairs: Neighbours; the worst we know unless told.
        confidence: How sure a refutation must be.
        observe: Derives more numbers to look at from an estimate.
        progress: Is told what is being done.

    Returns:
        The largest lower bound on ε that was found, and whether the claim stands.

    Example:
        >>> import dphist
        >>> dphist.audit.audit(dphist.mechanisms.Laplace(), epsilon=1, runs=60).passed
        True
    """
    claim = positive(epsilon, "epsilon")

    def attack(each: Pair, alpha: float) -> float:
        if progress is not None:
            progress(f"{show(mechanism)}: {each.name}")
        return pursue(mechanism, each, claim, runs, observe=observe).contest.bound(alpha)

    best, where = strongest(pairs, confidence, attack)
    return Report(show(mechanism), float(claim), best, confidence, runs, where)


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
    found, stage = Runs(), Stage(used, neighbour, budget, unit)
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
        found.shapes.append(tuple(tally.asked))
        found.numbers.append(np.concatenate(seen))
        found.losses.append(sign * tally.loss)
        found.drawn.append(sign * tally.drawn)
        found.choices.append(
            tuple(
                (here, there, won) if side == 0 else (there, here, won)
                for here, there, won in tally.partitions
            )
        )
        found.covered = found.covered and tally.covered
    return found


def losses(
    mechanism: Mechanism, pair: Pair, budget: Budget, runs: int, side: int, unit: Unit | None = None
) -> NDArray[np.float64]:
    """The losses of many runs on one side of a pair, by the claimed laws; equal ones to the last bit."""
    return np.round(
        np.array(collect(mechanism, pair, budget, runs, side, stop_early=True, unit=unit).losses), 9
    )
