"""A line read as a trend with a profile that repeats: days with their weeks, ages that people round.

The basic structural model of time series (Harvey, 1989), on noisy counts: a level that bends gently from cell to cell
times a profile of some period, about which counts scatter as people do who come one by one, and perhaps more. How
gently, how far counts scatter, and which period, if any, is what explains the noisy counts best. No budget is spent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.trend import filtered, likeliest_period, smoothed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Lines of fewer cells say too little of a trend; of more, a fit takes longer than all the rest.
FEWEST, MOST = 16, 1 << 16
# What is tried: how far counts scatter about their level beyond sampling, as a part of it; how much a slope bends and a
# level drifts from cell to cell, as parts of the level's square.
_SCATTERS = (0.0, 0.03, 0.1, 0.3)
_BENDS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
_DRIFTS = (0.0, 1e-4, 1e-2)
# A level is never taken to be below this part of the mean, nor below so much of a record: steps are parts of it.
_LOWEST, _LEAST = 0.02, 0.05
# The first guess of the trend is a moving mean of at most so many cells.
_WIDTH = 33
# Periods of up to so many cells are looked for, which come round four times at least.
_LONGEST, _ROUNDS = 400, 4
# How far profiles depart from one, as deviations; and what a period of p cells must explain beyond 2 log p, in nats.
_DEPART = (0.03, 0.1, 0.3, 1.0)
_PRICE = 3.0
# A profile says of no cell that it is emptier than this part of its level.
_EMPTIEST = 0.02


@dataclass(frozen=True, eq=False)
class Reading:
    """What a trend with a profile says of every cell."""

    counts: FloatArray
    freedom: float
    """Degrees of freedom: how far counts move with the values, added up."""
    period: int
    """After how many cells the profile repeats; 1 if there is none."""


@dataclass(frozen=True)
class _Steps:
    """How a trend moves and counts scatter about it."""

    scatter: float = _SCATTERS[1]
    bend: float = _BENDS[2]
    drift: float = _DRIFTS[0]

    def noise(self, expected: FloatArray, variance: float) -> FloatArray:
        """Variance of values about what is expected: sampling, scatter and noise."""
        return np.asarray(expected + (self.scatter * expected) ** 2 + variance, dtype=np.float64)


def structural(values: IntArray, variance: float, first: FloatArray) -> Reading:
    """Read noisy counts of one variance as a trend with a profile, beginning from another reading of them.

    Args:
        values: Noisy counts of cells in a row.
        variance: Of the noise in each.
        first: What they are taken to be at first.

    Returns:
        The counts this suggests, none below zero.

    Example:
        >>> import numpy as np
        >>> week = np.tile([9, 9, 9, 9, 9, 2, 1], 20)
        >>> structural(week, 2.0, np.full(140, 7.0)).period
        7
    """
    seen = values.astype(np.float64)
    lowest = max(_LOWEST * float(np.add.accumulate(np.maximum(first, 0.0))[-1]) / seen.size, _LEAST)
    level = np.maximum(_moving_mean(np.maximum(first, 0.0)), lowest)
    profile, steps, period, given = np.ones(seen.size), _Steps(), 1, 0.0
    # A period is looked for among all at first, and its profile then set beside a trend that knows of it.
    shortest, longest = 2, min(_LONGEST, seen.size // _ROUNDS)
    for _ in range(2):
        steps = _fitted(seen, profile, level, variance, steps)
        level = np.maximum(_trend(seen, profile, level, variance, steps)[0], lowest)
        period, departing, given = _profile(seen, level, steps.noise(level, variance), shortest, longest)
        profile = np.maximum(1.0 + departing[np.arange(seen.size) % period], _EMPTIEST)
        # If none was heard there is none to look at.
        shortest, longest = max(period, 2), period
    steps = _fitted(seen, profile, level, variance, steps)
    mean, doubt = _trend(seen, profile, level, variance, steps)
    expected = np.maximum(mean * profile, 0.0)
    # Of what a value departs by, so much is the count's own scatter, and the rest is noise.
    own = steps.noise(np.maximum(expected, _LOWEST * lowest), 0.0)
    kept = own / (own + variance)
    moved = kept + (1.0 - kept) * profile * profile * doubt / steps.noise(level * profile, variance)
    freedom = float(moved.sum()) + given * float((1.0 - kept).mean())
    return Reading(np.maximum(expected + kept * (seen - expected), 0.0), freedom, period)


def _moving_mean(values: FloatArray) -> FloatArray:
    """Means over the cells around each, mirrored at both ends."""
    half = min(_WIDTH // 2, values.size // 8 + 1)
    sums = np.concatenate([[0.0], np.add.accumulate(np.pad(values, half, mode="reflect"))])
    return np.asarray((sums[2 * half + 1 :] - sums[: -2 * half - 1]) / (2 * half + 1), dtype=np.float64)


def _fitted(
    values: FloatArray, profile: FloatArray, level: FloatArray, variance: float, steps: _Steps
) -> _Steps:
    """The steps that explain the values best, one kind looked at after the other."""
    none = np.empty((0, 10))
    heard: dict[_Steps, float] = {}

    def evidence(each: _Steps) -> float:
        if each not in heard:
            noise = each.noise(level * profile, variance)
            heard[each] = filtered(values, profile, noise, level, each.bend, each.drift, none)
        return heard[each]

    for _ in range(2):
        before = steps
        steps = max((replace(steps, bend=bend) for bend in _BENDS), key=evidence)
        steps = max((replace(steps, scatter=scatter) for scatter in _SCATTERS), key=evidence)
        steps = max((replace(steps, drift=drift) for drift in _DRIFTS), key=evidence)
        if steps == before:
            break
    return steps


def _trend(
    values: FloatArray, profile: FloatArray, level: FloatArray, variance: float, steps: _Steps
) -> tuple[FloatArray, FloatArray]:
    """The level of every cell given all values, and its variance."""
    kept = np.empty((values.size, 10))
    mean, doubt = np.empty(values.size), np.empty(values.size)
    noise = steps.noise(level * profile, variance)
    filtered(values, profile, noise, level, steps.bend, steps.drift, kept)
    smoothed(kept, mean, doubt)
    return mean, doubt


def _profile(
    values: FloatArray, level: FloatArray, noise: FloatArray, shortest: int, longest: int
) -> tuple[int, FloatArray, float]:
    """The period that explains most of how values depart from their level, if any does.

    Returns:
        The period, how far each of its cells departs from one, and how many degrees of freedom that takes.
    """
    told, pulled = level * level / noise, level * (values - level) / noise
    priors = np.square(np.array(_DEPART))
    period, which = likeliest_period(told, pulled, longest, shortest, priors, _PRICE)
    if period == 1:
        return 1, np.zeros(1), 0.0
    phase = np.arange(values.size) % period
    weight, pull = (np.bincount(phase, weights=each, minlength=period) for each in (told, pulled))
    gain = priors[which] * weight
    share = gain / (1.0 + gain)
    return period, share * pull / weight, float(share.sum())
