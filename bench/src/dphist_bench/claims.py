"""The shapes that the papers' claims have, as checks on readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from statistics import linear_regression
from typing import Any, Concatenate, ParamSpec

from dphist_bench.experiment import Finding
from dphist_bench.results import Results, geometric_mean

Check = Callable[[Results], Finding]
P = ParamSpec("P")


def checking(judge: Callable[Concatenate[Results, P], Finding]) -> Callable[P, Check]:
    """Turn a function of readings and particulars into a maker of checks, which is told the particulars alone."""

    @wraps(judge)
    def make(*given: P.args, **named: P.kwargs) -> Check:
        return lambda results: judge(results, *given, **named)

    return make


@checking
def beats(
    results: Results,
    /,
    measure: str,
    first: str | Sequence[str],
    others: Sequence[str],
    *,
    by: float = 1.0,
    **where: Any,
) -> Finding:
    """Whether a method's error times ``by`` is below each other's, as a geometric mean of ratios over all points."""
    words, holds = [], True
    for one in [first] if isinstance(first, str) else first:
        means = {other: geometric_mean(results.ratios(measure, one, other, **where)) for other in others}
        holds &= all(mean * by < 1 for mean in means.values())
        figures = ", ".join(f"{mean:.2g} of {other}'s" for other, mean in means.items())
        words.append(f"{measure} of {one} is {figures}")
    return Finding(holds, "; ".join(words))


@checking
def every(results: Results, *checks: Check) -> Finding:
    """Whether several checks hold together."""
    found = [one(results) for one in checks]
    return Finding(all(one.holds for one in found), "; ".join(one.figures for one in found))


@checking
def best(
    results: Results, /, measure: str, winners: Mapping[str, str], among: Sequence[str], **where: Any
) -> Finding:
    """Whether the named method has the least mean among the named ones on each data set."""
    words, holds = [], True
    for data, expected in winners.items():
        points = results.select(measure, data=data, method=tuple(among), **where)
        means = {m: geometric_mean(p.value for p in points if p.method == m) for m in among}
        found = min(means, key=lambda name: math.inf if math.isnan(means[name]) else means[name])
        holds &= found == expected
        words.append(f"{data}: {found} {means[found]:.2g} ({expected} {means[expected]:.2g})")
    return Finding(holds, "; ".join(words))


@checking
def grows(
    results: Results,
    /,
    measure: str,
    method: str,
    *,
    at_most: float = math.inf,
    at_least: float = 0.0,
    **where: Any,
) -> Finding:
    """Whether the last point of each line of a method is at most, or at least, this many times its first."""
    lines = _lines(results, measure, method, **where)
    mean = geometric_mean(line[-1][1] / line[0][1] for line in lines if len(line) > 1 and line[0][1] > 0)
    return Finding(
        at_least <= mean <= at_most,
        f"from the first point to the last, {measure} of {method} grows {mean:.2g} times",
    )


@checking
def peaks(
    results: Results,
    /,
    measure: str,
    method: str,
    between: tuple[float, float],
    *,
    least: bool = False,
    **where: Any,
) -> Finding:
    """Whether a method's greatest (or least) mean lies between two places of the horizontal axis."""
    points = [point for line in _lines(results, measure, method, **where) for point in line]
    if not points:
        return Finding(False, f"{method} was not measured")
    place, value = (min if least else max)(points, key=lambda point: point[1])
    return Finding(
        between[0] <= place <= between[1],
        f"{measure} of {method} is {'least' if least else 'greatest'} ({value:.3g}) at {place:g}",
    )


@checking
def power(
    results: Results, /, measure: str, method: str, between: tuple[float, float], **where: Any
) -> Finding:
    """Whether a method's mean follows a power of ``x`` with an exponent, fitted line by line, in this interval."""
    found = exponents(results, measure, method, **where)
    mean = sum(found) / len(found) if found else math.nan
    return Finding(between[0] <= mean <= between[1], f"{measure} of {method} grows with the power {mean:.2f}")


def exponents(results: Results, measure: str, method: str, **where: Any) -> list[float]:
    """Fit log(mean) to log(x) on every line of a method that has two points or more."""
    found = []
    for line in _lines(results, measure, method, **where):
        logs = [(math.log(x), math.log(y)) for x, y in line if x > 0 and y > 0]
        if len(logs) > 1:
            found.append(linear_regression(*zip(*logs, strict=True)).slope)
    return found


def _lines(results: Results, measure: str, method: str, **where: Any) -> list[list[tuple[float, float]]]:
    """The points of a method as (x, mean), in order: a line for each data set and ε."""
    lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for point in results.select(measure, method=method, **where):
        if point.x is not None:
            lines.setdefault((point.data, point.epsilon), []).append((point.x, point.value))
    return [sorted(line) for line in lines.values()]
