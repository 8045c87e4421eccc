"""Published tables that agree with each other, what guesses beyond them, and synthetic records of all columns.

Drawing every record by chance would add chance to the tables, often more than privacy did. Records are dealt out
instead: each hidden class gets its share of the records, each value its share of a class, in an order that a hash of a
public seed decides. Then values are exchanged between records while that brings tables of pairs nearer to the published
ones. Everything is a function of what was published and of the public seed, so records are as private as the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError, TooLargeError
from dphist.inference.estimate import Errors, Estimate
from dphist.inference.tables.fitting import rake
from dphist.inference.tables.mixture import MixtureModel
from dphist.inference.tables.residuals import Axes, bounded_kinds
from dphist.kernels.hashing import GOLDEN, mixed
from dphist.kernels.summed_area import box_sums, running_sums, sums_between
from dphist.model.phrases import mended

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_Codes = NDArray[np.int32]

# Exchanges that are tried, at most (records × columns × sweeps), and sweeps: the gain of further ones is small.
_MOST_TRIED = 4e7
_MOST_SWEEPS = 40
# A matrix of all pairs has at most 16,000 rows (a gigabyte in single precision).
_MOST_ROWS = 16_000
# A guess is raked in tables of at most 1,048,576 cells, in 6 rounds; beyond 32 kept tables all are dropped. Every cell
# gets 10⁻⁶ of the mean cell on top, so that one which the mixture leaves empty may be filled.
_MOST_CELLS, _MOST_KEPT, _RAKING_ROUNDS, _TRACE = 1 << 20, 32, 6, 1e-6
# Raking a cube goes over at most 400 million cells, tables times rounds times cells: about a second.
_MOST_IN_CUBE = 4e8


def deal(model: MixtureModel, count: int, *, seed: int = 0) -> _Codes:
    """Deal out records of a mixture: classes and values by their shares, in an order hashed from a public seed."""
    if count < 0:
        raise QueryError("count must not be negative")
    codes = np.zeros((count, len(model.shape)), dtype=np.int32)
    shares = np.cumsum(model.weights) / model.weights.sum()
    places = (np.arange(count) + _fraction(seed, 0)) / max(1, count)
    classes = np.minimum(np.searchsorted(shares, places, side="right"), model.weights.size - 1)
    sizes = np.bincount(classes, minlength=model.weights.size)
    begins = np.cumsum(sizes) - sizes
    for axis in range(len(model.shape)):
        # Classes stand in order, so ordering by class and hash deals every class anew.
        order = np.lexsort((_hashes(seed, axis + 1, count), classes))
        rank = np.empty(count, dtype=np.int64)
        rank[order] = np.arange(count)
        phase = _hashes(seed, -axis - 1, model.weights.size).astype(np.float64) / 2.0**64
        within = (rank - begins[classes] + phase[classes]) / sizes[classes]
        # Every class's cumulated chances behind those of the one before: one search finds all values.
        chances = np.cumsum(model.column(axis), axis=0)
        ladder = (chances / chances[-1] + np.arange(model.weights.size)).T.reshape(-1)
        found = np.searchsorted(ladder, within + classes, side="right") - classes * model.shape[axis]
        codes[:, axis] = np.clip(found, 0, model.shape[axis] - 1)
    return codes


def synthesise(
    model: MixtureModel, tables: Mapping[Axes, FloatArray], count: int, *, seed: int = 0
) -> _Codes:
    """Make records that follow a mixture and keep tables of pairs."""
    from dphist.kernels.synthesis import count_pairs, exchange

    codes = deal(model, count, seed=seed)
    rows = model.starts[-1] + 1
    if count < 2 or len(model.shape) < 2 or rows > _MOST_ROWS:
        return codes
    excess = np.zeros((rows, rows), dtype=np.float32)
    theta = np.concatenate([model.conditionals, np.ones((1, model.weights.size))]).astype(np.float32)
    np.matmul(theta * (-count * model.weights).astype(np.float32), theta.T, out=excess)
    margins: dict[int, list[FloatArray]] = {}
    for (one, other), table in tables.items():
        target = np.maximum(table, 0.0) * (count / max(float(np.maximum(table, 0.0).sum()), 1e-300))
        here = slice(*model.starts[one : one + 2]), slice(*model.starts[other : other + 2])
        excess[here], excess[here[::-1]] = -target, -target.T
        margins.setdefault(one, []).append(target.sum(axis=1))
        margins.setdefault(other, []).append(target.sum(axis=0))
    for axis, found in margins.items():
        rows_of = slice(*model.starts[axis : axis + 2])
        excess[rows_of, -1] = excess[-1, rows_of] = -np.mean(found, axis=0)
    placed = np.ascontiguousarray(codes + np.array(model.starts[:-1], dtype=np.int32))
    count_pairs(placed, excess)
    sweeps = int(np.clip(_MOST_TRIED / placed.size, 1, _MOST_SWEEPS))
    exchange(placed, excess, np.uint64((seed * GOLDEN + 1) % 2**64), sweeps)
    return np.asarray(placed - np.array(model.starts[:-1], dtype=np.int32), dtype=np.int32)


def systematic(counts: FloatArray, wanted: int, seed: int) -> IntArray:
    """Place records evenly along the cumulated counts, so that each cell gets its share but for one record."""
    total = float(counts.sum())
    if total == 0:
        # Nothing is known of where records are. A sparse release without cells has nowhere to put them.
        counts, total = np.ones_like(counts), float(counts.size)
        wanted = wanted if counts.size else 0
    start = ((seed * GOLDEN + 0x632BE59BD9B4E019) % 2**64) / 2**64
    points = (np.arange(wanted) + start) * (total / max(1, wanted))
    return np.minimum(np.searchsorted(np.cumsum(counts), points, side="right"), counts.size - 1)


@dataclass(frozen=True, eq=False)
class RakedModel:
    """The cube that has some tables and is nearest in entropy to an even one: a guess of all that was not measured.

    It is written out when somebody asks for it, and ends after about a second of arithmetic or where all tables are had
    to a thousandth of a record: noisy tables without negative cells may have no such cube at all, and where attributes
    depend strongly on each other that takes a thousand rounds.

    Args:
        shape: The shape of the cube.
        tables: Tables that agree with each other, all smaller ones inside them included.
    """

    shape: tuple[int, ...]
    tables: Mapping[Axes, FloatArray]

    @cached_property
    def _shares(self) -> FloatArray:
        inside = {axes[:place] + axes[place + 1 :] for axes in self.tables for place in range(len(axes))}
        targets = {axes: self.tables[axes] for axes in sorted(self.tables) if axes not in inside}
        cells, total = math.prod(self.shape), float(self.tables[()])
        rounds = max(2, int(_MOST_IN_CUBE / (cells * len(targets))))
        cube = rake(np.full(self.shape, total / cells), targets, rounds, 1e-3)
        return cube / max(total, np.finfo(np.float64).tiny)

    @cached_property
    def _sums(self) -> FloatArray:
        return np.asarray(running_sums(self._shares), dtype=np.float64)

    def table(self, axes: Axes) -> FloatArray:
        """The probability of every cell of a table, its axes as named."""
        kept = tuple(sorted(axes))
        summed = self._shares.sum(axis=tuple(axis for axis in range(len(self.shape)) if axis not in kept))
        return np.asarray(summed, dtype=np.float64).transpose([kept.index(axis) for axis in axes])

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """The probability of every box."""
        return np.maximum(sums_between(self._sums, low, high), 0.0)

    def sample(self, count: int, seed: int = 0) -> tuple[_Codes, ...]:
        """Records of which each cell has its share, but for one: the codes of every column."""
        found = np.unravel_index(systematic(self._shares.reshape(-1), count, seed), self.shape)
        return tuple(places.astype(np.int32) for places in found)


@dataclass(frozen=True, eq=False)
class PublishedModel:
    """A mixture and the tables that were published with it: what guesses, and what records are made from.

    Args:
        mixture: Fitted to what was measured.
        tables: The published tables, by their axes.
    """

    mixture: MixtureModel
    tables: Mapping[Axes, FloatArray]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return self.mixture.shape

    def table(self, axes: Sequence[int]) -> FloatArray:
        """The probability of every cell of a table, its axes as named: the mixture's, raked to the published pairs.

        How three attributes go together is the mixture's guess; how each two of them do was published.
        """
        kept = tuple(sorted(axes))
        if kept not in self._made:
            if len(self._made) > _MOST_KEPT:
                self._made.clear()
            self._made[kept] = self._raked(kept)
        return self._made[kept].transpose([kept.index(axis) for axis in axes])

    def _raked(self, axes: Axes) -> FloatArray:
        guess = self.mixture.table(axes)
        inside = {
            tuple(axes.index(axis) for axis in pair): self.tables[pair]
            / max(float(self.tables[pair].sum()), 1e-300)
            for pair in combinations(axes, 2)
            if pair in self.tables
        }
        return rake(guess + _TRACE / guess.size, inside, _RAKING_ROUNDS, 1e-9) if inside else guess

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """The probability of every box: off a raked table where one can be made, else off the mixture."""
        found = np.empty(len(low))
        for axes, here in bounded_kinds(self.mixture.shape, low, high):
            if 0 < math.prod(self.mixture.shape[axis] for axis in axes) <= _MOST_CELLS and len(axes) > 1:
                found[here] = box_sums(self.table(axes), low[here][:, axes], high[here][:, axes])
            else:
                found[here] = self.mixture.boxes(low[here], high[here])
        return found

    @cached_property
    def _made(self) -> dict[Axes, FloatArray]:
        return {}

    def sample(self, count: int, seed: int = 0) -> tuple[_Codes, ...]:
        """Records that keep the published pairs: the codes of every column."""
        pairs: dict[Axes, FloatArray] = {axes: table for axes, table in self.tables.items() if len(axes) == 2}
        return tuple(synthesise(self.mixture, pairs, count, seed=seed).T)


class LaterModel(PublishedModel, Mapping[Axes, FloatArray]):
    """The same, tables and model, fitted when either is first read: intervals stand on what was measured alone.

    Args:
        make: Fits them.
    """

    def __init__(self, make: Callable[[], PublishedModel]) -> None:
        self.__dict__["make"] = make

    @cached_property
    def fitted(self) -> PublishedModel:
        """The model, with the tables."""
        found: PublishedModel = self.__dict__["make"]()
        return found

    @property
    def mixture(self) -> MixtureModel:
        """The mixture of products in it."""
        return self.fitted.mixture

    @property
    def tables(self) -> Mapping[Axes, FloatArray]:
        """The published tables."""
        return self.fitted.tables

    def __getitem__(self, axes: Axes) -> FloatArray:
        return self.tables[axes]

    def __iter__(self) -> Iterator[Axes]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)


def _fraction(seed: int, salt: int) -> float:
    return float(_hashes(seed, salt, 1)[0]) / 2.0**64


def _hashes(seed: int, salt: int, count: int) -> NDArray[np.uint64]:
    """As many hashed numbers: a function of their place, the public seed and what they are for."""
    start = (seed * 0xD1342543DE82EF95 + salt * 0xA0761D6478BD642F + GOLDEN) % 2**64
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN) + np.uint64(start)
    return np.asarray(mixed(state), dtype=np.uint64)


class Model(Protocol):
    """A distribution over whole records that says something of every table, measured or not."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        ...

    def table(self, axes: Axes) -> FloatArray:
        """The probability of every cell of a table, its axes as named."""
        ...

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """The probability of every box."""
        ...


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """Published tables of few attributes, what is known of their errors, and a word on how they came about.

    Args:
        tables: By their attributes, ascending; with each table every smaller one inside it, the total under ``()``.
        errors: Intervals for boxes inside these tables, and bounds elsewhere.
        note: How it came about.
        model: What says something of tables that were not measured, if there is such a model: a guess.
        made_by: The mechanism with all that it chose filled in, where it chose: replaying that chooses nothing again.
    """

    tables: Mapping[Axes, FloatArray]
    errors: Errors
    note: str = ""
    model: Model | None = None
    made_by: object = None

    def __post_init__(self) -> None:
        """One of a thing is said as one, as in `Estimate`."""
        object.__setattr__(self, "note", mended(self.note))

    @property
    def total(self) -> float:
        """The published number of records."""
        return float(self.tables[()])

    @property
    def counts(self) -> FloatArray:
        """A number for every cell of the product, as the model guesses it: worked out whenever it is asked for."""
        if self.model is None:
            raise TooLargeError(
                "counts: tables of few attributes were published, and nothing is said of other counts"
            )
        every = tuple(range(len(self.model.shape)))
        return np.asarray(self.total * self.model.table(every), dtype=np.float64)


