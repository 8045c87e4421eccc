"""Coins for more cells than can be visited: where independent coins of one small probability come up.

The coin of a cell is that of noise reaching a threshold: p = α^τ/(1 + α) with α = exp(−1/scale). Cells are cut into
blocks of n ≈ 8/p. The number of hits in a block is binomial; it is drawn by comparing a uniform number with the
binomial's distribution function, both known to 64 bits at first and to as many more as it takes (`certified`). Given
the number k, the positions are the first k distinct values of a stream of uniform ones: by symmetry every set of
that size is equally likely. So every probability is exact. The cells that are left after the last whole block are a
block of their own: a cell whose coin is never tossed would betray its record at any ε.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dphist.private.noise.certified import Uniform, certified_floors, exp_neg_interval, ratio_interval
from dphist.private.noise.keystream import Keystream

IntArray = npt.NDArray[np.int64]


def probability(scale: Fraction, threshold: int) -> float:
    """How likely an empty cell passes the threshold: a public number."""
    # Beyond a thousand e^−x is no float; the ratios themselves may be none either.
    rate, reach = (float(min(each / scale, Fraction(1000))) for each in (1, threshold))
    return float(np.exp(-reach) / (1 + np.exp(-rate)))


def hits(keystream: Keystream, cells: int, scale: Fraction, threshold: int) -> IntArray:
    """Toss a coin of probability exactly p for each of the cells; return, ascending, where it came up."""
    # Eight hits are expected in a block: few enough for a short table, enough to make blocks rare.
    block = min(cells, max(1, int(8 / max(probability(scale, threshold), 1e-300))))
    blocks, rest = divmod(cells, block)
    found = [_hits_in_blocks(keystream, block, blocks, scale, threshold)]
    if rest:
        found.append(blocks * block + _hits_in_blocks(keystream, rest, 1, scale, threshold))
    return np.concatenate(found)


def _hits_in_blocks(
    keystream: Keystream, size: int, blocks: int, scale: Fraction, threshold: int
) -> IntArray:
    numbers = _binomial(scale.numerator, scale.denominator, threshold, size).draw(keystream, blocks)
    places = np.empty(0, dtype=np.int64)
    missing = numbers.copy()
    while (short := np.flatnonzero(missing)).size:
        # The next values of each block's stream; those seen before are passed over, and drawn for again.
        owners = np.repeat(short, missing[short])
        places = np.unique(np.concatenate([places, owners * size + _uniform(keystream, size, owners.size)]))
        missing = numbers - np.bincount(places // size, minlength=blocks)
    return places


def _uniform(keystream: Keystream, below: int, count: int) -> IntArray:
    """Draw integers evenly from 0 … below − 1: words of just enough bits, those too large drawn again."""
    out = np.empty(count, dtype=np.int64)
    mask = np.uint64((1 << (below - 1).bit_length()) - 1)
    todo = np.arange(count)
    while todo.size:
        words = keystream.take(8 * todo.size).view(np.uint64) & mask
        fits = words < below
        out[todo[fits]] = words[fits].astype(np.int64)
        todo = todo[~fits]
    return out


class _Binomial:
    """Draws how many of n coins come up: the smallest k with U < F(k), for a uniform U and F the distribution function.

    ``floors[k]`` is ⌊F(k)·2^64⌋ for as many k as it takes to come within one unit of 1. A 64-bit word below
    floors[k] is below F(k) whatever bits follow; a word equal to some floor is settled by more bits.
    """

    def __init__(self, scale: Fraction, threshold: int, size: int) -> None:
        self.rate, self.threshold, self.size = 1 / scale, threshold, size
        # F(k) < 1 is never reached (p is transcendental), as `certified_floors` supposes.
        self.floors = certified_floors(128, self._distribution, 64)
        self.table = np.array(self.floors, dtype=np.uint64)

    def draw(self, keystream: Keystream, count: int) -> IntArray:
        """Draw ``count`` numbers."""
        words = keystream.take(8 * count).view(np.uint64)
        drawn = np.searchsorted(self.table, words, side="right").astype(np.int64)
        tied = np.flatnonzero(self.table[np.maximum(drawn - 1, 0)] == words)
        for i in tied:
            drawn[i] = self._settle(int(words[i]), keystream)
        return drawn

    def _settle(self, word: int, keystream: Keystream) -> int:
        uniform = Uniform(keystream, word, 64)
        k = 0
        while k < self.size:
            floor = self.floors[k] if k < len(self.floors) else (1 << 64) - 1
            if word < floor or (word == floor and uniform.below(self._bounds(k))):
                break
            k += 1
        return k

    def _bounds(self, k: int) -> Callable[[int], tuple[int, int]]:
        """Enclose F(k) at any precision."""

        def enclose(bits: int) -> tuple[int, int]:
            low, high = self._distribution(bits + 16, k)[-1]
            return low >> 16, min(-(-high >> 16), 1 << bits)

        return enclose

    def _distribution(self, work: int, last: int | None = None) -> list[tuple[int, int]]:
        """Enclose F(0), F(1), … in units of 2^−work: up to ``last``, or until one unit of 2^−64 is left.

        Every operation rounds the lower end down and the upper end up, so the ends enclose the truth at any
        precision; the guard only decides how close they come. The power (1 − p)^n loses about log₂ n bits.
        """
        guard = work + self.size.bit_length() + 24
        one = 1 << guard
        top = exp_neg_interval(self.rate * self.threshold, guard + 8)
        alpha = exp_neg_interval(self.rate, guard + 8)
        bottom = ((one << 8) + alpha[0], (one << 8) + alpha[1])
        p_low, p_high = ratio_interval(top, bottom, guard)
        q_low, q_high = one - p_high, min(one - p_low, one)
        low, high = _power(q_low, self.size, guard, up=False), _power(q_high, self.size, guard, up=True)
        down = guard - work
        found = [(low >> down, min(-(-high >> down), 1 << work))]
        sum_low, sum_high, k = low, high, 0
        enough = (1 << work) - (1 << max(0, work - 64))
        # F(n) = 1 needs no threshold: whatever passes all others is n.
        while k + 1 < self.size and (k < last if last is not None else found[-1][0] < enough):
            low = low * (self.size - k) * p_low // ((k + 1) * q_high)
            high = -(-high * (self.size - k) * p_high // ((k + 1) * q_low))
            sum_low, sum_high, k = sum_low + low, sum_high + high, k + 1
            found.append((sum_low >> down, min(-(-sum_high >> down), 1 << work)))
        return found


def _power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """Raise a fixed-point number in [0, 1] to a power, rounding one way throughout."""
    result = 1 << bits
    while exponent:
        if exponent & 1:
            result = -(-result * base >> bits) if up else result * base >> bits
        base = -(-base * base >> bits) if up else base * base >> bits
        exponent >>= 1
    return result


@lru_cache(maxsize=64)
def _binomial(numerator: int, denominator: int, threshold: int, size: int) -> _Binomial:
    return _Binomial(Fraction(numerator, denominator), threshold, size)
