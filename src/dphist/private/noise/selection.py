"""The exponential mechanism, exact: candidate i of a part with probability ∝ exp(rate·score)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dphist.errors import InputError
from dphist.kernels.sampling import laplace as sampling
from dphist.private.noise import certified
from dphist.private.noise.keystream import Keystream

Int64s = npt.NDArray[np.int64]


def _rounded_exp_neg(x: Fraction) -> float:
    lo, _ = certified.exp_neg_interval(x, 192)
    return float(Fraction(lo, 1 << 192))


# exp(−i) and exp(−j/64), for `exp_neg`.
EXP_WHOLE = np.array([_rounded_exp_neg(Fraction(i)) for i in range(64)])
EXP_PARTS = np.array([_rounded_exp_neg(Fraction(j, 64)) for j in range(64)])


def rounded(rate: Fraction) -> float:
    """Give the nearest double of a rate, for the certified kernel only."""
    # Any rate this large, even divided by a 63-bit integer, leaves every candidate but the best below exp(-64).
    return float(min(rate, Fraction(1 << 1000)))


def select(
    keystream: Keystream,
    scores: Int64s,
    starts: Int64s,
    rates: npt.NDArray[np.float64],
    rate_of: Callable[[int], Fraction],
) -> Int64s:
    """Choose in every part; ``rates`` are the doubles nearest to the exact ``rate_of(part)``.

    Parts that the kernel cannot decide within its certified error are decided with big integers from the
    same first 64 bits. How often that happens, and so the time taken, depends on the scores.
    """
    count = len(starts) - 1
    words = keystream.take(8 * count).view(np.uint64)
    chosen = np.empty(count, dtype=np.int64)
    for part in sampling.select_parts(scores, starts, rates, words, EXP_WHOLE, EXP_PARTS, chosen):
        candidates = scores[starts[part] : starts[part + 1]]
        chosen[part] = select_exactly(keystream, candidates, rate_of(int(part)), int(words[part]), 64)
    return chosen


def select_exactly(keystream: Keystream, scores: Int64s, rate: Fraction, prefix: int, known: int) -> int:
    """Choose one candidate with big integers, for a uniform U whose first ``known`` bits are ``prefix``.

    Candidate i is right when U·T lies between the cumulative weights before and after it. With weights
    enclosed by integers [l, h] the sums are enclosed by the sums of the ends, and U·T by
    [prefix·Σl, (prefix + 1)·Σh]·2^−known. An answer is given only when the enclosures do not overlap, so it
    is the answer of the infinitely long U; otherwise both are refined.
    """
    if len(scores) == 0:
        raise InputError("starts: a part has no candidate")
    best = int(scores.max())
    distances, index = np.unique(scores, return_inverse=True)
    order = [int(distance) for distance in index]
    while True:
        bits = known + 64 + len(scores).bit_length()
        ends = [certified.exp_neg_interval(rate * (best - int(score)), bits) for score in distances]
        low_total = sum(ends[which][0] for which in order)
        high_total = sum(ends[which][1] for which in order)
        target_low = prefix * low_total
        target_high = (prefix + 1) * high_total
        before_high = after_low = 0
        for i, which in enumerate(order):
            after_low += ends[which][0]
            starts_here = i == 0 or before_high << known <= target_low
            if starts_here and (i == len(order) - 1 or target_high <= after_low << known):
                return i
            before_high += ends[which][1]
        prefix = prefix << 64 | keystream.integer(64)
        known += 64
