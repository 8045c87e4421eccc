"""Loops of the discrete Gaussian sampler: random words and public thresholds in, integers out.

Nothing here rounds a probability. Where the words given do not settle a draw, its place is handed back and the caller
settles it with more bits (`dphist.private.noise.gaussian`, which has the proof).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dphist.kernels.sampling.laplace import exp_neg

Int64s = npt.NDArray[np.int64]
Int16s = npt.NDArray[np.int16]
Uint16s = npt.NDArray[np.uint16]
Uint64s = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


def place_in_blocks(
    blocks: Int16s, coins: Uint16s, offsets: Uint64s, sure: Uint16s, first: int, shift: int, out: Int64s
) -> npt.NDArray[np.int32]:
    """Put every draw at an offset inside its block; give back the draws whose coin does not settle that it stays.

    Block y holds y·2^shift + r for y ≥ 0 and its mirror −1 − ((−1 − y)·2^shift + r) below, r being the low bits of the
    offset. A coin below ``sure[y − first]`` says that the draw stays wherever in the block it is.
    """
    y = blocks[: len(out)].astype(np.int64)
    sign = y >> 63
    mask = np.uint64((1 << shift) - 1)
    np.bitwise_xor(((y ^ sign) << shift) | (offsets[: len(out)] & mask).astype(np.int64), sign, out=out)
    return np.flatnonzero(coins[: len(out)] >= sure[y - first]).astype(np.int32)


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
    x = drawn[positions]
    below = x < 0
    magnitude = np.where(below, ~x, x)
    r = (magnitude & ((1 << shift) - 1)).astype(np.float64)
    base = ((magnitude >> shift) << shift).astype(np.float64) + below
    e = r * (2.0 * base + r) * rate
    far = e >= 64.0
    e[far] = 0.0
    chance = exp_neg(e, whole, parts)
    u = (coins[positions].astype(np.float64) + words.astype(np.float64) * 5.421010862427522e-20) / 65536.0
    gap = chance - u
    verdicts[:] = np.where(gap > 9.094947017729282e-13, 1, np.where(gap < -9.094947017729282e-13, 0, -1))
    verdicts[far] = -1
