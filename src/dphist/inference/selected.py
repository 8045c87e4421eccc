"""Errors of counts that are shown only because their noisy count reached a threshold.

Of keys that nobody declared one sees those whose noise was kind to them: near the threshold t a noisy count y leans
upwards, and y ± width holds the truth too rarely. Given that a key is shown, its noise is Z given c + Z ≥ t.

**Theorem.** Let T(m) = Pr[Z ≥ m]. For a cell that is shown exactly if it reaches t, the counts c ≥ 1 with

    T(y − c) ÷ T(t − c) ≥ β/2   and   1 − T(y + 1 − c) ÷ T(t − c) ≥ β/2

hold the truth with probability at least 1 − β, given that the cell is shown. *Proof.* The left-hand sides are
Pr[Y ≥ y] and Pr[Y ≤ y] given Y ≥ t, for a count of c. Each is below β/2 with probability at most β/2. A key is only
found where some record holds it, so c ≥ 1. ∎ T is log-concave, so the first rises with c and the second falls: the
counts are an interval.

A key crossed with known attributes is shown if any of its cells reaches t. A cell below t is then shown because of
others, whose noise is independent of its own: it keeps its law. One that reaches t is either the only one, and cut at
t, or not cut: its interval holds both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import (
    How,
    IndependentNoise,
    Interval,
    each_of,
    laplace_if_bare,
    no_theorem,
    shared_confidence,
)
from dphist.inference.intervals import Spread, half_widths, possible
from dphist.kernels.special import log_normal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SelectedNoise(IndependentNoise):
    """Every cell carries its own draw of one law, and is shown because it, or a neighbour, reached a threshold.

    Args:
        law: The law of one draw.
        method: The details, in words.
        exact: Whether that draw is all of a cell's error.
        threshold: From which noisy count on keys are shown.
        counts: The noisy counts, of the domain's shape.
    """

    method: str = (
        "the distribution of the noise given that the key is shown; sums of several keys are moved by what their noise "
        "leans, and guaranteed ones hold by the union bound"
    )
    short: ClassVar[str] = (
        "exact for single names: {percent} of 100 such intervals contain the true count of a name"
    )
    threshold: int = 0
    counts: FloatArray | None = None

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Single keys by the theorem; sums by adding up what each leans, or, guaranteed, the bounds of each."""
        guaranteed = how.get("guaranteed", False)
        if guaranteed and not self.theorem:
            raise no_theorem()
        share = shared_confidence(confidence, len(workload), how)
        terms = self.spread_of_questions(workload)
        held = np.asarray(terms.terms, dtype=np.int64)
        summed = np.asarray(published, dtype=np.float64)
        width = half_widths(terms, share)
        # Noise leans upwards: the most plausible count of a key that is shown is below its noisy count.
        cells = np.asarray(self.counts, dtype=np.float64)
        lean = np.asarray(workload.answer(cells - self.bounds(cells, 1e-9)[0]), dtype=np.float64)
        low, high = summed - lean - width, summed + width
        for many in np.unique(held[(held == 1) | (guaranteed & (held > 1))]):
            # By the union bound: each of as many cells has an equal share of the error.
            here, ends = held == many, self.bounds(cells, each_of(share, int(many)))
            low[here], high[here] = (np.asarray(workload.answer(end), dtype=np.float64)[here] for end in ends)
        low, high = possible(low, high)
        return Interval(np.minimum(low, np.maximum(published, 0.0)), np.maximum(high, published))

    def bounds(self, values: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
        """The ends of every cell's interval."""
        beta, law = 1.0 - confidence, laplace_if_bare(self.law)
        flat = values.reshape(-1)
        unique, where = np.unique(flat, return_inverse=True)
        width = float(half_widths(Spread.of_terms(np.ones(1, dtype=np.int64), law), confidence)[0])
        low, high = unique - width, unique + width
        shown = unique >= self.threshold
        if shown.any():
            cut = _inverted(unique[shown], self.threshold, _log_tail(law), _reach(law, beta), beta)
            if values.ndim > 1:
                cut = np.minimum(cut[0], low[shown]), np.maximum(cut[1], high[shown])
            low[shown], high[shown] = cut
        return low[where].reshape(values.shape), high[where].reshape(values.shape)


def _log_tail(law: NoiseLaw) -> Callable[[FloatArray], FloatArray]:
    """The logarithm of Pr[Z ≥ m], for whole m: exact for Laplace noise; normal, at m − ½, for Gaussian noise."""
    if law.gaussian:
        deviation = float(law.deviation)
        return lambda m: log_normal(-(m - 0.5) / deviation)
    rate = 1.0 / float(law.scale)
    base = math.log1p(math.exp(-rate))

    def tail(m: FloatArray) -> FloatArray:
        below = np.log1p(-np.exp(np.minimum(-(1.0 - m) * rate, 0.0) - base))
        return np.where(m >= 1.0, -m * rate - base, below)

    return tail


def _reach(law: NoiseLaw, beta: float) -> float:
    """How far noise reaches but for a hundredth of what may be missed."""
    return float(math.ceil(10.0 + 2.0 * law.quantile(1.0 - beta / 100.0)))


def _inverted(
    values: FloatArray,
    threshold: int,
    log_tail: Callable[[FloatArray], FloatArray],
    reach: float,
    beta: float,
) -> tuple[FloatArray, FloatArray]:
    """The least and the largest count that the theorem keeps, by halving; a half either side holds its neighbours."""

    def upper(c: FloatArray) -> FloatArray:
        return log_tail(values - c) - log_tail(threshold - c) - math.log(beta / 2.0)

    def lower(c: FloatArray) -> FloatArray:
        kept = -np.expm1(np.minimum(log_tail(values + 1.0 - c) - log_tail(threshold - c), 0.0))
        return np.log(np.maximum(kept, 1e-300)) - math.log(beta / 2.0)

    ends = []
    for fits, inside, outside in (
        (upper, np.maximum(values, 1.0), np.ones(values.shape)),
        (lower, np.ones(values.shape), values + reach),
    ):
        # What fits at the far end fits everywhere between.
        done = fits(outside) >= 0.0
        good, bad = np.where(done, outside, inside), outside.copy()
        while bool((np.abs(good - bad) > 1.0).any()):
            middle = np.floor((good + bad) / 2.0)
            holds = fits(middle) >= 0.0
            good, bad = np.where(holds, middle, good), np.where(holds, bad, middle)
        ends.append(good)
    return ends[0], ends[1]
