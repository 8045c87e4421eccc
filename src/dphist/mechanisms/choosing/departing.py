"""What tables of several attributes hold beyond smaller ones, if pairs of attributes are so far from chance.

A table of c cells departs from smaller ones by a mean square of about (2 δ g^(k − 2) n)² · π/2 ÷ c^1.6 a cell: a
dependence δ (total variation from chance) moves 2 δ n of n records, which fall on few of its cells, and tables of one
attribute more depart by less, k being how many there are. Sampling adds n ÷ c.

Plans of tables and the choice between tables and chance both stand on it. Public facts and answers that were paid for
go in, no count.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Of c cells about c to this power are full, and the mean square of normal departures is so many times their mean's.
_FULL, _NORMAL = 0.6, math.pi / 2.0
# How much less a table of one attribute more departs.
_LESS = 0.7


def departing(records: float, apart: FloatArray | float, cells: FloatArray, orders: FloatArray) -> FloatArray:
    """Mean squares of what a cell of larger tables departs from smaller ones.

    Args:
        records: How many there are.
        apart: How far pairs are from chance, beyond what sampling makes: total variations.
        cells: How many cells each table has.
        orders: How many attributes; two at least.

    Returns:
        A number for each.

    Example:
        >>> departing(1000.0, 0.1, np.array([16.0, 64.0]), np.array([2.0, 3.0])).round().tolist()
        [807.0, 55.0]
    """
    moved = 4.0 * _NORMAL / cells ** (1.0 + _FULL) * (records * _LESS ** (orders - 2.0)) ** 2
    return np.asarray(np.asarray(apart) ** 2 * moved + records / cells, dtype=np.float64)
