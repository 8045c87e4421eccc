"""What a mechanism hands over: estimated counts, and what their errors are known to be.

Also the post-processing anyone may apply to released numbers: it reads nothing private, so it costs no budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError
from dphist.inference.intervals import Spread, chernoff_widths, half_widths
from dphist.kernels.grouping import box_part_squares, interval_part_squares
from dphist.model.law import NoiseLaw
from dphist.model.phrases import mended
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Words:
    """How intervals are obtained: a plain sentence for people, and the details."""

    short: str
    details: str


CALIBRATED = Words(
    "calibrated: holds in about {percent} of 100 such questions",
    "a predictive law of the true count, from everything that was measured and from how totals were seen to divide; "
    "holds on average over questions and data, not for data that hide from what was measured",
)
"""Those of a predictive law (`dphist.inference.predictive`)."""


@dataclass(frozen=True, eq=False)
class Interval:
    """Bounds for many answers; not a number where nothing can be said of one.

    ``guessed`` says which questions were *not measured*: their bounds are what the measured tables allow
    (`dphist.inference.tables.frechet`). None where all were, or have no bounds.
    """

    low: FloatArray
    high: FloatArray
    guessed: BoolArray | None = None


class How(TypedDict, total=False):
    """What is asked of intervals, as `Errors.interval` has it."""

    estimated: FloatArray | None
    guaranteed: bool
    simultaneous: bool


class Errors(Protocol):
    """What is known of the errors of any sum of cells."""

    @property
    def words(self) -> Words:
        """Say how intervals are obtained and what they do not cover."""
        ...

    def variance(self, workload: Workload) -> FloatArray:
        """Give the variance of the error of every question, not a number where it was not measured.

        For single boxes it is a quadratic form, so covariances can be read off it.
        """
        ...

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give, for every question, the number that intervals stand on, and how far it leans beside the variance."""
        ...

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Give the best answer to every question, where that is not simply the sum of the published cells."""
        ...

    def interval(
        self,
        workload: Workload,
        published: FloatArray,
        confidence: float,
        *,
        estimated: FloatArray | None = None,
        guaranteed: bool = False,
        simultaneous: bool = False,
    ) -> Interval:
        """Give an interval for every question of the workload.

        Args:
            workload: The questions.
            published: What the release answers, after every fit, cut and polish.
            confidence: How sure each interval is to hold the truth; all of them together if ``simultaneous``.
            estimated: The same answers before polishing, where that makes a difference.
            guaranteed: Whether that must be a theorem for any data and a question fixed in advance.
            simultaneous: Whether all intervals hold at once.

        Returns:
            The bounds.

        Raises:
            QueryError: No such theorem is known for this estimate.
        """
        ...


EXACT = "exact: {percent} of 100 such intervals contain the true count"


class NoiseErrors:
    """Errors that are noise of a known law: weighted sums of independent draws, described by their ``spread``.

    Bounds lie around the estimate before it was polished or, where the structure was picked on its own noise, around
    the unbiased numbers that ``centre`` names; then they are widened to hold what is published.
    """

    short: ClassVar[str] = "noise only: what merging or cutting has biased is not covered"
    """What is said of intervals, unless they are a theorem: then nothing else is off, and they are exact."""
    centre: FloatArray | None = None
    """Unbiased counts that intervals stand on instead of the published ones."""

    if TYPE_CHECKING:
        method: str

        def spread(self, workload: Workload) -> Spread:
            """Give the noise in every box of the workload."""
            ...

    def spread_of_questions(self, workload: Workload) -> Spread:
        """The same by question: where one has several boxes, their deviations are added."""
        return self.spread(workload).combine(workload.query, len(workload))

    @property
    def theorem(self) -> bool:
        """Whether intervals may be called guaranteed."""
        return False

    @property
    def words(self) -> Words:
        """Say how intervals are obtained and what they do not cover."""
        plain = self.theorem and self.short == NoiseErrors.short
        return Words(EXACT if plain else self.short, self.method)

    def variance(self, workload: Workload) -> FloatArray:
        """Give the variance of the noise in every question."""
        return self.spread_of_questions(workload).variance

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stand on unbiased counts where there are any."""
        if self.centre is None:
            return published, np.zeros(published.shape)
        stand = np.asarray(workload.answer(self.centre.reshape(workload.domain.shape)), dtype=np.float64)
        return stand, np.zeros(stand.shape)

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """The sums of the published cells."""
        return summed

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Read the half-widths off the law of the noise."""
        guaranteed, estimated = how.get("guaranteed", False), how.get("estimated")
        if guaranteed and not self.theorem:
            raise no_theorem()
        spread = self.spread_of_questions(workload)
        share = shared_confidence(confidence, len(workload), how)
        stand = self.stand(workload, published if estimated is None else estimated)[0]
        return around(stand, reach_of(spread, share, guaranteed=guaranteed), published)


def reach_of(spread: Spread, confidence: float, *, guaranteed: bool) -> FloatArray:
    """How far noise reaches to either side; by a theorem where that must be one and no law is known exactly."""
    if guaranteed and spread.terms is None:
        return chernoff_widths(spread.variance, spread.largest, confidence)
    return half_widths(spread, confidence)


def spread_of(errors: Errors, workload: Workload) -> Spread:
    """The noise in every box; where only a variance is known, as if one draw carried all of it: the widest."""
    if isinstance(errors, NoiseErrors):
        return errors.spread(workload)
    variance = errors.variance(workload)
    return Spread(variance, np.sqrt(variance / 2.0))


def no_theorem() -> QueryError:
    """The refusal of a guaranteed interval where none is known."""
    return QueryError(
        "guaranteed: no theorem is known for what this release publishes; ask for calibrated intervals, or publish "
        "with laplace, tree, privelet, marginals, adaptivetree or posterior"
    )


def shared_confidence(confidence: float, questions: int, how: How) -> float:
    """What each interval must hold with, for all of them to hold together where that is asked."""
    return each_of(confidence, questions) if how.get("simultaneous") else confidence


def each_of(confidence: float, intervals: int) -> float:
    """The confidence that each of ``intervals`` intervals needs for all to hold at once: by the union bound."""
    if intervals < 2:
        return confidence
    share = 1.0 - (1.0 - confidence) / intervals
    if share == 1.0 and confidence < 1.0:
        raise QueryError(
            f"confidence: so near to 1 no {intervals:,} intervals can hold at once; ask for less, for example 0.999"
        )
    return share


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated counts in the shape of the cells, with their errors and a word on how they came about.

    Args:
        counts: One for every cell.
        errors: What is known of their errors.
        note: How they came about.
        made_by: The mechanism with all that it chose filled in, where it chose: replaying that chooses nothing again.
    """

    counts: FloatArray
    errors: Errors
    note: str = ""
    made_by: object = None

    def __post_init__(self) -> None:
        """Use the singular in notes, whoever wrote them."""
        object.__setattr__(self, "note", mended(self.note))


