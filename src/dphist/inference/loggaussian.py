"""Sums of bins beside models whose logarithms are normal: the likeliest bins, and the evidence of a model.

A bin holds (its part of a full bin) · exp(f), f being normal with covariance height²·(1 + r)·e⁻ʳ, r = √3·(distance in
bins) ÷ width (Matérn's with ν = 3/2), and as much of its own for every bin as the model says. What was measured of bins
has normal noise with a known precision matrix. The likeliest surface is found by Gauss and Newton's steps, the evidence
by Laplace's approximation about it. Arithmetic alone: nothing private is read here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.definite import CurvedRoot

FloatArray = NDArray[np.float64]
Model = tuple[float, float, float]
"""Over how many bins logarithms are alike, how far they vary, and what each bin has of its own."""

# The mean logarithm is not known beforehand: its variance.
_ANY_LEVEL = 100.0
# Steps of a fit at most; it ends when one gains less than this in evidence; no logarithm moves further in one
# step, of which less than a last part is not tried.
_STEPS, _GAINED, _FURTHEST, _SHORTEST = 12, 0.1, 3.0, 0.02
# A step that gained less than this is followed by others along the same curvature.
_NEAR = 5.0


@dataclass(frozen=True, eq=False)
class SumsOfBins:
    """What was measured as sums of bins: the precision matrix, the weighted sums, and how full a bin's box is."""

    across: tuple[int, int]
    """How many bins there are along each axis; a line is a plane of one row."""
    part: FloatArray
    """Of every bin, the cells it has as a part of those of a whole one."""
    precise: FloatArray
    weighted: FloatArray

    def fit(self, model: Model, begin: FloatArray, level: float) -> tuple[FloatArray, float]:
        """Find the likeliest bins by a model, and its evidence, but for what is the same for all models.

        Args:
            model: What it says of logarithms.
            begin: Bins to begin at, all above nothing.
            level: About what a bin holds.

        Returns:
            The bins, and the logarithm of the evidence.
        """
        prior, log_root = covariance_inverse(self.across, *model)
        # About the beginning: sums of squares themselves would drown what tells models apart.
        pull = self.weighted - self.precise @ begin
        middle = math.log(level)

        def lost(logs: FloatArray) -> float:
            moved, away = self.part * np.exp(logs) - begin, logs - middle
            return float(0.5 * moved @ (self.precise @ moved) - pull @ moved + 0.5 * away @ (prior @ away))

        buffer = np.empty_like(prior)

        def root_of(bins: FloatArray) -> CurvedRoot:
            return CurvedRoot(self.precise, prior, bins, buffer)

        logs: FloatArray = np.log(begin / self.part)
        root: CurvedRoot | None = None
        at = lost(logs)
        for _ in range(_STEPS):
            bins = self.part * np.exp(logs)
            slope = bins * (pull - self.precise @ (bins - begin)) - prior @ (logs - middle)
            root = root_of(bins) if root is None else root
            step = root.solve(slope)
            step *= min(1.0, _FURTHEST / max(float(np.abs(step).max()), 1e-300))
            length, now = 1.0, lost(logs + step)
            while now >= at and length > _SHORTEST:
                length /= 2.0
                now = lost(logs + length * step)
            if now >= at:
                break
            gained, logs, at = at - now, logs + length * step, now
            if gained < _GAINED:
                break
            # Near the top the slope alone changes: nearly all of the time goes into roots.
            root = root if gained < _NEAR else None
        bins = self.part * np.exp(logs)
        return bins, -at - log_root - root_of(bins).log_determinant


@lru_cache(maxsize=16)
def covariance_inverse(
    across: tuple[int, int], width: float, height: float, own: float
) -> tuple[FloatArray, float]:
    """A model's precision matrix of the logarithms, and half the logarithm of their covariance's determinant.

    Bins and their mirror images are alike, so that what is even and what is odd along an axis do not go together: four
    matrices of a quarter of the bins are inverted rather than one of all.
    """
    apart = np.hypot(*np.indices(across)) * (math.sqrt(3.0) / width)
    alike = height * height * (1.0 + apart) * np.exp(-apart) + _ANY_LEVEL
    alike[0, 0] += own * own
    rows, columns = across
    high, wide = (n // 2 if n % 2 == 0 else n for n in across)
    one, other = (np.arange(n) for n in (high, wide))
    # From a bin to another one, and to its mirror image.
    down = [np.abs(one[:, None] - one), rows - 1 - one[:, None] - one][: rows // high]
    over = [np.abs(other[:, None] - other), columns - 1 - other[:, None] - other][: columns // wide]
    parts, log_root = np.zeros((len(down), len(over), high, wide, high, wide)), 0.0
    for signs in product(*((1.0, -1.0)[: len(each)] for each in (down, over))):
        odd = [(signs[0] ** i * signs[1] ** j, i, j) for i in range(len(down)) for j in range(len(over))]
        here = sum(
            (sign * alike[down[i][:, None, :, None], over[j][None, :, None, :]] for sign, i, j in odd),
            np.zeros((high, wide, high, wide)),
        )
        whole = here.reshape(high * wide, -1)
        log_root += float(np.log(np.diagonal(np.linalg.cholesky(whole))).sum())
        inverse = np.linalg.inv(whole).reshape(here.shape) / len(odd)
        for sign, i, j in odd:
            parts[i, j] += sign * inverse
    found = np.empty((*across, *across))
    for i, j in np.ndindex(parts.shape[:2]):
        there = [
            np.s_[:high] if i == 0 else np.s_[: -high - 1 : -1],
            np.s_[:wide] if j == 0 else np.s_[: -wide - 1 : -1],
        ]
        found[:high, :wide][:, :, there[0]][:, :, :, there[1]] = parts[i, j]
    if rows > high:
        found[high:, :wide] = found[:high, :wide][::-1, :, ::-1]
    if columns > wide:
        found[:, wide:] = found[:, :wide][:, ::-1, :, ::-1]
    return found.reshape(rows * columns, -1), log_root
