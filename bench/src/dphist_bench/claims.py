"""The shapes that the papers' claims have, as checks on readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dphist_bench.experiment import Finding
from dphist_bench.results import Results, geometric_mean

Check = Callable[[Results], Finding]


def beats(
    measure: str, first: str | Sequence[str], others: Sequence[str], *, by: float = 1.0, **where: Any
) -> Check:
    """Whether a method's error times ``by`` is below each other's, as a geometric mean of ratios over all points."""
    firsts = [first] if isinstance(first, str) else list(first)

    def check(results: Results) -> Finding:
        words, holds = [], True
        for one in firsts:
            means = {other: geometric_mean(results.ratios(measure, one, other, **where)) for other in others}
            holds &= all(mean * by < 1 for mean in means.values())
            figures = ", ".join(f"{mean:.2g} of {other}'s" for other, mean in means.items())
            words.append(f"{measure} of {one} is {figures}")
        return Finding(holds, "; ".join(words))

    return check


def every(*checks: Check) -> Check:
    """Whether several checks hold together."""

    def check(results: Results) -> Finding:
        found = [one(results) for one in checks]
        return Finding(all(one.holds for one in found), "; ".join(one.figures for one in found))

    return check


def best(measure: str, winners: Mapping[str, str], among: Sequence[str], **where: Any) -> Check:
    """Whether the named method has the least mean among the named ones on each data set."""

    def check(results: Results) -> Finding:
        words, holds = [], True
        for data, expected in winners.items():
            points = results.select(measure, data=data, method=tuple(among), **where)
            means = {m: geometric_mean(p.value for p in points if p.method == m) for m in among}
            found = min(means, key=lambda name: math.inf if math.isnan(means[name]) else means[name])
            holds &= found == expected
            words.append(f"{data}: {found} {means[found]:.2g} ({expected} {means[expected]:.2g})")
        return Finding(holds, "; ".join(words))

    return check


def grows(
    measure: str, method: str, *, at_most: float | None = None, at_least: float | None = None, **where: Any
) -> Check:
    """Whether the last point of each line of a method is at most, or at least, this many times its first."""

    def check(results: Results) -> Finding:
        points = results.select(measure, method=method, **where)
        lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for point in points:
            if point.x is not None:
                lines.setdefault((point.data, point.epsilon), []).append((point.x, point.value))
        factors = []
        for line in lines.values():
            ends = sorted(line)
            if len(ends) > 1 and ends[0][1] > 0:
                factors.append(ends[-1][1] / ends[0][1])
        mean = geometric_mean(factors)
        holds = (
            bool(factors) and (at_most is None or mean <= at_most) and (at_least is None or mean >= at_least)
        )
        return Finding(
            holds, f"from the first point to the last, {measure} of {method} grows {mean:.2g} times"
        )

    return check


def peaks(
    measure: str, method: str, between: tuple[float, float], *, least: bool = False, **where: Any
) -> Check:
    """Whether a method's greatest (or least) mean lies between two places of the horizontal axis."""

    def check(results: Results) -> Finding:
        points = [p for p in results.select(measure, method=method, **where) if p.x is not None]
        if not points:
            return Finding(False, f"{method} was not measured")
        found = (min if least else max)(points, key=lambda point: point.value)
        place = math.nan if found.x is None else found.x
        return Finding(
            between[0] <= place <= between[1],
            f"{measure} of {method} is {'least' if least else 'greatest'} ({found.value:.3g}) at {place:g}",
        )

    return check


def power(measure: str, method: str, between: tuple[float, float], **where: Any) -> Check:
    """Whether a method's mean follows a power of ``x`` with an exponent, fitted line by line, in this interval."""

    def check(results: Results) -> Finding:
        found = exponents(results, measure, method, **where)
        mean = sum(found) / len(found) if found else math.nan
        return Finding(
            between[0] <= mean <= between[1], f"{measure} of {method} grows with the power {mean:.2f}"
        )

    return check


def exponents(results: Results, measure: str, method: str, **where: Any) -> list[float]:
    """Fit log(mean) to log(x) on every line of a method that has two points or more."""
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for point in results.select(measure, method=method, **where):
        if point.x is not None and point.x > 0 and point.value > 0:
            lines.setdefault((point.data, point.epsilon), []).append(
                (math.log(point.x), math.log(point.value))
            )
    found = []
    for line in lines.values():
        middle = sum(x for x, _ in line) / len(line)
        spread = sum((x - middle) ** 2 for x, _ in line)
        if spread > 0:
            found.append(sum((x - middle) * y for x, y in line) / spread)
    return found
