"""Errors of a cube that was published piece by piece: independent noise, added up over what a question meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import (
    CALIBRATED,
    Errors,
    Estimate,
    How,
    Interval,
    NoiseErrors,
    Words,
    each_of,
    holding,
    shared_confidence,
)
from dphist.inference.intervals import Spread, joint_deviations, normal_quantile
from dphist.inference.tables.errors import ResidualNoise, StagedNoise, or_bounds, some_of
from dphist.model.pieces import Pieces
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PartErrors:
    """Errors of a cube whose pieces carry independent noise: what every piece answers, with its own intervals.

    Pieces whose errors are a law of noise make one law of noise (`PartNoise`). Else a question is asked of every piece
    that it meets, and how far the pieces' intervals reach below and above adds up by squares; where pieces lean to the
    same side of what is published, their leaning adds up plainly. A question about one piece has that piece's answer.

    Args:
        pieces: What the cube was cut into.
        errors: Those of every piece.
        counts: The published cells of every piece.
    """

    pieces: Pieces
    errors: tuple[Errors, ...]
    counts: tuple[FloatArray, ...]

    @property
    def words(self) -> Words:
        """Say how the pieces' intervals are obtained."""
        return _words(self.pieces, self.errors)

    def variance(self, workload: Workload) -> FloatArray:
        """Add the variances of the pieces that each question meets."""
        total = np.zeros(len(workload))
        for part, asked, inside in self.pieces.meetings(workload):
            total[asked] += self.errors[part].variance(inside)
        return total

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stand on what is published, and lean as far as the pieces' laws do together."""
        means = np.zeros(len(workload))
        for part, asked, inside in self.pieces.meetings(workload):
            # A law of noise stands on what it is handed, where nothing unbiased is known: the piece's own answer.
            stand, lean = self.errors[part].stand(inside, self._answered(part, inside))
            means[asked] += stand + lean
        return published, means - published

    def only(self, workload: Workload) -> tuple[Errors, Workload]:
        """The errors of the one piece that all questions lie in, and what they ask there; or all, and all."""
        met = list(self.pieces.meetings(workload))
        if len(met) != 1:
            return self, workload
        errors, inside = self.errors[met[0][0]], met[0][2]
        return errors.only(inside) if isinstance(errors, PartErrors) else (errors, inside)

    def noisy_sums(self, workload: Workload) -> tuple[FloatArray, FloatArray] | None:
        """Sums of noisy cells with their variances, if all pieces that are met were noised cell by cell; else None."""
        total, variance = np.zeros(len(workload)), np.zeros(len(workload))
        for part, asked, inside in self.pieces.meetings(workload):
            tell = getattr(self.errors[part], "noisy_sums", None)
            found = None if tell is None else tell(inside)
            if found is None:
                return None
            total[asked] += found[0]
            variance[asked] += found[1]
        return total, variance

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Add up what the pieces answer."""
        total = np.zeros(len(workload))
        for part, asked, inside in self.pieces.meetings(workload):
            total[asked] += self._answered(part, inside)
        return total

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Put the pieces' intervals together, around what they answer."""
        share = shared_confidence(confidence, len(workload), how)
        if how.get("guaranteed"):
            return holding(self._ends(workload, share, guaranteed=True), published)
        middle, below, above, leans, squares = (np.zeros(len(workload)) for _ in range(5))
        for part, asked, inside in self.pieces.meetings(workload):
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
        found = Interval(np.minimum(low, np.maximum(published, 0.0)), np.maximum(high, published))
        return or_bounds(found, workload, published, lambda rest: self._ends(rest, share))

    def _ends(self, workload: Workload, confidence: float, **how: Unpack[How]) -> Interval:
        """The ends in every piece that a question meets, which add up as they are."""

        def ask(part: int, inside: Workload, sure: float) -> Interval:
            return self.errors[part].interval(inside, self._answered(part, inside), sure, **how)

        return _added_up(self.pieces, workload, confidence, ask)

    def _answered(self, part: int, inside: Workload) -> FloatArray:
        """What one piece answers."""
        cells = self.counts[part].reshape(inside.domain.shape)
        summed = np.asarray(inside.answer(cells), dtype=np.float64)
        return self.errors[part].answer(inside, summed)


