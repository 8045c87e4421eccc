"""Draws of the whole table that a release is about, from its model: the error of any statistic is read off them.

A replicate is what the true counts may be, as far as the release knows. Where noise of a known law was added, it is the
unbiased estimate with independent noise of that law's variance, pushed through the same linear map as the mechanism's:
least squares of a tree or of tables, a transform back. Where a predictive law answers, it is a draw of that law, from
the whole down to single cells. Noise is drawn as normal whatever its law was: sums of it are nearly so, and second
moments are all that is read off.

The mean of (statistic of a replicate − statistic of what is published)² is the expected squared error: what the model
leaves unknown, and how far it leans away from what is published. Numbers come of a public seed by whole-number
arithmetic alone and are rounded to a grid, so that everybody has the same ones on every machine. Nothing here reads a
count, and nothing is kept private by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.inference.estimate import (
    Errors,
    Estimate,
    IndependentNoise,
    NoisyCells,
    PieceNoise,
    laplace_if_bare,
)
from dphist.inference.linear.boxes import LeafNoise
from dphist.inference.linear.ranges import BucketNoise, CellBound, DenseNoise, PrefixNoise
from dphist.inference.linear.waves import WaveletNoise, WaveNoise
from dphist.inference.pieces import PartErrors, PartNoise
from dphist.inference.predictive.drawing import draws_of
from dphist.inference.predictive.errors import PredictiveErrors
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.drawing import (
    draws_of_cube,
    draws_of_shrunk,
    draws_of_tables,
)
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import Axes
from dphist.inference.tables.shrunk import TableNoise
from dphist.inference.trees import RunNoise, TreeNoise
from dphist.kernels.hashing import Normals
from dphist.kernels.wavelets.standard import denominator, inverse, slots

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Replicates are whole multiples of this: last digits, in which machines differ, do not show.
_GRID = 2.0**-16
# Of a covariance that rounding left without an inverse, what is added to its diagonal.
_JITTER = 1e-12


Draw = Callable[[Normals], FloatArray]
"""Draws cells, in any shape that has as many."""


def replicate(
    estimate: Estimate | TableEstimate, tables: Sequence[Axes] | None, shape: tuple[int, ...]
) -> Draw:
    """Prepare to draw all cells, or the rows of tables one after the other: NaN where a table was not measured."""
    if isinstance(estimate, TableEstimate):
        draw_tables = _tables_apart(estimate.errors, tables or ())
        return lambda normals: _rounded(draw_tables(normals))
    draw = drawn(estimate.errors, estimate.counts)
    if tables is None:
        return lambda normals: _rounded(draw(normals).reshape(-1))
    others = [tuple(axis for axis in range(len(shape)) if axis not in axes) for axes in tables]

    def rows(normals: Normals) -> FloatArray:
        cells = draw(normals).reshape(shape)
        return _rounded(np.concatenate([cells.sum(axis=each).reshape(-1) for each in others]))

    return rows


def _rounded(values: FloatArray) -> FloatArray:
    return np.asarray(np.rint(values / _GRID) * _GRID + 0.0, dtype=np.float64)


@singledispatch
def drawn(errors: Errors, counts: FloatArray) -> Draw:
    """Prepare to draw all cells of a model."""
    raise _unknown(errors)


def _tables_apart(errors: Errors, tables: Sequence[Axes]) -> Draw:
    """Tables by least squares over what was measured, with new noise in all of it, so that they agree."""
    if isinstance(errors, ResidualNoise):
        return draws_of_tables(errors.residuals, tables)
    raise _unknown(errors)


def _unknown(errors: Errors) -> MechanismError:
    return MechanismError(f"replicates: nobody has said how {type(errors).__name__} is drawn")


@drawn.register
def _independent(errors: IndependentNoise, counts: FloatArray) -> Draw:
    law = laplace_if_bare(errors.law)
    # Of whole numbers that are mostly 0 the continuous law's variance says too much.
    each = law.variance if isinstance(law.size, np.ndarray) else law.drawn_variance
    deviation = np.sqrt(each)
    return lambda normals: counts + deviation * normals.like(counts)


@drawn.register
def _selected(errors: SelectedNoise, counts: FloatArray) -> Draw:
    # What is shown because its noise was kind to it most plausibly is less.
    likely = errors.bounds(np.asarray(counts, dtype=np.float64), 1e-9)[0]
    return _independent(IndependentNoise(errors.law), likely)


@drawn.register
def _noisy_cells(errors: NoisyCells, counts: FloatArray) -> Draw:
    return _independent(IndependentNoise(errors.law), errors.centre)


@drawn.register
def _pieces(errors: PieceNoise, counts: FloatArray) -> Draw:
    sizes = np.maximum(np.bincount(errors.labels, minlength=errors.scales.size), 1)
    each = math.sqrt(2.0) * errors.scales / sizes
    return lambda normals: counts.reshape(-1) + (each * normals.like(each))[errors.labels]


@drawn.register
def _tree(errors: TreeNoise, counts: FloatArray) -> Draw:
    tree = errors.tree
    known = np.isfinite(tree.variance)
    deviation = np.sqrt(np.where(known, tree.variance, 0.0))
    stand = counts.reshape(-1) if errors.centre is None else errors.centre.reshape(-1)

    def draw(normals: Normals) -> FloatArray:
        noise = replace(tree, value=deviation * normals.like(deviation))
        return stand + noise.cells(noise.least_squares()).reshape(-1)

    return draw


@drawn.register
def _runs(errors: RunNoise, counts: FloatArray) -> Draw:
    return _tree(errors.runs, errors.counts)


@drawn.register
def _leaves(errors: LeafNoise, counts: FloatArray) -> Draw:
    stand = (counts if errors.centre is None else errors.centre).reshape(-1)
    labels, root = errors.cuts.labels.reshape(-1), math.sqrt(2.0)

    def draw(normals: Normals) -> FloatArray:
        cells = root * errors.cell_scale * normals.like(stand)
        inside = np.bincount(labels, cells, errors.pull.size)
        moved = errors.pull * (root * errors.leaf_scale * normals.like(errors.pull) - inside)
        return stand + cells + moved[labels]

    return draw


@drawn.register
def _dense(errors: DenseNoise, counts: FloatArray) -> Draw:
    covariance = errors.covariance
    little = _JITTER * float(np.trace(covariance)) * np.eye(len(covariance))
    root = np.linalg.cholesky(covariance + little)
    return lambda normals: counts.reshape(-1) + root @ normals(len(root))


@drawn.register(BucketNoise)
@drawn.register(CellBound)
def _groups(errors: BucketNoise | CellBound, counts: FloatArray) -> Draw:
    groups = len(errors.sizes)
    labels = np.repeat(np.arange(groups), errors.sizes) if isinstance(errors, BucketNoise) else errors.labels
    totals = np.bincount(labels, counts.reshape(-1), groups).astype(np.float64)
    inner = drawn(errors.inner, totals)
    # Inside groups stays what is published of each, which is an even share but for polishing.
    return lambda normals: (
        counts.reshape(-1) + ((inner(normals).reshape(-1) - totals) / np.maximum(errors.sizes, 1))[labels]
    )


@drawn.register
def _prefixes(errors: PrefixNoise, counts: FloatArray) -> Draw:
    size = errors.size
    weights = np.fft.rfft(errors.weights, 2 * size) * float(errors.law.deviation)

    def draw(normals: Normals) -> FloatArray:
        sums = np.fft.irfft(np.fft.rfft(normals(size), 2 * size) * weights, 2 * size)[:size]
        return counts.reshape(-1) + np.diff(sums, prepend=0.0)

    return draw


@drawn.register
def _wavelets(errors: WaveletNoise, counts: FloatArray) -> Draw:
    axes, deviation = errors.axes, float(laplace_if_bare(errors.law).deviation)
    weights = []
    for place, axis in enumerate(axes):
        values, index = axis.classes
        each = np.array([float(value) for value in values])[index]
        weights.append(each.reshape([-1 if other == place else 1 for other in range(len(axes))]))

    def draw(normals: Normals) -> FloatArray:
        noise = deviation * normals(math.prod(slots(axes))).reshape(slots(axes))
        for weight in weights:
            noise *= weight
        cells = inverse(noise, axes) / float(denominator(axes))
        return counts.reshape(cells.shape) + cells

    return draw


@drawn.register
def _waves(errors: WaveNoise, counts: FloatArray) -> Draw:
    shape, keep, deviation = errors.shape, errors.keep, math.sqrt(2.0) * errors.scale

    def draw(normals: Normals) -> FloatArray:
        # Of white noise the kept waves keep white noise: they are orthonormal.
        noise = deviation * normals(math.prod(shape)).reshape(shape)
        for axis, (n, k) in enumerate(zip(shape, keep, strict=True)):
            mirrored = errors.basis == "cosine"
            moved = np.moveaxis(noise, axis, -1)
            wide = np.concatenate([moved, moved[..., ::-1]], axis=-1) if mirrored else moved
            waves = np.fft.rfft(wide, axis=-1)
            waves[..., k:] = 0.0
            noise = np.moveaxis(np.fft.irfft(waves, wide.shape[-1], axis=-1)[..., :n], -1, axis)
        return counts.reshape(shape) + noise

    return draw


@drawn.register(PartErrors)
@drawn.register(PartNoise)
def _parts(errors: PartErrors | PartNoise, counts: FloatArray) -> Draw:
    pieces = errors.pieces
    each = errors.errors if isinstance(errors, PartErrors) else errors.laws
    draws = [drawn(one, cells) for one, cells in zip(each, pieces.apart(counts), strict=True)]
    return lambda normals: pieces.joined([draw(normals) for draw in draws])


@drawn.register
def _predictive(errors: PredictiveErrors, counts: FloatArray) -> Draw:
    law = errors.settled.law
    if law is None:
        raise _unknown(errors)
    return draws_of(law)


@drawn.register
def _tables(errors: ResidualNoise, counts: FloatArray) -> Draw:
    cells = counts.reshape(errors.residuals.shape)
    if isinstance(errors, TableNoise) and errors.shrunk is not None:
        return draws_of_shrunk(errors.shrunk, cells)
    return draws_of_cube(errors.residuals, cells)
