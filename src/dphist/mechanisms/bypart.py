"""One run of a mechanism for every value of a public attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.inference.estimate import (
    Errors,
    Estimate,
    Interval,
    NoiseErrors,
    Words,
    each_of,
    holding,
    no_theorem,
    shared_confidence,
)
from dphist.inference.intervals import Spread, joint_deviations, normal_quantile
from dphist.inference.tables.published import LeastSquaresNoise, StagedNoise, or_bounds, some_of
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.options import checked
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import to_json
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@checked
@dataclass(frozen=True, kw_only=True)
class ByPart:
    """Cut the cube along public attributes and run a mechanism on every piece by itself.

    Pieces are disjoint in cells, so each gets the whole budget (parallel composition): one step changes one cell, and
    so the answers about one piece. People may have rows in several pieces; the gate counts all of their rows as
    steps, wherever they lie. Every value gets a run, also one that no record has.

    Args:
        by: Public attributes, by name.
        inner: What runs on every part.
        each: Filled in by the release where parts chose by themselves: who ran on every part, or one for all.

    Example:
        >>> from dphist.mechanisms import ByPart, Laplace
        >>> from dphist.testing import run
        >>> run(ByPart(by=("x0",), inner=Laplace()), [[9, 9], [0, 1]], epsilon=1, seed=1).counts.shape
        (2, 2)
    """

    by: tuple[str, ...] = ()
    inner: Mechanism = field(default_factory=Laplace)
    each: tuple[Mechanism, ...] = field(default=(), compare=False)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Run the pieces in order and put them together."""
        rights = data.separate(self.by)
        domain = data.domain
        assert domain is not None  # noqa: S101 -- separate insists on it
        runs = self.runs(len(rights))
        estimates = [run.estimate(right) for run, right in zip(runs, rights, strict=True)]
        counts = joined(domain, self.by, [estimate.counts for estimate in estimates])
        errors = part_errors(domain, self.by, estimates)
        return Estimate(counts, errors, made_by=self.named([each.made_by for each in estimates]))

    def runs(self, parts: int) -> tuple[Mechanism, ...]:
        """Who runs on every part."""
        each = self.each or (self.inner,)
        if len(each) not in (1, parts):
            raise MechanismError("bypart: each must name one mechanism for all parts, or one for every part")
        return each * parts if len(each) == 1 else each

    def named(self, chosen: Sequence[object]) -> ByPart | None:
        """The same with who ran on every part, where the parts chose: once, if all chose alike."""
        filled = [one for one in chosen if isinstance(one, Mechanism)]
        if not filled or len(filled) != len(chosen):
            return None
        alike = all(to_json(one) == to_json(filled[0]) for one in filled[1:])
        return replace(self, each=(filled[0],) if alike else tuple(filled))


def joined(domain: Domain, by: tuple[str, ...], parts: list[FloatArray]) -> FloatArray:
    """Put the pieces of a cube back where they belong."""
    axes = [domain.axis(name) for name in by]
    kept = [axis for axis in range(len(domain.shape)) if axis not in axes]
    order = [*axes, *kept]
    stacked = np.stack([np.asarray(part, dtype=np.float64).reshape(-1) for part in parts])
    shaped = stacked.reshape([domain.shape[axis] for axis in order])
    return np.ascontiguousarray(shaped.transpose(np.argsort(order)))


