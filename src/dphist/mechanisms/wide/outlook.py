"""How far pairs of columns are expected to be off: measured all together, some of them, or guessed from single columns.

Error is total variation: half the sum of absolute errors, over the number of records. Forecasts need public sizes, the
noise law, and how many records there are; all depend on how far pairs are from independence (*dependence* δ):

* **together**: all pairs measured by the best plan, then shrunk towards what explains them. Of a pair's noise w, the
  part l of its single columns stays; of the rest shrinking leaves √(y ÷ (1 + y)), y = (1.4 δ ÷ w)², and
  a little more where few cells tell:
  √(l² + (w² − l²) y ÷ (1 + y));
* **apart**: single columns, then pairs chosen one by one (`dphist.mechanisms.wide.fit`), which leave of what δ has
  beyond sampling about 0.35 of the noise of all pairs, but not less than the part of pairs that are not chosen
  (squared, where columns have many values);
* **alone**: single columns with the whole budget, pairs by chance alone: √(singles² + δ²).

Noise r that is cut to tables without negative cells is r ÷ (1 + r): 0.64 of 1.8, 0.07 of 0.08. These forms were
read off made-up tables (`widerule` in `bench/results/once.md`: `hidden`) and checked on others (`chain`, `classes`).

Nobody knows δ. Sampling alone makes it 0.3 √(c · cells ÷ records), c = Π(1 − 1/n); beyond that a public prior says
nothing a third of the time, and otherwise any size from 0.002 to 0.5, times the mean √c. A noisy pilot query turns it
into a posterior (`Outlook.seen`): how far the most dependent tenth of the pairs is from independence
(`dphist.private.queries.tables.TopDependence`). Dependence is uneven, and that mean is known as well as the mean
over all pairs would be. It lies 1.2 times above that one where all pairs depend alike, and up to eight times where few
do; nobody knows which, so all are thought of. What is done is what is expected to lose least against the best of the
three. The query is asked where every way is expected to lose more than 5 % without it.
All of it is arithmetic on public numbers and on answers that were paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from dphist.arrays import FloatArray
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.wide.fit import picks, singles_share
from dphist.mechanisms.wide.plan import Kinds, pair_weights, planned_variances
from dphist.model.law import NoiseLaw

HALF_MEAN = 0.4
"""The mean of |noise| over two deviations' worth of a cell: half of E|N(0, 1)|."""
Way = Literal["together", "apart", "alone"]
WAYS: tuple[Way, ...] = get_args(Way)
"""What may be done."""

# The share of the first question: how many records there are.
COUNT_SHARE = {"gaussian": Fraction(1, 200), "laplace": Fraction(1, 400)}
# Dependence that sampling makes between independent columns, over √(c · cells ÷ records).
_SAMPLING = 0.3
# How much more of a pair shrinking sees than its mean dependence says: dependence is not spread evenly. Shrinking does
# not know how far pairs depart from a model: 0.3 ÷ √(free cells) is added to what it sees of them.
_UNEVEN, _UNSURE = 1.4, 0.3
# What pairs chosen one by one leave of dependence where they see it: this part of the noise that all pairs would have.
_CHOSEN = 0.35
# The prior: a third on nothing but sampling, the rest on these.
_NOTHING = 1.0 / 3.0
_SIZES = np.concatenate([[0.0], np.geomspace(0.002, 0.5, 40)])
# One in 10 pairs is among the strongest. What these have of dependence, in parts of its mean, each alike likely; more
# where few cells add up, as pairs of few values differ more in how far they can be from independence.
_TENTH = 10
_STRONGER, _FEW_CELLS = np.array([0.6, 1.05, 1.7, 3.5]), 1.2
# How far sampling alone lets the strongest of pairs with one free cell stand out; less where more cells add up.
_STANDS_OUT = 1.5
# A pilot query is asked where a loss of this is expected without it, and costs that share. On 210 wide tables (2 to 20
# values, 10³ to 10⁶ records, five budgets) this is expected to lose 1.004 [1.06] of what the best of four shares does.
_UNDECIDED, _LOOK = 0.05, Fraction(1, 64)


