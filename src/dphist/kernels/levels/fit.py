"""Fit the hidden level model to noisy counts and read off what it expects of every cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.levels.chain import evidence_of, expect, infer
from dphist.kernels.levels.likelihood import deviation, level_grid, likelihoods, moments

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How far counts scatter about their level (c), each with the ratio of a grid that is fine enough for it.
_SCATTER = ((0.1, 1.15), (0.3, 1.2), (1.0, 1.35))
# Counts that scatter less than the first of these, looked at if asked for and if that one leads.
_FINE = (0.03, 1.07)
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
# The odds of structure against one level for all cells before anything was seen, as a logarithm. The evidence of a
# fitted model is a little too high, as it was fitted; but missing true structure costs more than believing in none.
_ODDS = 6.0
# Values in a group from which the clumping is read.
_GROUP = 32
# From this probability on the fitted model speaks alone.
_SURE = 0.999
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
    clump: float
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
    owed: bool = False
    """Whether a round was not gone through yet of which the evidence is known."""

    def __post_init__(self) -> None:
        self.jump = self.start

    @property
    def moves(self) -> tuple[FloatArray, float]:
        """How likely each kind of move is from each level, and the share of small steps."""
        return np.ascontiguousarray(self.weights[self.height].T), self.small

    def improve(self, rows: IntArray, stretches: IntArray, rounds: int, *, last: bool = False) -> None:
        """Take some rounds of expectation–maximisation towards the highest penalised evidence.

        Of the last round but for the winner's only the evidence is asked: it is gone through if the model stays in the
        race, before any other.
        """
        forward = np.empty(int((stretches[:, 1] - stretches[:, 0]).max()) * self.grid.size)
        given = *self.possible, rows, stretches
        for _ in range(rounds + self.owed - (not last)):
            evidence, jumps, moves = expect(*given, self.jump, *self.moves, forward)
            self._weighed(evidence)
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
        self.owed = not last
        if self.owed:
            self._weighed(evidence_of(*given, self.jump, *self.moves, forward))

    def _weighed(self, evidence: float) -> None:
        """Keep the evidence with what speaks against these moves beforehand."""
        penalty = (self.start * np.log(self.jump)).sum() + (_MOVES_PRIOR * np.log(self.weights)).sum()
        before, self.evidence = self.evidence, evidence + self.scale + float(penalty)
        self.gained = self.evidence - before


@dataclass(frozen=True, eq=False)
class Denoised:
    """What the fitted model says of every cell."""

    mean: FloatArray
    within: FloatArray
    between: FloatArray
    scatter: float
    stay: float
    period: int = 0
    """After how many cells the profile of a trend repeats that was heard as well, 1 without one; 0 if none was."""
    freedom: float = 0.0
    """Degrees of freedom of what both readings say together; 0 if no trend was heard."""


@dataclass(frozen=True, eq=False)
class _OneLevel:
    """One unknown level for all cells: what to believe when there is too little to tell more."""

    scatter: float
    clump: float
    grid: FloatArray
    chances: FloatArray  # of every level, given all values
    evidence: float

    @classmethod
    def fitted(cls, model: _Candidate, times: IntArray) -> _OneLevel:
        """Weigh the levels by their prior and by all values, each seen ``times`` times; nothing is fitted."""
        logs = np.full(model.table.shape, -np.inf)
        np.log(model.table, out=logs, where=model.table > 0.0)
        weights = np.log(model.start) + times @ logs
        high = float(weights.max())
        if high == -math.inf:
            return cls(model.scatter, model.clump, model.grid, model.start, -math.inf)
        chances = np.exp(weights - high)
        total = float(chances.sum())
        return cls(
            model.scatter, model.clump, model.grid, chances / total, high + math.log(total) + model.scale
        )

    def apply(
        self, values: IntArray, rate: float, normal: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean of every cell's count, and its variance in two parts as in `dphist.kernels.levels.chain.infer`."""
        distinct, rows = _distinct(values)
        table = likelihoods(distinct, self.grid, self.scatter, self.clump, rate, normal)[0]
        first, second = moments(distinct, self.grid, self.scatter, self.clump, rate, table, normal)
        mean = first @ self.chances
        between = np.maximum((first * first) @ self.chances - mean * mean, 0.0)
        return mean[rows], (second @ self.chances)[rows], between[rows]


