"""How much leaves are divided alike: where attributes do not depend on each other, all boxes lean to the same side.

Inside a leaf totals are spread evenly, which is wrong by an unknown part. A range of a line cuts two leaves, and what
is wrong in each is taken to be its own. The table of one attribute out of many cuts nearly all leaves,
all at the same place of that attribute; if its values are not equally frequent, all of them err to the same side, and
errors add up instead of cancelling out. How far that is so shows in the splits that were measured.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# On a line a range cuts two leaves; from two axes on questions cut leaves all over the place.
_FEWEST_AXES = 2
# What is believed where the splits say nothing, on planes and from three axes on. Of planes drawn by number those that
# are products of two lines (201, 202, 216; 6 draws) held in 0.85 to 0.93 of the tables of one attribute without it, in
# 0.95 with it.
_UNTOLD_ON_PLANES = 0.2
_UNTOLD = 0.5


def alike_part(
    left: IntArray, low: ShortArray, high: ShortArray, size: FloatArray, best: FloatArray, spread: FloatArray
) -> float:
    """Which part of the squared unevenness of the last splits is the same for all that divide an axis at one place.

    With d = (1 − f)·l − f·r what the left part of a split exceeds its share f of the total t by, and n its noise: were
    departures a part of the total that is the same for all splits of a group, (Σd)² would be Σd²·(Σt)²/Σt² but for
    noise, and were each split's its own, Σd². The excess of the first over the second is set against what it could be
    at most, over all groups, and drawn to what is believed beforehand as far as noise could explain it.

    Args:
        left: The left child of every node of a binary tree, −1 for leaves.
        low: Where each node's hull begins.
        high: Where it ends.
        size: How many cells it has.
        best: Best linear totals from below.
        spread: Their variances.

    Returns:
        A part between 0 and 1; 0 on lines, and where every cell was measured.
    """
    if low.shape[1] < _FEWEST_AXES or not bool((size[left < 0] > 1.0).any()):
        return 0.0
    untold = _UNTOLD_ON_PLANES if low.shape[1] == _FEWEST_AXES else _UNTOLD
    node = np.flatnonzero(left >= 0)
    # Those nearest to what was not divided: below them is a leaf.
    node = node[(left[left[node]] < 0) | (left[left[node] + 1] < 0)]
    part = left[node]
    apart = low[part + 1] >= high[part]
    told = apart.any(axis=1) & (spread[part] < 1e29) & (spread[part + 1] < 1e29)
    node, part, axis = node[told], part[told], np.argmax(apart[told], axis=1)
    if not node.size:
        return untold
    share = size[part] / size[node]
    departs = (1.0 - share) * best[part] - share * best[part + 1]
    noise = (1.0 - share) ** 2 * spread[part] + share**2 * spread[part + 1]
    places = axis, low[node, axis], high[node, axis], high[part, axis]
    longest = int(high.max()) + 1
    if low.shape[1] * longest**3 < 1 << 62:
        # One number for every place, in the order of its parts: sorted in a tenth of the time.
        number = axis.astype(np.int64)
        for each in places[1:]:
            number = number * longest + each
        group = np.unique(number, return_inverse=True)[1].reshape(-1)
    else:
        group = np.unique(np.stack(places, axis=1), axis=0, return_inverse=True)[1].reshape(-1)

    def summed(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(group, values), dtype=np.float64)

    total = np.maximum(best[node], 0.0)
    unsure = summed(noise)
    squares = np.maximum(summed(departs**2) - unsure, 0.0)
    crossed = summed(departs) ** 2 - summed(departs**2)
    most = squares * (summed(total) ** 2 / np.maximum(summed(total**2), 1e-300) - 1.0)
    several = summed(np.ones(group.size)) > 1.0
    doubt = math.sqrt(2.0 * float((unsure[several] ** 2).sum()))
    found = float(crossed.sum()) + untold * doubt
    whole = float(most.sum()) + doubt
    return min(max(found / whole, 0.0), 1.0) if whole > 0.0 else untold
