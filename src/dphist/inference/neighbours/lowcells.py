"""Whether cells that are not tall hold anything: what decides in which way a cube that was measured alone is read.

A cube of which nothing but its cells was measured can be read in two ways. Cells may be moved towards what sums of them
suggest (`dphist.inference.tables.believing`), which finds what lies in many low cells at once; or each by its
neighbours (`dphist.inference.neighbours.fields`), which leaves empty land empty. Where a few tall cells have all
records sums mislead: sharing what their rows hold, empty cells get what they do not have. The noisy cells themselves
tell: noise that hides nothing adds up to about nothing over all cells that it might explain.

On 179 drawn cubes (`dphist_bench.data.drawn` spaces 3000 to 3119, cubes 3000 to 3299 and people 3000 to 3159 of up to
12,000 cells, ε up to 1, three draws) whoever chooses so is off by 1.022 of the better reading, 2.8 at worst; by how far
blocks of attributes depend on each other, as was done before, 1.042, 8 at worst. Limits of 4 to 12 noise scales and of
2 to 6 deviations are about as good.

Arithmetic on released numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# A cell is low if it is within so many noise scales of nothing. Where less than this part of all cells is low the cube
# is full, and where low cells add up to more than so many deviations of their noise they hold something.
_LOW, _MOST, _SURE = 6.0, 0.5, 3.9


def only_tall_cells_hold(noisy: FloatArray, variance: float) -> bool:
    """Say whether most cells are low, and hold no more than noise explains.

    Args:
        noisy: Noisy counts.
        variance: Of the noise in each.

    Returns:
        Whether it is so.

    Example:
        >>> tall, low = np.zeros((20, 20)), np.full((20, 20), 1.0)
        >>> tall[3, :5] = 500.0
        >>> only_tall_cells_hold(tall, 2.0), only_tall_cells_hold(low, 2.0)
        (True, False)
    """
    low = noisy[np.abs(noisy) <= _LOW * math.sqrt(variance / 2.0)]
    return bool(low.size >= _MOST * noisy.size and low.sum() <= _SURE * math.sqrt(low.size * variance))
