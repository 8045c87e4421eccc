"""Compiled loops of the exact samplers: random words and public thresholds in, integers out.

Nothing here rounds a probability. Where the words given do not settle an outcome, the position is handed
back and the caller settles it with more bits (``private/noise``).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dphist.kernels.compile import kernel, kernel_with_twin
from dphist.kernels.sampling import twins as sampling_twins
from dphist.kernels.sampling.twins import UNSETTLED

Int64s = npt.NDArray[np.int64]


@kernel_with_twin(sampling_twins.draw_binary)
def draw_binary(words: npt.NDArray[np.uint16], cells: npt.NDArray[np.uint16], out: Int64s) -> Int64s:
    """Draw signed integers bit by bit; give back the (level · n + i) that sixteen bits did not settle.

    Level l of draw i is one where ``words[l · n + i] < cells[l]`` and unsettled where they are equal. The
    last level is the sign (a one takes the complement), the one before it is only ever unsettled.
    """
    n = len(out)
    levels = len(cells)
    # Sixteen levels at a time in 16-bit lanes, which the compiler turns into wide comparisons.
    lanes = np.empty(n, np.uint16)
    equal = np.zeros(n, np.uint16)
    for first in range(0, levels - 1, 16):
        lanes[:] = 0
        for level in range(first, min(first + 16, levels - 1)):
            cell = cells[level]
            row = words[level * n : (level + 1) * n]
            bit = np.uint16(1 << (level - first))
            for i in range(n):
                lanes[i] |= bit if row[i] < cell else np.uint16(0)
                equal[i] |= np.uint16(row[i] == cell)
        if first == 0:
            for i in range(n):
                out[i] = lanes[i]
        else:
            for i in range(n):
                out[i] |= np.int64(lanes[i]) << first
    cell = cells[levels - 1]
    row = words[(levels - 1) * n : levels * n]
    open_draws = 0
    for i in range(n):
        out[i] ^= -np.int64(row[i] < cell)
        equal[i] |= np.uint16(row[i] == cell)
        open_draws += equal[i]
    positions = np.empty(open_draws * levels, np.int64)
    found = 0
    if open_draws:
        for i in range(n):
            if equal[i]:
                for level in range(levels):
                    if words[level * n + i] == cells[level]:
                        positions[found] = level * n + i
                        found += 1
    return positions[:found]


@kernel_with_twin(sampling_twins.count_below)
def count_below(cells: npt.NDArray[np.uint16]) -> npt.NDArray[np.int16]:
    """Count for every cell (and one past the last) the thresholds in earlier cells."""
    below = np.zeros(65537, np.int16)
    for cell in cells:
        below[np.int64(cell) + 1] += 1
    for cell in range(65536):
        below[cell + 1] += below[cell]
    return below


@kernel_with_twin(sampling_twins.fill_table)
def fill_table(below: npt.NDArray[np.int16], first: int) -> npt.NDArray[np.int16]:
    """Tabulate the digit of every cell that no threshold cuts: ``first`` plus the thresholds below it."""
    table = np.empty(65536, np.int16)
    for cell in range(65536):
        table[cell] = first + below[cell] if below[cell] == below[cell + 1] else UNSETTLED
    return table


@kernel_with_twin(sampling_twins.look_up)
def look_up(
    words: npt.NDArray[np.uint64], table: npt.NDArray[np.int16], digits: npt.NDArray[np.int16]
) -> npt.NDArray[np.int32]:
    """Read four digits from every word, lowest bits first; give back the positions left unsettled."""
    positions = np.empty(len(digits), np.int32)
    mask = np.uint64(0xFFFF)
    found = 0
    for word in range(len(words)):
        bits = words[word]
        i = 4 * word
        a = table[bits & mask]
        b = table[(bits >> np.uint64(16)) & mask]
        c = table[(bits >> np.uint64(32)) & mask]
        d = table[bits >> np.uint64(48)]
        digits[i] = a
        digits[i + 1] = b
        digits[i + 2] = c
        digits[i + 3] = d
        if a == UNSETTLED:
            positions[found] = i
            found += 1
        if b == UNSETTLED:
            positions[found] = i + 1
            found += 1
        if c == UNSETTLED:
            positions[found] = i + 2
            found += 1
        if d == UNSETTLED:
            positions[found] = i + 3
            found += 1
    return positions[:found]


@kernel_with_twin(sampling_twins.settle_digits)
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
    count = len(rest_floors)
    hard = np.empty(len(positions), np.int64)
    found = 0
    for j in range(len(positions)):
        position = positions[j]
        cell = words[position]
        rest = rests[j]
        low = np.int64(below[cell])
        high = end = np.int64(below[np.int64(cell) + 1])
        while low < high:
            middle = (low + high) >> 1
            if rest_floors[middle] < rest:
                low = middle + 1
            else:
                high = middle
        tie = low < end and rest_floors[low] == rest
        if tie or (tailed and (low == 0 or low == count)):
            digits[position] = 0
            hard[found] = j
            found += 1
        else:
            digits[position] = first + low
    return hard[:found]


@kernel_with_twin(sampling_twins.add_digits)
def add_digits(digits: npt.NDArray[np.int16], values: Int64s, out: Int64s) -> None:
    """Add a block of noise to the values: the last row of digits is signed, eight bits each below it.

    With top digit y and low digits l the noise is 256^J·y + l for y ≥ 0 and 256^J·y + (256^J − 1 − l) below.
    """
    n = len(values)
    lows = digits.shape[0] - 1
    top = digits[lows]
    if lows == 0:
        for i in range(n):
            out[i] = values[i] + top[i]
        return
    # Plain loops over a piece that stays in the nearest cache: the compiler makes each of them wide.
    low = np.empty(1024, np.int64)
    shift = 8 * lows
    mask = (np.int64(1) << shift) - 1
    for start in range(0, n, 1024):
        size = min(1024, n - start)
        for level in range(lows):
            row = digits[level, start : start + size]
            if level == 0:
                for i in range(size):
                    low[i] = row[i]
            else:
                for i in range(size):
                    low[i] |= np.int64(row[i]) << (8 * level)
        signed = top[start : start + size]
        source = values[start : start + size]
        target = out[start : start + size]
        for i in range(size):
            high = np.int64(signed[i])
            target[i] = source[i] + (high << shift) + (low[i] ^ ((high >> 63) & mask))


@kernel
def exp_neg(x: float, whole: npt.NDArray[np.float64], parts: npt.NDArray[np.float64]) -> float:
    """Compute exp(−x) for 0 ≤ x < 64 with a relative error below 2⁻⁴⁹, from IEEE operations alone.

    ``whole[i]`` and ``parts[j]`` are exp(−i) and exp(−j/64) rounded to doubles. Splitting x = i + j/64 + g is
    exact (each subtraction removes leading bits), with 0 ≤ g < 1/64. The Taylor polynomial of degree 6 leaves
    out less than g⁷/5040 < 2⁻⁵⁴; evaluated by Horner each of its roundings is damped by g except the last,
    less than 2⁻⁵² together. Two table roundings and two products add 4·2⁻⁵³. No library function whose
    rounding we would have to believe.
    """
    i = int(x)
    x -= i
    j = int(x * 64.0)
    g = x - j * 0.015625
    series = 1.0 / 720.0
    series = series * g - 1.0 / 120.0
    series = series * g + 1.0 / 24.0
    series = series * g - 1.0 / 6.0
    series = series * g + 0.5
    series = series * g - 1.0
    series = series * g + 1.0
    return float(whole[i] * parts[j] * series)


@kernel
def high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """Multiply two 64-bit words and give the upper 64 bits of the product."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a_low, a_high = a & mask, a >> half
    b_low, b_high = b & mask, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half)


