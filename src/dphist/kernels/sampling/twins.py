"""The samplers' loops once more in NumPy, bit for bit: they serve small arrays while numba is not loaded.

What each computes, and why no probability is rounded, is said in `dphist.kernels.sampling.laplace`. Here are
comparisons and table look-ups of the same integers, so the outcomes are the same integers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

# A cell of the table that a threshold cuts: 16 bits do not settle it.
UNSETTLED = -32768


def draw_binary(words: npt.NDArray[np.uint16], cells: npt.NDArray[np.uint16], out: Int64s) -> Int64s:
    """Draw signed integers bit by bit; give back what sixteen bits did not settle, draw by draw."""
    rows = words.reshape(len(cells), len(out))
    out[:] = 0
    for level in range(len(cells) - 1):
        out |= (rows[level] < cells[level]).astype(np.int64) << level
    out ^= -(rows[-1] < cells[-1]).astype(np.int64)
    draws, levels = np.nonzero((rows == cells[:, None]).T)
    return np.asarray(levels * len(out) + draws, dtype=np.int64)


def count_below(cells: npt.NDArray[np.uint16]) -> npt.NDArray[np.int16]:
    """Count for every cell (and one past the last) the thresholds in earlier cells."""
    return np.cumsum(np.bincount(cells.astype(np.int64) + 1, minlength=65537)).astype(np.int16)


def fill_table(below: npt.NDArray[np.int16], first: int) -> npt.NDArray[np.int16]:
    """Tabulate the digit of every cell that no threshold cuts."""
    whole = below[:-1] == below[1:]
    return np.where(whole, below[:-1] + np.int64(first), UNSETTLED).astype(np.int16)


def look_up(
    words: npt.NDArray[np.uint64], table: npt.NDArray[np.int16], digits: npt.NDArray[np.int16]
) -> npt.NDArray[np.int32]:
    """Read four digits from every word, lowest bits first; give back the positions left unsettled."""
    # Little-endian wherever this runs: the lowest sixteen bits come first in memory.
    np.take(table, words.astype("<u8", copy=False).view("<u2"), out=digits)
    return np.flatnonzero(digits == UNSETTLED).astype(np.int32)


def settle_digits(
    words: npt.NDArray[np.uint16],
    positions: npt.NDArray[np.int32],
    rests: npt.NDArray[np.uint64],
    below: npt.NDArray[np.int16],
    rest_floors: npt.NDArray[np.uint64],
    first: int,
    tailed: bool,
    digits: npt.NDArray[np.int16],
) -> Int64s:
    """Settle digits with 64 more bits each; give back which entries of ``positions`` need big integers."""
    cells = words[positions].astype(np.int64)
    low, end = below[cells].astype(np.int64), below[cells + 1].astype(np.int64)
    high = end.copy()
    # One step of every binary search at a time; those that are done stay where they are.
    while (searching := low < high).any():
        middle = (low + high) >> 1
        above = searching & (rest_floors[np.minimum(middle, len(rest_floors) - 1)] < rests)
        low = np.where(above, middle + 1, low)
        high = np.where(searching & ~above, middle, high)
    tie = (low < end) & (rest_floors[np.minimum(low, len(rest_floors) - 1)] == rests)
    hard = tie | (tailed & ((low == 0) | (low == len(rest_floors))))
    digits[positions] = np.where(hard, 0, first + low)
    return np.flatnonzero(hard)


def add_digits(digits: npt.NDArray[np.int16], values: Int64s, out: Int64s) -> None:
    """Add a block of noise to the values: the last row of digits is signed, eight bits each below it."""
    n = len(values)
    lows = len(digits) - 1
    high = digits[lows, :n].astype(np.int64)
    low = np.zeros(n, dtype=np.int64)
    for level in range(lows):
        low |= digits[level, :n].astype(np.int64) << (8 * level)
    shift = 8 * lows
    low ^= (high >> 63) & ((1 << shift) - 1)
    np.add(values, (high << shift) + low, out=out)


def place_in_blocks(
    blocks: npt.NDArray[np.int16],
    coins: npt.NDArray[np.uint16],
    offsets: npt.NDArray[np.uint64],
    sure: npt.NDArray[np.uint16],
    first: int,
    shift: int,
    out: Int64s,
) -> npt.NDArray[np.int32]:
    """Put every draw at an offset inside its block; give back those whose coin does not settle that it stays."""
    y = blocks[: len(out)].astype(np.int64)
    sign = y >> 63
    mask = np.uint64((1 << shift) - 1)
    np.bitwise_xor(((y ^ sign) << shift) | (offsets[: len(out)] & mask).astype(np.int64), sign, out=out)
    return np.flatnonzero(coins[: len(out)] >= sure[y - first]).astype(np.int32)


def judge(
    drawn: Int64s,
    positions: npt.NDArray[np.int32],
    words: npt.NDArray[np.uint64],
    coins: npt.NDArray[np.uint16],
    shift: int,
    rate: float,
    whole: npt.NDArray[np.float64],
    parts: npt.NDArray[np.float64],
    verdicts: npt.NDArray[np.int8],
) -> None:
    """Decide with 80 bits whether draws stay: 1 stays, 0 goes, −1 is too close to call."""
    x = drawn[positions]
    below = x < 0
    magnitude = np.where(below, ~x, x)
    r = (magnitude & ((1 << shift) - 1)).astype(np.float64)
    base = ((magnitude >> shift) << shift).astype(np.float64) + below
    e = r * (2.0 * base + r) * rate
    far = e >= 64.0
    e[far] = 0.0
    i = e.astype(np.int64)
    rest = e - i
    j = (rest * 64.0).astype(np.int64)
    g = rest - j * 0.015625
    series = np.full(len(g), 1.0 / 720.0)
    for term in (-1.0 / 120.0, 1.0 / 24.0, -1.0 / 6.0, 0.5, -1.0, 1.0):
        series = series * g + term
    chance = whole[i] * parts[j] * series
    u = (coins[positions].astype(np.float64) + words.astype(np.float64) * 5.421010862427522e-20) / 65536.0
    gap = chance - u
    verdicts[:] = np.where(gap > 9.094947017729282e-13, 1, np.where(gap < -9.094947017729282e-13, 0, -1))
    verdicts[far] = -1
