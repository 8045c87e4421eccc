"""The discrete Laplace distribution as independent digits, each exact.

P(k) ∝ exp(−t|k|) with t = 1/scale. Write a = exp(−t). Let G ≥ 0 be geometric, P(G = g) ∝ a^g, and S an
independent coin that is one with probability a/(1 + a). Then X = G if S = 0 and X = −1 − G if S = 1 has the
law we want: P(X = g) = (1 − a)a^g/(1 + a) for g ≥ 0, and P(X = −1 − g) = (1 − a)a^(g+1)/(1 + a). No draw is
rejected and zero is not counted twice.

The digits of G in base B are independent: a^g with g = Σ d_j B^j is Π exp(−t B^j)^(d_j), a product of one
factor per digit. Digit j is a geometric of rate t·B^j cut off at B, and what lies above the last digit, H, is
an uncut geometric of rate T = t·B^J.

Two ways of drawing share this. `BinaryLaplace` (base 2) needs a coin per bit: cheap to set up, for a few
draws. `TabledLaplace` (base 256, S folded into H) needs a table of 65,536 cells per digit: for many.

Either way a decision is a comparison of uniform bits with a threshold whose first 80 bits are certified; on
a tie (probability 2⁻⁸⁰ a threshold) `certified.Uniform` goes on with big integers. The time taken depends
on the scale and on the random bits, never on counts.

**More noise on an answer that has some** (`Stay`): noise of a fine scale becomes noise of a coarse one, exactly. Write
a = exp(−1/coarse) and b = exp(−1/fine), b < a. The noise's generating functions are (1 − a)²/((1 − az)(1 − a/z)) and
the same with b. Their quotient is

    ((1 − a)/(1 − b))² · (1 + b² − b(z + 1/z)) / (1 + a² − a(z + 1/z))
        = p + (1 − p) · (1 − a)²/((1 − az)(1 − a/z)),    p = (b/a) · ((1 − a)/(1 − b))²,

since the numerator is b/a times the denominator plus (1 − b/a)(1 − ab), which does not depend on z. So a draw of the
coarse noise is a draw of the fine one plus an independent rest, which is nothing with probability p and a draw of the
coarse law otherwise (Koufogiannis, Han and Pappas, 2016, have it for continuous noise). Nothing here sees a count.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dphist.kernels.sampling import laplace as sampling
from dphist.private.noise import certified
from dphist.private.noise.certified import FLOOR, REST
from dphist.private.noise.keystream import Keystream

Int64s = npt.NDArray[np.int64]

_REST_MASK = (1 << REST) - 1


def wrapped(value: int) -> np.int64:
    """Reduce an integer modulo 2^64 into int64, as array addition does.

    Wrapping x + noise is a function of x + noise alone, so it costs no privacy; scales are refused long
    before it can happen in practice.
    """
    return np.int64((value + (1 << 63)) % (1 << 64) - (1 << 63))


class BinaryLaplace:
    """Draws by coins, one for every bit of the magnitude, one for the tail above them, one for the sign.

    Bit j is one with probability exp(−t2^j)/(1 + exp(−t2^j)), H ≥ 1 with probability exp(−T), T = t·2^J ≥ 20,
    and then H − 1 has the law of H again. The sign is one with the probability of bit 0.
    """

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate
        self.bits = 0
        # A tail met once in e^20 draws may take microseconds; a smaller rate would meet it in everyday use.
        while rate.numerator << self.bits < 20 * rate.denominator:
            self.bits += 1
        self.floors = certified.certified_floors(FLOOR + 40 + self.bits, self._coins)
        self.cells = np.array([floor >> REST for floor in self.floors], dtype=np.uint16)

    def _coins(self, work: int) -> list[tuple[int, int]]:
        """Enclose the coins' probabilities, each power from the last by squaring.

        In units of 2^−work let x ≤ exp(−t2^j) ≤ x + e. Then the square lies between ⌊x²⌋ and ⌊x²⌋ + 2e + 2:
        rounding down takes one, 2xe is at most 2e, and e² is below one unit because e < 5·2^J < 2^(work/2).
        The slope of p/(1 + p) is at most one, so a coin's interval is wider than e by a rounding only.
        """
        one = 1 << work
        low, high = certified.exp_neg_interval(self.rate, work)
        gap = high - low
        coins: list[tuple[int, int]] = []
        for level in range(self.bits + 1):
            if level:
                low, gap = low * low >> work, 2 * gap + 2
            coin = (low << work) // (one + low)
            coins.append((coin, coin + gap + 1))
        return [*coins[:-1], (low, low + gap), coins[0]]

    def _bounds(self, level: int) -> certified.Bounds:
        if level == self.bits:
            tail = self.rate * (1 << self.bits)
            return lambda bits: certified.exp_neg_interval(tail, bits)
        rate = self.rate * (1 << level) if level < self.bits else self.rate
        return lambda bits: certified.logistic_interval(rate, bits)

    def add(self, keystream: Keystream, values: Int64s, out: Int64s) -> None:
        """Write values + noise for one flat block; ``out`` may be ``values``."""
        levels = len(self.cells)
        n = len(values)
        words = keystream.take(2 * levels * n).view(np.uint16)
        drawn = np.empty(n, dtype=np.int64)
        for position in sampling.draw_binary(words, self.cells, drawn):
            level, i = divmod(int(position), n)
            if self._settle(level, keystream):
                noise = int(drawn[i])
                if level == levels - 1:
                    noise = ~noise
                else:
                    raised = 1 << level
                    if level == self.bits:
                        raised *= 1 + certified.geometric(self.rate * raised, keystream)
                    noise = noise + raised if noise >= 0 else noise - raised
                drawn[i] = wrapped(noise)
        np.add(values, drawn, out=out)

    def _settle(self, level: int, keystream: Keystream) -> bool:
        """Decide a coin whose first sixteen bits equal its threshold's."""
        floor = self.floors[level]
        rest = keystream.integer(REST)
        if rest != floor & _REST_MASK:
            return rest < floor & _REST_MASK
        return certified.Uniform(keystream, floor, FLOOR).below(self._bounds(level))


