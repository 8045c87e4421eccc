"""More noise on an answer that has some: discrete Laplace noise of a fine scale becomes noise of a coarse one, exactly.

Write a = exp(−1/coarse) and b = exp(−1/fine), b < a. The noise's generating functions are
(1 − a)²/((1 − az)(1 − a/z)) and the same with b. Their quotient is

    ((1 − a)/(1 − b))² · (1 + b² − b(z + 1/z)) / (1 + a² − a(z + 1/z))
        = p + (1 − p) · (1 − a)²/((1 − az)(1 − a/z)),    p = (b/a) · ((1 − a)/(1 − b))²,

since the numerator is b/a times the denominator plus (1 − b/a)(1 − ab), which does not depend on z. So a draw of the
coarse noise is a draw of the fine one plus an independent rest, which is nothing with probability p and a draw of the
coarse law otherwise (Koufogiannis, Han and Pappas, 2016, have it for continuous noise). Nothing here sees a count.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dphist.private.noise import certified
from dphist.private.noise.keystream import Keystream

Bools = npt.NDArray[np.bool_]

_WORD = 64


class Stay:
    """Coins that come up with probability p: those answers keep the noise they have."""

    def __init__(self, fine: Fraction, coarse: Fraction) -> None:
        self.fine, self.coarse = fine, coarse
        for work in certified.precisions(_WORD + 64):
            low, high = self.bounds(work)
            if low >> (work - _WORD) == high >> (work - _WORD):
                self.floor = low >> (work - _WORD)
                break

    def bounds(self, bits: int) -> tuple[int, int]:
        """Enclose p in units of 2^−bits."""
        # 1 − exp(−x) keeps as many digits as x is large: the guard makes up for scales of up to 2^53.
        work = bits + 128
        one = 1 << work
        step = certified.exp_neg_interval(1 / self.fine - 1 / self.coarse, work)
        coarse = certified.exp_neg_interval(1 / self.coarse, work)
        fine = certified.exp_neg_interval(1 / self.fine, work)
        ratio = certified.ratio_interval(
            (one - coarse[1], one - coarse[0]), (one - fine[1], one - fine[0]), work
        )
        low = (ratio[0] * ratio[0] >> work) * step[0] >> work
        high = -(-(-(-ratio[1] * ratio[1] >> work) * step[1]) >> work)
        return low >> 128, min(-(-high >> 128), 1 << bits)

    def toss(self, keystream: Keystream, count: int) -> Bools:
        """Toss ``count`` coins: 64 bits each, and more where these do not settle it."""
        words = keystream.take(8 * count).view(np.uint64)
        up: Bools = words < np.uint64(min(self.floor, (1 << _WORD) - 1))
        for i in np.flatnonzero(words == np.uint64(min(self.floor, (1 << _WORD) - 1))):
            up[i] = certified.Uniform(keystream, int(words[i]), _WORD).below(self.bounds)
        return up


@lru_cache(maxsize=256)
def stay(fine: tuple[int, int], coarse: tuple[int, int]) -> Stay:
    """Give the coins of two scales, each a numerator and a denominator."""
    return Stay(Fraction(*fine), Fraction(*coarse))
