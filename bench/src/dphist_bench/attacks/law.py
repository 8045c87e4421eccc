"""Whether choices, noise and prices are what they claim: a fault that breaks no promise here may break one elsewhere.

The audit's attack refutes ε. A fault that leaves the loss of the pair at hand within ε passes it, and so do noises that
are shared between answers of which one alone moves. Who knows the data knows more: the exact law of every choice, and
the noise of every answer.

*Choices.* A choice with chances p₁, p₂, …, made at θ times its rate, would have chances pᵢ^θ ÷ Σ p^θ. So whoever bets
on that wins pᵢ^(θ−1) ÷ Σ p^θ times the stake, and nothing on average if the chances are as claimed. However each choice
depends on those before, a stake that is played on over all of them, shared among several θ, reaches 5·10⁸ with a chance
of 2·10⁻⁹ at most (Ville's inequality), at any run; rare candidates are no exception. What was won is told as the normal
deviation of that chance: positive where choices are likelier than they should be, as they are at twice their rate.

*Noise.* Answers of one run must not share their noise: the products of the signs of two answers' first draws are as
often one as minus one (a draw of zero counts for nothing), independently over runs. Answers of different prices take
different parts of the random words for their signs, but a draw's last bit from the first of them: a Laplace draw is G
or −1 − G, the last bit of G is one with the chance p = 1/(1 + e^{1/scale}), and bits less their chances multiply to
nothing on average, with a variance of p(1 − p) for each. Words that were used twice show in these, where scales are of
a record or more. Nor may noise be smaller than it claims: its sizes have a mean and a variance that are known, so
noise of half its scale shows after some 150 numbers and four fifths of it after 900, however little of its budget a
mechanism uses on these neighbours; looks and the finer answers behind them (`dphist.private.gradual`), whether or not
these were told, are held against their laws apart from all others. Sizes are skewed to the right, so that sums far
below their mean are rarer than the normal law has it.

*Prices.* What the questions of a run cost adds up to the budget at most. There is no chance in that: one run tells.

A statistic beyond six deviations has a probability of 2 · 10⁻⁹ if the law is as claimed; but for bets, nearly so.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import copysign, exp, log, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dphist.audit.neighbours import Pair
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.law import NoiseLaw
from dphist.model.unit import Unit
from dphist_bench.attacks.twin import BETS, Finished, Stage, Tally

BEYOND = 6.0
# Fair bits have a variance of 1/4, so two of them of 1/16: of so many pairs, and more where they are rarely one.
_FEWEST_BITS = 100 / 16

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """How far choices and noise were from what they claim, in standard deviations, over so many runs."""

    runs: int
    choices: float
    signs: float
    sizes: float = 0.0
    """How much smaller noise was than it claims; noise that is too large breaks no promise."""
    bits: float = 0.0
    """How far the last bits of two answers' first draws go together."""
    overspent: bool = False
    """Whether the questions of a run cost more than its budget."""

    @property
    def holds(self) -> bool:
        """Whether no run cost too much, and nothing lies beyond six deviations."""
        furthest = max(abs(self.choices), abs(self.signs), self.sizes, abs(self.bits))
        return furthest <= BEYOND and not self.overspent


def check_law(
    mechanism: Mechanism,
    pair: Pair,
    budget: Number | Budget,
    runs: int,
    *,
    unit: Unit | None = None,
) -> Law:
    """Run a mechanism on one side of a pair and hold its choices and noise against their laws; stops when they fall."""
    stage = Stage(pair.one, pair.other, budget, unit)
    won = np.zeros(len(BETS))
    products = squares = 0.0
    # By themselves what is measured once, and what was looked at.
    missing, spread, numbers = np.zeros(2), np.zeros(2), np.zeros(2)
    together = allowed = 0.0
    law = Law(0, 0.0, 0.0)
    for run in range(1, runs + 1):
        tally = Tally(stop_early=True)
        with suppress(Finished):
            mechanism.estimate(stage.open(tally))
        won += tally.won
        heads = [np.sign(noise[0]) for noise in tally.noise if noise.size]
        # One product a run, of the first two answers: others would depend on it.
        if len(heads) > 1:
            products += heads[0] * heads[1]
            squares += abs(heads[0] * heads[1])
        bits = [
            _last_bit(noise, claimed)
            for noise, claimed in zip(tally.noise, tally.laws, strict=True)
            if noise.size and not claimed.gaussian
        ]
        if len(bits) > 1:
            together += bits[0][0] * bits[1][0]
            allowed += bits[0][1] * bits[1][1]
        for place, (noise, claimed) in enumerate(zip(tally.noise, tally.laws, strict=True)):
            lack, more = _too_small(noise, claimed)
            looked = int(place in tally.finer)
            if looked:
                # A look and the finer answer behind it go together: their sum has at most twice the variance.
                finer = _too_small(*tally.finer[place])
                lack, more = lack + finer[0], 2.0 * (more + finer[1])
            missing[looked] += lack
            spread[looked] += more
            numbers[looked] += noise.size
        told = (numbers >= 100) & (spread > 1e-9)
        # A few dozen signs make their sum nearly normal.
        law = Law(
            run,
            _by_bets(won),
            products / sqrt(squares) if squares >= 40 else 0.0,
            float((missing[told] / np.sqrt(spread[told])).max()) if told.any() else 0.0,
            together / sqrt(allowed) if allowed >= _FEWEST_BITS else 0.0,
            tally.book.spent() > stage.budget,
        )
        if not law.holds:
            break
    return law


def _by_bets(won: FloatArray) -> float:
    """The normal deviation whose chance is that of what was won by all bets together, 35 at most; nothing if lost."""
    best = int(won.argmax())
    together = won[best] + log(float(np.exp(won - won[best]).mean()))
    deviation = -NormalDist().inv_cdf(0.5 * exp(-min(max(together, 0.0), 600.0)))
    return copysign(deviation, BETS[best] - 1.0)


def _too_small(noise: FloatArray, claimed: NoiseLaw) -> tuple[float, float]:
    """Sum by how much noise is smaller than its law has it, in units of that law's, and the variances of that."""
    size = np.broadcast_to(np.asarray(claimed.size, dtype=np.float64).reshape(-1), noise.shape)
    if claimed.gaussian:
        # Squares: of a discrete Gaussian their mean and variance are the continuous one's but where it is very narrow.
        wide = size >= 1.0
        return float((1.0 - noise[wide] ** 2).sum()), 2.0 * int(wide.sum())
    # Beyond this the noise is zero but for chances that no float tells from none.
    inverse = np.minimum(1.0 / size, 300.0)
    mean = inverse / np.sinh(inverse)
    square = 0.5 * (inverse / np.sinh(0.5 * inverse)) ** 2
    return float((mean - np.abs(noise)).sum()), float((square - mean * mean).sum())


def _last_bit(noise: FloatArray, claimed: NoiseLaw) -> tuple[float, float]:
    """Give the last bit of the first draw's G, less its chance, and the variance of that."""
    size = float(np.asarray(claimed.size, dtype=np.float64).reshape(-1)[0])
    drawn = round(float(noise[0]) * size)
    chance = 1.0 / (1.0 + exp(min(1.0 / size, 300.0)))
    return ((drawn if drawn >= 0 else ~drawn) & 1) - chance, chance * (1.0 - chance)
