"""The numbers behind a figure, all of them from `Release.answer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError, QueryError
from dphist.model.domain.space import Span
from dphist.model.workload import Workload
from dphist.release import Answers, Release
from dphist.release.answers import NOT_MEASURED, bound, interval_words
from dphist.report.cuts import Cuts

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """One number per bar, or per pair of bars, each with its interval."""

    cuts: tuple[Cuts, ...]
    answers: Answers

    def rows(self) -> list[dict[str, Any]]:
        """Give a row per number, with labels; what was not measured is called a guess, and its bounds say so."""
        labels = product(*(cuts.labels for cuts in self.cuts))
        answers = self.answers
        numbers = zip(
            *(answers.value.tolist(), answers.low.tolist(), answers.high.tolist(), answers.measured.tolist()),
            strict=True,
        )
        names = [cuts.attribute.name for cuts in self.cuts]
        return [
            {
                "labels": dict(zip(names, label, strict=True)),
                "estimate": bound(value),
                "low": bound(low),
                "high": bound(high),
                "measured": measured,
                "interval": interval_words(low, high, guess=not measured),
            }
            for label, (value, low, high, measured) in zip(labels, numbers, strict=True)
        ]

    @property
    def intervals(self) -> str:
        """What a caption says of the intervals: ``95% intervals``, or that some or all were not measured."""
        measured, percent = self.answers.measured, f"{100 * self.answers.confidence:g}%"
        if measured.all():
            return f"with {percent} intervals"
        bounded = bool((~np.isnan(self.answers.low) & ~measured).any())
        if not measured.any():
            guessed = f"guesses between {percent} bounds"
            return f"{NOT_MEASURED}: {guessed}" if bounded else NOT_MEASURED
        told = f"with {percent} intervals where they were measured"
        return f"{told}, and bounds elsewhere" if bounded else told


def can_guarantee(release: Release) -> bool:
    """Whether guaranteed intervals are known for what this release publishes."""
    try:
        release.answer(interval="guaranteed")
    except DphistError:
        return False
    return True


def tabulate(
    release: Release,
    cuts: Sequence[Cuts],
    chosen: Mapping[str, Sequence[Span]] | None = None,
    *,
    confidence: float = 0.95,
    guaranteed: bool = False,
) -> Table:
    """Ask the release for every bar (or pair of bars), within what is chosen of the attributes that are not drawn."""
    domain = release.domain
    drawn = [each.attribute.name for each in cuts]
    fixed = [
        [(0, attribute.size)]
        if attribute.name in drawn or attribute.name not in (chosen or {})
        else list((chosen or {})[attribute.name]) or [(0, 0)]
        for attribute in domain.attributes
    ]
    inside = list(product(*fixed))
    bars = list(product(*(each.spans for each in cuts)))
    if len(inside) * len(bars) > 200_000:
        raise QueryError(
            "the question lists too many separate values to draw; choose ranges or groups instead"
        )
    low = np.repeat(np.array([[a for a, _ in box] for box in inside], dtype=np.int64), len(bars), axis=0)
    high = np.repeat(np.array([[b for _, b in box] for box in inside], dtype=np.int64), len(bars), axis=0)
    ends = np.array(bars, dtype=np.int64)
    for place, name in enumerate(drawn):
        axis = domain.axis(name)
        low[:, axis] = np.tile(ends[:, place, 0], len(inside))
        high[:, axis] = np.tile(ends[:, place, 1], len(inside))
    owner = np.tile(np.arange(len(bars)), len(inside)) if len(inside) > 1 else None
    answers = release.answer(
        Workload(domain, low, high, owner),
        confidence=confidence,
        interval="guaranteed" if guaranteed else "calibrated",
    )
    return Table(tuple(cuts), answers)


def measure_lines(release: Release, asked: Workload, confidence: float) -> list[dict[str, Any]]:
    """One line for each measure: what it is, and its sum and mean over the records of one question."""
    # Loaded here: most releases have no measures.
    from dphist.release.cube.measures import means, sums

    plain = [each.measure for each in release.sums if each.quantity.plain]
    return [
        {
            "name": measure.name,
            "measure": measure.describe(),
            "sum": str(sums(release, measure.name, asked, confidence)[0]),
            "mean": str(means(release, measure.name, asked, confidence)[0]),
        }
        for measure in plain
    ]
