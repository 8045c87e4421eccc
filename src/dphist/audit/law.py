"""Whether choices and noise follow the law they claim: a fault that breaks no promise here may break one elsewhere.

The audit's attack refutes ε. A fault that leaves the loss of the pair at hand within ε passes it, and so do noises that
are shared between answers of which one alone moves. Who knows the data knows more: the exact law of every choice, and
the noise of every answer.

*Choices.* A choice with chances p₁, p₂, … has a log-chance of Σ pᵢ ln pᵢ on average, with a variance that is known as
well. Over many choices, however each depends on those before, the sum of the differences is a martingale, so in units
of its standard deviation it is nearly normal. Choices made at twice their rate are likelier than they should be.

How much the choices of a run vary hangs on the data: where all candidates are alike, or one is far ahead, a wrong rate
changes next to nothing. `most_varied` picks, of several data sets, the one on which the choices vary most by the law
that they claim; there a rate that is twice as high shows after some 36 ÷ variance runs.

*Partitions.* On a few cells the law of a partition can be had by looking at all of them, from costs and noise that owe
nothing to the code that is watched: whoever knows it hands it in, and partitions are held against it by χ². Only a
run's first question is, since later ones may hang on earlier answers.

*Noise.* Answers of one run must not share their noise: the products of the signs of two answers' first draws are as
often one as minus one (a draw of zero counts for nothing), independently over runs.

A statistic beyond six deviations has a probability of 2 · 10⁻⁹ if the law is as claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import numpy as np

from dphist.audit.neighbours import Pair
from dphist.audit.twin import Finished, Stage, Tally
from dphist.kernels.special import chi_square_tail
from dphist.mechanisms.protocol import Mechanism
from dphist.model.exact import Number
from dphist.model.unit import Unit
from dphist.private.questions import Costs, IntArray, Layout

BEYOND = 6.0
# Partitions that are expected less often than this are counted as one kind.
_FEWEST = 10.0

Partition = tuple[int, ...]


@dataclass(frozen=True)
class Chances:
    """How probable every partition is, and from how many draws that is known."""

    of: Mapping[Partition, float]
    draws: int


PartitionLaw = Callable[[Costs, IntArray, Layout, Fraction], Chances]


@dataclass(frozen=True)
class Law:
    """How far choices and noise were from what they claim, in standard deviations, over so many runs."""

    runs: int
    choices: float
    signs: float
    partitions: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether nothing lies beyond six deviations."""
        return max(abs(self.choices), abs(self.signs), self.partitions) <= BEYOND


def most_varied(mechanism: Mechanism, pairs: Sequence[Pair], epsilon: Number, runs: int = 6) -> Pair:
    """Pick the data on which a mechanism's choices vary most, by the law that they claim.

    Args:
        mechanism: What to watch.
        pairs: Neighbours to pick from; the first of each is used.
        epsilon: The budget of every run.
        runs: How many runs to look at on each.

    Returns:
        The pair whose choices have the largest variance.
    """

    def variance(each: Pair) -> float:
        stage, total = Stage(each.one, each.other, epsilon), 0.0
        for _ in range(runs):
            tally = Tally(stop_early=True)
            with suppress(Finished):
                mechanism.estimate(stage.open(tally))
            total += tally.surprise[1]
        return total

    return max(pairs, key=variance)


def check_law(
    mechanism: Mechanism,
    pair: Pair,
    epsilon: Number,
    runs: int,
    *,
    unit: Unit | None = None,
    partition_law: PartitionLaw | None = None,
) -> Law:
    """Run a mechanism on one side of a pair and hold its choices and noise against their laws; stops when they fall.

    Args:
        mechanism: What to watch.
        pair: Two neighbours; the first is used.
        epsilon: The budget of every run.
        runs: How many runs at most.
        unit: Who is protected; one row if it is not said.
        partition_law: How probable partitions are, computed apart; without it they are not looked at.

    Returns:
        What was found, after the last run or the first at which a law fell.
    """
    stage = Stage(pair.one, pair.other, epsilon, unit)
    surprise = variance = products = squares = 0.0
    law = Law(0, 0.0, 0.0)
    chances, seen, look = None, Counter[Partition](), 250
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
        partitions = law.partitions
        if partition_law is not None and tally.segmented and tally.asked[0][0] == "segment":
            costs, counts, layout, budget, starts = tally.segmented[0]
            chances = chances or partition_law(costs, counts, layout, budget)
            seen[starts] += 1
            # Few looks, at twice the number of runs each: every look is a chance to be wrong.
            if seen.total() == look:
                partitions, look = _unlikely(seen, chances), 2 * look
        # A few dozen choices make the sum nearly normal; the same for signs.
        law = Law(
            run,
            surprise / sqrt(variance) if run >= 40 and variance > 1e-9 else 0.0,
            products / sqrt(squares) if squares >= 40 else 0.0,
            partitions,
        )
        if not law.holds:
            break
    return law


def _unlikely(seen: Counter[Partition], chances: Chances) -> float:
    """How far partitions are from their law by χ², as deviations of a normal, 37 at most."""
    runs = seen.total()
    expected = {key: chance * runs for key, chance in chances.of.items()}
    common = [key for key, many in expected.items() if many >= _FEWEST]
    pairs = [(seen[key], expected[key]) for key in common]
    rest = runs - sum(many for _, many in pairs)
    if rest >= 1:
        pairs.append((runs - sum(found for found, _ in pairs), rest))
    if len(pairs) < 2:
        return 0.0
    square = sum((found - many) ** 2 / many for found, many in pairs)
    # The law itself was counted, over so many draws.
    square /= 1.0 + runs / chances.draws
    chance = chi_square_tail(len(pairs) - 1, square)
    return min(-NormalDist().inv_cdf(min(max(chance, 1e-300), 1.0 - 1e-16)), 37.0)
