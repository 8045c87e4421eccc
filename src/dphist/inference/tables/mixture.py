"""A mixture of products: what few numbers a column say of every table of many columns.

A table of many columns has far more cells than records, so nothing that visits its cells can describe it. A *mixture
of products* (latent class model: Lazarsfeld 1950) does it with a few numbers a column: every record belongs to one of
K hidden classes, and inside a class its columns go together by chance alone,

    P(x) = Σ_k w_k Π_j θ_j(x_j | k).

Any table of it, and any box, is one short sum over classes. `fit_mixture` fits one to noisy
tables by gradient descent.

With all conditionals of a `MixtureModel` side by side in one matrix Θ (a row for each value of each column), *every*
pair of columns at once is Θ diag(w) Θᵀ: one matrix product. That makes fitting by gradients cheap: minimise, over
tables with their noise's variances,

    ½ Σ (n P − y)² / variance + λ Σ_j I(class; column j).

The second term is the price of dependence: the mutual information between the class and each column, zero when all
columns are independent. Without it the model would fit the noise. Its price λ = n ÷ (the median deviation) makes a
record's worth of dependence cost what one deviation of noise is worth.

All of this is arithmetic on released numbers: it costs no budget. It starts from a fixed public point and draws
nothing, so the same tables give the same model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.inference.tables.residuals import Axes
from dphist.kernels.hashing import GOLDEN, mixed
from dphist.waiting import steps as steps_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_Single = NDArray[np.float32]

# How far the classes start from each other, in logits; and the least chance a value starts with.
_SPREAD = 0.2
_LEAST = 1e-6
# Adam's step, and the memory of its two averages.
_STEP, _FIRST, _SECOND = 0.05, 0.9, 0.99
# Multiplications that one fit may take: classes and steps give way beyond (about a minute of one core).
_MOST_WORK = 1.2e12
# From 512 values on a column is long; values × classes × steps that a fit with one may take (some ten seconds).
_LONG, _MOST_TOUCHED = 512, 2e8


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A distribution over records of many columns, as a mixture of products.

    Args:
        shape: How many values every column has.
        weights: The share of each hidden class.
        conditionals: A row for each value of each column, a column for each class: the value's chance in that class.
    """

    shape: tuple[int, ...]
    weights: FloatArray
    conditionals: FloatArray

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of every column, and one past the last."""
        return tuple(int(place) for place in np.concatenate([[0], np.cumsum(self.shape)]))

    def column(self, axis: int) -> FloatArray:
        """The chances of one column's values, class by class."""
        return self.conditionals[self.starts[axis] : self.starts[axis + 1]]

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Give the probability of every cell of a table, its axes in the order they are named."""
        joint = self.weights[None, :]
        for axis in axes[:-1]:
            joint = (joint[:, None, :] * self.column(axis)[None, :, :]).reshape(-1, self.weights.size)
        cells = joint @ self.column(axes[-1]).T if len(axes) else joint.sum(axis=1)
        return np.asarray(cells, dtype=np.float64).reshape([self.shape[axis] for axis in axes])

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """Give the probability of many boxes: in every class a product of interval sums."""
        chances = np.tile(self.weights, (len(low), 1))
        for axis, size in enumerate(self.shape):
            bounded = np.flatnonzero((low[:, axis] > 0) | (high[:, axis] < size))
            if bounded.size:
                up = np.concatenate([np.zeros((1, self.weights.size)), np.cumsum(self.column(axis), axis=0)])
                ends = np.maximum(high[bounded, axis], low[bounded, axis])
                chances[bounded] *= up[ends] - up[low[bounded, axis]]
        return np.asarray(np.maximum(chances, 0.0).sum(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """One noisy table: which attributes, the counts, and the variance of each (one number, or one a cell)."""

    axes: Axes
    values: FloatArray
    variance: float | FloatArray


def fit_mixture(
    shape: Sequence[int],
    tables: Sequence[NoisyTable],
    total: float,
    *,
    components: int = 120,
    steps: int = 500,
    price: float = 1.0,
    fits: int = 2,
) -> MixtureModel:
    """Fit a mixture of products to noisy tables of one, two or more attributes.

    Args:
        shape: How many values every column has.
        tables: What was released; several tables may speak of the same attributes.
        total: How many records there are, from what was released.
        components: Hidden classes, at most; very wide tables get fewer.
        steps: Of gradient descent, at most; very wide tables get fewer.
        price: What dependence costs, in units of ``total`` ÷ (the tables' median deviation).
        fits: How many models are fitted from different starts; their mean, a mixture again, errs less than each.
    """
    if total <= 0 or not tables:
        return _flat(shape)
    fit = _Fit(tuple(shape), tables, float(total), components, steps, price, fits)
    # Both descents are one thing to wait for.
    going = steps_of("fitting a model to the tables", fits * fit.steps, apart=10)
    found = [fit.run(number, going) for number in range(fits)]
    weights = np.concatenate([each.weights for each in found]) / fits
    return MixtureModel(tuple(shape), weights, np.concatenate([each.conditionals for each in found], axis=1))


def _flat(shape: Sequence[int]) -> MixtureModel:
    """Nothing is known: every value of a column is as likely as any other."""
    rows = np.concatenate([np.full((size, 1), 1.0 / size) for size in shape])
    return MixtureModel(tuple(shape), np.ones(1), rows)


_Block = tuple[NDArray[np.int64], NDArray[np.int64], _Single, _Single]
"""Rows, columns, what was measured of their pairs and how much that counts."""


class _Fit:
    """One run of gradient descent (Adam: Kingma and Ba 2015) on the logits of weights and conditionals.

    A column of one value is put behind the others: its pairs are the tables of one attribute, so both kinds are the
    same matrix product. Numbers are single precision: they carry noise far above its rounding.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        tables: Sequence[NoisyTable],
        total: float,
        components: int,
        steps: int,
        price: float,
        fits: int,
    ) -> None:
        self.shape = shape
        sizes = np.array([*shape, 1])
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.owner = np.repeat(np.arange(sizes.size), sizes)
        rows = int(self.starts[-1])
        own = [size * size for size in shape if size >= _LONG]
        room = _MOST_WORK / (4.0 * (rows * rows - sum(own)) * fits)
        # Of a long column it is exponentials and logarithms of every value in every class that take the time.
        touched = float(rows) * components * steps * fits
        thinner = math.sqrt(min(1.0, _MOST_TOUCHED / touched)) if own else 1.0
        self.classes = max(8, min(int(components * thinner), int(room / max(1, min(steps, 300)))))
        self.steps = max(50, min(int(steps * thinner), int(room / self.classes)))
        self.total = total
        self.target = np.zeros((rows, rows))
        self.weight = np.zeros((rows, rows))
        self.large: list[NoisyTable] = []
        deviations = []
        for table in tables:
            variance = np.broadcast_to(np.asarray(table.variance, dtype=np.float64), table.values.shape)
            if len(table.axes) > 1:
                deviations.append(math.sqrt(float(np.median(variance))))
            if len(table.axes) > 2:
                self.large.append(NoisyTable(table.axes, table.values / total, total**2 / variance))
            elif table.axes:
                self._place(table.axes, table.values / total, total**2 / variance)
        self.price = price * total / float(np.median(deviations)) if deviations else 0.0
        self.blocks = self._cut()

    def _cut(self) -> list[_Block]:
        """What columns are held against each other: all short ones together, and every long one against each part.

        A column says nothing of itself, which would be most of the work where it is long.
        """
        lengths = np.array([*self.shape, 1])
        parts: list[NDArray[np.int64]] = [np.flatnonzero(lengths[self.owner] < _LONG)]
        for axis in np.flatnonzero(lengths >= _LONG):
            parts.append(np.arange(self.starts[axis], self.starts[axis + 1]))
        found = []
        for place, rows in enumerate(parts):
            for other in parts[:1] if place == 0 else parts[:place]:
                here = np.ix_(rows, other)
                target, weight = self.target[here].astype(np.float32), self.weight[here].astype(np.float32)
                found.append((rows, other, target, weight))
        return found

    def _place(self, axes: Axes, values: FloatArray, weight: FloatArray) -> None:
        """Put a table of one or two attributes where the matrix product has it, averaged with what is there."""
        if len(set(axes)) != len(axes) or not all(0 <= axis < len(self.shape) for axis in axes):
            raise MechanismError("tables: every axis must be one of the columns, and named once")
        first, second = (axes[0], axes[1] if len(axes) == 2 else len(self.shape))
        here = slice(*self.starts[first : first + 2]), slice(*self.starts[second : second + 2])
        shape = (self.starts[first + 1] - self.starts[first], self.starts[second + 1] - self.starts[second])
        values, weight = values.reshape(shape), weight.reshape(shape)
        old = self.weight[here]
        self.target[here] = (self.target[here] * old + values * weight) / (old + weight)
        self.weight[here] = old + weight
        self.target[here[::-1]], self.weight[here[::-1]] = self.target[here].T, self.weight[here].T

    def _start(self, number: int) -> _Single:
        """Logits of the single attributes as far as they are known, each class a little elsewhere."""
        everyone = int(self.starts[-1]) - 1
        seen = self.weight[:, everyone] > 0.0
        known = np.where(seen, self.target[:, everyone], 1.0 / np.diff(self.starts)[self.owner])
        known[everyone] = 1.0
        logits = np.log(np.maximum(known, _LEAST))[:, None] + _SPREAD * _scatter(
            known.size, self.classes, number
        )
        return np.asarray(logits, dtype=np.float32)

    def _softmax(self, logits: _Single) -> _Single:
        ends = self.starts[:-1]
        theta = np.exp(logits - np.maximum.reduceat(logits, ends, axis=0)[self.owner])
        theta /= np.add.reduceat(theta, ends, axis=0)[self.owner]
        return np.asarray(theta)

    def run(self, number: int, going: Iterator[int]) -> MixtureModel:
        """Descend from one of the starts, with a step that shrinks over the last third."""
        logits, bias = self._start(number), np.zeros(self.classes, dtype=np.float32)
        averages = [(np.zeros_like(one), np.zeros_like(one)) for one in (logits, bias)]
        for step, _ in zip(range(1, self.steps + 1), going, strict=False):
            theta, weights = self._softmax(logits), _normalised(bias)
            pull, gain = self._gradient(theta, weights)
            pull *= weights
            pull = theta * (pull - np.add.reduceat(pull * theta, self.starts[:-1], axis=0)[self.owner])
            gain = weights * (gain - np.dot(weights, gain))
            size = _STEP * min(1.0, 3.0 * (1.0 - step / (self.steps + 1)))
            for moved, (first, second), slope in zip((logits, bias), averages, (pull, gain), strict=True):
                _adam(moved, first, second, slope, size, step)
        found: FloatArray = self._softmax(logits).astype(np.float64)
        found /= np.add.reduceat(found, self.starts[:-1], axis=0)[self.owner]
        shares: FloatArray = np.asarray(_normalised(bias.astype(np.float64)), dtype=np.float64)
        return MixtureModel(self.shape, shares, found[: self.starts[-2]])

    def _gradient(self, theta: _Single, weights: _Single) -> tuple[_Single, _Single]:
        """The slopes of the objective in every conditional (divided by its class's weight) and in every weight."""
        pull = np.zeros_like(theta)
        for rows, columns, target, weight in self.blocks:
            one, other = theta[rows], theta[columns]
            pairs = (one * weights) @ other.T
            pairs -= target
            pairs *= weight
            pull[rows] += pairs @ other
            if rows is not columns:
                pull[columns] += pairs.T @ one
        gain: _Single = np.asarray(0.5 * np.einsum("dk,dk->k", pull, theta), dtype=np.float32)
        for table in self.large:
            self._large_gradient(table, theta, weights, pull, gain)
        if self.price:
            dependence = np.log(
                np.maximum(theta, 1e-20) / np.maximum(theta @ weights, 1e-20)[:, None], dtype=np.float32
            )
            dependence *= np.float32(self.price)
            pull += dependence
            gain += np.einsum("dk,dk->k", dependence, theta)
        return pull, gain

    def _large_gradient(
        self, table: NoisyTable, theta: _Single, weights: _Single, pull: _Single, gain: _Single
    ) -> None:
        """Add what a table of three or more attributes asks for: each factor against the product of the rest."""
        rows = [slice(*self.starts[axis : axis + 2]) for axis in table.axes]
        joint = np.ones((1, self.classes), dtype=np.float32)
        for row in rows[:-1]:
            joint = (joint[:, None, :] * theta[row][None, :, :]).reshape(-1, self.classes)
        last = theta[rows[-1]]
        error = (joint * weights) @ last.T
        error -= table.values.reshape(error.shape).astype(np.float32)
        error *= np.asarray(table.variance, dtype=np.float32).reshape(error.shape)
        slope = error.T @ joint
        pull[rows[-1]] += slope
        gain += np.einsum("dk,dk->k", slope, last)
        whole = (error @ last).reshape([*table.values.shape[:-1], self.classes])
        for place, row in enumerate(rows[:-1]):
            part = whole
            for other in reversed([spot for spot in range(len(rows) - 1) if spot != place]):
                shape = [1] * part.ndim
                shape[other], shape[-1] = part.shape[other], self.classes
                part = (part * theta[rows[other]].reshape(shape)).sum(axis=other, keepdims=True)
            pull[row] += part.reshape(-1, self.classes)


