"""Numbers that look random and are the same for everyone: SplitMix64, a hash of 64-bit words."""

from __future__ import annotations

from typing import Any

import numpy as np

# 2⁶⁴ over the golden ratio, odd: its multiples lie evenly among all words, and multiplying by it can be undone.
GOLDEN = 0x9E3779B97F4A7C15


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
