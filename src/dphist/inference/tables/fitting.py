"""Tables without negative cells that agree with each other, and a cube that has them: handed down, then raked.

Least squares over measured tables is unbiased but goes below zero where counts are small. Cutting every cell at zero
would push sums up. As on trees, what is known best is settled first and handed down: the total, then tables of one
attribute with that total, then tables of two whose margins are those, and so on. Each is the nearest non-negative table
with the margins above it. The cube then follows by raking (iterative proportional fitting, Deming and Stephan 1940):
among cubes with these tables, the one nearest in entropy to where it started. All of it is arithmetic on released
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import Axes, subsets

FloatArray = NDArray[np.float64]
Better = Callable[[Axes, FloatArray, FloatArray], FloatArray]

# Rounds of projecting in turn: margins then agree within a small part of the noise (tried 10 to 100, made-up cubes).
_ROUNDS = 40
# Rounds of raking a table to the smaller ones inside it, at most, and which part of the total is the same.
_RAKING = 60
# Rounds of raking a model that a table is only set beside.
_MODEL_ROUNDS = 5
_SAME = 1e-9
# Tables of at most 6 attributes are bounded by their tables of two, larger ones by those of one.
_FEW_AXES = 6


def settle(
    shape: Sequence[int],
    wanted: Sequence[Axes],
    table: Callable[[Axes], FloatArray],
    better: Better | None = None,
) -> dict[Axes, FloatArray]:
    """Give non-negative tables that agree with each other, each as near as can be to what ``table`` says of it.

    With ``better`` a table of two attributes or more is first set beside its model: what the smaller tables inside it,
    which are settled already, would make of it if nothing else were known.

    Example:
        >>> import numpy as np
        >>> noisy = {(): np.array(10.0), (0,): np.array([-1.0, 4.0, 7.0])}
        >>> settle((3,), [(0,)], noisy.__getitem__)[(0,)].round(1).tolist()
        [0.0, 3.5, 6.5]
    """
    settled: dict[Axes, FloatArray] = {}
    needed = {subset for axes in wanted for subset in subsets(tuple(sorted(axes)))}
    for ways in sorted({len(axes) for axes in needed}):
        for axes in sorted(each for each in needed if len(each) == ways):
            values = np.array(table(axes), dtype=np.float64)
            if better is not None and ways > 1 and values.size:
                values = better(axes, values, implied(values.shape, axes, settled))
            settled[axes] = nearest(values, axes, settled, shape)
    return settled


def implied(shape: Sequence[int], axes: Axes, settled: Mapping[Axes, FloatArray]) -> FloatArray:
    """The table of largest entropy that has the settled tables inside it: of one attribute, an even spread."""
    even = np.full(shape, float(settled[()]) / math.prod(shape))
    return rake(even, _margins(axes, settled), _MODEL_ROUNDS, 0.0)


def _margins(axes: Axes, settled: Mapping[Axes, FloatArray]) -> dict[Axes, FloatArray]:
    """The settled tables with one attribute less, by the places of a table that they keep."""
    places = tuple(range(len(axes)))
    return {
        places[:place] + places[place + 1 :]: settled[axes[:place] + axes[place + 1 :]] for place in places
    }


def agreeing(
    shape: Sequence[int],
    wanted: Sequence[Axes],
    table: Callable[[Axes], FloatArray],
    better: Better | None = None,
) -> dict[Axes, FloatArray]:
    """Settle tables, and rake each to the smaller ones inside it until their sums are the same.

    Projections in turn leave the margins of a table a little off where cells were cut at zero. Where tables are all
    that is published, whoever adds them up must find the same number in each, but for the last digits.
    """
    settled = settle(shape, wanted, table, better)
    for axes, values in settled.items():
        if axes and values.size:
            settled[axes] = rake(values, _margins(axes, settled), _RAKING, _SAME * float(settled[()]))
    return settled


def nearest(
    values: FloatArray, axes: Axes, settled: Mapping[Axes, FloatArray], shape: Sequence[int]
) -> FloatArray:
    """The nearest table without negative cells whose margins are the settled ones, by Dykstra's projections in turn."""
    if not axes:
        return np.maximum(values, 0.0)
    carried = np.zeros_like(values)
    for _ in range(_ROUNDS):
        for place, axis in enumerate(axes):
            margin = settled[tuple(other for other in axes if other != axis)]
            values = values + np.expand_dims((margin - values.sum(axis=place)) / shape[axis], place)
        if values.min() >= 0.0:
            return values
        # Only the cut needs a correction carried on: margins are equations, and projecting on those twice is once.
        cut = np.maximum(values + carried, 0.0)
        carried += values - cut
        values = cut
    return values


