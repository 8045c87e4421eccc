"""Attack one mechanism's claim on several pairs of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.audit.evidence import Runs, Shape, lower_bound
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.estimate import Estimate
from dphist.histogram import Histogram
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import show
from dphist.private.exact import Number, positive
from dphist.private.gate import open_gate
from dphist.unit import Unit

Observe = Callable[[Estimate], NDArray[np.float64]]


@dataclass(frozen=True)
class Report:
    """What the attack found: with the stated confidence, the true ε is at least ``epsilon_lower``."""

    mechanism: str
    epsilon: float
    epsilon_lower: float
    confidence: float
    runs: int
    pair: str

    @property
    def passed(self) -> bool:
        """Whether the claim stands: no evidence that ε is larger than claimed."""
        return self.epsilon_lower <= self.epsilon

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return {**self.__dict__, "passed": self.passed}

    def __str__(self) -> str:
        verdict = "claim stands" if self.passed else "CLAIM REFUTED"
        return (
            f"{self.mechanism}: {verdict}. Claimed ε = {self.epsilon:g}; with {self.confidence:.2%} confidence ε ≥ "
            f"{self.epsilon_lower:.3f} ({self.runs:,} runs a side, strongest on: {self.pair})"
        )


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
    chosen = list(worst_pairs() if pairs is None else pairs)
    alpha = (1 - confidence) / len(chosen)
    best, where = -np.inf, ""
    for each in chosen:
        if progress is not None:
            progress(f"{show(mechanism)}: {each.name}")
        bound = lower_bound(
            collect(mechanism, each.one, claim, runs, observe),
            collect(mechanism, each.other, claim, runs, observe),
            alpha,
        )
        if bound > best:
            best, where = bound, each.name
    return Report(show(mechanism), float(claim), float(best), confidence, runs, where)


def collect(
    mechanism: Mechanism, histogram: Histogram, epsilon: Number, runs: int, observe: Observe | None = None
) -> Runs:
    """Run a mechanism many times and keep everything it would publish."""
    shapes: list[Shape] = []
    numbers: list[NDArray[np.float64]] = []
    for _ in range(runs):
        right, transcript = open_gate(histogram, epsilon, Unit())
        estimate = mechanism.estimate(right)
        shapes.append(tuple((entry.verb, entry.answer.shape) for entry in transcript))
        seen = [entry.answer.reshape(-1).astype(np.float64) for entry in transcript]
        seen.append(estimate.counts.reshape(-1))
        if observe is not None:
            seen.append(observe(estimate))
        numbers.append(np.concatenate(seen))
    return Runs(shapes, numbers)
