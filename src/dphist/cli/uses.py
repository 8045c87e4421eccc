"""Commands that use a release or plan one: forecasts before spending, and SQL over what was released."""

from __future__ import annotations

import json
from dataclasses import replace as replace_in
from math import inf
from pathlib import Path
from typing import Any

from dphist.cli import screen
from dphist.cli.publishing import read_schema
from dphist.model.unit import Unit
from dphist.planning.forecast import MECHANISMS, Forecast, plan
from dphist.release import load
from dphist.uses.sql import ask_sql


def show_plan(
    schema: Path,
    epsilon: str,
    workload: str,
    *,
    mechanisms: list[str] | None,
    records: int,
    error: float | None,
    rows: int,
    replace: bool,
    as_json: bool,
) -> None:
    """Print each mechanism's expected error, best first, without reading data."""
    domain = read_schema(schema)
    with screen.progress("running mechanisms on made-up data"):
        unit = Unit(rows=rows, replace=replace)
        given = mechanisms or list(MECHANISMS)
        forecasts = plan(domain, epsilon, workload, mechanisms=given, records=records, error=error, unit=unit)
        if mechanisms is None:
            # Whoever does not say what will be asked gets something else.
            silent = plan(
                domain,
                epsilon,
                workload,
                mechanisms=["auto"],
                records=records,
                error=error,
                unit=unit,
                announced=False,
            )
            named = [replace_in(each, mechanism="auto, nothing announced") for each in silent]
            forecasts = sorted(
                [*forecasts, *named], key=lambda each: inf if each.error is None else each.error
            )
    if as_json:
        told = [{**each.__dict__, "cases": dict(each.cases)} for each in forecasts]
        screen.line(json.dumps(told, ensure_ascii=False))
        return
    head = ["mechanism", "expected error", "how it is known"]
    if error is not None:
        head.insert(2, f"ε for an error of {error:g}")
    screen.table(head, [_row(forecast, error) for forecast in forecasts])
    screen.line("expected error: root of the mean squared error of an answer, in records; no data were read")
    if any(forecast.basis.startswith("simulated") for forecast in forecasts):
        screen.line(
            f"simulated: on made-up populations of {records:,} records; in brackets the best and the worst run over "
            "all of them. Yours may lie outside"
        )


def show_sql(release: Path, query: str, *, as_json: bool) -> None:
    """Print the rows of one SELECT over a release."""
    found = ask_sql(load(release), query)
    if as_json:
        screen.line(json.dumps(found.records(), ensure_ascii=False, default=str))
    else:
        screen.table(found.columns, [[_text(value) for value in row] for row in found.rows])


def _row(forecast: Forecast, wanted: float | None) -> list[str]:
    shown = "–" if forecast.error is None else f"{forecast.error:,.3g}"
    if forecast.cases:
        shown += f" ({forecast.best:,.3g} to {forecast.worst:,.3g})"
    basis = forecast.basis if forecast.error is None else forecast.basis.replace(":", " ").split()[0]
    row = [forecast.mechanism, shown, basis]
    if wanted is not None:
        row.insert(2, "–" if forecast.epsilon_needed is None else f"{forecast.epsilon_needed:.3g}")
    return row


def _text(value: Any) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)
