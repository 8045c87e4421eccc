"""Compiled loops of the discrete Gaussian sampler: random words and public thresholds in, integers out.

Nothing here rounds a probability. Where the words given do not settle a draw, its place is handed back and the caller
settles it with more bits (`dphist.private.noise.gaussian`, which has the proof).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.sampling import twins
from dphist.kernels.sampling.laplace import exp_neg

Int64s = npt.NDArray[np.int64]
Int16s = npt.NDArray[np.int16]
Uint16s = npt.NDArray[np.uint16]
Uint64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


@kernel_with_twin(twins.place_in_blocks)
def place_in_blocks(
    blocks: Int16s, coins: Uint16s, offsets: Uint64s, sure: Uint16s, first: int, shift: int, out: Int64s
) -> npt.NDArray[np.int32]:
    """Put every draw at an offset inside its block; give back the draws whose coin does not settle that it stays.

    Block y holds y·2^shift + r for y ≥ 0 and its mirror −1 − ((−1 − y)·2^shift + r) below, r being the low bits of the
    offset. A coin below ``sure[y − first]`` says that the draw stays wherever in the block it is.
    """
    n = len(out)
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    found = 0
    positions = np.empty(n, np.int32)
    for i in range(n):
        y = np.int64(blocks[i])
        sign = y >> 63
        magnitude = ((y ^ sign) << shift) | np.int64(offsets[i] & mask)
        out[i] = magnitude ^ sign
        if coins[i] >= sure[y - first]:
            positions[found] = i
            found += 1
    return positions[:found]


@kernel_with_twin(twins.judge)
def judge(
    drawn: Int64s,
    positions: npt.NDArray[np.int32],
    words: Uint64s,
    coins: Uint16s,
    shift: int,
    rate: float,
    whole: Floats,
    parts: Floats,
    verdicts: npt.NDArray[np.int8],
) -> None:
    """Decide with 80 bits whether draws stay: 1 stays, 0 goes, −1 is too close to call.

    With m = |x| (for x ≥ 0) or |x| = m (below zero), r its distance from the block's nearest end b and
    e = r(2b + r)·rate, the draw stays if U < exp(−e), where U starts with the coin's 16 bits and then the word's 64.
    The float e is off by less than 2⁻⁵⁰ of itself (three roundings and the rate's), e ≤ 64, and `exp_neg` by 2⁻⁴⁹:
    together below 2⁻⁴³; U as a float by 2⁻⁵². Anything nearer than 2⁻⁴⁰ is handed back.
    """
    mask = (np.int64(1) << shift) - 1
    for j in range(len(positions)):
        x = drawn[positions[j]]
        below = x < 0
        magnitude = ~x if below else x
        r = np.float64(magnitude & mask)
        base = np.float64((magnitude >> shift) << shift) + (1.0 if below else 0.0)
        e = r * (2.0 * base + r) * rate
        if e >= 64.0:
            verdicts[j] = -1
            continue
        chance = exp_neg(e, whole, parts)
        u = (np.float64(coins[positions[j]]) + np.float64(words[j]) * 5.421010862427522e-20) / 65536.0
        gap = chance - u
        if gap > 9.094947017729282e-13:
            verdicts[j] = 1
        elif gap < -9.094947017729282e-13:
            verdicts[j] = 0
        else:
            verdicts[j] = -1
