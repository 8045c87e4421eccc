"""Numbers as small codes, packed bit by bit: what a large Parquet file is made of.

A column of a large release has few different values for its length: whole numbers, or multiples of a power of two.
Codes are looked up by position instead of by hash, which is what makes it quick.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]


@kernel
def multiples(values: FloatArray, inverse: float) -> tuple[bool, float, float]:
    """Whether all values times ``inverse`` are whole, and the least and the largest of these."""
    low = np.inf
    high = -np.inf
    for begin in range(0, values.size, 4096):
        odd = 0
        for i in range(begin, min(begin + 4096, values.size)):
            scaled = values[i] * inverse
            # Not a number equals nothing, and infinities are told by the range.
            odd += np.floor(scaled) != scaled
            low = min(low, scaled)
            high = max(high, scaled)
        if odd:
            return False, 0.0, 0.0
    return True, low, high


@kernel
def mark(values: FloatArray, inverse: float, base: int, present: NDArray[np.uint8]) -> None:
    """Mark which multiples occur, counted from ``base``."""
    for i in range(values.size):
        present[np.int64(values[i] * inverse) - base] = 1


@kernel
def pack(
    values: FloatArray,
    inverse: float,
    base: int,
    codes: NDArray[np.uint32],
    width: int,
    words: NDArray[np.uint64],
) -> None:
    """Write every value's code in ``width`` bits, the first in the lowest ones; ``words`` has room for all of them."""
    held = np.uint64(0)
    filled = 0
    place = 0
    for i in range(values.size):
        code = np.uint64(codes[np.int64(values[i] * inverse) - base])
        held |= code << np.uint64(filled)
        filled += width
        if filled >= 64:
            words[place] = held
            place += 1
            filled -= 64
            # A shift by all 64 bits is not defined; none are left over then.
            held = code >> np.uint64(width - filled) if filled else np.uint64(0)
    if filled:
        words[place] = held


@kernel
def outward(
    stand: FloatArray,
    widths: FloatArray,
    published: FloatArray,
    step: float,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Bounds so far to either side, never negative, holding what is published, rounded outward to multiples of a step.

    One width for all, or one for each. As `dphist.inference.estimate.around` has it, in one pass.
    """
    inverse, one = 1.0 / step, widths.size == 1
    for i in range(stand.size):
        width = widths[0] if one else widths[i]
        below = min(max(stand[i] - width, 0.0), max(published[i], 0.0))
        above = max(max(stand[i] + width, 0.0), published[i])
        low[i] = np.floor(below * inverse) * step
        high[i] = np.ceil(above * inverse) * step
