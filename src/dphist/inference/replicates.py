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
from dphist.inference.linear import (
    BucketNoise,
    CellBound,
    DenseNoise,
    LeafNoise,
    PrefixNoise,
    WaveletNoise,
    WaveNoise,
)
from dphist.inference.pieces import PartErrors, PartNoise
from dphist.inference.predictive.errors import PredictiveErrors
from dphist.inference.predictive.law import Law
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import Axes, centred, spread_out, subsets, sum_to
from dphist.inference.tables.shrunk import Shrunk, TableNoise
from dphist.inference.trees import RunNoise, TreeNoise
from dphist.kernels.hashing import Normals
from dphist.kernels.predictive.halving import levels, size_classes
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
        return _tables_apart(estimate.errors, tables or ())
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
    if not isinstance(errors, ResidualNoise):
        raise _unknown(errors)

    def draw(normals: Normals) -> FloatArray:
        again = errors.residuals.again(normals)
        cells = (
            again.table(axes) if again.covers(axes) else np.full(again.cells_in(axes), np.nan)
            for axes in tables
        )
        return _rounded(np.concatenate([each.reshape(-1) for each in cells]))

    return draw


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
    """From the whole down: a left part given its total is normal.

    Variances of what is drawn at a size are those that intervals have there, with the law's doubt and caution. Within
    leaves halvings go on, as the law says of questions that cut them.
    """
    law = errors.settled.law
    if law is None:
        raise _unknown(errors)
    tree, said = law.binary, law.posterior
    wanted = law.overlap * law.caution_of(tree.size)
    wanted = wanted * law.hedged(said.variance, tree.totals[1], tree.size)
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


@drawn.register
def _tables(errors: ResidualNoise, counts: FloatArray) -> Draw:
    cells = counts.reshape(errors.residuals.shape)
    if isinstance(errors, TableNoise) and errors.shrunk is not None:
        return draws_of_shrunk(errors.shrunk, cells)
    # Published cells, with what a draw says otherwise of what was measured.
    known = errors.residuals
    stays = cells - known.projected(cells)
    return lambda normals: stays + known.again(normals).table(known.everything)


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
