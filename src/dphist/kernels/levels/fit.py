"""Fit the hidden level model to noisy counts and read off what it expects of every cell."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.levels.chain import expect, infer
from dphist.kernels.levels.likelihood import deviation, level_grid, likelihoods, moments

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How far counts scatter about their level (c), each with the ratio of a grid that is fine enough for it.
_SCATTER = ((0.1, 1.15), (0.3, 1.2), (1.0, 1.35))
# Where the moves start: levels that hold on, or levels that keep jumping. (stay, step, jump)
_STARTS = ((0.985, 0.01, 0.005), (0.4, 0.1, 0.5))
# Pseudo-counts of the moves, and the share of π that starts at zero: where the data say nothing, say zero.
_MOVES_PRIOR = np.array([2.0, 0.4, 0.2])
_STEPS_PRIOR = np.array([0.2, 0.2])
_ZERO_SHARE = 0.9
# One lone peak among n cells is as likely the largest of n noise draws, and believing a false one costs its square. So
# jumps off zero count in full only once there are many: with m of them, by m / (m + this).
_DOUBT = 100.0
# How levels move is fitted apart for those that noise hides (below 0.3 of its deviations), those about it, and those
# that stand out of it (above 3). Empty stretches hold on where full ones do not.
_HEIGHTS = (0.3, 3.0)
# Expectation–maximisation rounds: all candidates, then the better two, then the winner.
_ROUNDS = (2, 5, 5)
# The better two are one if the other is behind by more than this and twice what its last round gained.
_BEHIND = 10.0
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
    possible: tuple[FloatArray, IntArray]  # of the table, `_packed`
    scale: float
    start: FloatArray
    height: IntArray  # of every level, among the heights that move alike
    weights: FloatArray  # of the moves, for each height
    small: float = 0.5  # steps among all
    jump: FloatArray = field(init=False)
    stay: float = 0.0
    evidence: float = -np.inf
    gained: float = np.inf

    def __post_init__(self) -> None:
        self.jump = self.start

    @property
    def moves(self) -> tuple[FloatArray, float]:
        """How likely each kind of move is from each level, and the share of small steps."""
        return np.ascontiguousarray(self.weights[self.height].T), self.small

    def improve(self, rows: IntArray, stretches: IntArray, rounds: int) -> None:
        """Take some rounds of expectation–maximisation towards the highest penalised evidence."""
        forward = np.empty(int((stretches[:, 1] - stretches[:, 0]).max()) * self.grid.size)
        for _ in range(rounds):
            evidence, jumps, moves = expect(*self.possible, rows, stretches, self.jump, *self.moves, forward)
            # What speaks against these moves beforehand counts, too.
            penalty = (self.start * np.log(self.jump)).sum() + (_MOVES_PRIOR * np.log(self.weights)).sum()
            before, self.evidence = self.evidence, evidence + self.scale + float(penalty)
            self.gained = self.evidence - before
            stays, small, large, leaves = moves
            kinds = np.stack([stays, small + large, leaves])
            self.stay = float(stays.sum() / max(kinds.sum(), 1.0))
            weights = _MOVES_PRIOR + [
                kinds[:, self.height == i].sum(axis=1) for i in range(len(self.weights))
            ]
            steps = _STEPS_PRIOR + np.array([small.sum(), large.sum()])
            found = float(jumps[1:].sum())
            jumps[1:] *= found / (found + _DOUBT)
            jumps += self.start
            self.weights = weights / weights.sum(axis=1, keepdims=True)
            self.small = float(steps[0] / steps.sum())
            self.jump = jumps / jumps.sum()


@dataclass(frozen=True, eq=False)
class Denoised:
    """What the fitted model says of every cell."""

    mean: FloatArray
    within: FloatArray
    between: FloatArray
    stay: float


def denoise(values: IntArray, rate: float, normal: float = 0.0) -> Denoised:
    """Infer counts from discrete Laplace noise of scale 1/``rate`` under the hidden level model.

    Where ``normal`` is above zero the noise is Gaussian of that variance; ``rate`` then is that of Laplace noise of the
    same variance.

    Six models (three scatters, two starting points) are fitted a little, the better two some more, and the one with the
    highest penalised evidence is finished. Everything reads released values only.
    """
    pieces = [values[lo:hi] for lo, hi in _stretches(values.size, _FIT_CELLS, _STRETCH)]
    ends = np.cumsum([piece.size for piece in pieces])
    stretches = np.stack([ends - [piece.size for piece in pieces], ends], axis=1).astype(np.int64)
    distinct, rows = _distinct(np.concatenate(pieces))
    race: list[_Candidate] = []
    times = np.bincount(rows, minlength=distinct.size)

    for scatter, ratio in _SCATTER:
        grid = level_grid(values, rate, ratio, normal)
        table, scales = likelihoods(distinct, grid, scatter, rate, normal)
        start = np.full(grid.size, (1.0 - _ZERO_SHARE) / (grid.size - 1))
        start[0] = _ZERO_SHARE
        told, scale = _packed(table), float(times @ scales)
        height = np.searchsorted(np.array(_HEIGHTS) * deviation(rate, normal), grid)
        for moves in _STARTS:
            weights = np.tile(moves, (len(_HEIGHTS) + 1, 1))
            candidate = _Candidate(scatter, grid, table, told, scale, start, height, weights)
            candidate.improve(rows, stretches, _ROUNDS[0])
            race.append(candidate)

    for keep, rounds in ((2, _ROUNDS[1]), (1, _ROUNDS[2])):
        race = sorted(race, key=lambda candidate: -candidate.evidence)[:keep]
        # One that is so far behind would have to gain more than ever to win.
        reach = [each.evidence + _BEHIND + 2.0 * max(each.gained, 0.0) for each in race]
        race = [
            each for each, far in zip(race, reach, strict=True) if each is race[0] or far > race[0].evidence
        ]
        for candidate in race:
            candidate.improve(rows, stretches, rounds)
    return _apply(race[0], values, rate, normal)


def _apply(model: _Candidate, values: IntArray, rate: float, normal: float) -> Denoised:
    """Run the fitted model over at most 32,768 cells at a time, so that tables fit in memory."""
    parts = []
    for lo, hi in _runs(values.size, _LONGEST):
        distinct, rows = _distinct(values[lo:hi])
        # A model that was fitted on all cells has their table already.
        seen_all = values.size <= min(_FIT_CELLS, _LONGEST)
        table = model.table if seen_all else likelihoods(distinct, model.grid, model.scatter, rate, normal)[0]
        first, second = moments(distinct, model.grid, model.scatter, rate, table, normal)
        parts.append(infer(*_packed(table), rows, model.jump, *model.moves, first, second))
    mean, within, between = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Denoised(mean, within, between, model.stay)


def _packed(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """What of a table is possible, row after row, and where: for each row its levels [from, to) and where it begins.

    Of most values few levels are possible, and machines wait for memory. A row in which none is keeps its last.
    """
    seen = table != 0.0
    seen[:, -1] |= ~seen.any(axis=1)
    low, high = seen.argmax(axis=1), table.shape[1] - seen[:, ::-1].argmax(axis=1)
    level = np.arange(table.shape[1])
    told = table[(level >= low[:, None]) & (level < high[:, None])]
    return told, np.stack([low, high, np.cumsum(high - low) - (high - low)], axis=1)


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