def in_cells(found: Estimate | TableEstimate) -> Estimate:
    """The same with a number for every cell, guessed where only tables say something."""
    if isinstance(found, Estimate):
        return found
    return Estimate(found.counts, found.errors, found.note, found.made_by)


def with_cube(found: TableEstimate, shape: Sequence[int]) -> Estimate | TableEstimate:
    """Tables over a product that can be written out, with a guess of all its cells: raked where they have no model."""
    every = tuple(axis for axis, size in enumerate(shape) if size > 1)
    if every in found.tables:
        return Estimate(found.tables[every].reshape(shape), found.errors, found.note, found.made_by)
    return found if found.model is not None else replace(found, model=RakedModel(tuple(shape), found.tables))


def sums_of_tables(
    tables: Mapping[Axes, FloatArray], shape: Sequence[int], low: IntArray, high: IntArray
) -> FloatArray:
    """Sum boxes of the table of the attributes that each is bounded on; not a number where there is none."""
    summed = np.full(len(low), np.nan)
    for axes, here in bounded_kinds(shape, low, high):
        if axes in tables:
            values = tables[axes]
            # Differences of running sums round; tables are nowhere negative, and neither is what is added up in them.
            sums = box_sums(values, low[here][:, axes], high[here][:, axes]) if axes else float(values)
            summed[here] = np.maximum(sums, 0.0)
    return summed
