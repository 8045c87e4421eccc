"""Confidence sets of an ordered attribute for several groups, with a controlled false coverage rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.ratios import Told, known_together
from dphist.release.answers import NOT_MEASURED, Table
from dphist.release.columns import free
from dphist.release.cube.moments import Interval, Line

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _together(
    lines: Sequence[Line], confidence: float, ask: Callable[[Line, float], tuple[Any, Any, bool]]
) -> list[tuple[Any, Any] | None]:
    """Lower and upper ends for each of several groups, such that of what is said as much holds as is promised."""

    def tell(which: IntArray, sure: float) -> Told:
        low, high, known = zip(*(ask(lines[place], sure) for place in which), strict=True)
        return np.array(low), np.array(high), np.array(known)

    asked = np.array([place for place, line in enumerate(lines) if line.known], dtype=np.int64)
    known, low, high = known_together(asked, asked.size, confidence, tell)
    ends = dict(zip(known.tolist(), zip(low, high, strict=True), strict=True))
    return [ends.get(place) for place in range(len(lines))]


def line_means(lines: Sequence[Line], confidence: float) -> list[Interval]:
    """The means of several groups, such that of those that are known as many hold as are promised."""

    def ask(line: Line, sure: float) -> tuple[float, float, bool]:
        _, low, high = line.mean(sure)
        return low, high, (low, high) != line.ends

    none = np.nan, np.nan
    told = zip(lines, _together(lines, confidence, ask), strict=True)
    return [(line.middle, *(ends or (line.ends if line.known else none))) for line, ends in told]


def quantiles(
    lines: Sequence[Line], name: str, levels: FloatArray, each: float, confidence: float
) -> list[Table]:
    """The quantiles of several groups; each interval holds with ``each``, and says that it does with ``confidence``."""

    def ask(line: Line, sure: float) -> tuple[IntArray, IntArray, bool]:
        _, low, high = line.quantiles(levels, sure)
        everything = not low.any() and bool((high == len(line.labels) - 1).all())
        return low, high, not everything or line.filled(sure)

    told = zip(lines, _together(lines, each, ask), strict=True)
    return [_named(line, name, levels, ends, confidence) for line, ends in told]


def _named(
    line: Line, name: str, levels: FloatArray, ends: tuple[IntArray, IntArray] | None, confidence: float
) -> Table:
    """Quantiles as cells, and the cells they lie between: any where nothing is known."""
    cells, size = line.cells(levels), len(line.labels)
    # An attribute may be called like one of these columns.
    level, first, last = (free(word, set(line.release.domain.names)) for word in ("level", "from", "to"))
    at = [line.labels[cell] if line.published else NOT_MEASURED for cell in cells]
    labels = {level: [f"{each:g}" for each in levels], name: at}
    place = np.arange(size, dtype=np.float64)
    numbers = place if line.values is None else line.values
    least, most = (place, place) if line.edges is None else line.edges
    value = numbers[cells] if line.published else np.full(levels.size, np.nan)
    if line.known:
        every = np.zeros(levels.size, dtype=np.int64), np.full(levels.size, size - 1)
        low, high = every if ends is None else ends
        labels |= {end: [line.labels[cell] for cell in at] for end, at in ((first, low), (last, high))}
        bounds = least[low], most[high]
    else:
        labels |= {end: [NOT_MEASURED] * levels.size for end in (first, last)}
        bounds = np.full(levels.size, np.nan), np.full(levels.size, np.nan)
    return _table(line, labels, value, bounds, confidence)


def distributions(lines: Sequence[Line], name: str, confidence: float) -> list[Table]:
    """The shares up to each cell in several groups; anything from none to all where a group may be empty."""

    def ask(line: Line, sure: float) -> tuple[FloatArray, FloatArray, bool]:
        _, low, high = line.cdf(sure)
        return low, high, line.filled(sure)

    said = []
    for line, ends in zip(lines, _together(lines, confidence, ask), strict=True):
        labels = list(line.labels)
        least, most = (0.0, 1.0) if line.known else (np.nan, np.nan)
        low, high = (np.full(len(labels), least), np.full(len(labels), most)) if ends is None else ends
        said.append(_table(line, {name: labels}, line.shares, (low, high), confidence))
    return said


def _table(
    line: Line,
    labels: dict[str, list[str]],
    value: FloatArray,
    ends: tuple[FloatArray, FloatArray],
    confidence: float,
) -> Table:
    guessed = np.ones(value.size, dtype=bool) if line.guessed else None
    return Table(value, *ends, confidence, *line.said(confidence), guessed, labels=labels)
