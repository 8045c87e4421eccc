"""Sums of bins beside models whose logarithms are normal: the likeliest bins, and the evidence of a model.

A bin holds (its part of a full bin) · exp(f), f being normal with covariance height²·(1 + r)·e⁻ʳ, r = √3·(distance in
bins) ÷ width (Matérn's with ν = 3/2), and as much of its own for every bin as the model says. What was measured of bins
has normal noise with a known precision matrix. The likeliest surface is found by Gauss and Newton's steps, the evidence
by Laplace's approximation about it. Arithmetic alone: nothing private is read here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.definite import CurvedRoot, times

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Model = tuple[float, float, float]
"""Over how many bins logarithms are alike, how far they vary, and what each bin has of its own."""

# The mean logarithm is not known beforehand: its variance.
_ANY_LEVEL = 100.0
# Steps of a fit at most; it ends when one gains less than this in evidence; no logarithm moves further in one
# step, of which less than a last part is not tried.
_STEPS, _GAINED, _FURTHEST, _SHORTEST = 12, 0.1, 3.0, 0.02
# A step that gained less than this is followed by others along the same curvature.
_NEAR = 5.0
# Of bins that are told apart by groups alone, up to this part of groups, roots are made of groups.
_FEW_GROUPS = 0.6
# Bins of a group that are summed at once: no more than a second thread would be woken for.
_PIECE = 8
HOPELESS = 20.0
"""A model whose logarithm of evidence is less than another's by more has no say, whatever is not known of it."""


class Fit(NamedTuple):
    """What a model makes of sums of bins."""

    model: Model
    bins: FloatArray
    """The likeliest."""
    likely: float
    """The logarithm of how likely these are, but for what is the same for all models."""
    evidence: float
    """That of the model's evidence, by the curvature at one of the last steps, or as far as the fit was followed."""


@dataclass(frozen=True, eq=False)
class SumsOfBins:
    """What was measured as sums of bins: the precision matrix, the weighted sums, and how full a bin's box is."""

    across: tuple[int, int]
    """How many bins there are along each axis; a line is a plane of one row."""
    part: FloatArray
    """Of every bin, the cells it has as a part of those of a whole one."""
    precise: FloatArray
    weighted: FloatArray
    group: IntArray | None = field(default=None, kw_only=True)
    """Of every bin a number, the same for bins that nothing measured tells apart; None if nobody looked."""

    @cached_property
    def _groups(self) -> Groups | None:
        """Groups of bins, if there are few enough of them to gain by it."""
        if self.group is None or self.group.max() + 1 > _FEW_GROUPS * self.group.size:
            return None
        try:
            return Groups.of(self.precise, self.group)
        except np.linalg.LinAlgError:
            return None

    def fit(
        self, model: Model, about: FloatArray, level: float, begin: FloatArray, beat: float = -math.inf
    ) -> Fit:
        """Find the likeliest bins by a model, and about what its evidence is.

        Args:
            model: What it says of logarithms.
            about: Bins about which sums of squares are taken, the same for all models that are compared: sums of
                squares themselves would drown what tells models apart.
            level: About what a bin holds.
            begin: Bins to begin at, all above nothing.
            beat: The evidence of a better model: one that will not come near it is not followed any further.

        Returns:
            The bins with their evidence.
        """
        prior = Prior.of(self.across, *model)
        pull = self.weighted - self._told(about)
        middle, curved = math.log(level), self._curved(prior)

        def lost(logs: FloatArray, back: FloatArray) -> tuple[float, FloatArray]:
            moved = self.part * np.exp(logs) - about
            told = self._told(moved)
            return float(0.5 * moved @ told - pull @ moved + 0.5 * (logs - middle) @ back), told

        logs: FloatArray = np.log(begin / self.part)
        back = times(prior.inverse, logs - middle)
        root: WholeRoot | GroupedRoot | None = None
        at, told = lost(logs, back)
        for _ in range(_STEPS):
            bins = self.part * np.exp(logs)
            slope = bins * (pull - told) - back
            root = root if root is not None else curved(bins)
            step, along = root.solve(slope)
            # Twice what a parabola would gain.
            if -at + float(slope @ step) - root.log_determinant < beat - HOPELESS:
                break
            length = min(1.0, _FURTHEST / max(float(np.abs(step).max()), 1e-300))
            shortest = _SHORTEST * length
            now, ahead = lost(logs + length * step, back + length * along)
            while now >= at and length > shortest:
                length /= 2.0
                now, ahead = lost(logs + length * step, back + length * along)
            if now >= at:
                break
            gained, at, told = at - now, now, ahead
            logs, back = logs + length * step, back + length * along
            if gained < _GAINED:
                break
            # Near the top the slope alone changes: nearly all of the time goes into roots.
            root = root if gained < _NEAR else None
        bins = self.part * np.exp(logs)
        root = root if root is not None else curved(bins)
        return Fit(model, bins, -at, -at - root.log_determinant)

    def weighed(self, fits: Sequence[Fit]) -> FloatArray:
        """Say what evidence models have: of those that are near the best, by the curvature at their likeliest bins.

        Args:
            fits: Of some models, about the same bins.

        Returns:
            The logarithm of each one's evidence.
        """
        best = max(each.evidence for each in fits)
        near = [each.evidence > best - HOPELESS for each in fits]
        if sum(near) == 1:
            return np.array([each.evidence for each in fits])
        return np.array(
            [
                each.likely - self._curved(Prior.of(self.across, *each.model))(each.bins).log_determinant
                if close
                else each.evidence
                for each, close in zip(fits, near, strict=True)
            ]
        )

    def _told(self, bins: FloatArray) -> FloatArray:
        """What the precision matrix makes of bins."""
        if self._groups is None:
            return times(self.precise, bins)
        return times(self._groups.within, self._groups.sums(bins))[self._groups.group]

    def _curved(self, prior: Prior) -> Callable[[FloatArray], WholeRoot | GroupedRoot]:
        """How the logarithm of the posterior curves at any bins."""
        groups = self._groups
        if groups is None:
            return partial(WholeRoot, self.precise, prior)
        return partial(GroupedRoot, groups, prior, groups.begun(prior))


