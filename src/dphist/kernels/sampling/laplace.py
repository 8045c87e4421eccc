"""Loops of the exact samplers: random words and public thresholds in, integers out.

Nothing here rounds a probability. Where the words given do not settle an outcome, the position is handed
back and the caller settles it with more bits (``private/noise``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

# A cell of the table that a threshold cuts: 16 bits do not settle it.
UNSETTLED = -32768


def draw_binary(words: npt.NDArray[np.uint16], cells: npt.NDArray[np.uint16], out: Int64s) -> Int64s:
    """Draw signed integers bit by bit; give back the (level · n + i) that sixteen bits did not settle.

    Level l of draw i is one where ``words[l · n + i] < cells[l]`` and unsettled where they are equal. The
    last level is the sign (a one takes the complement), the one before it is only ever unsettled.
    """
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
    """Tabulate the digit of every cell that no threshold cuts: ``first`` plus the thresholds below it."""
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
    """Settle digits with 64 more bits each; give back which entries of ``positions`` need big integers.

    The floors are ⌊C·2^80⌋ of the thresholds C, split in 16 and 64 bits; ``below`` says where a cell's begin.
    U ≥ C when the 80 bits of U exceed the floor, U < C when they are less; equal is a tie. In a tailed ladder
    the first and last outcomes stand for an infinite tail and are handed back too.
    """
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
    """Add a block of noise to the values: the last row of digits is signed, eight bits each below it.

    With top digit y and low digits l the noise is 256^J·y + l for y ≥ 0 and 256^J·y + (256^J − 1 − l) below.
    """
    n = len(values)
    lows = len(digits) - 1
    high = digits[lows, :n].astype(np.int64)
    low = np.zeros(n, dtype=np.int64)
    for level in range(lows):
        low |= digits[level, :n].astype(np.int64) << (8 * level)
    shift = 8 * lows
    low ^= (high >> 63) & ((1 << shift) - 1)
    np.add(values, (high << shift) + low, out=out)


def exp_neg(x: Floats, whole: Floats, parts: Floats) -> Floats:
    """Compute exp(−x) for 0 ≤ x < 64 with a relative error below 2⁻⁴⁹, from IEEE operations alone.

    ``whole[i]`` and ``parts[j]`` are exp(−i) and exp(−j/64) rounded to doubles. Splitting x = i + j/64 + g is
    exact (each subtraction removes leading bits), with 0 ≤ g < 1/64. The Taylor polynomial of degree 6 leaves
    out less than g⁷/5040 < 2⁻⁵⁴; evaluated by Horner each of its roundings is damped by g except the last,
    less than 2⁻⁵² together. Two table roundings and two products add 4·2⁻⁵³. No library function whose
    rounding we would have to believe.
    """
    i = x.astype(np.int64)
    rest = x - i
    j = (rest * 64.0).astype(np.int64)
    g = rest - j * 0.015625
    series = np.full(np.shape(g), 1.0 / 720.0)
    for term in (-1.0 / 120.0, 1.0 / 24.0, -1.0 / 6.0, 0.5, -1.0, 1.0):
        series = series * g + term
    return np.asarray(whole[i] * parts[j] * series, dtype=np.float64)


def high_product(a: Words, b: Words) -> Words:
    """Multiply 64-bit words and give the upper 64 bits of every product."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a_low, a_high = a & mask, a >> half
    b_low, b_high = b & mask, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return np.asarray(a_high * b_high + (middle >> half) + (other >> half), dtype=np.uint64)


@np.errstate(over="ignore")
def select_parts(
    scores: Int64s,
    starts: Int64s,
    rates: Floats,
    words: Words,
    whole: Floats,
    parts: Floats,
    out: Int64s,
) -> Int64s:
    """Choose one candidate a part by inverting its cumulative weights; give back the parts left undecided.

    In part p let d be the exact distance of a score from the best (as uint64, so no range of int64 scores
    overflows) and w* = 2^S·exp(−rate·d) its true weight. The computed w = ⌊2^S·ê⌋ differs from it by little:

    - the rate, d and their product are each rounded (a divided rate twice more): x̂ = rate·d·(1 + δ) with
      |δ| < 5.01·2⁻⁵³, so below 64 |x̂ − x| < 2⁻⁴⁴; with `exp_neg`'s 2⁻⁴⁹ the relative error is below 2⁻⁴³;
    - rounding down takes less than 1; where x̂ ≥ 64, w = 0 and w* < 2⁶⁰·2⁻⁹² < 1.

    S ≤ 60 is chosen so that the total T is below 2⁶³. Every sum of weights, T included, is therefore within
    D = ⌊T/2⁴²⌋ + 2n + 2 of its true value, and with U in [u, u + 1]·2⁻⁶⁴ the true target U·T* lies
    within D + 2 of t = ⌊uT/2⁶⁴⌋, and boundaries within D of theirs. A choice is made only if t is further
    than 4D + 4 from both ends of its candidate's stretch (the outer ends of the part are exact: 0 and T*).
    Otherwise the part is handed back, and the caller decides with the same u and more bits.
    """
    # Who has no candidate stays undecided.
    full = np.flatnonzero(np.diff(starts))
    first, sizes = starts[full], np.diff(starts)[full]
    part = np.repeat(np.arange(len(full)), sizes)
    best = np.maximum.reduceat(scores, first)
    # Differences of words wrap around to what they are.
    x = rates[full][part] * (best[part].view(np.uint64) - scores.view(np.uint64)).astype(np.float64)
    near = x < 64.0
    weights = np.zeros(len(scores))
    weights[near] = exp_neg(x[near], whole, parts)
    unit = np.full(len(full), 1152921504606846976.0)  # 2^60
    total = np.add.reduceat(weights, first)
    # At most 2^62, so that rounding cannot carry T past 2^63.
    while (large := total * unit > 4611686018427387904.0).any():
        unit[large] *= 0.5
    grains = (weights * unit[part]).astype(np.int64)
    running = np.cumsum(grains.view(np.uint64))
    following = (running - (running - grains.view(np.uint64))[first][part]).view(np.int64)
    T = following[first + sizes - 1]
    t = high_product(words[full], T.view(np.uint64)).view(np.int64)
    slack = 4 * ((T >> 42) + 2 * sizes + 2) + 4
    chosen = np.minimum(np.add.reduceat((following <= t[part]).astype(np.int64), first), sizes - 1)
    end = following[first + chosen]
    begin = end - grains[first + chosen]
    sure = np.zeros(len(out), dtype=np.bool_)
    sure[full] = ((chosen == 0) | (t - begin > slack)) & ((chosen == sizes - 1) | (end - t > slack))
    out[full] = chosen
    return np.flatnonzero(~sure)
