"""The nominal wavelet along one axis: how far each node's sum is from its siblings' mean.

The paper's coefficient of a node is its sum less the mean over its siblings. Noise goes on the sums and the
means are taken out on the way back, which gives the same noisy coefficients as the paper's mean subtraction
does, in integers.

The axis is the middle one of ``cells[outer, slots, inner]``. Cells are the leaves and come first; inner nodes
follow, the root last. A tree is given as three arrays, inner nodes before their children: ``node[g]`` is the
slot of inner node g, and its children's slots are ``child[start[g]]`` up to ``child[start[g + 1]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel
from dphist.kernels.wavelets.haar import pieces

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def nominal_forward(
    cells: Array, node: IntArray, start: IntArray, child: IntArray, first: int, last: int
) -> None:
    """Fill the slots of the inner nodes with the sums of what lies below them."""
    for part in pieces(cells, first, last):
        for group in range(node.size - 1, -1, -1):
            part[:, node[group]] = part[:, child[start[group] : start[group + 1]]].sum(axis=1)


def nominal_inverse(
    cells: Array,
    node: IntArray,
    start: IntArray,
    child: IntArray,
    own: Array,
    mean: Array,
    above: Array,
    lift: Array,
    first: int,
    last: int,
) -> None:
    """Replace noisy sums by cells times the axis's denominator.

    Each family keeps only how it differs from its mean: a child is its noisy sum − the mean over its family +
    the parent's reconstructed sum ÷ f. As numerators that is ``own``·Y − ``mean``·ΣY + ``above``·parent, all
    whole numbers; ``lift`` brings leaves of unequal depth to one denominator.
    """
    for part in pieces(cells, first, last):
        for group in range(node.size):
            family = child[start[group] : start[group + 1]]
            sums = part[:, family]
            shared = above[group] * part[:, node[group]] - mean[group] * _added(sums)
            sums *= own[group]
            sums += shared[:, None]
            sums *= lift[family][:, None]
            part[:, family] = sums


def nominal_centre(
    cells: Array, node: IntArray, start: IntArray, child: IntArray, first: int, last: int
) -> None:
    """Replace each noisy sum by the paper's coefficient: less the mean over its family; the root keeps its sum."""
    for part in pieces(cells, first, last):
        for group in range(node.size):
            family = child[start[group] : start[group + 1]]
            sums = part[:, family]
            part[:, family] = sums - (_added(sums) / family.size)[:, None]


def _added(sums: Array) -> Array:
    """Sums along the middle axis, one number after the other."""
    return np.asarray(np.cumsum(sums, axis=1)[:, -1])


@kernel
def nominal_spread(
    low: IntArray,
    high: IntArray,
    parent: IntArray,
    rank: IntArray,
    fanout: IntArray,
    depth: IntArray,
    weight: FloatArray,
    total: FloatArray,
    largest: FloatArray,
) -> None:
    """How noise of variance one in every coefficient adds up in the sums of leaves ``low`` up to ``high``.

    Nodes are numbered with the leaves first; ``parent`` is −1 at the root, ``rank`` the place among siblings,
    and ``weight`` of an inner node the noise scale of its children over that of the root. Let G be a node's
    covered fraction: 1 or 0 for a leaf, else the mean over its children. The sum weighs the root by its G and
    every other node by G − G(parent), so only groups cut by an end of the range count: two paths to the root.
    """
    for query in range(low.size):
        variance, extreme = 0.0, 0.0
        if high[query] > low[query]:
            one, other = low[query], high[query] - 1
            part_one, part_other = 1.0, 1.0
            while parent[one] >= 0:
                if one == other:
                    above, full = parent[one], 0
                    sums, squares = part_one, part_one * part_one
                elif depth[one] == depth[other] and parent[one] == parent[other]:
                    above, full = parent[one], rank[other] - rank[one] - 1
                    sums = part_one + part_other + full
                    squares = part_one * part_one + part_other * part_other + full
                elif depth[one] >= depth[other]:
                    above = parent[one]
                    full = fanout[above] - rank[one] - 1
                    sums, squares = part_one + full, part_one * part_one + full
                else:
                    above, full = parent[other], rank[other]
                    sums, squares = part_other + full, part_other * part_other + full
                share = sums / fanout[above]
                scale = weight[above]
                variance += scale * scale * (squares - sums * share)
                # The farthest child from the mean is a wholly covered one, a wholly uncovered one, or the cut ones.
                joined = one != other and parent[one] == parent[other] and depth[one] == depth[other]
                covered = full + (2 if joined else 1)
                if full > 0:
                    extreme = max(extreme, scale * (1.0 - share))
                if covered < fanout[above]:
                    extreme = max(extreme, scale * share)
                if one == other or joined:
                    extreme = max(extreme, scale * abs(part_one - share))
                    if joined:
                        extreme = max(extreme, scale * abs(part_other - share))
                    one, other, part_one, part_other = above, above, share, share
                elif depth[one] >= depth[other]:
                    extreme = max(extreme, scale * abs(part_one - share))
                    one, part_one = above, share
                else:
                    extreme = max(extreme, scale * abs(part_other - share))
                    other, part_other = above, share
            variance += part_one * part_one
            extreme = max(extreme, part_one)
        total[query] = variance
        largest[query] = extreme
