"""Draws of tables and of cubes from what was measured of them: what replicates are made of there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import Axes, TableResiduals, centred, spread_out, subsets, sum_to
from dphist.inference.tables.shrunk import Shrunk
from dphist.kernels.hashing import Normals

FloatArray = NDArray[np.float64]
Draw = Callable[[Normals], FloatArray]


def draws_of_tables(known: TableResiduals, tables: Sequence[Axes]) -> Draw:
    """Prepare to draw tables, one after the other: least squares over what was measured, with new noise in all of it.

    So they agree. What was not measured is not a number.
    """

    def draw(normals: Normals) -> FloatArray:
        again = known.again(normals)
        unknown = [np.full(again.cells_in(axes), np.nan) for axes in tables]
        return np.concatenate(
            [
                again.table(axes).reshape(-1) if again.covers(axes) else none
                for axes, none in zip(tables, unknown, strict=True)
            ]
        )

    return draw


def draws_of_cube(known: TableResiduals, cells: FloatArray) -> Draw:
    """As `draws_of_tables`, of the cube: published cells with what the draw says otherwise of what was measured."""
    stays = cells - known.projected(cells)
    return lambda normals: stays + known.again(normals).table(known.everything)


def draws_of_shrunk(doubt: Shrunk, cells: FloatArray) -> Draw:
    """Prepare to draw a shrunk cube: noise of small tables, and of what cells keep beyond them as is left to doubt."""
    plain, beyond = doubt.doubted()
    everything, shape = doubt.measured.everything, cells.shape

    def draw(normals: Normals) -> FloatArray:
        out = cells.copy()
        for axes, variance in plain.items():
            sizes = [shape[axis] for axis in axes]
            noise = centred(math.sqrt(variance) * normals(math.prod(sizes)).reshape(sizes))
            out += spread_out(noise, axes, everything, shape)
        for axes, (departures, times) in beyond.items():
            own = np.zeros(departures.shape)
            for variances, length in departures.blocks():
                part = np.sqrt(variances) * normals.like(variances) / math.prod(length)
                for axis, (step, size) in enumerate(zip(length, departures.shape, strict=True)):
                    part = part.repeat(step, axis=axis).take(range(size), axis=axis)
                own += part
            # What smaller tables hold of it, they know better.
            most, places = doubt.order if axes == everything else len(axes) - 1, tuple(range(own.ndim))
            for inside in [each for each in subsets(places) if len(each) <= most]:
                own = own - spread_out(centred(sum_to(own, places, inside)), inside, places, own.shape)
            out += spread_out(math.sqrt(times) * own, axes, everything, shape)
        return out

    return draw