@kernel
def select_parts(
    scores: Int64s,
    starts: Int64s,
    rates: npt.NDArray[np.float64],
    words: npt.NDArray[np.uint64],
    whole: npt.NDArray[np.float64],
    parts: npt.NDArray[np.float64],
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
    undecided = 0
    count = len(starts) - 1
    largest = 0
    for p in range(count):
        largest = max(largest, starts[p + 1] - starts[p])
    weights = np.empty(largest)
    positions = np.empty(count, np.int64)
    for p in range(count):
        begin = starts[p]
        size = starts[p + 1] - begin
        best = scores[begin]
        for i in range(1, size):
            best = max(best, scores[begin + i])
        rate = rates[p]
        total = 0.0
        for i in range(size):
            x = rate * np.float64(np.uint64(best) - np.uint64(scores[begin + i]))
            weight = exp_neg(x, whole, parts) if x < 64.0 else 0.0
            weights[i] = weight
            total += weight
        unit = 1152921504606846976.0  # 2^60
        while total * unit > 4611686018427387904.0:  # 2^62, so that rounding cannot carry T past 2^63
            unit *= 0.5
        T = np.uint64(0)
        for i in range(size):
            T += np.uint64(weights[i] * unit)
        t = np.int64(high_product(words[p], T))
        slack = 4 * (np.int64(T >> np.uint64(42)) + 2 * size + 2) + 4
        reached = np.int64(0)
        chosen = size - 1
        sure = True
        for i in range(size):
            following = reached + np.int64(weights[i] * unit)
            if t < following or i == size - 1:
                chosen = i
                sure = (i == 0 or t - reached > slack) and (i == size - 1 or following - t > slack)
                break
            reached = following
        out[p] = chosen
        if not sure:
            positions[undecided] = p
            undecided += 1
    return positions[:undecided]
