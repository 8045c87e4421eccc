"""Fit the hidden level model to noisy counts and read off what it expects of every cell."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.levels import expect, infer, level_grid, likelihoods, moments

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How far counts scatter about their level (c), each with the ratio of a grid that is fine enough for it.
_SCATTER = ((0.1, 1.15), (0.3, 1.2), (1.0, 1.35))
# Where the moves start: levels that hold on, or levels that keep jumping. (stay, small step, large step, jump)
_STARTS = ((0.985, 0.005, 0.005, 0.005), (0.4, 0.05, 0.05, 0.5))
# Pseudo-counts of the moves, and the share of π that starts at zero: where the data say nothing, say zero.
_MOVES_PRIOR = np.array([2.0, 0.2, 0.2, 0.2])
_ZERO_SHARE = 0.9
# One lone peak among n cells is as likely the largest of n noise draws, and believing a false one costs its square. So
# jumps off zero count in full only once there are many: with m of them, by m / (m + this).
_DOUBT = 100.0
# Expectation–maximisation rounds: all candidates, then the better two, then the winner.
_ROUNDS = (3, 5, 4)
# The model is fitted on at most this many cells, in stretches spread evenly over all of them.
_FIT_CELLS = 1 << 14
_STRETCH = 1 << 12
# Longest run of cells that one forward–backward pass holds in memory.
_LONGEST = 1 << 15


@dataclass(eq=False)
class _Candidate:
    """One model on its way to a fit."""

    scatter: float
    grid: FloatArray
    table: FloatArray
    scale: float
    start: FloatArray
    weights: FloatArray
    jump: FloatArray = field(init=False)
    evidence: float = -np.inf

    def __post_init__(self) -> None:
        self.jump = self.start

    def improve(self, rows: IntArray, stretches: IntArray, rounds: int) -> None:
        """Take some rounds of expectation–maximisation towards the highest penalised evidence."""
        forward = np.empty((int((stretches[:, 1] - stretches[:, 0]).max()), self.grid.size))
        for _ in range(rounds):
            evidence, jumps, moves = expect(self.table, rows, stretches, self.jump, self.weights, forward)
            penalty = (self.start * np.log(self.jump)).sum() + (_MOVES_PRIOR * np.log(self.weights)).sum()
            self.evidence = evidence + self.scale + float(penalty)
            moves += _MOVES_PRIOR
            found = float(jumps[1:].sum())
            jumps[1:] *= found / (found + _DOUBT)
            jumps += self.start
            self.weights = moves / moves.sum()
            self.jump = jumps / jumps.sum()


@dataclass(frozen=True, eq=False)
class Denoised:
    """What the fitted model says of every cell."""

    mean: FloatArray
    within: FloatArray
    between: FloatArray
    scatter: float
    stay: float


def denoise(values: IntArray, rate: float) -> Denoised:
    """Infer counts from discrete Laplace noise of scale 1/``rate`` under the hidden level model.

    Six models (three scatters, two starting points) are fitted a little, the better two some more, and the one with
    the highest penalised evidence is finished. Everything reads released values only.
    """
    pieces = [values[lo:hi] for lo, hi in _stretches(values.size, _FIT_CELLS, _STRETCH)]
    ends = np.cumsum([piece.size for piece in pieces])
    stretches = np.stack([ends - [piece.size for piece in pieces], ends], axis=1).astype(np.int64)
    distinct, rows = _distinct(np.concatenate(pieces))
    race: list[_Candidate] = []
    for scatter, ratio in _SCATTER:
        grid = level_grid(values, rate, ratio)
        table, scales = likelihoods(distinct, grid, scatter, rate)
        start = np.full(grid.size, (1.0 - _ZERO_SHARE) / (grid.size - 1))
        start[0] = _ZERO_SHARE
        for moves in _STARTS:
            candidate = _Candidate(scatter, grid, table, float(scales[rows].sum()), start, np.array(moves))
            candidate.improve(rows, stretches, _ROUNDS[0])
            race.append(candidate)
    for keep, rounds in ((2, _ROUNDS[1]), (1, _ROUNDS[2])):
        race = sorted(race, key=lambda candidate: -candidate.evidence)[:keep]
        for candidate in race:
            candidate.improve(rows, stretches, rounds)
    return _apply(race[0], values, rate)


def _apply(model: _Candidate, values: IntArray, rate: float) -> Denoised:
    """Run the fitted model over all cells, so many at a time that its tables fit in memory."""
    parts = []
    for lo, hi in _runs(values.size, _LONGEST):
        distinct, rows = _distinct(values[lo:hi])
        # A model that was fitted on all cells has their table already.
        seen_all = values.size <= min(_FIT_CELLS, _LONGEST)
        table = model.table if seen_all else likelihoods(distinct, model.grid, model.scatter, rate)[0]
        first, second = moments(distinct, model.grid, model.scatter, rate)
        whole = np.array([[0, rows.size]], dtype=np.int64)
        forward = np.empty((rows.size, model.grid.size))
        parts.append(infer(table, rows, whole, model.jump, model.weights, first, second, forward))
    mean, within, between = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Denoised(mean, within, between, model.scatter, float(model.weights[0]))


def _distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """Noisy values repeat: work out what depends on a value once for each distinct one."""
    distinct, rows = np.unique(values, return_inverse=True)
    return distinct, rows.astype(np.int64)


def _runs(size: int, longest: int) -> IntArray:
    """Cut all cells into runs of about equal length, none longer than ``longest``."""
    cuts = np.linspace(0, size, -(-size // longest) + 1).astype(np.int64)
    return np.stack([cuts[:-1], cuts[1:]], axis=1)


def _stretches(size: int, cells: int, stretch: int) -> IntArray:
    """Choose which cells the model is fitted on: all of them, or stretches at even distances."""
    if size <= cells:
        return _runs(size, size)
    starts = np.linspace(0, size - stretch, cells // stretch).astype(np.int64)
    return np.stack([starts, starts + stretch], axis=1)
