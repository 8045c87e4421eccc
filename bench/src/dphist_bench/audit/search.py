"""Look for the neighbours on which a mechanism tells most, instead of guessing them.

A random start and then small changes that are kept if the mechanism tells more: records added to or taken from a cell,
cells swapped, plateaus, a huge count, another place for the record that makes the difference. What a pair tells is
forecast from few runs: with their losses L, an event's probability on the other side is the average of e^−L over the
runs where it happened, so one side is enough and rare events need not be waited for. The forecast may be fooled by
chance. That costs power, never honesty: the winner is judged by fresh runs.
"""

from __future__ import annotations

from math import prod

import numpy as np

from dphist.audit.neighbours import Pair, pair, worst_pairs
from dphist.kernels.grouping import IntArray
from dphist.mechanisms.protocol import Mechanism
from dphist.model.exact import Number, positive
from dphist.private.noise import Keystream
from dphist_bench.attacks.attack import collect
from dphist_bench.attacks.evidence import FloatArray, Runs, weigh

# Where a loss has no formula: bounds at this confidence rank pairs by what is plausible, not by what is certain.
_EAGER = 0.5
_LONGER = 3
# Forecasts are made for an attack of so many runs a side, at about the error that a trial is read at.
_PLANNED, _DEVIATIONS = 4_000, 3.7
_HUGE = (100, 10_000, 2**31, 2**40)


def search_pair(
    mechanism: Mechanism,
    *,
    epsilon: Number = 1,
    shape: tuple[int, ...] = (8,),
    tries: int = 12,
    runs: int = 60,
    seed: int = 0,
) -> Pair:
    """Give the most telling pair that random starts and climbing find in so many tries."""
    draw = _Draw(seed)
    known = worst_pairs(shape)
    best, told = known[0], -np.inf
    for i in range(tries):
        # The hand-made pairs first, then random tables, then changes of the best so far.
        if i < len(known):
            trial = known[i]
        elif i < len(known) + tries // 4:
            trial = pair(f"random table {i}", draw.table(shape), draw.below(prod(shape)))
        else:
            counts, cell = draw.change(best)
            trial = pair(f"climbing, step {i}", counts, cell)
        tells = forecast(mechanism, trial, epsilon, runs)
        if tells > told:
            best, told = trial, tells
    return best


def forecast(mechanism: Mechanism, trial: Pair, epsilon: Number, runs: int) -> float:
    """Guess the lower bound that an attack on this pair would reach."""
    one, other = _both(mechanism, trial, epsilon, runs)
    if all(run.covered and not run.choices for run in one):
        return max(
            _reach(np.array([run.loss for run in one])), _reach(np.array([-run.loss for run in other]))
        )
    more = _both(mechanism, trial, epsilon, (_LONGER - 1) * runs)
    one.extend(more[0])
    other.extend(more[1])
    return weigh(one, other, float(positive(epsilon, "epsilon"))).bound(_EAGER)


def _both(mechanism: Mechanism, trial: Pair, epsilon: Number, runs: int) -> tuple[Runs, Runs]:
    one, other = (collect(mechanism, trial, epsilon, runs, side, stop_early=True) for side in (0, 1))
    return one, other


def _reach(losses: FloatArray) -> float:
    """Forecast the bound on the best event {loss ≥ t}, from runs on its likely side."""
    ordered = np.sort(losses)[::-1]
    place = np.arange(1, ordered.size + 1)
    likely, rare = place / ordered.size, np.cumsum(np.exp(-ordered)) / ordered.size
    error = np.sqrt(1 / (_PLANNED * rare) + 1 / (_PLANNED * likely))
    return float((np.log(likely / rare) - _DEVIATIONS * error).max())


class _Draw:
    """Tables and changes of tables; which ones are tried is no secret, so the seed is public."""

    def __init__(self, seed: int) -> None:
        self._keystream = Keystream.for_tests(seed)

    def below(self, limit: int) -> int:
        return self._keystream.integer(48) % limit

    def table(self, shape: tuple[int, ...]) -> IntArray:
        size = prod(shape)
        kind = self.below(4)
        most = (1, 3, 20)[self.below(3)]
        cells = np.array([self.below(most + 1) for _ in range(size)], dtype=np.int64)
        if kind == 1:
            cells[self.below(size)] = _HUGE[self.below(len(_HUGE))]
        elif kind == 2:
            first, last = sorted((self.below(size), self.below(size)))
            cells[first : last + 1] = most
        elif kind == 3:
            cells[:] = 0
        return cells.reshape(shape)

    def change(self, best: Pair) -> tuple[IntArray, int]:
        counts = np.minimum(best.one.counts, best.other.counts).copy()
        cell = int(np.flatnonzero((best.one.counts != best.other.counts).reshape(-1))[0])
        flat = counts.reshape(-1)
        match self.below(5):
            case 0:
                cell = self.below(flat.size)
            case 1:
                flat[self.below(flat.size)] += 1 + self.below(4)
            case 2:
                place = self.below(flat.size)
                flat[place] = max(0, int(flat[place]) - 1 - self.below(4))
            case 3:
                one, other = self.below(flat.size), self.below(flat.size)
                flat[one], flat[other] = int(flat[other]), int(flat[one])
            case _:
                flat[self.below(flat.size)] = 0
        return counts, cell