@dataclass(frozen=True, eq=False)
class IndependentNoise(NoiseErrors):
    """Every cell carries its own draw of the same law, so a range of L cells carries a sum of L draws.

    Args:
        law: The law of one draw; a bare scale is Laplace's.
        method: The details, in words.
        exact: Whether the published counts are the true ones plus these draws *and nothing else*. Only then is the
            law that of the error. Whatever is added, cut, fitted or chosen afterwards makes it otherwise, so that
            nobody's mechanism is exact unless its author says so.
    """

    law: NoiseLaw | Fraction
    method: str = "the distribution of the sum of the noise in the range"
    exact: bool = field(default=False, kw_only=True)

    @property
    def theorem(self) -> bool:
        """The law of the noise is a theorem about the error where there is no other error."""
        return self.exact

    def spread(self, workload: Workload) -> Spread:
        """Count the cells of every box."""
        terms = np.prod(np.maximum(workload.high - workload.low, 0), axis=1)
        return Spread.of_terms(terms.astype(np.int64), laplace_if_bare(self.law))


@dataclass(frozen=True, eq=False)
class NoisyCells(NoiseErrors):
    """Intervals that stand on the noisy counts themselves, before anything was merged.

    Which cells were merged was decided by the very noise that averaging is to remove, so averages carry a
    selection bias that no interval around them covers. Around the sum of the noisy counts the interval is
    exact.
    """

    centre: FloatArray = field()  # no default, though there is one above
    law: NoiseLaw
    exact: bool = True
    short: ClassVar[str] = EXACT
    theorem = True
    method: str = "noise of the unmerged counts in the range, around their sum; widened to hold the answer"

    def spread(self, workload: Workload) -> Spread:
        """Count the cells of every box."""
        spread = IndependentNoise(self.law).spread(workload)
        return spread if self.exact else Spread(spread.variance, spread.largest)


