"""Sums that no engine can wrap: high and low bits of whole numbers, added up by themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphist.sources.engine import LARGEST_SUM, Integers

# What separates the high bits of an amount from its low ones: neither sum reaches 2^63, however many rows there are.
_HALF = 1 << 30


def halves(table: Any, amounts: list[str]) -> dict[str, Any]:
    """The sums of whole numbers, their high and their low bits by themselves: an engine may wrap what is too large.

    However it rounds the quotient of a negative number, the two halves make the number again.
    """
    sums: dict[str, Any] = {}
    for place, name in enumerate(amounts):
        high = (table[name] // _HALF).cast("int64")
        sums |= {f"h{place}": high.sum(), f"l{place}": (table[name] - high * _HALF).sum()}
    return sums


def added_halves(answer: Any, amounts: int) -> list[Integers]:
    """The sums that their halves make, cut where 64 bits would not hold them."""
    sums = []
    for place in range(amounts):
        high, low = (answer.column(f"{half}{place}").to_pylist() for half in "hl")
        whole = [int(a) * _HALF + int(b) for a, b in zip(high, low, strict=True)]
        sums.append(np.array([max(-LARGEST_SUM, min(LARGEST_SUM, each)) for each in whole], dtype=np.int64))
    return sums
