"""The cells of a very large domain that reached a threshold, and answers from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError, ReleaseError, TooLargeError, VerificationError
from dphist.inference.estimate import How, shared_confidence
from dphist.inference.intervals import Spread, half_widths
from dphist.kernels.special import log_factorial
from dphist.model.domain import Domain
from dphist.model.law import NoiseLaw
from dphist.model.phrases import counted
from dphist.model.workload import Workload
from dphist.release.answers import PROVEN, Answers, Projection, spoken
from dphist.release.cells.cells import LARGEST_ARRAY, Contents
from dphist.release.columns import Column, label_rows
from dphist.release.guarantee import Guarantee

if TYPE_CHECKING:
    from dphist.mechanisms.protocol import Mechanism

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SparseCells:
    """The published cells of a domain that may have 10¹⁵ of them; every other cell counts as zero.

    Nobody can tell which of them hold records: some empty cells pass the threshold by chance, and that is part of what
    keeps it private.

    Args:
        domain: What is counted.
        flat: Positions in the domain in C order, ascending.
        values: Their noisy counts.
        scale: The scale of the noise of every cell, published or not.
        threshold: The least noisy count that is published.

    Example:
        >>> import dphist, pyarrow as pa
        >>> domain = dphist.Domain([dphist.Ordinal("user", range(10**6)), dphist.Ordinal("item", range(10**6))])
        >>> records = pa.table({"user": [7] * 90, "item": [3] * 90})
        >>> release = dphist.publish(records, domain, 1, "sparselaplace(threshold=40)")
        >>> release.cells.form, 7 * 10**6 + 3 in release.cells.flat
        ('sparse', True)
    """

    domain: Domain
    flat: IntArray
    values: IntArray
    scale: Fraction
    threshold: int
    form: ClassVar[str] = "sparse"

    @staticmethod
    def of(domain: Domain, pairs: IntArray, guarantee: Guarantee, mechanism: Mechanism) -> SparseCells:
        """Read the pairs (cell, value) that `SparseLaplace.measure` gave under a guarantee."""
        # Loaded here: who reads a file is told scale and threshold by the file.
        from dphist.mechanisms.sparselaplace import SparseLaplace
        from dphist.private.pricing import UnitBudget

        if not isinstance(mechanism, SparseLaplace) or pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ReleaseError("its cells were not made by sparselaplace")
        scale = 1 / UnitBudget.of(guarantee.budget, guarantee.unit).pure
        flat, values = (np.ascontiguousarray(pairs[:, column]) for column in (0, 1))
        return SparseCells(domain, flat, values, scale, mechanism.level(scale, domain.size))

    def __len__(self) -> int:
        return int(self.flat.size)

    @property
    def numbers(self) -> IntArray:
        """The published noisy counts."""
        return self.values

    def dense(self, release: Contents) -> FloatArray:
        """A dense array of the domain's shape, where one fits."""
        return self._array

    @cached_property
    def _array(self) -> FloatArray:
        if self.domain.size > LARGEST_ARRAY:
            raise TooLargeError(
                f"the domain has {self.domain.size:,} combinations and the release is sparse: read release.cells, ask "
                "answer(), or project() on fewer attributes"
            )
        dense = np.zeros(self.domain.size)
        dense[self.flat] = self.values
        dense.setflags(write=False)
        return dense.reshape(self.domain.shape)

    def bounds(
        self, release: Contents, begin: int, end: int, confidence: float
    ) -> tuple[FloatArray, FloatArray]:
        """The interval of published cells, which holds although they were published for being large.

        Let y be a published count, τ the threshold, b the scale and β the error probability. A count x is left out
        where the noise, *given that the cell passed the threshold*, would be as far off with probability below β/2;
        so each published cell's interval holds with at least the stated confidence. Above: passing only pushes y up,
        so the plain quantile errs on the safe side. Below: for x ≤ τ what y exceeds τ by is geometric whatever x is,
        Pr[Y ≥ y | Y ≥ τ] = exp(−(y − τ)/b), so all of 0 … τ are possible or none; for x > τ the cell passes with
        probability at least one half, so the plain tail at most doubles.
        """
        values = self.values[begin:end].astype(np.float64)
        scale, one = float(self.scale), np.ones(1, dtype=np.int64)
        spread = Spread.of_terms(one, NoiseLaw("laplace", self.scale))
        above = half_widths(spread, confidence)[0]
        below = half_widths(spread, 1 - (1 - confidence) / 2)[0]
        chance = values - self.threshold <= scale * np.log(2 / (1 - confidence))
        low = np.where(chance, 0.0, np.maximum(values - below, self.threshold))
        return np.minimum(low, np.maximum(values, 0.0)), np.maximum(values + above, 0.0)

    def places(self, rows: IntArray) -> tuple[IntArray, ...]:
        """Where the cells of some rows lie on every axis."""
        return np.unravel_index(self.flat[rows], self.domain.shape)

    def label_rows(self, labels: Sequence[Column], rows: IntArray) -> dict[str, Any]:
        """The labels of some rows, texts as a dictionary of those that come."""
        return label_rows(labels, self.places(rows))

    def answers(
        self, release: Contents, workload: Workload, confidence: float, **how: Unpack[How]
    ) -> Answers:
        """Add up the published cells, with an interval that holds for a question chosen before the release was seen.

        Let y be all noisy counts of the range, published or not, and n and k how many cells it has and how many are
        published. The range holds Σy − Σnoise records, and an unpublished y is at most threshold − 1; that gives the
        upper end, which is wide where many cells are unpublished, as it must be. The lower end takes into account
        that cells may be published *because* their noise is large: it allows for the k largest of n draws.
        """
        sums, published, sizes = self._of_questions(workload)
        whole = Spread.of_terms(sizes.astype(np.int64), NoiseLaw("laplace", self.scale))
        # These bounds are a theorem already, so "guaranteed" changes nothing.
        share = shared_confidence(confidence, len(workload), how)
        low, high = self._interval(sums, published, sizes, half_widths(whole, share), share)
        return Answers(
            sums, low, np.maximum(high, low), confidence, spoken(PROVEN, confidence)[0], self._method
        )

    def _interval(
        self, sums: FloatArray, published: IntArray, sizes: FloatArray, width: FloatArray, confidence: float
    ) -> tuple[FloatArray, FloatArray]:
        chosen = _largest_draws(sizes, published, float(self.scale), 1 - confidence)
        low = np.maximum(sums - np.where(published == sizes, width, chosen), 0.0)
        return low, sums + width + (sizes - published) * (self.threshold - 1)

    @property
    def _method(self) -> str:
        return (
            f"noise of every cell of the range, published or not; an unpublished cell was below {self.threshold}; "
            "holds for questions chosen beforehand"
        )

    def sums(self, release: Contents, workload: Workload) -> FloatArray:
        """The published answers: cells that are not published count as zero."""
        return self._of_questions(workload)[0]

    def _of_questions(self, workload: Workload) -> tuple[FloatArray, IntArray, FloatArray]:
        """The sum of each question's published cells, how many these are, and how many cells it has."""
        sums, published = self._boxes(workload.low, workload.high)
        each = sums, published, np.prod((workload.high - workload.low).astype(np.float64), axis=1)
        if workload.query is None:
            return each
        sums, counts, sizes = (
            np.bincount(workload.query, one, len(workload)).astype(np.float64) for one in each
        )
        return sums, counts.astype(np.int64), sizes

    def _boxes(self, low: IntArray, high: IntArray) -> tuple[FloatArray, IntArray]:
        """The sum and the number of published cells in every box."""
        sums, published = np.zeros(len(low)), np.zeros(len(low), dtype=np.int64)
        inner = self.domain.size // self.domain.shape[0]
        for box, (start, stop) in enumerate(zip(low, high, strict=True)):
            # Cells are in C order, so those of some first coordinates lie together.
            begin, end = np.searchsorted(self.flat, [int(start[0]) * inner, int(stop[0]) * inner])
            inside = np.ones(end - begin, dtype=bool)
            for axis in range(1, len(self.domain.shape)):
                if start[axis] > 0 or stop[axis] < self.domain.shape[axis]:
                    place = self._places[axis][begin:end]
                    inside &= (place >= start[axis]) & (place < stop[axis])
            sums[box] = float(self.values[begin:end][inside].sum())
            published[box] = int(inside.sum())
        return sums, published

    @cached_property
    def _places(self) -> tuple[IntArray, ...]:
        """The coordinate of every published cell on every axis."""
        return np.unravel_index(self.flat, self.domain.shape)

    def project(self, release: Contents, names: Sequence[str], confidence: float) -> Projection:
        """Sum over all other attributes, with an interval for every cell that is left."""
        domain = self.domain.project(names)
        if domain.size > LARGEST_ARRAY:
            raise TooLargeError(f"that table has {domain.size:,} counts; name fewer attributes")
        flat = np.zeros(self.flat.size, dtype=np.int64)
        for name in names:
            flat = flat * self.domain.attribute(name).size + self._places[self.domain.axis(name)]
        sums = np.bincount(flat, weights=self.values, minlength=domain.size).astype(np.float64)
        published = np.bincount(flat, minlength=domain.size)
        size = self.domain.size / domain.size
        spread = Spread.of_terms(np.array([round(size)]), NoiseLaw("laplace", self.scale))
        width = np.full(domain.size, half_widths(spread, confidence)[0])
        low, high = self._interval(sums, published, np.full(domain.size, size), width, confidence)
        value, least, most = (
            np.asarray(each, dtype=np.float64).reshape(domain.shape) for each in (sums, low, high)
        )
        return Projection(domain, value, least, most, confidence, spoken(PROVEN, confidence)[0], self._method)

    def polish(self, step: str, release: Contents) -> SparseCells:
        """Counts are whole and positive as they are; there is nothing else to be done."""
        if step not in ("nonnegative", "integer"):
            raise QueryError(
                "total: a sparse release cannot be moved to a public total; its small counts are unknown"
            )
        return self

    def replayed(self, release: Contents) -> SparseCells:
        """Ask the transcript for the pairs again, and check them against what was public beforehand."""
        mechanism = release.mechanism
        measure = getattr(mechanism, "measure", None)
        if measure is None:
            raise VerificationError("only sparselaplace gives sparse cells")
        pairs = release._replayed(measure).values
        again = SparseCells.of(self.domain, pairs, release.guarantee, mechanism)
        ascending = bool((np.diff(again.flat) > 0).all())
        inside = not len(again) or (again.flat[0] >= 0 and again.flat[-1] < self.domain.size)
        if not ascending or not inside or (again.values < again.threshold).any():
            raise VerificationError(
                "a published cell is out of order, outside the domain or below the threshold"
            )
        return again

    def same(self, other: object, *, exact: bool = False) -> bool:
        """Whether the same cells show the same counts, whole numbers, under the same threshold and noise."""
        return (
            isinstance(other, SparseCells)
            and np.array_equal(self.flat, other.flat)
            and np.array_equal(self.values, other.values)
            and (self.scale, self.threshold) == (other.scale, other.threshold)
        )

    def describe(self) -> str:
        """Say how many cells are published."""
        return f"{counted(len(self), 'count')} of {self.threshold} or more"


def _largest_draws(sizes: FloatArray, published: IntArray, scale: float, beta: float) -> FloatArray:
    """A bound that the sum of the k largest of n Laplace draws passes with probability at most β/2.

    Over all sets of k draws: C(n, k) · Pr[sum of k ≥ t] ≤ C(n, k) · exp(−λt) · (1 − λ²b²)^−k for any λ < 1/b, since a
    discrete Laplace draw plus an independent centred fraction is a continuous one. Solved for t, least over λ.
    """
    k = published.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # Stirling loses digits at 10¹² cells; k·ln(n·e/k) is never below the logarithm of the binomial.
        sets = np.where(
            sizes < 1e9,
            log_factorial(sizes) - log_factorial(k) - log_factorial(sizes - k),
            k * np.log(np.e * sizes / np.maximum(k, 1)),
        )
    slopes = np.linspace(0.02, 0.998, 120)
    best = np.full(sizes.shape, np.inf)
    for slope in slopes:
        best = np.minimum(best, (sets + np.log(2 / beta) - k * np.log1p(-slope * slope)) / slope)
    return np.where(k > 0, best * scale, 0.0)