def denoise(values: IntArray, rate: float, normal: float = 0.0, *, fine: bool = False) -> Denoised:
    """Infer counts from discrete Laplace noise of scale 1/``rate`` under the hidden level model.

    Where ``normal`` is above zero the noise is Gaussian of that variance; ``rate`` then is that of Laplace noise of the
    same variance.

    Six models (three scatters, two starting points), and one for records that come in clumps, are fitted a little, the
    better two some more, and the one with the highest penalised evidence is finished. If ``fine``, counts that scatter
    by 3 % about finer levels join them where those by 10 % lead. With next to no data noise
    passes for structure; so the result is the mean of this model and of one level for all cells, weighted by their
    evidence. Everything reads released values only.
    """
    pieces = [values[lo:hi] for lo, hi in _stretches(values.size, _FIT_CELLS, _STRETCH)]
    ends = np.cumsum([piece.size for piece in pieces])
    stretches = np.stack([ends - [piece.size for piece in pieces], ends], axis=1).astype(np.int64)
    distinct, rows = _distinct(np.concatenate(pieces))
    race: list[_Candidate] = []
    times = np.bincount(rows, minlength=distinct.size)

    def enter(scatter: float, clump: float, ratio: float, starts: tuple[tuple[float, ...], ...]) -> None:
        grid = level_grid(values, rate, ratio, normal)
        table, scales = likelihoods(distinct, grid, scatter, clump, rate, normal)
        start = np.full(grid.size, (1.0 - _ZERO_SHARE) / (grid.size - 1))
        start[0] = _ZERO_SHARE
        told, scale = _packed(table), float(times @ scales)
        height = np.searchsorted(np.array(_HEIGHTS) * deviation(rate, normal), grid)
        for moves in starts:
            weights = np.tile(moves, (len(_HEIGHTS) + 1, 1))
            candidate = _Candidate(scatter, clump, grid, table, told, scale, start, height, weights)
            candidate.improve(rows, stretches, _ROUNDS[0])
            race.append(candidate)

    for scatter, ratio in _SCATTER:
        enter(scatter, 0.0, ratio, _STARTS)
    clump = _clump(np.concatenate(pieces), rate)
    starts = _STARTS[:1] if race[0].evidence > race[1].evidence else _STARTS[1:]
    if fine and max(race, key=lambda candidate: candidate.evidence).scatter == _SCATTER[0][0]:
        enter(_FINE[0], 0.0, _FINE[1], starts)
    if clump > 0.0:
        enter(_SCATTER[0][0], clump, _SCATTER[0][1], starts)
    even = _OneLevel.fitted(race[0], times)
    for keep, rounds in ((2, _ROUNDS[1]), (1, _ROUNDS[2])):
        race = sorted(race, key=lambda candidate: -candidate.evidence)[:keep]
        # One that is so far behind would have to gain more than ever to win.
        reach = [each.evidence + _BEHIND + 2.0 * max(each.gained, 0.0) for each in race]
        race = [
            each for each, far in zip(race, reach, strict=True) if each is race[0] or far > race[0].evidence
        ]
        for candidate in race:
            candidate.improve(rows, stretches, rounds, last=keep == 1)
    against = even.evidence - race[0].evidence - _ODDS
    # Stretches say nothing about one level for all cells: what they miss may be all there is.
    trust = 1.0 if values.size > _FIT_CELLS else 1.0 / (1.0 + math.exp(min(against, 500.0)))
    return _apply(race[0], even, trust, values, rate, normal)


def _apply(
    model: _Candidate, even: _OneLevel, trust: float, values: IntArray, rate: float, normal: float
) -> Denoised:
    """Run the fitted model over at most 32,768 cells at a time, so that tables fit in memory; mix in the other one."""
    parts = []
    for lo, hi in _runs(values.size, _LONGEST):
        distinct, rows = _distinct(values[lo:hi])
        # A model that was fitted on all cells has their table already.
        seen_all = values.size <= min(_FIT_CELLS, _LONGEST)
        table = (
            model.table
            if seen_all
            else likelihoods(distinct, model.grid, model.scatter, model.clump, rate, normal)[0]
        )
        first, second = moments(distinct, model.grid, model.scatter, model.clump, rate, table, normal)
        whole = np.array([[0, rows.size]], dtype=np.int64)
        forward = np.empty(rows.size * model.grid.size)
        part = infer(*_packed(table), rows, whole, model.jump, *model.moves, first, second, forward)
        if trust < _SURE:
            part = _mixed(trust, part, even.apply(values[lo:hi], rate, normal))
        parts.append(part)
    mean, within, between = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Denoised(mean, within, between, model.scatter, model.stay)


def _clump(values: IntArray, rate: float) -> float:
    """Estimate how far counts scatter in proportion to their level, beyond Poisson: 0 if not to speak of.

    Where records come in clumps of φ the variance is φ times the mean. Neighbours share a level more or less, so half
    their squared difference is the variance of one of them plus that of the noise; where they do not, it is larger.
    So values are grouped by size, each group gives a robust φ, and the lower quartile of the groups is taken.
    """
    noise = 2.0 / rate**2
    middle = 0.5 * (values[1:] + values[:-1])
    gap = np.abs(np.diff(values)).astype(np.float64)
    full = np.flatnonzero(middle > 2.0 / rate)
    if full.size < 2 * _GROUP:
        return 0.0
    order = full[np.argsort(middle[full], kind="stable")]
    groups = order[: order.size // _GROUP * _GROUP].reshape(-1, _GROUP)
    # The median of |difference| is 0.954 deviations of one value. (NumPy's own would load its masked arrays.)
    sizes = np.sort(gap[groups], axis=1)
    medians = 0.5 * (sizes[:, _GROUP // 2 - 1] + sizes[:, _GROUP // 2])
    variance = (medians / 0.954) ** 2 - noise
    level = middle[groups].mean(axis=1)
    clump = float(np.quantile(variance / level, 0.25)) - 1.0
    return clump if clump * float(level[-1]) > 0.1 * noise else 0.0


def _mixed(
    trust: float,
    one: tuple[FloatArray, FloatArray, FloatArray],
    other: tuple[FloatArray, FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variances of a mixture; how far the two means lie apart belongs to what is unknown of the level."""
    mean, within, between = (trust * a + (1.0 - trust) * b for a, b in zip(one, other, strict=True))
    return mean, within, between + trust * (1.0 - trust) * (one[0] - other[0]) ** 2


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
