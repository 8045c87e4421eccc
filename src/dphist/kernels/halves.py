"""Tables of half as many cells along some axes, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def halved(array: FloatArray, axes: Iterable[int]) -> FloatArray:
    """Add neighbours in pairs along some axes; a last one without a partner stays alone."""
    for axis in axes:
        array = np.add.reduceat(array, np.arange(0, array.shape[axis], 2), axis=axis)
    return array


def doubled(array: NDArray[Any], shape: tuple[int, ...], axes: Iterable[int]) -> NDArray[Any]:
    """Repeat every entry for the pair of a table of this shape that it stands for."""
    for axis in axes:
        array = np.repeat(array, 2, axis=axis).take(np.arange(shape[axis]), axis=axis)
    return array
