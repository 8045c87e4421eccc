"""Sums of bins beside models whose logarithms are normal: the likeliest bins, and the evidence of a model.

A bin holds (its part of a full bin) · exp(f), f being normal with covariance height²·(1 + r)·e⁻ʳ, r = √3·(distance in
bins) ÷ width (Matérn's with ν = 3/2), and as much of its own for every bin as the model says. What was measured of bins
has normal noise with a known precision matrix. The likeliest surface is found by Gauss and Newton's steps, the evidence
by Laplace's approximation about it. Arithmetic alone: nothing private is read here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.definite import CurvedRoot

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
_FEW_GROUPS = 0.4


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

        def lost(logs: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            moved, away = self.part * np.exp(logs) - begin, logs - middle
            told, back = self.precise @ moved, prior @ away
            return float(0.5 * moved @ told - pull @ moved + 0.5 * away @ back), told, back

        buffer, groups = np.empty_like(prior), self._groups

        def root_of(bins: FloatArray) -> CurvedRoot | GroupedRoot:
            if groups is None:
                return CurvedRoot(self.precise, prior, bins, buffer)
            return GroupedRoot(groups, covariance(self.across, *model), log_root, (self.precise, prior), bins)

        logs: FloatArray = np.log(begin / self.part)
        root: CurvedRoot | GroupedRoot | None = None
        at, told, back = lost(logs)
        for _ in range(_STEPS):
            bins = self.part * np.exp(logs)
            slope = bins * (pull - told) - back
            root = root_of(bins) if root is None else root
            step = root.solve(slope)
            step *= min(1.0, _FURTHEST / max(float(np.abs(step).max()), 1e-300))
            length, (now, *ahead) = 1.0, lost(logs + step)
            while now >= at and length > _SHORTEST:
                length /= 2.0
                now, *ahead = lost(logs + length * step)
            if now >= at:
                break
            gained, logs, at, (told, back) = at - now, logs + length * step, now, ahead
            if gained < _GAINED:
                break
            # Near the top the slope alone changes: nearly all of the time goes into roots.
            root = root if gained < _NEAR else None
        bins = self.part * np.exp(logs)
        return bins, -at - log_root - root_of(bins).log_determinant


@dataclass(frozen=True, eq=False)
class Groups:
    """Bins that were measured by groups alone: precise = UᵀQU, U with a row for each group, ones where its bins are."""

    members: tuple[tuple[IntArray, IntArray], ...]
    """Groups of one size after another: which groups, and a row of bins for each."""
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
        order, size = np.argsort(group, kind="stable"), np.bincount(group)
        begins = np.cumsum(size) - size
        first = order[begins]
        within = precise[np.ix_(first, first)]
        log_root = -float(np.log(np.diagonal(np.linalg.cholesky(within))).sum())
        alike = [np.flatnonzero(size == many) for many in np.unique(size)]
        members = tuple((some, order[begins[some, None] + np.arange(size[some[0]])]) for some in alike)
        return cls(members, np.asarray(np.linalg.inv(within), dtype=np.float64), log_root)

    def sums(self, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """What every group has of rows of bins, each times its scale."""
        found = np.empty((len(self.noise), rows.shape[1]))
        for some, bins in self.members:
            # Rows of one size are summed by products of matrices; most groups are one bin.
            found[some] = (scale[bins][:, None, :] @ rows[bins])[:, 0]
        return found


class GroupedRoot:
    """Solves by diag(d)·UᵀQU·diag(d) + K⁻¹ as `CurvedRoot` does, with a root of as many rows as there are groups.

    By Woodbury's identity its inverse is K − K·Vᵀ(Q⁻¹ + V·K·Vᵀ)⁻¹V·K with V = U·diag(d), and its determinant that of
    Q⁻¹ + V·K·Vᵀ over those of Q⁻¹ and K. That difference loses digits; what the matrix itself leaves of the right side
    is solved for once more, or platforms would round a thousand times as much apart.

    Args:
        groups: U and Q.
        covariance: K.
        log_root: Half the logarithm of K's determinant.
        whole: UᵀQU and K⁻¹.
        scale: d, a number for each bin.
    """

    def __init__(
        self,
        groups: Groups,
        covariance: FloatArray,
        log_root: float,
        whole: tuple[FloatArray, FloatArray],
        scale: FloatArray,
    ) -> None:
        self._covariance, self._whole, self._scale = covariance, whole, scale
        self._summed = groups.sums(covariance, scale)
        """V·K."""
        spread = groups.sums(np.ascontiguousarray(self._summed.T), scale)
        self._root = CurvedRoot(spread, groups.noise, np.ones(len(spread)))
        self.log_determinant = self._root.log_determinant - groups.log_root - log_root

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve by the matrix."""
        found, (precise, prior) = self._once(right), self._whole
        left = right - self._scale * (precise @ (self._scale * found)) - prior @ found
        return found + self._once(left)

    def _once(self, right: FloatArray) -> FloatArray:
        inside = self._root.solve(self._summed @ right)
        return np.asarray(self._covariance @ right - inside @ self._summed)


@lru_cache(maxsize=16)
def covariance(across: tuple[int, int], width: float, height: float, own: float) -> FloatArray:
    """A model's covariance of the logarithms."""
    alike = _alike(across, width, height, own)
    rows, columns = (np.abs(np.arange(n)[:, None] - np.arange(n)) for n in across)
    whole = alike[rows[:, None, :, None], columns[None, :, None, :]]
    return np.asarray(whole.reshape(alike.size, -1))


def _alike(across: tuple[int, int], width: float, height: float, own: float) -> FloatArray:
    """The covariance of the first bin's logarithm with every bin's."""
    apart = np.hypot(*np.indices(across)) * (math.sqrt(3.0) / width)
    alike = height * height * (1.0 + apart) * np.exp(-apart) + _ANY_LEVEL
    alike[0, 0] += own * own
    return np.asarray(alike)


@lru_cache(maxsize=16)
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
