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

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import Axes, subsets

FloatArray = NDArray[np.float64]
Better = Callable[[dict[Axes, tuple[FloatArray, FloatArray]]], Mapping[Axes, FloatArray]]

# Rounds of projecting in turn: margins then agree within a small part of the noise (tried 10 to 100, made-up cubes).
_ROUNDS = 40
# Rounds of raking a table to the smaller ones inside it, at most, and which part of the total is the same.
_RAKING = 60
# Rounds of raking a model that a table is only set beside.
_MODEL_ROUNDS = 5
_SAME = 1e-9


def settle(
    shape: Sequence[int],
    wanted: Sequence[Axes],
    table: Callable[[Axes], FloatArray],
    better: Better | None = None,
) -> dict[Axes, FloatArray]:
    """Give non-negative tables that agree with each other, each as near as can be to what ``table`` says of it.

    With ``better`` tables of two attributes or more are first set beside their models, all of as many attributes at
    once: what the smaller tables inside them, which are settled already, would make of them if nothing else were known.

    Args:
        shape: The shape of the cube.
        wanted: The tables, each as the attributes it keeps; all smaller tables inside them are settled first.
        table: What is known of a table by its attributes: an array that may have negative cells.
        better: What to make of tables of as many attributes, given what is known of each and its model.

    Returns:
        The tables by their attributes, the smaller ones included.

    Example:
        >>> import numpy as np
        >>> noisy = {(): np.array(10.0), (0,): np.array([-1.0, 4.0, 7.0])}
        >>> settle((3,), [(0,)], noisy.__getitem__)[(0,)].round(1).tolist()
        [0.0, 3.5, 6.5]
    """
    settled: dict[Axes, FloatArray] = {}
    needed = {subset for axes in wanted for subset in subsets(tuple(sorted(axes)))}
    for ways in sorted({len(axes) for axes in needed}):
        here = {axes: np.array(table(axes), dtype=np.float64) for axes in sorted(needed) if len(axes) == ways}
        if better is not None and ways > 1:
            beside = {
                axes: (values, implied(values.shape, axes, settled))
                for axes, values in here.items()
                if values.size
            }
            here |= better(beside)
        for axes, values in here.items():
            settled[axes] = nearest(values, axes, settled, shape)
    return settled


def implied(shape: Sequence[int], axes: Axes, settled: Mapping[Axes, FloatArray]) -> FloatArray:
    """The table of largest entropy that has the settled tables inside it: of one attribute, an even spread."""
    places = range(len(axes))
    targets = {
        tuple(other for other in places if other != place): settled[axes[:place] + axes[place + 1 :]]
        for place in places
    }
    even = np.full(shape, float(settled[()]) / math.prod(shape))
    return rake(even, targets, _MODEL_ROUNDS, 0.0)


def agreeing(
    shape: Sequence[int],
    wanted: Sequence[Axes],
    table: Callable[[Axes], FloatArray],
    better: Better | None = None,
) -> dict[Axes, FloatArray]:
    """Settle tables, and rake each to the smaller ones inside it until their sums are the same.

    Projections in turn leave the margins of a table a little off where cells were cut at zero. Where tables are all
    that is published, whoever adds them up must find the same number in each, but for the last digits.

    Args:
        shape: The shape of the cube; it is never written out.
        wanted: The tables, each as the attributes it keeps.
        table: What is known of a table by its attributes.
        better: What to make of tables beside their models, as in `settle`.

    Returns:
        The tables by their attributes, the smaller ones included.

    Example:
        >>> import numpy as np
        >>> noisy = {(): np.array(10.0), (0,): np.array([-1.0, 4.0, 7.0])}
        >>> float(agreeing((3,), [(0,)], noisy.__getitem__)[(0,)].sum())
        10.0
    """
    settled = settle(shape, wanted, table, better)
    for axes, values in settled.items():
        if axes and values.size:
            places = range(len(axes))
            targets = {
                tuple(other for other in places if other != place): settled[axes[:place] + axes[place + 1 :]]
                for place in places
            }
            enough = _SAME * float(settled[()])
            settled[axes] = rake(values, targets, _RAKING, enough)
    return settled


def nearest(
    values: FloatArray, axes: Axes, settled: Mapping[Axes, FloatArray], shape: Sequence[int]
) -> FloatArray:
    """The nearest table without negative cells whose margins are the settled ones, by Dykstra's projections in turn.

    Args:
        values: A table, which may have negative cells.
        axes: The attributes it keeps.
        settled: All tables with one attribute less, by their attributes.
        shape: The shape of the cube.

    Returns:
        The table.

    Example:
        >>> import numpy as np
        >>> nearest(np.array([-1.0, 4.0, 7.0]), (0,), {(): np.array(10.0)}, (3,)).round(1).tolist()
        [0.0, 3.5, 6.5]
    """
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


def rake(start: FloatArray, targets: Mapping[Axes, FloatArray], rounds: int, enough: float) -> FloatArray:
    """Scale a cube until its tables are the targets: iterative proportional fitting.

    Args:
        start: A cube without negative cells; a cell that is zero stays zero.
        targets: Tables without negative cells, by the attributes they keep.
        rounds: How often to go over all targets, at most.
        enough: Stop once no cell of a target is missed by more; or, after many rounds, by hardly less than before.

    Returns:
        The cube.

    Example:
        >>> import numpy as np
        >>> rake(np.ones((2, 2)), {(0,): np.array([3.0, 1.0]), (1,): np.array([2.0, 2.0])}, 9, 1e-9).tolist()
        [[1.5, 1.5], [0.5, 0.5]]
    """
    cube, before = np.array(start, dtype=np.float64), np.inf
    for done in range(rounds):
        furthest = 0.0
        for axes, target in targets.items():
            others = tuple(axis for axis in range(cube.ndim) if axis not in axes)
            now = cube.sum(axis=others)
            furthest = max(furthest, float(np.abs(now - target).max(initial=0.0)))
            factor = np.divide(target, now, out=np.zeros(now.shape), where=now > 0.0)
            cube *= factor.reshape([n if axis in axes else 1 for axis, n in enumerate(cube.shape)])
        if furthest <= enough or (done >= _RAKING and furthest > 0.999 * before):
            break
        before = furthest
    return cube
