"""Boxes of every size, spread evenly over a grid: the questions on which a predictive law is checked."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.law import size_classes_of

IntArray = NDArray[np.int64]

# Questions of one size class.
_MOST = 384
_FEWEST = 40


@lru_cache(maxsize=8)
def trial_boxes(shape: tuple[int, ...]) -> list[tuple[IntArray, IntArray]]:
    """For every size class 2^k the bounds of some boxes of about 2^k cells; places follow a low-discrepancy rule.

    In several dimensions a box is cut from the grid on some axes and takes the whole of the others, as questions do.
    """
    cells = math.prod(shape)
    sides = np.log2(np.array(shape, dtype=np.float64))
    trials = []
    for k in range(size_classes_of(shape)):
        count = int(min(_MOST, max(_FEWEST, 4 * cells // (1 << k))))
        wanted = np.minimum(k - 0.4 + 0.8 * _spread(count, 0), sides.sum())
        lengths = np.ones((count, len(shape)), dtype=np.int64)
        # Axes in turn take a random part of what is wanted, and the last what is left.
        order = np.argsort(np.stack([_spread(count, 1 + axis) for axis in range(len(shape))], axis=1), axis=1)
        left, room = wanted.copy(), np.full(count, sides.sum())
        for turn in range(len(shape)):
            axis = order[:, turn]
            room = room - sides[axis]
            least = np.maximum(left - room, 0.0)
            most = np.minimum(sides[axis], np.maximum(left, 0.0))
            bits = least + (most - least) * _spread(count, 20 + turn)
            whole = np.array(shape)[axis]
            length = np.clip(np.rint(2.0**bits), 1, whole).astype(np.int64)
            lengths[np.arange(count), axis] = length
            left = left - np.log2(length)
        low = np.stack(
            [
                np.floor(_spread(count, 40 + axis) * (size - lengths[:, axis] + 1)).astype(np.int64)
                for axis, size in enumerate(shape)
            ],
            axis=1,
        )
        trials.append((low, low + lengths))
    return trials


def _spread(count: int, salt: int) -> NDArray[np.float64]:
    """Numbers that fill [0, 1) evenly: multiples of an irrational, another one for each salt."""
    irrational = math.sqrt(2.0 + salt + salt // 2) % 1.0 or 0.6180339887498949
    return np.asarray((irrational * (np.arange(count) + 1) + 0.37 * salt) % 1.0, dtype=np.float64)