@dataclass(frozen=True, eq=False)
class PartErrors:
    """Errors of a cube whose pieces carry independent noise: what every piece answers, with its own intervals.

    Pieces whose errors are a law of noise make one law of noise (`PartNoise`). Else a question is asked of every piece
    that it meets, and how far the pieces' intervals reach below and above adds up by squares; where pieces lean to the
    same side of what is published, their leaning adds up plainly. A question about one piece has that piece's answer.

    Args:
        domain: The cube.
        by: What it was cut along.
        errors: Those of every piece.
        counts: The published cells of every piece.
    """

    domain: Domain
    by: tuple[str, ...]
    errors: tuple[Errors, ...]
    counts: tuple[FloatArray, ...]

    @property
    def words(self) -> Words:
        """Say how the pieces' intervals are obtained."""
        words = self.errors[0].words
        return Words(
            words.short,
            f"piece by piece of {', '.join(self.by)}: {words.details}" if self.by else words.details,
        )

    def variance(self, workload: Workload) -> FloatArray:
        """Add the variances of the pieces that each question meets."""
        total = np.zeros(len(workload))
        for part, asked, inside in meetings(self.domain, self.by, workload):
            total[asked] += self.errors[part].variance(inside)
        return total

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stand on what is published, and lean as far as the pieces' laws do together."""
        means = np.zeros(len(workload))
        for part, asked, inside in meetings(self.domain, self.by, workload):
            stand, lean = self.errors[part].stand(inside, np.zeros(len(inside)))
            means[asked] += stand + lean
        return published, means - published

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Add up what the pieces answer."""
        total = np.zeros(len(workload))
        for part, asked, inside in meetings(self.domain, self.by, workload):
            total[asked] += self._answered(part, inside)
        return total

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
        """Put the pieces' intervals together, around what they answer."""
        if guaranteed:
            raise no_theorem()
        share = shared_confidence(confidence, len(workload), simultaneous)
        middle, below, above, leans, squares = (np.zeros(len(workload)) for _ in range(5))
        for part, asked, inside in meetings(self.domain, self.by, workload):
            errors, answer = self.errors[part], self._answered(part, inside)
            found = errors.interval(inside, answer, share)
            lean = errors.stand(inside, answer)[1]
            up, down = found.high - answer, np.maximum(answer - found.low, 0.0)
            if found.guessed is not None:
                # Bounds of what was not measured are no spread of an error: their squares do not add up.
                up, down = np.where(found.guessed, np.nan, up), np.where(found.guessed, np.nan, down)
            middle[asked] += answer
            # Bounds of one piece are cut at zero, which says nothing of sums: many pieces may be too high together.
            below[asked] += np.where(found.low > 0.0, down, np.maximum(up, down)) ** 2
            above[asked] += up**2
            leans[asked] += lean
            squares[asked] += lean**2
        together = normal_quantile(share) ** 2 * np.maximum(leans**2 - squares, 0.0)
        # Loaded here: publishing asks for no interval, and the law of every split is much to load.
        from dphist.inference.predictive.errors import whole_counts

        wider = joint_deviations(confidence, share) / normal_quantile(share)
        low, high = whole_counts(middle, wider * np.sqrt(below + together), wider * np.sqrt(above + together))
        return Interval(np.minimum(low, np.maximum(published, 0.0)), np.maximum(high, published))

    def _answered(self, part: int, inside: Workload) -> FloatArray:
        """What one piece answers."""
        cells = self.counts[part].reshape(inside.domain.shape)
        summed = np.asarray(inside.answer(cells), dtype=np.float64)
        return self.errors[part].answer(inside, summed)