@dataclass(frozen=True)
class Ladder:
    """The thresholds C_0 < C_1 < … of one digit: outcome o means that o of them are at most U."""

    first: int
    tailed: bool
    cells: npt.NDArray[np.uint16]
    rests: npt.NDArray[np.uint64]
    below: npt.NDArray[np.int16]
    table: npt.NDArray[np.int16]

    @classmethod
    def of(cls, floors: list[int], first: int, tailed: bool) -> Ladder:
        """Tabulate certified floors."""
        cells = np.array([floor >> REST for floor in floors], dtype=np.uint16)
        rests = np.array([floor & _REST_MASK for floor in floors], dtype=np.uint64)
        below = sampling.count_below(cells)
        return cls(first, tailed, cells, rests, below, sampling.fill_table(below, first))

    def draw(self, keystream: Keystream, row: npt.NDArray[np.int16]) -> list[tuple[int, int]]:
        """Fill a row of digits, four times some; gives place and first 80 bits of those in a tie or a tail."""
        # Four digits come from one 64-bit word.
        words = keystream.take(2 * len(row)).view(np.uint64)
        positions = sampling.look_up(words, self.table, row)
        if not len(positions):
            return []
        cells = words.view(np.uint16)
        rests = keystream.take(8 * len(positions)).view(np.uint64)
        hard = sampling.settle_digits(
            cells, positions, rests, self.below, self.rests, self.first, self.tailed, row
        )
        return [(int(positions[j]), int(cells[positions[j]]) << REST | int(rests[j])) for j in hard]

    @property
    def floors(self) -> list[int]:
        """The thresholds' first 80 bits."""
        return [int(cell) << REST | int(rest) for cell, rest in zip(self.cells, self.rests, strict=True)]


