"""Numbers that look random and are the same for everyone: SplitMix64, a hash of 64-bit words."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# 2⁶⁴ over the golden ratio, odd: its multiples lie evenly among all words, and multiplying by it can be undone.
GOLDEN = 0x9E3779B97F4A7C15
# Numbers that are drawn at a time.
_BLOCK = 1 << 18
# Two lanes of every word; the mean and the deviation of a sum of eight uniform numbers of 16 bits.
_LANES, _LOWER = np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
_MEAN, _DEVIATION = 4.0 * 65535.0, math.sqrt(8.0 * (65536.0**2 - 1.0) / 12.0)


def mixed(number: Any) -> Any:
    """Hash 64-bit words, one or an array of them; kernels compile this same function.

    Args:
        number: Unsigned words. Neighbours should be multiples of `GOLDEN` apart.

    Returns:
        As many words.

    Example:
        >>> import numpy as np
        >>> hex(mixed(np.array([GOLDEN], dtype=np.uint64))[0])
        '0xe220a8397b1dcdaf'
    """
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


class Normals:
    """Independent numbers, nearly normal, of mean 0 and variance 1: a function of a public seed and their place.

    Each is the sum of eight uniform numbers of 16 bits, scaled: SplitMix64's, from where a hash of the seed, the number
    of the replicate and that of the call says. Only the scaling is no whole-number arithmetic.

    Args:
        seed: The public seed.
        number: Of the replicate.

    Example:
        >>> Normals(b"a seed", 0)(3).round(3).tolist()
        [0.641, -0.075, 0.169]
    """

    def __init__(self, seed: bytes, number: int) -> None:
        self._seed = seed + number.to_bytes(8, "little")
        self._calls = 0

    def __call__(self, count: int) -> FloatArray:
        """The next ``count`` numbers."""
        key = blake2b(self._seed + self._calls.to_bytes(8, "little"), digest_size=8).digest()
        start, self._calls = int.from_bytes(key, "little"), self._calls + 1
        out = np.empty(count)
        for begin in range(0, count, _BLOCK):
            end = min(begin + _BLOCK, count)
            place = np.arange(2 * begin + 1, 2 * end + 1, dtype=np.uint64)
            words = mixed(place * np.uint64(GOLDEN) + np.uint64(start))
            lanes = (words & _LANES) + ((words >> np.uint64(16)) & _LANES)
            both = lanes[0::2] + lanes[1::2]
            whole = (both & _LOWER) + (both >> np.uint64(32))
            out[begin:end] = (whole.astype(np.float64) - _MEAN) / _DEVIATION
        return out

    def like(self, values: FloatArray) -> FloatArray:
        """As many as there are values, in their shape."""
        return self(values.size).reshape(values.shape)
