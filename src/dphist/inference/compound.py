"""A line read cell by cell, each as cells like it turned out: what the level model misses where counts repeat.

Robbins' compound decision problem (1951): many noisy counts, each to be guessed, tell together how often each level
occurs, and that is the prior of every one of them. It is asked of all other cells, and of those nearby. Beside the
level model each of these laws weighs as it foretells cells that were left out: their mixture under which the values are
likeliest (stacking, Yao et al. 2018). No budget is spent.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compound import by_all, by_near, level_steps, looked_at, settle, stack
from dphist.kernels.levels.fit import FIT_CELLS, Denoised

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Fewer cells tell little of each other; above this many the level model does not foretell.
FEWEST, MOST = 1024, FIT_CELLS
# Before anything is seen so many cells' worth of levels, nine in ten of them none, the others by their logarithm.
_BEFORE, _EMPTY = 10.0, 0.9
_ROUNDS = 8
# Cells nearby count as much as that for every cell farther away.
_FADES = (0.9, 0.98)
# How many cells' worth of trust the level model has before, and each of the others; and how often that is improved.
_TRUSTED, _OTHERS, _STACKING = 20.0, 0.1, 40
# Weights are rounded to this: the last bits of a sum must not show in a release.
_GRAIN = 1024.0


def compound(values: IntArray, rate: float, line: Denoised) -> Denoised:
    """Mix what the level model says of every cell with what other cells say.

    Args:
        values: Noisy counts of cells in a row, with discrete Laplace noise of scale 1/``rate``.
        rate: One over the noise's scale.
        line: What the level model says, and how likely it finds every value given all others.

    Returns:
        The same of the mixture; the level model's word where it does not foretell, as it is not sure of itself.

    Example:
        >>> import numpy as np
        >>> from dphist.kernels.levels.fit import denoise
        >>> draw = np.random.default_rng(1)
        >>> truth = 1000 * draw.integers(0, 4, 2048)
        >>> noisy = truth + np.rint(draw.laplace(0, 100, 2048)).astype(int)
        >>> line = denoise(noisy, 0.01, foretell=True)
        >>> both = compound(noisy, 0.01, line)
        >>> bool(((both.mean - truth) ** 2).mean() < 0.5 * ((line.mean - truth) ** 2).mean())
        True
    """
    if line.foretold is None:
        return line
    laws = np.stack([line.foretold, line.mean, line.within + line.between])
    told = np.stack([laws, *_by_others(values, rate)])
    prior = np.array([_TRUSTED] + [_OTHERS] * (len(told) - 1))
    weights = prior / prior.sum()
    logs = np.ascontiguousarray(told[:, 0].T)
    stack(logs, prior, weights, _STACKING)
    weights = np.rint(_GRAIN * weights) / _GRAIN
    odds = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    mean = (odds.T * told[:, 1]).sum(axis=0)
    within = (odds.T * told[:, 2]).sum(axis=0)
    between = (odds.T * (told[:, 1] - mean) ** 2).sum(axis=0)
    return replace(line, mean=mean, within=within, between=between)


def _by_others(values: IntArray, rate: float) -> list[FloatArray]:
    """What all other cells say of each, and those nearby: how likely its value is (as logarithm), mean, variance."""
    distinct, rows = np.unique(values, return_inverse=True)
    rows = rows.astype(np.int64)
    levels, low = level_steps(values, rate)
    looks = looked_at(distinct, levels, low, rate)
    prior = np.append(_BEFORE * _EMPTY, _even_by_logarithm(levels[1:]) * _BEFORE * (1.0 - _EMPTY))
    believed = np.empty((values.size, looks.likely.shape[1]))
    held = settle(rows, looks.starts, looks.likely, prior, _ROUNDS, believed)
    told = [np.empty((3, values.size)) for _ in range(1 + len(_FADES))]
    by_all(rows, *looks, believed, held, prior, told[0])
    for fade, each in zip(_FADES, told[1:], strict=True):
        by_near(rows, *looks, believed, held, fade, each)
    return told


def _even_by_logarithm(levels: FloatArray) -> FloatArray:
    """Shares of levels that are evenly spread by their logarithm."""
    width = np.gradient(np.log(levels))
    return np.asarray(width / width.sum())