class TabledLaplace:
    """Draws by table: sixteen bits index a cell, and most cells lie wholly inside one value.

    The signed top Y is H if S = 0 and −1 − H if S = 1, so with C_k = P(Y ≤ k)
    C_(−m) = a·exp(−T(m − 1))/(1 + a) for m ≥ 1 and C_k = 1 − exp(−T(k + 1))/(1 + a) for k ≥ 0.
    A low digit has P(d < m) = (1 − exp(−t_j m))/(1 − exp(−256 t_j)). Complementing X = −1 − G complements
    every digit, hence X = 256^J·Y + low for Y ≥ 0 and 256^J·Y + (256^J − 1 − low) for Y < 0.
    Beyond ±M the top is memoryless: given Y ≥ M (or ≤ −M), its excess is a fresh geometric of rate T.
    """

    def __init__(self, rate: Fraction) -> None:
        self.rate = rate
        self.lows = 0
        # Digits above scale 200 leave more than 7 % of the table's cells undecided; then another digit is cheaper.
        while rate * 200 * 256**self.lows < 1:
            self.lows += 1
        self.top_rate = rate * 256**self.lows
        # e^−28 is below 2^−40: the tails beyond the tabulated values are met less than once in 10^12 draws.
        self.reach = int(28 / self.top_rate) + 2
        self.ladders = [Ladder.of(_low_floors(rate * 256**j), 0, False) for j in range(self.lows)]
        top = certified.certified_floors(FLOOR + 56, self._tops)
        self.ladders.append(Ladder.of(top, -self.reach, True))

    def _tops(self, work: int) -> list[tuple[int, int]]:
        one = 1 << work
        a = certified.exp_neg_interval(self.rate, work)
        step = certified.exp_neg_interval(self.top_rate, work)
        bottom = (one + a[0], one + a[1])
        below = _decay(certified.ratio_interval(a, bottom, work), step, self.reach, work)
        above = _decay(certified.ratio_interval(step, bottom, work), step, self.reach, work)
        return below[::-1] + [(one - hi, one - lo) for lo, hi in above]

    def _bounds(self, level: int, index: int) -> certified.Bounds:
        if level < self.lows:
            rate = self.rate * 256**level
            return lambda bits: _cut_interval(rate, index + 1, bits)
        k = index - self.reach

        def enclose(bits: int) -> tuple[int, int]:
            work = bits + 8
            one = 1 << work
            a = certified.exp_neg_interval(self.rate, work)
            bottom = (one + a[0], one + a[1])
            power = self.rate + self.top_rate * (-k - 1) if k < 0 else self.top_rate * (k + 1)
            lo, hi = certified.ratio_interval(certified.exp_neg_interval(power, work), bottom, bits)
            return (lo, hi) if k < 0 else ((1 << bits) - hi, (1 << bits) - lo)

        return enclose

    def add(self, keystream: Keystream, values: Int64s, out: Int64s) -> None:
        """Write values + noise for one flat block; ``out`` may be ``values``."""
        # The few digits past the end go unused.
        digits = np.empty((self.lows + 1, (len(values) + 3) // 4 * 4), dtype=np.int16)
        repairs: list[tuple[int, int]] = []
        for level, ladder in enumerate(self.ladders):
            for i, prefix in ladder.draw(keystream, digits[level]):
                digit = self._settle(level, prefix, keystream)
                if level < self.lows:
                    digits[level, i] = digit
                elif i < len(values):
                    repairs.append((i, digit))
        sampling.add_digits(digits, values, out)
        # The top digit of these was put down as zero; a tail may not fit a digit, so it is added here.
        for i, top in repairs:
            low = sum(int(digits[level, i]) << 8 * level for level in range(self.lows))
            size = 1 << 8 * self.lows
            meant = size * top + (low if top >= 0 else size - 1 - low)
            out[i] = wrapped(int(out[i]) + meant - low)

    def _settle(self, level: int, prefix: int, keystream: Keystream) -> int:
        """Decide a digit from 80 bits that end in a tie or in a tail."""
        ladder = self.ladders[level]
        floors = ladder.floors
        # One U for all comparisons: at tiny scales several thresholds share their first 80 bits.
        uniform = certified.Uniform(keystream, prefix, FLOOR)
        outcome = 0
        for index, floor in enumerate(floors):
            if prefix < floor or (prefix == floor and uniform.below(self._bounds(level, index))):
                break
            outcome += 1
        if ladder.tailed and outcome == 0:
            return ladder.first - certified.geometric(self.top_rate, keystream)
        if ladder.tailed and outcome == len(floors):
            return -ladder.first + certified.geometric(self.top_rate, keystream)
        return ladder.first + outcome


def _decay(start: tuple[int, int], step: tuple[int, int], count: int, work: int) -> list[tuple[int, int]]:
    """Enclose start·step^k for k < count.

    Each lower end is the last one times the lower step, rounded down. With x ≤ 1 and step ≤ 1 the gap to the
    truth grows by at most the gap of the step plus one unit: (x + e)(s + f) − ⌊xs⌋ ≤ e + f + 1.
    """
    low, gap = start[0], start[1] - start[0]
    ratio, grow = step[0], step[1] - step[0] + 1
    intervals = []
    for _ in range(count):
        intervals.append((low, low + gap))
        low = low * ratio >> work
        gap += grow
    return intervals


def _cut_interval(rate: Fraction, m: int, bits: int) -> tuple[int, int]:
    """Enclose (1 − exp(−rate·m))/(1 − exp(−256·rate))."""
    # The denominator may be as small as the rate: carry that many bits more.
    work = bits + 8 + (rate.denominator // rate.numerator).bit_length()
    one = 1 << work
    lo, hi = certified.exp_neg_interval(rate * m, work)
    all_lo, all_hi = certified.exp_neg_interval(rate * 256, work)
    low, high = certified.ratio_interval((one - hi, one - lo), (one - all_hi, one - all_lo), bits)
    return low, min(high, 1 << bits)


def _low_floors(rate: Fraction) -> list[int]:
    def enclose(work: int) -> list[tuple[int, int]]:
        one = 1 << work
        powers = _decay((one, one), certified.exp_neg_interval(rate, work), 257, work)
        whole = (one - powers[256][1], one - powers[256][0])
        return [certified.ratio_interval((one - hi, one - lo), whole, work) for lo, hi in powers[1:256]]

    first = FLOOR + 56 + (rate.denominator // rate.numerator).bit_length()
    return certified.certified_floors(first, enclose)


class Stay:
    """Coins that come up with probability p: those answers keep the noise they have."""

    def __init__(self, fine: Fraction, coarse: Fraction) -> None:
        self.fine, self.coarse = fine, coarse
        (self.floor,) = certified.certified_floors(128, lambda work: [self.bounds(work)], 64)

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

    def toss(self, keystream: Keystream, count: int) -> npt.NDArray[np.bool_]:
        """Toss ``count`` coins: 64 bits each, and more where these do not settle it."""
        words = keystream.take(8 * count).view(np.uint64)
        up: npt.NDArray[np.bool_] = words < np.uint64(self.floor)
        for i in np.flatnonzero(words == np.uint64(self.floor)):
            up[i] = certified.Uniform(keystream, int(words[i]), 64).below(self.bounds)
        return up


# Keyed by numerator and denominator, because hashing a Fraction costs as much as a small draw. lru_cache is
# safe between threads and, unlike a lock of our own, across forks.
@lru_cache(maxsize=1024)
def binary(numerator: int, denominator: int) -> BinaryLaplace:
    """Give the coins of scale numerator/denominator."""
    return BinaryLaplace(Fraction(denominator, numerator))


@lru_cache(maxsize=32)
def tabled(numerator: int, denominator: int) -> TabledLaplace:
    """Give the tables of scale numerator/denominator (some 400 KiB a digit)."""
    return TabledLaplace(Fraction(denominator, numerator))


@lru_cache(maxsize=256)
def stay(fine: tuple[int, int], coarse: tuple[int, int]) -> Stay:
    """Give the coins of two scales, each a numerator and a denominator."""
    return Stay(Fraction(*fine), Fraction(*coarse))
