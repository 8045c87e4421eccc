"""Draws of tables and of cubes from what was measured of them: what replicates are made of there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.departures import Shrunk
from dphist.inference.tables.measured import Axes, MeasuredTables, centred, subsets
from dphist.inference.tables.residuals import TableResiduals
from dphist.kernels.hashing import Normals

FloatArray = NDArray[np.float64]
Draw = Callable[[Normals], FloatArray]


def draws_of_tables(known: MeasuredTables, tables: Sequence[Axes]) -> Draw:
    """Prepare to draw tables: least squares over what was measured, with new noise.

    Args:
        known: What was measured.
        tables: The tables that are wanted.

    Returns:
        What draws their cells, one table after the other; not a number where one was not measured.
    """

    def draw(normals: Normals) -> FloatArray:
        again = _noisy(known, normals)
        return np.concatenate([_covered(again, axes) for axes in tables])

    return draw


def draws_of_cube(known: MeasuredTables, cells: FloatArray) -> Draw:
    """As `draws_of_tables`, of the cube: published cells with what the draw says otherwise of what was measured."""
    apart = [values - _table(cells, axes) for values, axes in zip(known.values, known.axes, strict=True)]
    left = replace(known, values=tuple(apart))
    return lambda normals: cells + _noisy(left, normals).table(known.everything)


def _noisy(known: MeasuredTables, normals: Normals) -> MeasuredTables:
    """The same measured again, at what was measured."""
    noisy = [
        values + math.sqrt(2.0) * scale * normals.like(values)
        for values, scale in zip(known.values, known.scales, strict=True)
    ]
    return replace(known, values=tuple(noisy))


def _covered(known: MeasuredTables | TableResiduals, axes: Axes) -> FloatArray:
    """A table by least squares; not a number where it was not measured."""
    if known.covers(axes):
        return known.table(axes).reshape(-1)
    return np.full(math.prod(known.shape[axis] for axis in axes), np.nan)


def draws_of_shrunk(doubt: Shrunk, cells: FloatArray) -> Draw:
    """Prepare to draw a shrunk cube: noise of small tables, and of what cells keep beyond them as its model doubts it.

    Args:
        doubt: What is left to doubt.
        cells: The published cube.

    Returns:
        What draws its cells.
    """
    plain, beyond = doubt.doubted()
    everything = doubt.measured.everything

    def draw(normals: Normals) -> FloatArray:
        out = cells.copy()
        for axes, variance in plain.items():
            sizes = [cells.shape[axis] for axis in axes]
            noise = centred(math.sqrt(variance) * normals(math.prod(sizes)).reshape(sizes))
            out += _spread(noise, axes, cells.shape)
        for axes, (departures, times) in beyond.items():
            own = np.zeros(departures.shape)
            for variances, length in departures.blocks():
                part = np.sqrt(variances) * normals.like(variances) / math.prod(length)
                for axis, (step, size) in enumerate(zip(length, departures.shape, strict=True)):
                    part = part.repeat(step, axis=axis).take(range(size), axis=axis)
                own += part
            # What smaller tables hold of it, they know better.
            most = doubt.order if axes == everything else len(axes) - 1
            for inside in [each for each in subsets(tuple(range(own.ndim))) if len(each) <= most]:
                own = own - _spread(centred(_table(own, inside)), inside, own.shape)
            out += _spread(math.sqrt(times) * own, axes, cells.shape)
        return out

    return draw


def _table(cells: FloatArray, axes: Axes) -> FloatArray:
    return np.asarray(cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in axes)))


def _spread(values: FloatArray, axes: Axes, shape: tuple[int, ...]) -> FloatArray:
    """A table's cells, spread evenly over all others."""
    others = math.prod(size for axis, size in enumerate(shape) if axis not in axes)
    return values.reshape([size if axis in axes else 1 for axis, size in enumerate(shape)]) / others


def draws_of_residuals(known: TableResiduals, tables: Sequence[Axes]) -> Draw:
    """Prepare to draw tables that were fitted to residuals: each of these with new noise, so that tables agree.

    Args:
        known: What was measured.
        tables: The tables that are wanted.

    Returns:
        What draws their cells, one table after the other; not a number where one was not measured.
    """

    def draw(normals: Normals) -> FloatArray:
        again = copy(known)
        again.residuals = {
            axes: replace(each, values=each.values + _noise(known, axes, each.precision, normals))
            for axes, each in known.residuals.items()
        }
        return np.concatenate([_covered(again, axes) for axes in tables])

    return draw


def draws_of_residual_cube(known: TableResiduals, cells: FloatArray) -> Draw:
    """As `draws_of_tables`, of what was fitted to residuals."""
    apart = {axes: each.values - centred(_table(cells, axes)) for axes, each in known.residuals.items()}

    def draw(normals: Normals) -> FloatArray:
        out = cells.copy()
        for axes, each in known.residuals.items():
            out += _spread(apart[axes] + _noise(known, axes, each.precision, normals), axes, cells.shape)
        return out

    return draw


def _noise(known: TableResiduals, axes: Axes, precision: float, normals: Normals) -> FloatArray:
    """The noise of a residual: of each contrast by itself along axes with a tree, and without means along others."""
    sizes = [known.trees[a].tree.start.size if a in known.trees else known.shape[a] for a in axes]
    noise = normals(math.prod(sizes)).reshape(sizes) / math.sqrt(precision)
    for place, axis in enumerate(axes):
        if axis in known.trees:
            asked = known.trees[axis]
            each = np.sqrt(asked.noise[asked.tree.depth])
            noise = asked.tree.back(
                noise * each.reshape([-1 if a == place else 1 for a in range(len(axes))]), place
            )
    return centred(noise)