def _adam(number: _Single, first: _Single, second: _Single, slope: _Single, size: float, step: int) -> None:
    """Move numbers in place against their slopes, each by its own scale."""
    # Single precision cannot square what 2⁵³ records in one cell pull with; only the direction matters there.
    np.clip(slope, -1e15, 1e15, out=slope)
    first *= np.float32(_FIRST)
    first += np.float32(1.0 - _FIRST) * slope
    slope *= slope
    second *= np.float32(_SECOND)
    second += np.float32(1.0 - _SECOND) * slope
    root = np.sqrt(second)
    root *= np.float32(1.0 / math.sqrt(1.0 - _SECOND**step))
    root += np.float32(1e-12)
    number -= np.float32(size / (1.0 - _FIRST**step)) * first / root


def _normalised(bias: NDArray[np.floating]) -> NDArray[np.floating]:
    weights = np.exp(bias - bias.max())
    return np.asarray(weights / weights.sum())


def _scatter(rows: int, columns: int, number: int) -> FloatArray:
    """Fixed numbers of mean zero and variance one that look unrelated: a hash of their place (SplitMix64).

    Not drawn: they are the same for everyone, so a model is a function of the tables alone.
    """
    place = np.arange(rows * columns, dtype=np.uint64) + np.uint64(number << 40)
    place = mixed(place * np.uint64(GOLDEN))
    even: FloatArray = (place >> np.uint64(11)).astype(np.float64) / 2.0**53
    return ((even - 0.5) * math.sqrt(12.0)).reshape(rows, columns)