def around(stand: FloatArray, width: float | FloatArray, published: FloatArray) -> Interval:
    """From so far below what is stood on to so far above it.

    A count is never negative: standing on zero instead (`possible`) and cutting there keeps coverage, and so does
    holding what is published.
    """
    middle = np.maximum(stand, 0.0)
    return holding(Interval(np.maximum(middle - width, 0.0), middle + width), published)


def holding(found: Interval, published: FloatArray) -> Interval:
    """The same bounds, widened to hold what is published, or zero where that is below."""
    return Interval(
        np.minimum(found.low, np.maximum(published, 0.0)), np.maximum(found.high, published), found.guessed
    )


def nearest_whole(found: Interval, published: FloatArray) -> Interval:
    """The nearest whole counts to some bounds, widened to hold what is published: no wider on average.

    Whatever whole count lies between the bounds lies between these, so they hold whenever those did, by whatever
    theorem. And they hold more often. Noise is whole, too: where sums of two cells have noise of deviation 1, of which
    1.96 allow for no more than one either way, they would hold in 0.87, and with 2 hold in 0.99.
    """
    return holding(Interval(np.rint(found.low), np.rint(found.high), found.guessed), published)


def laplace_if_bare(law: NoiseLaw | Fraction | float) -> NoiseLaw:
    """A bare number is the scale of Laplace noise."""
    return law if isinstance(law, NoiseLaw) else NoiseLaw("laplace", law)


@dataclass(frozen=True, eq=False)
class PieceNoise(NoiseErrors):
    """Cells share their part's draw evenly: the total of part p carries noise of ``scales[p]``.

    A range that takes L of a part's s cells carries (L ÷ s)² of its variance. Ranges that cut a part also carry the
    bias of spreading evenly, which no interval from the noise alone can cover.
    """

    shape: tuple[int, ...]
    labels: IntArray
    scales: FloatArray
    method: str = (
        "noise of the parts' totals, given the released parts; "
        "not covered: the bias inside parts that the range only cuts"
    )

    @cached_property
    def _sizes(self) -> IntArray:
        return np.bincount(self.labels, minlength=self.scales.size)

    def spread(self, workload: Workload) -> Spread:
        """Add the parts' variances, each by the share of it that the box takes."""
        weight = 2.0 * (self.scales / np.maximum(self._sizes, 1)) ** 2
        if len(self.shape) == 1 and bool(np.all(np.diff(self.labels) >= 0)):
            starts = np.concatenate([[0], np.cumsum(self._sizes)]).astype(np.int64)
            low, high = np.ascontiguousarray(workload.low[:, 0]), np.ascontiguousarray(workload.high[:, 0])
            variance = interval_part_squares(low, high, starts, weight)
        else:
            variance = box_part_squares(workload.low, workload.high, self.shape, self.labels, weight)
        return Spread(variance, np.full(variance.shape, self.scales.max(initial=0.0)))


def nonnegative(counts: FloatArray, total: float | None = None) -> FloatArray:
    """Move counts to the nearest that are nowhere negative and keep the total (or a public one that is given)."""
    wanted = max(0.0, float(counts.sum()) if total is None else float(total))
    flat = counts.reshape(-1)
    if wanted == 0 or not flat.size:
        return np.zeros_like(counts)
    # Euclidean projection onto {x ≥ 0, Σx = total}: subtract one number from all and cut at zero.
    descending = np.sort(flat)[::-1]
    excess = (np.cumsum(descending) - wanted) / np.arange(1, flat.size + 1)
    # A total that vanishes beside the largest count leaves that one alone to hold it.
    keep = int(np.flatnonzero(descending > excess).max(initial=0))
    return np.asarray(np.maximum(counts - excess[keep], 0.0), dtype=np.float64)