@dataclass(frozen=True, eq=False)
class Groups:
    """Bins that were measured by groups alone: precise = UᵀQU, U with a row for each group, ones where its bins are."""

    group: IntArray
    """Of every bin, the number of its group."""
    within: FloatArray
    """Q."""
    noise: FloatArray
    """The inverse of Q: what is not known of the groups' sums."""
    log_root: float
    """Half the logarithm of its determinant."""

    @classmethod
    def of(cls, precise: FloatArray, group: IntArray) -> Groups:
        """Gather bins whose rows of the precision matrix are alike.

        Raises:
            numpy.linalg.LinAlgError: If something is not known of the groups at all.
        """
        first = np.unique(group, return_index=True)[1]
        within = precise[np.ix_(first, first)]
        root = CurvedRoot(within, np.zeros_like(within))
        return cls(group, within, root.inverse(), -root.log_determinant)

    def sums(self, bins: FloatArray) -> FloatArray:
        """What every group has of bins."""
        return np.bincount(self.group, bins, minlength=len(self.within)).astype(np.float64, copy=False)

    @cached_property
    def members(self) -> tuple[IntArray, IntArray, IntArray, list[tuple[int, IntArray]]]:
        """Groups of one bin and these bins; other groups, and bins of these, a few of a group at a time."""
        order, size = np.argsort(self.group, kind="stable"), np.bincount(self.group)
        each = np.split(order, np.cumsum(size)[:-1])
        alone, several = np.flatnonzero(size == 1), np.flatnonzero(size > 1)
        pieces = [
            (place, each[number][begin : begin + _PIECE])
            for place, number in enumerate(several.tolist())
            for begin in range(0, int(size[number]), _PIECE)
        ]
        return alone, order[np.isin(self.group[order], alone)], several, pieces

    def begun(self, prior: Prior) -> FloatArray:
        """U·K·Uᵀ of groups of one bin, with room for the others."""
        alone, single = self.members[:2]
        found = np.zeros_like(self.within)
        found[np.ix_(alone, alone)] = prior.covariance[np.ix_(single, single)]
        return found

    def gathered(self, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """Of groups of several bins, U·diag(d) by a matrix that has a row for each bin."""
        several, pieces = self.members[2:]
        found = np.zeros((several.size, rows.shape[1]))
        for place, bins in pieces:
            found[place] += scale[bins] @ rows[bins]
        return found


class WholeRoot:
    """Solves by diag(d)·precise·diag(d) + K⁻¹, what the logarithm of a posterior curves like.

    Args:
        precise: A positive semidefinite matrix.
        prior: K.
        scale: d, a number for each bin.
    """

    def __init__(self, precise: FloatArray, prior: Prior, scale: FloatArray) -> None:
        self._root, self._prior = CurvedRoot(precise, prior.inverse, scale), prior
        self.log_determinant = self._root.log_determinant + prior.log_root
        """Half the logarithm of its determinant over that of K⁻¹."""

    def solve(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve by the matrix: what is found, and K⁻¹ times that."""
        found = self._root.solve(right)
        return found, times(self._prior.inverse, found)


class GroupedRoot:
    """Solves by diag(d)·UᵀQU·diag(d) + K⁻¹ as `WholeRoot` does, with a root of as many rows as there are groups.

    By Woodbury's identity its inverse is K·(1 − Vᵀ(Q⁻¹ + V·K·Vᵀ)⁻¹V·K) with V = U·diag(d), and its determinant that of
    Q⁻¹ + V·K·Vᵀ over those of Q⁻¹ and K.

    Args:
        groups: U and Q.
        prior: K.
        begun: U·K·Uᵀ as far as groups have one bin; the rest is written into it.
        scale: d, a number for each bin.
    """

    def __init__(self, groups: Groups, prior: Prior, begun: FloatArray, scale: FloatArray) -> None:
        self._groups, self._prior, self._scale = groups, prior, scale
        alone, single, several, _ = groups.members
        sums = groups.gathered(prior.covariance, scale)
        begun[np.ix_(several, alone)] = sums[:, single]
        begun[np.ix_(alone, several)] = sums[:, single].T
        begun[np.ix_(several, several)] = groups.gathered(np.ascontiguousarray(sums.T), scale)
        # Groups of one bin are left to the root to scale.
        rest = np.ones(len(begun))
        rest[alone] = scale[single]
        self._root = CurvedRoot(begun, groups.noise, rest)
        self.log_determinant = self._root.log_determinant - groups.log_root

    def solve(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Solve by the matrix: what is found, and K⁻¹ times that."""
        there = self._groups.sums(self._scale * self._prior.times(right))
        back = right - self._scale * self._root.solve(there)[self._groups.group]
        return self._prior.times(back), back


@dataclass(frozen=True, eq=False)
class Prior:
    """What a model says of logarithms beforehand: their covariance matrix K, its inverse and products by it."""

    across: tuple[int, int]
    model: Model

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, across: tuple[int, int], width: float, height: float, own: float) -> Prior:
        """A model's, with what was worked out of it before."""
        return cls(across, (width, height, own))

    @cached_property
    def _alike(self) -> FloatArray:
        return _alike(self.across, *self.model)

    @cached_property
    def covariance(self) -> FloatArray:
        """K."""
        rows, columns = (np.abs(np.arange(n)[:, None] - np.arange(n)) for n in self.across)
        whole = self._alike[rows[:, None, :, None], columns[None, :, None, :]]
        return np.asarray(whole.reshape(self._alike.size, -1))

    @cached_property
    def _inverted(self) -> tuple[FloatArray, float]:
        return covariance_inverse(self.across, *self.model)

    @property
    def inverse(self) -> FloatArray:
        """K⁻¹."""
        return self._inverted[0]

    @property
    def log_root(self) -> float:
        """Half the logarithm of K's determinant."""
        return self._inverted[1]

    @cached_property
    def _spectrum(self) -> FloatArray:
        """Of K without what all bins have in common, on a torus so large that no two bins meet around it."""
        rows, columns = (np.minimum(np.arange(2 * n), 2 * n - np.arange(2 * n)) for n in self.across)
        apart = np.pad(self._alike - _ANY_LEVEL, ((0, 1), (0, 1)))
        return np.asarray(np.fft.rfft2(apart[np.ix_(rows, columns)]).real)

    def times(self, bins: FloatArray) -> FloatArray:
        """K by a number for each bin: K is the same along all diagonals, so waves do it."""
        rows, columns = self.across
        torus = (2 * rows, 2 * columns)
        waves = np.fft.rfft2(bins.reshape(rows, columns), torus) * self._spectrum
        found = np.fft.irfft2(waves, torus)[:rows, :columns]
        return np.asarray(found.reshape(-1) + _ANY_LEVEL * bins.sum())


def _alike(across: tuple[int, int], width: float, height: float, own: float) -> FloatArray:
    """The covariance of the first bin's logarithm with every bin's."""
    apart = np.hypot(*np.indices(across)) * (math.sqrt(3.0) / width)
    alike = height * height * (1.0 + apart) * np.exp(-apart) + _ANY_LEVEL
    alike[0, 0] += own * own
    return np.asarray(alike)


def covariance_inverse(
    across: tuple[int, int], width: float, height: float, own: float
) -> tuple[FloatArray, float]:
    """A model's precision matrix of the logarithms, and half the logarithm of their covariance's determinant.

    Bins and their mirror images are alike, so that what is even and what is odd along an axis do not go together: four
    matrices of a quarter of the bins are inverted rather than one of all.
    """
    alike = _alike(across, width, height, own)
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
        root = CurvedRoot(whole, np.zeros_like(whole))
        log_root += root.log_determinant
        inverse = root.inverse().reshape(here.shape) / len(odd)
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
