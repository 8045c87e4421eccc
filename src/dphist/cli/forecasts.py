"""Forecasts as tables and sentences, for `dphist plan`."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from dphist.cli import screen
from dphist.model.budget import Budget
from dphist.model.measure import Measure
from dphist.planning.currencies import Quote
from dphist.planning.forecast import Forecast


def facts(forecasts: Sequence[Forecast]) -> list[dict[str, object]]:
    """Forecasts as programs read them."""
    return [{**each.__dict__, "cases": dict(each.cases)} for each in forecasts]


def show_forecasts(
    forecasts: Sequence[Forecast],
    budget: Budget,
    error: float | None,
    records: int,
    measures: Sequence[Measure],
) -> None:
    """Print each mechanism's expected error, best first."""
    head = ["mechanism", "expected error", "how it is known"]
    if error is not None:
        head.insert(2, f"{budget.symbol} for an error of {error:g}")
    screen.table(head, [_row(forecast, error) for forecast in forecasts])
    _about_errors()
    if measures:
        names = ", ".join(measure.name for measure in measures)
        screen.line(f"errors of counts, for their part of the budget: the rest pays for sums of {names}")
    for each in forecasts:
        if each.mechanism == "auto" and each.intervals:
            screen.line(f"intervals of auto: {each.intervals}")
    _about_the_limit([("", forecasts[0].limit)] if forecasts else [])
    if any(forecast.basis.startswith("simulated") for forecast in forecasts):
        screen.line(
            f"simulated: on made-up populations of {records:,} records; a figure where they agree within a quarter, "
            "and from the best run over all of them to the worst, a quarter beyond. Yours may lie outside"
        )
    if budget.pure:
        screen.line("the same under (ε, δ) and ρ beside it: --delta 1e-9")


def show_quotes(quotes: Sequence[Quote], as_json: bool) -> None:
    """Print each mechanism's expected error under pure ε, (ε, δ) and ρ."""
    if as_json:
        told = {
            quote.label: {
                "budget": quote.budget.to_json(),
                "limit": quote.limit,
                "forecasts": facts(quote.forecasts),
            }
            for quote in quotes
        }
        screen.data(told)
        return
    found = [{each.mechanism: each for each in quote.forecasts} for quote in quotes]
    least = {name: min(error_of(each[name]) for each in found) for name in found[0]}
    rows = [
        [name, *(_in_short(each[name]) for each in found)]
        for name in sorted(least, key=lambda name: least[name])
    ]
    screen.table(["mechanism", *(quote.label for quote in quotes)], rows)
    _about_errors()
    _about_the_limit([(quote.label, quote.limit) for quote in quotes])
    screen.line("these are three promises: pure ε is the strongest. " + "; ".join(map(_promise, quotes)))


def _promise(quote: Quote) -> str:
    return f"{quote.label}: {quote.budget.describe()}"


def _about_errors() -> None:
    screen.line("expected error: root of the mean squared error of an answer, in records; no data were read")


def _about_the_limit(limits: list[tuple[str, float | None]]) -> None:
    words = [
        f"{label}: {'not computed' if limit is None else format(limit, ',.3g')}".removeprefix(": ")
        for label, limit in limits
    ]
    screen.line(
        f"limit of unbiased linear answers: {', '.join(words)}. Questions fixed beforehand and read without bias are "
        "off by that much at least; what adapts to the data, cuts at zero or shrinks may be off by less, on data that "
        "suit it"
    )


def _in_short(forecast: Forecast) -> str:
    """The figure alone, or the range where there is none to rely on: three stand side by side."""
    return forecast.shown.partition(" (")[0]


def error_of(forecast: Forecast) -> float:
    """Its error, or none that is known as the largest."""
    return inf if forecast.error is None else forecast.error


def _row(forecast: Forecast, wanted: float | None) -> list[str]:
    basis = forecast.basis if forecast.error is None else forecast.basis.replace(":", " ").split()[0]
    row = [forecast.mechanism, forecast.shown, basis]
    if wanted is not None:
        row.insert(2, "–" if forecast.epsilon_needed is None else f"{forecast.epsilon_needed:.3g}")
    return row