@dataclass(frozen=True, eq=False)
class PartNoise(NoiseErrors):
    """The noise of a cube whose pieces carry independent noise of known laws."""

    pieces: Pieces
    laws: tuple[NoiseErrors, ...]

    @property
    def words(self) -> Words:
        """Say how the pieces' intervals are obtained."""
        return _words(self.pieces, self.laws)

    @property
    def theorem(self) -> bool:
        """Whether the pieces' laws are theorems."""
        return all(law.theorem for law in self.laws)

    @cached_property
    def centre(self) -> FloatArray | None:  # type: ignore[override]  # worked out when first asked for
        """What intervals stand on, where the pieces say so."""
        centres = [law.centre for law in self.laws]
        known = [centre for centre in centres if centre is not None]
        return self.pieces.joined(known) if len(known) == len(centres) else None

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Read half-widths off the noise; add up what the pieces' tables allow of questions that were not measured.

        Tables that were measured in stages have no law that is a theorem: what is guaranteed of them is added up, too.
        """
        guaranteed = how.get("guaranteed", False)
        share = shared_confidence(confidence, len(workload), how)
        fitted = self._fitted(workload) if guaranteed or not self._shrunk else None
        if guaranteed and fitted is not None and any(isinstance(law, StagedNoise) for law in self.laws):
            sure = holding(self._allowed(workload, share, True), published)
            return Interval(sure.low, sure.high, np.isnan(fitted) & ~np.isnan(sure.low))
        if fitted is not None:
            how["estimated"] = fitted
        found = super().interval(workload, published, confidence, **how)
        return or_bounds(found, workload, published, lambda rest: self._allowed(rest, share, guaranteed))

    @property
    def _shrunk(self) -> bool:
        """Whether pieces publish less noise than was measured: then intervals stand on what is published."""
        return any(getattr(law, "shrunk", None) is not None for law in self.laws)

    def _fitted(self, workload: Workload) -> FloatArray | None:
        """What least squares over each piece's tables answers, unbiased; None where pieces are measured otherwise."""
        total = np.zeros(len(workload))
        for part, asked, inside in self.pieces.meetings(workload):
            law = self.laws[part]
            if not isinstance(law, ResidualNoise):
                return None
            total[asked] += law.stand(inside, np.zeros(len(inside)))[0]
        return total

    def _allowed(self, workload: Workload, confidence: float, guaranteed: bool) -> Interval:
        """Bounds in every piece that a question meets; only tables bound what they do not hold."""

        def ask(part: int, inside: Workload, sure: float) -> Interval:
            law = self.laws[part]
            if isinstance(law, ResidualNoise):
                return law.allowed(inside, sure, guaranteed=guaranteed)
            unknown = np.full(len(inside), np.nan)
            return Interval(unknown, unknown)

        return _added_up(self.pieces, workload, confidence, ask)

    def spread(self, workload: Workload) -> Spread:
        """Add the spreads of the pieces that each box meets."""
        boxes = len(workload.low)
        variance, largest, terms = np.zeros(boxes), np.zeros(boxes), np.zeros(boxes, dtype=np.int64)
        laws: set[Any] = set()
        plain = Workload(workload.domain, workload.low, workload.high)
        for part, met, inside in self.pieces.meetings(plain):
            found = self.laws[part].spread(inside)
            variance[met] += found.variance
            largest[met] = np.maximum(largest[met], found.largest)
            laws.add(found.law if found.terms is not None else None)
            if found.terms is not None:
                terms[met] += found.terms
        if len(laws) == 1 and (law := laws.pop()) is not None:
            return Spread(variance, largest, terms, law)
        return Spread(variance, largest)


def _words(pieces: Pieces, errors: Sequence[Errors]) -> Words:
    """How intervals are obtained, in every way that pieces have: sums of several are no surer than the least sure."""
    ways = [each.words for each in errors]
    shorts = dict.fromkeys(way.short for way in ways)
    least_sure = next(short for short in (NoiseErrors.short, CALIBRATED.short, *shorts) if short in shorts)
    details = "; in others ".join(dict.fromkeys(way.details for way in ways))
    return Words(least_sure, f"piece by piece of {pieces.words}: {details}" if pieces.words else details)


def _added_up(
    pieces: Pieces, workload: Workload, confidence: float, ask: Callable[[int, Workload, float], Interval]
) -> Interval:
    """Ends in every piece that a question meets, each with its part of the error probability, added up."""
    low, high, met = np.zeros(len(workload)), np.zeros(len(workload)), np.zeros(len(workload))
    for _, asked, _ in pieces.meetings(workload):
        met[asked] += 1
    # A box without cells lies in no piece, and holds nobody.
    for number in np.unique(met[met > 0]).tolist():
        here, sure = np.flatnonzero(met == number), each_of(confidence, int(number))
        for part, asked, inside in pieces.meetings(some_of(workload, met == number)):
            found = ask(part, inside, sure)
            low[here[asked]] += found.low
            high[here[asked]] += found.high
    return Interval(low, high)


def part_errors(pieces: Pieces, estimates: Sequence[Estimate]) -> Errors:
    """Put the errors of the pieces together."""
    errors = tuple(estimate.errors for estimate in estimates)
    laws = tuple(each for each in errors if isinstance(each, NoiseErrors))
    if len(laws) == len(errors):
        return PartNoise(pieces, laws)
    return PartErrors(pieces, errors, tuple(estimate.counts for estimate in estimates))
