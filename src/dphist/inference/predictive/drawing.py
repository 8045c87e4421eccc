"""Draws of every cell from a predictive law: replicates of a tree, or of cells that were measured one by one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.law import Law
from dphist.kernels.hashing import Normals
from dphist.kernels.predictive.passes import levels, size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def draws_of(law: Law) -> Callable[[Normals], FloatArray]:
    """Prepare to draw all cells, from the whole down: a left part given its total is normal.

    Variances of what is drawn at a size are those that intervals have there, with the law's doubt and caution. Within
    leaves halvings go on, as the law says of questions that cut them.
    """
    tree, said = law.binary, law.posterior
    wanted = law.overlap * law.caution_of(tree.size)
    wanted = wanted * law.hedged(said.variance, law.plain.variance, tree.size)
    steps = []
    for i in levels(tree.left):
        c, s = tree.left[i], said.slope[i]
        each = wanted[c] - s**2 * wanted[i], wanted[c + 1] - (1.0 - s) ** 2 * wanted[i]
        rest = np.maximum((each[0] + each[1]) / 2.0, law.overlap * said.rest[i])
        steps.append((i, c, s, np.sqrt(np.maximum(rest, 0.0))))
    top, nodes = math.sqrt(wanted[0]), tree.left.size
    within, leaves = _Within(law), np.flatnonzero((tree.left < 0) & (tree.size > 0))
    mean = law.counts.reshape(-1)

    def draw(normals: Normals) -> FloatArray:
        off = np.zeros(nodes)
        off[0] = top * normals(1)[0]
        for i, c, slope, deviation in steps:
            off[c] = slope * off[i] + deviation * normals(i.size)
            off[c + 1] = off[i] - off[c]
        return mean + within.draw(off[leaves], normals)

    return draw


class _Within:
    """How the totals of leaves are divided among their cells, halving by halving along the longest side."""

    def __init__(self, law: Law) -> None:
        tree = law.binary
        leaves = np.flatnonzero((tree.left < 0) & (tree.size > 0))
        strides = np.array([math.prod(tree.shape[axis + 1 :]) for axis in range(len(tree.shape))])
        low, high = tree.low[leaves].astype(np.int64), tree.high[leaves].astype(np.int64)
        mean, code = law.posterior.mean[leaves], np.zeros(leaves.size, dtype=np.int64)
        square = mean**2 + law.posterior.variance[leaves]
        self.size, self.alike = math.prod(tree.shape), law.alike
        self.steps: list[tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray, IntArray]] = []
        while low.size:
            sides = high - low
            cells = sides.prod(axis=1)
            done, on = np.flatnonzero(cells == 1), np.flatnonzero(cells > 1)
            where = low[done] @ strides
            low, high, sides, code = low[on], high[on], sides[on], code[on]
            mean, square = mean[on], square[on]
            axis, rows, size = sides.argmax(axis=1), np.arange(on.size), cells[on]
            half = (sides[rows, axis] + 1) // 2
            share = half / sides[rows, axis]
            scatter = share * (1.0 - share)
            rest = scatter * (
                square * law.uneven[size_classes(size.astype(np.float64))] + np.maximum(mean, 0.0)
            )
            rest = np.maximum(rest, 0.0)
            caution = law.overlap * law.caution_of(np.maximum(size // 2, 1).astype(np.float64))
            self.steps.append((done, where, on, share, np.sqrt(caution * rest), code))
            middle = low.copy()
            middle[rows, axis] += half
            upper = high.copy()
            upper[rows, axis] = middle[rows, axis]
            low, high = np.concatenate([low, middle]), np.concatenate([upper, high])
            mean = np.concatenate([share * mean, (1.0 - share) * mean])
            square = np.concatenate([share**2 * square + rest, (1.0 - share) ** 2 * square + rest])
            code = np.concatenate([2 * code, 2 * code + 1])

    def draw(self, held: FloatArray, normals: Normals) -> FloatArray:
        """Cells that add up to what the leaves hold."""
        out = np.zeros(self.size)
        for done, where, on, share, deviation, code in self.steps:
            out[where] = held[done]
            moved = normals(on.size)
            if self.alike > 0.0 and on.size:
                # What is the same in all leaves: one number for each place of a halving.
                every = normals(int(code.max()) + 1)
                moved = math.sqrt(1.0 - self.alike) * moved + math.sqrt(self.alike) * every[code]
            first = share * held[on] + deviation * moved
            held = np.concatenate([first, held[on] - first])
        return out