@dataclass(frozen=True, eq=False)
class Outlook:
    """What is expected of every way, given what was seen so far: arrays have an entry for each size of dependence."""

    law: NoiseLaw
    shape: tuple[int, ...]
    wanted: tuple[Axes, ...]
    """The tables that would be measured together, none inside another."""
    pairs: tuple[Axes, ...]
    """The pairs whose error counts."""
    total: float = 1.0
    """How many records there are, from what was released."""
    weights: FloatArray | None = None
    """How likely each size of dependence is; the prior by default."""
    kinds: Kinds = ()
    """Kinds of tables that do not count alike."""

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
    def _free(self) -> FloatArray:
        """How many cells of each pair its single columns leave free."""
        return np.array([(self.shape[a] - 1) * (self.shape[b] - 1) for a, b in self.pairs], dtype=np.float64)

    @cached_property
    def sampling(self) -> float:
        """The dependence that sampling makes."""
        return float(_SAMPLING * np.mean(np.sqrt(self._free / self.total)))

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
        seen = (_UNEVEN * self.sizes[:, None] / whole) ** 2 + _UNSURE / math.sqrt(self._free.sum())
        pair = np.maximum(whole**2 - low**2, 0.0)
        return self.mean(np.sqrt(low**2 + pair * seen / (1.0 + seen)))

    @cached_property
    def alone(self) -> FloatArray:
        """The error of single columns with the whole budget, for each dependence."""
        return self.mean(np.sqrt(self._singles(1.0) ** 2 + self.sizes[:, None] ** 2))

    @cached_property
    def apart(self) -> FloatArray:
        """The error of single columns and of pairs chosen one by one, for each dependence."""
        columns, pairs = len(self.shape), len(self.pairs)
        chosen = picks(self.law, self.total, columns, pairs) / pairs
        single = self._singles(float(singles_share(self.law, self.total)))
        # The more values columns have, the more a model says of pairs that were not chosen.
        missed = (1.0 - chosen) ** (2.0 * self._spread)
        left = np.maximum(np.minimum(self.beyond, _CHOSEN * self.plain), missed * self.beyond)
        return self.mean(np.sqrt(single**2 + self.sampling**2 + left[:, None] ** 2))

    def _singles(self, share: float) -> FloatArray:
        """The error that two columns bring to each pair, if single columns have this share of the budget."""
        every = [(axis,) for axis, size in enumerate(self.shape) if size > 1]
        *variances, everybody = planned_variances(self.law, self.shape, every, [*every, ()], by_cells=True)[0]
        noise = {
            axis: variance * self.shape[axis] ** 2 - everybody
            for (axis,), variance in zip(every, variances, strict=True)
        }
        both = np.array([noise[a] + noise[b] for a, b in self.pairs]) * share**-self.law.exponent
        return cut(HALF_MEAN * np.sqrt(np.maximum(both, 0.0)) / self.total)

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
    def ways(self) -> FloatArray:
        """The error of every way, for each dependence."""
        return np.stack([self.together, self.apart, self.alone])

    def losses(self) -> FloatArray:
        """What each way is expected to be worse by than the best of them."""
        return np.asarray((self.ways / self.ways.min(axis=0) - 1.0) @ self.likely)

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
        root = np.sqrt(np.maximum(self._free, 1.0))
        more = _STRONGER * (1.0 + _FEW_CELLS * float(np.mean(1.0 / root)))
        more = np.clip(more, 1.0, len(self.pairs) / self.strongest)
        by_chance = _SAMPLING * np.sqrt(self._free / self.total) * (1.0 + _STANDS_OUT / root)
        sampling = self.sampling
        if len(self.pairs) > 1:
            sampling = float(np.sort(by_chance)[-self.strongest :].mean())
        return np.asarray(np.minimum(np.hypot(sampling, more[:, None] * self.beyond), 1.0))

    def look(self) -> Fraction:
        """The share that the pilot query is worth; none where it is clear enough what to do."""
        return _LOOK if float(self.losses().min()) > _UNDECIDED else Fraction(0)

    def seen(self, dependence: float, doubt: float) -> Outlook:
        """The outlook after a noisy look at the strongest pairs, whose mean dependence has a deviation of ``doubt``.

        Every size of dependence is as likely as it made what was seen, over all guesses.
        """
        away = (dependence - self.top) / doubt
        like = -0.5 * away**2 if self.law.gaussian else -math.sqrt(2.0) * np.abs(away)
        most = like.max(axis=0)
        log = most + np.log(np.exp(like - most).mean(axis=0)) + np.log(np.maximum(self.likely, 1e-300))
        weights = np.exp(log - log.max())
        return replace(self, weights=weights / weights.sum())


def cut(noise: FloatArray) -> FloatArray:
    """What is left of noise in tables that have no negative cells."""
    return noise / (1.0 + noise)
