"""Whether choices and noise follow the law they claim: a fault that breaks no promise here may break one elsewhere.

The audit's attack refutes ε. A fault that leaves the loss of the pair at hand within ε passes it, and so do noises that
are shared between answers of which one alone moves. Who knows the data knows more: the exact law of every choice, and
the noise of every answer.

*Choices.* A choice with chances p₁, p₂, … has a log-chance of Σ pᵢ ln pᵢ on average, with a variance that is known as
well. Over many choices, however each depends on those before, the sum of the differences is a martingale, so in units
of its standard deviation it is nearly normal. Choices made at twice their rate are likelier than they should be.

*Noise.* Answers of one run must not share their noise: the products of the signs of two answers' first draws are as
often one as minus one (a draw of zero counts for nothing), independently over runs.

A statistic beyond six deviations has a probability of 2 · 10⁻⁹ if the law is as claimed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dphist.audit.neighbours import Pair
from dphist.audit.twin import Finished, Stage, Tally
from dphist.mechanisms.protocol import Mechanism
from dphist.model.unit import Unit
from dphist.private.exact import Number

BEYOND = 6.0


@dataclass(frozen=True)
class Law:
    """How far choices and noise were from what they claim, in standard deviations, over so many runs."""

    runs: int
    choices: float
    signs: float

    @property
    def holds(self) -> bool:
        """Whether nothing lies beyond six deviations."""
        return max(abs(self.choices), abs(self.signs)) <= BEYOND


def check_law(
    mechanism: Mechanism, pair: Pair, epsilon: Number, runs: int, *, unit: Unit | None = None
) -> Law:
    """Run a mechanism on one side of a pair and hold its choices and noise against their laws; stops when they fall.

    Args:
        mechanism: What to watch.
        pair: Two neighbours; the first is used.
        epsilon: The budget of every run.
        runs: How many runs at most.
        unit: Who is protected; one row if it is not said.

    Returns:
        What was found, after the last run or the first at which a law fell.
    """
    stage = Stage(pair.one, pair.other, epsilon, unit)
    surprise = variance = products = squares = 0.0
    law = Law(0, 0.0, 0.0)
    for run in range(1, runs + 1):
        tally = Tally(stop_early=True)
        with suppress(Finished):
            mechanism.estimate(stage.open(tally))
        surprise, variance = surprise + tally.surprise[0], variance + tally.surprise[1]
        heads = [np.sign(noise[0]) for noise in tally.noise if noise.size]
        # One product a run, of the first two answers: others would depend on it.
        if len(heads) > 1:
            products += heads[0] * heads[1]
            squares += abs(heads[0] * heads[1])
        # A few dozen choices make the sum nearly normal; the same for signs.
        law = Law(
            run,
            surprise / sqrt(variance) if run >= 40 and variance > 1e-9 else 0.0,
            products / sqrt(squares) if squares >= 40 else 0.0,
        )
        if not law.holds:
            break
    return law
