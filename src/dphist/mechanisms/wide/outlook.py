"""How far pairs of columns are expected to be off, measured all together or guessed from single columns.

Error is total variation: half the sum of absolute errors, over the number of records. Two forecasts need public sizes,
the noise law, and how many records there are; both depend on how far pairs are from independence (*dependence* δ):

* **apart**: single columns with the whole budget, pairs by chance alone: √(singles² + δ²). Pairs chosen one by one
  (`dphist.mechanisms.wide.chosen`) leave of what δ has beyond sampling about 0.35 of the noise of all pairs, but
  not less than the part of pairs that are not chosen (squared, where columns have many values);
* **together**: all pairs measured by the best plan, then shrunk towards what explains them. Of a pair's noise w, the
  part l of its single columns stays; of the rest shrinking leaves √(y ÷ (1 + y)), y = (1.4 δ ÷ w)², and
  a little more where few cells tell:
  √(l² + (w² − l²) y ÷ (1 + y)).

Noise r that is cut to tables without negative cells is r ÷ (1 + r): 0.64 of 1.8, 0.07 of 0.08. These three forms were
read off made-up tables (`widerule` in `bench/results/once.md`: `hidden`) and checked on others (`chain`, `classes`).

Nobody knows δ. Sampling alone makes it 0.3 √(c · cells ÷ records), c = Π(1 − 1/n); beyond that a public prior says
nothing a third of the time, and otherwise any size from 0.002 to 0.5, times the mean √c. A noisy pilot query turns it
into a posterior (`Outlook.seen`): how far the most dependent tenth of the pairs is from independence
(`dphist.private.queries.dependence.TopDependence`). Dependence is uneven, and that mean is known as well as the mean
over all pairs would be. It lies 1.2 times above that one where all pairs depend alike, and up to eight times where few
do; nobody knows which, so all are thought of. What is done is what is expected to lose least against the better of the
two. The query is worth what it is expected to save, less what its share costs all that follows.
All of it is arithmetic on public numbers and on answers that were paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.wide.chosen import Strength, seen_from, too_weak
from dphist.mechanisms.wide.plan import Kinds, pair_weights, planned_variances
from dphist.mechanisms.wide.singles import HALF_MEAN, plan_singles
from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]

# The share of the first question: how many records there are.
COUNT_SHARE = {"gaussian": Fraction(1, 200), "laplace": Fraction(1, 400)}
# Dependence that sampling makes between independent columns, over √(c · cells ÷ records).
_SAMPLING = 0.3
# How much more of a pair shrinking sees than its mean dependence says: dependence is not spread evenly. Shrinking does
# not know how far pairs depart from a model: 0.3 ÷ √(free cells) is added to what it sees of them.
_UNEVEN, _UNSURE = 1.4, 0.3
# What pairs chosen one by one leave of dependence where they see it: this part of the noise that all pairs would have.
_CHOSEN = 0.35
_MOST_CHOSEN = 0.6
# The prior: a third on nothing but sampling, the rest on these.
_NOTHING = 1.0 / 3.0
_SIZES = np.concatenate([[0.0], np.geomspace(0.002, 0.5, 40)])
# How much it counts to be worse than single columns alone, or plain tables, beside being worse than the better way.
_ABOVE = 5.0
# One in 10 pairs is among the strongest. What these have of dependence, in parts of its mean, each alike likely; more
# where few cells add up, as pairs of few values differ more in how far they can be from independence.
_TENTH = 10
_STRONGER, _FEW_CELLS = np.array([0.6, 1.05, 1.7, 3.5]), 1.2
# How far sampling alone lets the strongest of pairs with one free cell stand out; less where more cells add up.
_STANDS_OUT = 1.5
# Shares that the pilot query may cost.
_LOOKS = (Fraction(1, 256), Fraction(1, 128), Fraction(1, 64))
# A normal law by seven points (Gauss and Hermite).
_NODES = np.array([-3.7504, -2.3668, -1.1544, 0.0, 1.1544, 2.3668, 3.7504])
_OFTEN = np.array([0.00055, 0.03076, 0.24012, 0.45714, 0.24012, 0.03076, 0.00055])
# A Laplace law of one deviation by eleven points that are alike likely.
_LAPLACE = np.array([-1.91, -0.93, -0.57, -0.33, -0.14, 0.0, 0.14, 0.33, 0.57, 0.93, 1.91])


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is expected of both ways, given what was seen so far.

    Args:
        law: Of the whole budget.
        shape: How many values each attribute has.
        wanted: The tables that would be measured together, none inside another.
        pairs: The pairs whose error counts.
        total: How many records there are, from what was released.
        weights: How likely each size of dependence is; the prior by default.
        kinds: Kinds of tables that do not count alike.
    """

    law: NoiseLaw
    shape: tuple[int, ...]
    wanted: tuple[Axes, ...]
    pairs: tuple[Axes, ...]
    total: float = 1.0
    weights: FloatArray | None = None
    kinds: Kinds = ()

    @cached_property
    def cells(self) -> FloatArray:
        """How many cells each pair has."""
        return np.array([self.shape[a] * self.shape[b] for a, b in self.pairs], dtype=np.float64)

    @cached_property
    def variances(self) -> tuple[FloatArray, FloatArray]:
        """Of a cell of each pair if all wanted tables are measured: all of it, and what its single columns bring.

        Errors are of shares: that all cells are a little too large together, by the noise of the total, is none.
        """
        every = [*self.pairs, ()]
        whole, low = planned_variances(self.law, self.shape, self.wanted, every, self.kinds)
        everybody = whole[-1] / self.cells**2
        return whole[:-1] - everybody, low[:-1] - everybody

    @cached_property
    def sampling(self) -> float:
        """The dependence that sampling makes."""
        freedom = np.array([(self.shape[a] - 1) * (self.shape[b] - 1) for a, b in self.pairs])
        return float(_SAMPLING * np.mean(np.sqrt(freedom / self.total)))

    @cached_property
    def sizes(self) -> FloatArray:
        """The dependences that are thought of."""
        return np.asarray(np.minimum(np.sqrt(self.sampling**2 + self.beyond**2), 1.0), dtype=np.float64)

    @cached_property
    def _spread(self) -> float:
        """The mean √c of pairs: half for columns of two values, nearly one for many."""
        return float(
            np.mean([math.sqrt((1 - 1 / self.shape[a]) * (1 - 1 / self.shape[b])) for a, b in self.pairs])
        )

    @cached_property
    def beyond(self) -> FloatArray:
        """What dependence has beyond sampling: columns of few values cannot be as far from independence as others."""
        return np.asarray(self._spread * _SIZES, dtype=np.float64)

    @cached_property
    def likely(self) -> FloatArray:
        """How likely each of them is."""
        if self.weights is not None:
            return self.weights
        rest = (1.0 - _NOTHING) / (_SIZES.size - 1)
        return np.where(_SIZES > 0.0, rest, _NOTHING)

    @cached_property
    def together(self) -> FloatArray:
        """The error of all pairs measured together, for each dependence."""
        whole, low = (cut(HALF_MEAN * np.sqrt(v) * self.cells / self.total) for v in self.variances)
        freedom = sum((self.shape[a] - 1) * (self.shape[b] - 1) for a, b in self.pairs)
        seen = (_UNEVEN * self.sizes[:, None] / whole) ** 2 + _UNSURE / math.sqrt(freedom)
        pair = np.maximum(whole**2 - low**2, 0.0)
        return self.mean(np.sqrt(low**2 + pair * seen / (1.0 + seen)))

    @cached_property
    def apart(self) -> FloatArray:
        """The error of single columns, and of pairs chosen where there is much to see, for each dependence."""
        noise = self.single_noise
        single = cut(np.array([math.hypot(noise[a], noise[b]) for a, b in self.pairs]))
        left, strength = self.beyond, Strength(self.law, self.total)
        chosen = strength.picks(len(self.shape), len(self.pairs)) / len(self.pairs)
        # Whoever would measure most pairs anyhow measures all of them.
        if not too_weak(strength) and chosen < _MOST_CHOSEN:
            # The more values columns have, the more a model says of pairs that were not chosen.
            missed = (1.0 - chosen) ** (2.0 * self._spread)
            less = np.maximum(np.minimum(self.beyond, _CHOSEN * self.plain), missed * self.beyond)
            left = np.where(self.sizes > seen_from(strength, self.shape, self.pairs, self.total), less, left)
        return self.mean(np.sqrt(single**2 + self.sampling**2 + left[:, None] ** 2))

    @cached_property
    def plain(self) -> float:
        """The error of all pairs measured together, each cut by itself to a table without negative cells."""
        return float(self.mean(cut(HALF_MEAN * np.sqrt(self.variances[0]) * self.cells / self.total)))

    def mean(self, errors: FloatArray) -> FloatArray:
        """Over pairs: all alike, or by the weights of the kinds of tables that hold them."""
        if not self.kinds:
            return np.asarray(errors.mean(axis=-1))
        return np.asarray(errors @ pair_weights(self.kinds, self.pairs))

    @cached_property
    def single_noise(self) -> list[float]:
        """The error of each single column, if these have the whole budget."""
        return [each / self.total for each in plan_singles(self.law, self.shape).noise(self.law)]

    @cached_property
    def _ways(self) -> FloatArray:
        return np.stack([self.together, self.apart])

    def losses(self) -> FloatArray:
        """What each way is expected to lose: together, apart."""
        return self.lost(self._ways) @ self.likely

    def lost(self, ways: FloatArray) -> FloatArray:
        """What some ways are worse by than the better of both, and than without us, for each dependence."""
        above = np.maximum(ways / np.minimum(self.alone, self.plain) - 1.0, 0.0)
        return np.asarray(ways / np.minimum(self.together, self.apart) - 1.0 + _ABOVE * above)

    @cached_property
    def alone(self) -> FloatArray:
        """The error of single columns, each asked value by value with an equal share, for each dependence."""
        columns = len(self.shape)
        deviation = self.law.deviation_of(1.0 / columns) / self.total
        noise = [HALF_MEAN * math.sqrt(size * (size - 1)) * deviation for size in self.shape]
        single = cut(np.array([math.hypot(noise[a], noise[b]) for a, b in self.pairs]))
        return self.mean(np.sqrt(single**2 + self.sizes[:, None] ** 2))

    def counted(self, total: float) -> Outlook:
        """The outlook once records were counted."""
        return replace(self, total=max(1.0, total))

    @property
    def strongest(self) -> int:
        """How many pairs the pilot query adds up: a tenth of them, at least one."""
        return max(1, len(self.pairs) // _TENTH)

    @cached_property
    def top(self) -> FloatArray:
        """What the strongest pairs may have: a row for each guess how much more than all, a column a dependence."""
        free = np.array([(self.shape[a] - 1) * (self.shape[b] - 1) for a, b in self.pairs], dtype=float)
        root = np.sqrt(np.maximum(free, 1.0))
        more = _STRONGER * (1.0 + _FEW_CELLS * float(np.mean(1.0 / root)))
        more = np.clip(more, 1.0, len(self.pairs) / self.strongest)
        by_chance = _SAMPLING * np.sqrt(free / self.total) * (1.0 + _STANDS_OUT / root)
        sampling = self.sampling
        if len(self.pairs) > 1:
            sampling = float(np.sort(by_chance)[-self.strongest :].mean())
        return np.asarray(np.minimum(np.hypot(sampling, more[:, None] * self.beyond), 1.0))

    def look(self) -> Fraction:
        """The share that the pilot query is worth, with what it costs all that follows; none if it would lose more."""
        found, least = Fraction(0), float(self.losses().min())
        for share in _LOOKS:
            doubt = 2.0 * self.law.deviation_of(float(share)) / self.total
            dearer = (1.0 - float(share)) ** (-0.5 * self.law.exponent)
            lost = self.preview(self.top, doubt, self.lost(dearer * self._ways))
            if lost < least:
                found, least = share, lost
        return found

    def seen(self, dependence: float, doubt: float) -> Outlook:
        """The outlook after a noisy look at the strongest pairs.

        Args:
            dependence: Their mean dependence, with noise.
            doubt: Its deviation.

        Returns:
            What is expected now: every size of dependence by how likely it made what was seen, over all guesses.
        """
        like = self.like((dependence - self.top) / doubt)
        most = like.max(axis=0)
        log = most + np.log(np.exp(like - most).mean(axis=0)) + np.log(np.maximum(self.likely, 1e-300))
        weights = np.exp(log - log.max())
        return replace(self, weights=weights / weights.sum())

    def like(self, deviations: FloatArray) -> FloatArray:
        """The log-density of answers these ``deviations`` away, in their place: Laplace noise is far off more often."""
        if self.law.gaussian:
            np.square(deviations, out=deviations)
            deviations *= -0.5
        else:
            np.abs(deviations, out=deviations)
            deviations *= -math.sqrt(2.0)
        return deviations

    def preview(self, mean: FloatArray, doubt: float, lost: FloatArray) -> float:
        """What the better way is expected to lose after an answer whose mean tells the dependence.

        That mean is known up to a guess: each row is for one guess, and all are alike likely.
        """
        even = np.full(_LAPLACE.size, 1.0 / _LAPLACE.size)
        nodes, often = (_NODES, _OFTEN) if self.law.gaussian else (_LAPLACE, even)
        guesses = len(mean)
        likely, mean = np.tile(self.likely / guesses, guesses), mean.reshape(-1)
        answers = (mean[:, None] + doubt * nodes).reshape(-1)
        # One matrix, written over again and again: making others takes as long as all else.
        weights = answers[:, None] - mean
        weights /= doubt
        weights = self.like(weights)
        weights += np.log(np.maximum(likely, 1e-300))
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=1, keepdims=True)
        ways = np.tile(lost, guesses)
        return float((np.outer(likely, often).reshape(-1) * (weights @ ways.T).min(axis=1)).sum())


def cut(noise: FloatArray) -> FloatArray:
    """What is left of noise in tables that have no negative cells."""
    return noise / (1.0 + noise)
