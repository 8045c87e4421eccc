"""Commands that use a release or plan one: forecasts before spending, and SQL over what was released."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace as replace_in
from math import inf
from pathlib import Path

from dphist.cli import screen
from dphist.cli.publishing import asked_of, read_declared, unit_of
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.measure import Measure
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.currencies import OF_RHO, Quote, currencies
from dphist.planning.forecast import MECHANISMS, Forecast, plan


def show_plan(
    schema: Path,
    epsilon: str | None,
    workload: str | None,
    *,
    mechanisms: list[str] | None,
    records: int,
    error: float | None,
    rows: int | None,
    replace: bool,
    as_json: bool,
    rho: str | None = None,
    delta: str | None = None,
) -> None:
    """Print each mechanism's expected error, best first, without reading data."""
    declared = read_declared(schema)
    domain, unit = declared.domain, unit_of(declared, rows, replace, None)
    asked = asked_of(declared, workload, None) or Workload.parse(domain, "ranges")
    if delta is not None or (epsilon is not None and rho is not None):
        _side_by_side(
            domain,
            epsilon or "1",
            asked,
            delta=delta or "1e-9",
            rho=rho,
            mechanisms=mechanisms or [*MECHANISMS, *OF_RHO],
            records=records,
            unit=unit,
            measures=declared.measures,
            as_json=as_json,
        )
        return
    budget = Budget.of(epsilon or (None if rho else "1"), rho=rho)
    with screen.progress("running mechanisms on made-up data"):
        given = mechanisms or [*MECHANISMS, *(() if budget.pure else OF_RHO)]
        forecasts = plan(
            domain, budget, asked, mechanisms=given, records=records, error=error, unit=unit,
            measures=declared.measures,
        )  # fmt: skip
        if mechanisms is None:
            # Whoever does not say what will be asked gets something else.
            silent = plan(
                domain,
                budget,
                asked,
                mechanisms=["auto"],
                records=records,
                error=error,
                unit=unit,
                measures=declared.measures,
                announced=False,
            )
            named = [replace_in(each, mechanism="auto, nothing announced") for each in silent]
            forecasts = sorted([*forecasts, *named], key=_error)
    if as_json:
        told = [{**each.__dict__, "cases": dict(each.cases)} for each in forecasts]
        screen.line(json.dumps(told, ensure_ascii=False))
        return
    head = ["mechanism", "expected error", "how it is known"]
    if error is not None:
        head.insert(2, f"{budget.symbol} for an error of {error:g}")
    screen.table(head, [_row(forecast, error) for forecast in forecasts])
    _about_errors()
    if declared.measures:
        names = ", ".join(measure.name for measure in declared.measures)
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


def _side_by_side(
    domain: Domain,
    epsilon: str,
    workload: Workload,
    *,
    delta: str,
    rho: str | None,
    mechanisms: list[str],
    records: int,
    unit: Unit,
    measures: Sequence[Measure],
    as_json: bool,
) -> None:
    """Print each mechanism's expected error under pure ε, (ε, δ) and ρ."""
    with screen.progress("running mechanisms on made-up data, in three currencies"):
        quotes = currencies(
            domain, epsilon, workload, delta=delta, rho=rho, mechanisms=mechanisms, records=records, unit=unit,
            measures=measures,
        )  # fmt: skip
    if as_json:
        told = {
            quote.label: {
                "budget": quote.budget.to_json(),
                "limit": quote.limit,
                "forecasts": [{**each.__dict__, "cases": dict(each.cases)} for each in quote.forecasts],
            }
            for quote in quotes
        }
        screen.line(json.dumps(told, ensure_ascii=False))
        return
    found = [{each.mechanism: each for each in quote.forecasts} for quote in quotes]
    least = {name: min(_error(each[name]) for each in found) for name in found[0]}
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


def _error(forecast: Forecast) -> float:
    return inf if forecast.error is None else forecast.error


def _row(forecast: Forecast, wanted: float | None) -> list[str]:
    basis = forecast.basis if forecast.error is None else forecast.basis.replace(":", " ").split()[0]
    row = [forecast.mechanism, forecast.shown, basis]
    if wanted is not None:
        row.insert(2, "–" if forecast.epsilon_needed is None else f"{forecast.epsilon_needed:.3g}")
    return row
