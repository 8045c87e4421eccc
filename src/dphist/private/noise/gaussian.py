"""The discrete Gaussian distribution, exact: P(k) ∝ exp(−k²/2v) for any rational v > 0.

**Blocks.** Cut the integers into blocks of w = 2^j: block y ≥ 0 holds k = wy + r and block y < 0 the mirror image
k = −1 − (w(−1 − y) + r), r = 0 … w − 1; so |k| = b + r with b = wy, or b = w(−1 − y) + 1. Draw a block with probability
∝ q(y) = exp(−b²/2v), the weight of its heaviest place; draw r uniformly (j bits); keep the place with probability
exp(−((b + r)² − b²)/2v) = exp(−r(2b + r)/2v), else start again. What is kept has probability ∝ exp(−k²/2v): rejection
sampling. j is the largest with w ≤ √v ÷ fineness, so few draws are rejected (about 0.4 · w/√v of them), and none if
w = 1: then r = 0.

**The block** is drawn by inversion from a table, like the digits of the Laplace sampler: sixteen bits index a cell,
most cells lie wholly inside one block, 64 more bits settle the others. The thresholds C_y = Σ_{i ≤ y} q(i) ÷ Σ q are
enclosed by integers (`_cumulated`), and their first 80 bits are certified. Blocks beyond the table are not cut off:
they are found by comparing the same U with further thresholds, computed when they are needed (`_settle`).

**The coin.** For most draws sixteen bits settle that they stay wherever in the block they are: the smallest chance of a
block, at r = w − 1, is tabulated, rounded down. The others (about one in a hundred) are decided with 64 more bits in
floating point with a proven error (`kernels.sampling.gaussian.judge`); what is nearer than that error to the chance
itself, and every tail, by integers of any length. No float decides anything that it could get wrong.

The time taken depends on the variance and on the random bits, never on counts.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
import numpy.typing as npt

from dphist.kernels.sampling import gaussian as sampling
from dphist.private.noise import certified
from dphist.private.noise.certified import FLOOR
from dphist.private.noise.keystream import Keystream
from dphist.private.noise.laplace import Ladder, wrapped
from dphist.private.noise.selection import EXP_PARTS, EXP_WHOLE

Int64s = npt.NDArray[np.int64]
Interval = tuple[int, int]

# Blocks a deviation: many draws are worth a large table, few are not.
FINE, COARSE = 64, 6


class BlockGaussian:
    """Draws by blocks for one variance."""

    def __init__(self, variance: Fraction, fineness: int) -> None:
        self.variance = variance
        self.shift = 0
        while fineness**2 << 2 * (self.shift + 1) <= variance:
            self.shift += 1
        self.width = 1 << self.shift
        # 7.3 deviations: what lies beyond the table is met less than once in 10^12 draws.
        self.reach = int(7.3 * float(isqrt(int(variance / self.width**2)) + 1)) + 2
        last = self.reach - 1
        floors = certified.certified_floors(
            FLOOR + 64, lambda work: self._thresholds(-self.reach, last, work)
        )
        self.ladder = Ladder.of(floors, -self.reach, True)
        # Where a block is one place there is nothing to stay in, and the variance may be smaller than any float.
        self.sure = self._sure() if self.shift else np.empty(0, dtype=np.uint16)
        self.rate = float(1 / (2 * variance)) if self.shift else 0.0

    def _cumulated(self, work: int) -> tuple[list[Interval], int, Interval]:
        """Enclose Σ_{i ≤ y} q(i) for y = −end … end − 1 in units of 2^−work, and Σ q.

        On either side q(y + 1) ÷ q(y) = exp(−(2b + w)w/2v) shrinks by the same factor exp(−w²/v) every time: two
        products a block. With ends at most 1, a product of lower ends rounded down lies below the true one by at most
        the sum of their gaps plus one unit. The sums go so far that (w·end)²/2v ≥ work; there q ≤ e^−work, the ratio of
        neighbours is below exp(−w√(2·work/v)) < 0.999 (w/√v > 1/200), and all that is left out, 1000·e^−work at most,
        is below 2^−work: one unit covers each tail.
        """
        w, v = self.width, self.variance
        end = isqrt(int(2 * v * work / w**2)) + 2
        fall = certified.exp_neg_interval(Fraction(w * w) / v, work)
        sides = []
        for nearest in (0, 1):
            low, high = certified.exp_neg_interval(Fraction(nearest) / (2 * v), work)
            gap = high - low
            ratio = certified.exp_neg_interval(Fraction((2 * nearest + w) * w) / (2 * v), work)
            factor, slack = ratio[0], ratio[1] - ratio[0]
            weights = []
            for _ in range(end):
                weights.append((low, min(low + gap, 1 << work)))
                low, gap = low * factor >> work, gap + slack + 1
                factor, slack = factor * fall[0] >> work, slack + fall[1] - fall[0] + 1
            sides.append(weights)
        right, left = sides
        reached, sums = (0, 1), []
        for lo, hi in [*reversed(left), *right]:
            reached = (reached[0] + lo, reached[1] + hi)
            sums.append(reached)
        return sums, end, (reached[0], reached[1] + 1)

    def _thresholds(self, first: int, last: int, work: int) -> list[Interval]:
        """Enclose C_first … C_last in units of 2^−work; none reaches 0 or 1, as there is weight on either side."""
        sums, end, total = self._cumulated(work)
        found = []
        for y in range(first, last + 1):
            lo, hi = sums[y + end] if -end <= y < end else ((0, 1) if y < 0 else total)
            low, high = certified.ratio_interval((lo, hi), total, work)
            found.append((max(low, 0), min(high + 1, 1 << work)))
        return found

    def _sure(self) -> npt.NDArray[np.uint16]:
        """For every block of the table the smallest chance to stay, as sixteen bits, rounded down.

        In floating point, and then lower by two of its units of 2⁻¹⁶: rounding errors are a billion times smaller.
        """
        y = np.arange(-self.reach, self.reach + 1, dtype=np.float64)
        base = np.where(y < 0, (-1.0 - y) * self.width + 1.0, y * self.width)
        last = float(self.width - 1)
        probability = np.exp(-last * (2.0 * base + last) / (2.0 * float(self.variance)))
        sure = np.floor(np.maximum(probability * 65536.0 - 2.0, 0.0)).astype(np.uint16)
        # The ends stand for tails, whose draws are settled elsewhere.
        sure[0] = sure[-1] = 0
        return sure

    def add(self, keystream: Keystream, values: Int64s, out: Int64s) -> None:
        """Write values + noise for one flat block; ``out`` may be ``values``."""
        np.add(values, self.draw(keystream, len(values)), out=out)

    def draw(self, keystream: Keystream, count: int) -> Int64s:
        """Draw ``count`` integers."""
        # The few past the end go unused.
        blocks = np.empty((count + 3) // 4 * 4, dtype=np.int16)
        tails = [
            (i, self._settle(prefix, keystream))
            for i, prefix in self.ladder.draw(keystream, blocks)
            if i < count
        ]
        drawn = self._inside(keystream, blocks, count) if self.shift else blocks[:count].astype(np.int64)
        for i, y in tails:
            # Settled by integers alone, whatever was put down for them.
            drawn[i] = self._placed(y, keystream)
        return drawn

    def _inside(self, keystream: Keystream, blocks: npt.NDArray[np.int16], count: int) -> Int64s:
        """Place the draws in their blocks, and draw those anew that may not stay."""
        drawn = np.empty(count, dtype=np.int64)
        coins = keystream.take(2 * count).view(np.uint16)
        offsets = self._offsets(keystream, count)
        open_draws = sampling.place_in_blocks(
            blocks, coins, offsets, self.sure, self.ladder.first, self.shift, drawn
        )
        if not len(open_draws):
            return drawn
        words = keystream.take(8 * len(open_draws)).view(np.uint64)
        verdicts = np.empty(len(open_draws), dtype=np.int8)
        sampling.judge(drawn, open_draws, words, coins, self.shift, self.rate, EXP_WHOLE, EXP_PARTS, verdicts)
        for j in np.flatnonzero(verdicts < 0):
            i = int(open_draws[j])
            prefix = int(coins[i]) << 64 | int(words[j])
            verdicts[j] = self._stays(int(drawn[i]), certified.Uniform(keystream, prefix, 80))
        rejected = open_draws[verdicts == 0]
        if len(rejected):
            drawn[rejected] = self.draw(keystream, len(rejected))
        return drawn

    def _offsets(self, keystream: Keystream, count: int) -> npt.NDArray[np.uint64]:
        """Uniform words of at least as many bits as a block has places."""
        for kind, bits in ((np.uint8, 8), (np.uint16, 16), (np.uint32, 32)):
            if self.shift <= bits:
                return keystream.take(count * bits // 8).view(kind).astype(np.uint64)
        return keystream.take(8 * count).view(np.uint64)

    def _stays(self, x: int, uniform: certified.Uniform) -> bool:
        magnitude = ~x if x < 0 else x
        r = magnitude & (self.width - 1)
        base = magnitude - r + (1 if x < 0 else 0)
        power = Fraction(r * (2 * base + r)) / (2 * self.variance)
        return uniform.below(lambda bits: certified.exp_neg_interval(power, bits))

    def _placed(self, y: int, keystream: Keystream) -> np.int64:
        """Finish a draw in block y by integers of any length."""
        r = keystream.integer(self.shift) if self.shift else 0
        magnitude = ((-1 - y if y < 0 else y) << self.shift) | r
        x = ~magnitude if y < 0 else magnitude
        if not self.shift or self._stays(x, certified.Uniform(keystream)):
            return wrapped(x)
        return np.int64(self.draw(keystream, 1)[0])

    def _settle(self, prefix: int, keystream: Keystream) -> int:
        """Decide a block from 80 bits that end in a tie or in a tail: the least y with U < C_y."""
        uniform = certified.Uniform(keystream, prefix, FLOOR)
        floors = self.ladder.floors
        # Thresholds well below U need no second look.
        y = self.ladder.first + sum(floor < prefix for floor in floors)
        if y == self.ladder.first and uniform.below(self._bounds(y)):
            # The lower tail: on, downwards, as long as U lies below the threshold before.
            while uniform.below(self._bounds(y - 1)):
                y -= 1
            return y
        while not uniform.below(self._bounds(y)):
            y += 1
        return y

    def _bounds(self, y: int) -> certified.Bounds:
        def enclose(bits: int) -> Interval:
            work = bits + 64
            ((low, high),) = self._thresholds(y, y, work)
            return low >> 64, -(-high >> 64)

        return enclose


# Keyed by numerator and denominator, because hashing a Fraction costs as much as a small draw.
@lru_cache(maxsize=256)
def blocks(numerator: int, denominator: int, fineness: int) -> BlockGaussian:
    """Give the blocks of variance numerator/denominator."""
    return BlockGaussian(Fraction(numerator, denominator), fineness)