@dataclass(frozen=True, eq=False)
class PartNoise(NoiseErrors):
    """The noise of a cube whose pieces carry independent noise of known laws."""

    domain: Domain
    by: tuple[str, ...]
    laws: tuple[NoiseErrors, ...]

    @property
    def words(self) -> Words:
        """Say how the pieces' intervals are obtained."""
        words = self.laws[0].words
        return Words(
            words.short,
            f"piece by piece of {', '.join(self.by)}: {words.details}" if self.by else words.details,
        )

    @property
    def theorem(self) -> bool:  # type: ignore[override]  # read off the pieces
        """Whether the pieces' laws are theorems."""
        return all(law.theorem for law in self.laws)

    @cached_property
    def centre(self) -> FloatArray | None:  # type: ignore[override]  # worked out when first asked for
        """What intervals stand on, where the pieces say so."""
        centres = [law.centre for law in self.laws]
        known = [centre for centre in centres if centre is not None]
        return joined(self.domain, self.by, known) if len(known) == len(centres) else None

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
        """Read half-widths off the noise; add up what the pieces' tables allow of questions that were not measured.

        Tables that were measured in stages have no law that is a theorem: what is guaranteed of them is added up, too.
        """
        share = shared_confidence(confidence, len(workload), simultaneous)
        fitted = self._fitted(workload) if guaranteed or not self._shrunk else None
        if guaranteed and fitted is not None and any(isinstance(law, StagedNoise) for law in self.laws):
            sure = holding(self._allowed(workload, share, True), published)
            return Interval(sure.low, sure.high, np.isnan(fitted) & ~np.isnan(sure.low))
        found = super().interval(
            workload,
            published,
            confidence,
            estimated=estimated if fitted is None else fitted,
            guaranteed=guaranteed,
            simultaneous=simultaneous,
        )
        return or_bounds(found, workload, published, lambda rest: self._allowed(rest, share, guaranteed))

    @property
    def _shrunk(self) -> bool:
        """Whether pieces publish less noise than was measured: then intervals stand on what is published."""
        return any(getattr(law, "shrunk", None) is not None for law in self.laws)

    def _fitted(self, workload: Workload) -> FloatArray | None:
        """What least squares over each piece's tables answers, unbiased; None where pieces are measured otherwise."""
        total = np.zeros(len(workload))
        for part, asked, inside in meetings(self.domain, self.by, workload):
            law = self.laws[part]
            if not isinstance(law, LeastSquaresNoise):
                return None
            total[asked] += law.stand(inside, np.zeros(len(inside)))[0]
        return total

    def _allowed(self, workload: Workload, confidence: float, guaranteed: bool) -> Interval:
        """Bounds in every piece that a question meets, each with its part of the error probability, added up."""
        low, high, met = np.zeros(len(workload)), np.zeros(len(workload)), np.zeros(len(workload))
        for _, asked, _ in meetings(self.domain, self.by, workload):
            met[asked] += 1
        for number in np.unique(met).tolist():
            here = np.flatnonzero(met == number)
            sure = each_of(confidence, int(number))
            for part, asked, inside in meetings(self.domain, self.by, some_of(workload, met == number)):
                law = self.laws[part]
                if not isinstance(law, LeastSquaresNoise):
                    # Only tables bound what they do not hold.
                    low[here[asked]] = high[here[asked]] = np.nan
                    continue
                each = law.allowed(inside, sure, guaranteed=guaranteed)
                low[here[asked]] += each.low
                high[here[asked]] += each.high
        return Interval(low, high)

    def spread(self, workload: Workload) -> Spread:
        """Add the spreads of the pieces that each box meets."""
        boxes = len(workload.low)
        variance, largest, terms = np.zeros(boxes), np.zeros(boxes), np.zeros(boxes, dtype=np.int64)
        laws: set[Any] = set()
        plain = Workload(workload.domain, workload.low, workload.high)
        for part, met, inside in meetings(self.domain, self.by, plain):
            found = self.laws[part].spread(inside)
            variance[met] += found.variance
            largest[met] = np.maximum(largest[met], found.largest)
            laws.add(found.law if found.terms is not None else None)
            if found.terms is not None:
                terms[met] += found.terms
        if len(laws) == 1 and (law := laws.pop()) is not None:
            return Spread(variance, largest, terms, law)
        return Spread(variance, largest)


def part_errors(domain: Domain, by: tuple[str, ...], estimates: Sequence[Estimate]) -> Errors:
    """Put the errors of the pieces together."""
    errors = tuple(estimate.errors for estimate in estimates)
    laws = tuple(each for each in errors if isinstance(each, NoiseErrors))
    if len(laws) == len(errors):
        return PartNoise(domain, by, laws)
    return PartErrors(domain, by, errors, tuple(estimate.counts for estimate in estimates))


def meetings(
    domain: Domain, by: tuple[str, ...], workload: Workload
) -> Iterator[tuple[int, IntArray, Workload]]:
    """The pieces that any question meets, which questions those are, and what they ask there."""
    axes = [domain.axis(name) for name in by]
    kept = [axis for axis in range(len(domain.shape)) if axis not in axes]
    inner = domain.project([domain.names[axis] for axis in kept])
    low, high = workload.low, workload.high
    shape = tuple(domain.shape[axis] for axis in axes)
    for part in range(math.prod(shape)):
        place = np.unravel_index(part, shape) if shape else ()
        met = np.ones(len(low), dtype=bool)
        for axis, cell in zip(axes, place, strict=True):
            met &= (low[:, axis] <= cell) & (cell < high[:, axis])
        if not met.any():
            continue
        if workload.query is None:
            asked, query = np.flatnonzero(met), None
        else:
            asked, query = np.unique(workload.query[met], return_inverse=True)
        yield part, asked, Workload(inner, low[met][:, kept], high[met][:, kept], query)