def rake(
    start: FloatArray,
    targets: Mapping[Axes, FloatArray],
    rounds: int,
    enough: float,
    variance: FloatArray | None = None,
) -> FloatArray:
    """Move a cube until its tables are the targets, each cell of a row in proportion to its variance.

    In proportion to itself by default: that is iterative proportional fitting, as if nothing but the tables had been
    measured. By variances a tall cell that was measured well stays, though it holds most of its row.

    Args:
        start: A cube without negative cells; raked in proportion to itself, a cell that is zero stays zero.
        targets: Tables without negative cells, by the attributes they keep.
        rounds: How often to go over all targets, at most.
        enough: Stop once no cell of a target is missed by more; or, after many rounds, by hardly less than before.
        variance: Of each cell.

    Example:
        >>> import numpy as np
        >>> rake(np.ones((2, 2)), {(0,): np.array([3.0, 1.0]), (1,): np.array([2.0, 2.0])}, 9, 1e-9).tolist()
        [[1.5, 1.5], [0.5, 0.5]]
        >>> tall, variance = np.array([[90.0, 0.0], [6.0, 4.0]]), np.array([[1.0, 9.0], [5.0, 5.0]])
        >>> rake(tall, {(0,): np.array([100.0, 10.0])}, 9, 1e-9, variance).tolist()
        [[91.0, 9.0], [6.0, 4.0]]
    """
    cube, before = np.array(start, dtype=np.float64), np.inf
    for done in range(rounds):
        furthest = 0.0
        for axes, target in targets.items():
            others = tuple(axis for axis in range(cube.ndim) if axis not in axes)
            now = cube.sum(axis=others, keepdims=True)
            missing = target.reshape(now.shape) - now
            furthest = max(furthest, float(np.abs(missing).max(initial=0.0)))
            if variance is None:
                cube *= np.divide(target.reshape(now.shape), now, out=np.zeros(now.shape), where=now > 0.0)
                continue
            # An empty cell has nothing to give.
            free = np.where((missing > 0.0) | (cube > 0.0), variance, 0.0)
            whole = free.sum(axis=others, keepdims=True)
            cube += free * np.divide(missing, whole, out=np.zeros(whole.shape), where=whole > 0.0)
            np.maximum(cube, 0.0, out=cube)
        if furthest <= enough or (done >= _RAKING and furthest > 0.999 * before):
            break
        before = furthest
    return cube


def settled_order(axes: int) -> int:
    """Of how many attributes the smaller tables are that are settled before a table, and bound its cells."""
    return min(2, axes - 1) if axes <= _FEW_AXES else 1


def bounds(model: FloatArray) -> FloatArray:
    """What a cell holds at most: the least cell, among smaller tables that are settled already, that it is part of.

    Example:
        >>> import numpy as np
        >>> bounds(np.array([[1.0, 2.0], [3.0, 0.0]])).tolist()
        [[3.0, 2.0], [3.0, 2.0]]
    """
    most = np.full(model.shape, float(model.sum()))
    for axes in combinations(range(model.ndim), settled_order(model.ndim)):
        others = tuple(axis for axis in range(model.ndim) if axis not in axes)
        most = np.minimum(most, model.sum(axis=others, keepdims=True))
    return most
