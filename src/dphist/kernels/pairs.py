"""Rows side by side by person, each person's in the order of their cells: pairs of whole numbers, sorted.

People are put in the order of their number times an odd constant, which spreads them evenly and takes no two to one
place; so the leading bits of it cut any rows into pieces that fit a cache, and a piece is sorted by itself. One
person's rows are all in one piece, however many they are, and are then merged as any others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.hashing import GOLDEN

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# What undoes multiplying by it.
_BACK = pow(GOLDEN, -1, 2**64)
# Rows of a piece after the first cut and after the second, and how few are sorted by insertion.
_FIRST, _SECOND, _FEW = 4096, 16, 24
_BITS = 12


def _lexicographic(keys: Words, cells: Integers, first: int, second: int) -> tuple[Words, Integers]:
    order = np.lexsort((cells, keys))
    return keys[order], cells[order]


@kernel_with_twin(_lexicographic, cost=0.3)
def _sorted(keys: Words, cells: Integers, first: int, second: int) -> tuple[Words, Integers]:
    """Pairs by their key, then by their cell: cut by ``first`` leading bits, each piece by ``second`` more, merged."""
    size = keys.size
    out = np.empty_like(keys)
    beside = np.empty_like(cells)
    # A shift by all 64 bits is not defined, so the last one is taken by itself.
    begins = np.zeros((1 << first) + 1, np.int64)
    for i in range(size):
        begins[np.int64((keys[i] >> np.uint64(63 - first)) >> np.uint64(1)) + 1] += 1
    for piece in range(1 << first):
        begins[piece + 1] += begins[piece]
    place = begins[:-1].copy()
    for i in range(size):
        mine = np.int64((keys[i] >> np.uint64(63 - first)) >> np.uint64(1))
        at = place[mine]
        place[mine] = at + 1
        out[at] = keys[i]
        beside[at] = cells[i]
    largest = 0
    for piece in range(1 << first):
        largest = max(largest, begins[piece + 1] - begins[piece])
    spare = np.empty(largest, keys.dtype)
    extra = np.empty(largest, cells.dtype)
    ends = np.empty((1 << second) + 1, np.int64)
    mask = np.uint64((1 << second) - 1)
    for piece in range(1 << first):
        low, count = begins[piece], begins[piece + 1] - begins[piece]
        ends[:] = 0
        for i in range(low, low + count):
            ends[np.int64((out[i] >> np.uint64(64 - first - second)) & mask) + 1] += 1
        for part in range(1 << second):
            ends[part + 1] += ends[part]
        for i in range(low, low + count):
            mine = np.int64((out[i] >> np.uint64(64 - first - second)) & mask)
            at = ends[mine]
            ends[mine] = at + 1
            spare[at] = out[i]
            extra[at] = beside[i]
        # After the scatter ``ends`` holds where each part ends.
        start = 0
        for part in range(1 << second):
            stop = ends[part]
            # Runs of a few by insertion, then merged back and forth.
            for begin in range(start, stop, 24):
                end = min(begin + 24, stop)
                for i in range(begin + 1, end):
                    key, cell, at = spare[i], extra[i], i
                    while at > begin and (
                        spare[at - 1] > key or (spare[at - 1] == key and extra[at - 1] > cell)
                    ):
                        spare[at] = spare[at - 1]
                        extra[at] = extra[at - 1]
                        at -= 1
                    spare[at] = key
                    extra[at] = cell
            width, here = 24, True
            while width < stop - start:
                for begin in range(start, stop, 2 * width):
                    middle, end = min(begin + width, stop), min(begin + 2 * width, stop)
                    a, b = begin, middle
                    for at in range(begin, end):
                        if here:
                            left = b >= end or (
                                a < middle
                                and (spare[a] < spare[b] or (spare[a] == spare[b] and extra[a] <= extra[b]))
                            )
                            taken = a if left else b
                            out[low + at] = spare[taken]
                            beside[low + at] = extra[taken]
                        else:
                            left = b >= end or (
                                a < middle
                                and (
                                    out[low + a] < out[low + b]
                                    or (out[low + a] == out[low + b] and beside[low + a] <= beside[low + b])
                                )
                            )
                            taken = a if left else b
                            spare[at] = out[low + taken]
                            extra[at] = beside[low + taken]
                        if left:
                            a += 1
                        else:
                            b += 1
                width, here = 2 * width, not here
            if here:
                for at in range(start, stop):
                    out[low + at] = spare[at]
                    beside[low + at] = extra[at]
            start = stop
    return out, beside


def side_by_side(people: Integers, cells: Integers) -> tuple[Integers, Integers]:
    """The same rows, those of a person one after the other and in the order of their cells.

    Args:
        people: A number for every row. The array is written over: there may be a hundred million of them.
        cells: A number for every row.

    Returns:
        People and cells. In which order people come is not said.

    Example:
        >>> import numpy as np
        >>> people, cells = side_by_side(np.array([7, 4, 7]), np.array([2, 1, 0]))
        >>> cells[people == 7].tolist()
        [0, 2]
    """
    keys = people.view(np.uint64)
    np.multiply(keys, np.uint64(GOLDEN), out=keys)
    first = min(_BITS, max(1, (len(keys) // _FIRST).bit_length()))
    second = min(_BITS, max(1, (len(keys) // (_SECOND << first)).bit_length()))
    spread, ordered = _sorted(keys, np.ascontiguousarray(cells, dtype=np.int64), first, second)
    np.multiply(spread, np.uint64(_BACK), out=spread)
    return spread.view(np.int64), ordered
