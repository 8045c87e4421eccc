"""Compare mechanisms on data that are public or made up: a table, who is on the skyline, and a page to look at."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from dphist.cli import screen
from dphist.cli.publishing import read_schema
from dphist.errors import InputError
from dphist.extras import need
from dphist.mechanisms import list_mechanisms
from dphist.model.workload import Workload
from dphist.planning.compare import Row, compare
from dphist.planning.skyline import skyline
from dphist.release.file import atomic
from dphist.sources import count

WARNING = (
    "compare prints errors computed from the true counts, which is not private: public or made-up data only"
)


def show_comparison(
    source: str,
    schema: Path,
    epsilon: str,
    *,
    workload: str,
    names: list[str] | None,
    trials: int,
    output: Path | None,
    as_json: bool,
    say: Callable[[str], None],
) -> None:
    """Run every mechanism and show its error and time on a workload."""
    domain = read_schema(schema)
    asked = Workload.parse(domain, workload)
    if trials < 1:
        raise InputError("trials must be at least 1")
    say("counting records")
    histogram = count(source, domain)
    chosen = names or _comparable()
    rows = []
    for name in chosen:
        say(f"running {name}")
        rows += compare(histogram, epsilon, asked, [name], trials)
    rows = sorted(rows, key=lambda row: row.error)
    measured = [row for row in rows if math.isfinite(row.error)]
    free = set(skyline((row.name, row.seconds, row.error) for row in measured))
    if output is not None:
        with atomic(output) as temporary:
            temporary.write_text(_page(measured, free, epsilon, workload), encoding="utf-8")
    if as_json:
        listed = [{**row.__dict__, "skyline": row.name in free} for row in measured]
        screen.line(json.dumps(listed, ensure_ascii=False))
        return
    best = measured[0].error if measured else math.nan
    screen.table(
        ("mechanism", "error", "over the best", "CPU seconds", "skyline"),
        [
            (
                row.name,
                f"{row.error:,.2f}",
                f"{row.error / best:.2f}" if best else "",
                f"{row.seconds:.3f}",
                mark,
            )
            for row in measured
            for mark in ("●" if row.name in free else "",)
        ],
    )
    for row in rows:
        if row.why_not:
            screen.line(f"{row.name}: {row.why_not}")
    screen.line(
        f"error: root of the mean squared error over {workload}, {trials} runs each; ●: none is faster and better"
    )


def _comparable() -> list[str]:
    """Every mechanism once that a dense release may be made by; `bypart` is what it holds inside."""
    return sorted(
        name
        for name, entry in list_mechanisms().items()
        if entry.status != "reference"
        and entry.alias_of is None
        and name not in ("sparselaplace", "bypart", "gaussian")
    )


def _page(rows: list[Row], free: set[str], epsilon: str, workload: str) -> str:
    """Draw error against time on logarithmic axes, as one page that needs no network."""
    alt = need("altair", "report")
    values = [
        {
            "mechanism": r.name,
            "error": max(r.error, 1e-9),
            "seconds": max(r.seconds, 1e-6),
            "skyline": r.name in free,
        }
        for r in rows
    ]
    points = alt.Chart(
        alt.Data(values=values),
        title=f"Error on {workload} against time, ε = {epsilon}; filled: on the skyline",
        width=820,
        height=520,
    ).encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="CPU seconds a release"),
        y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="root mean squared error, in records"),
        tooltip=["mechanism:N", "error:Q", "seconds:Q"],
    )
    marks = points.mark_point(size=70).encode(
        fill=alt.condition("datum.skyline", alt.value("#4c78a8"), alt.value("white"))
    )
    texts = points.mark_text(align="left", dx=7, fontSize=10).encode(text="mechanism:N")
    page: str = (marks + texts).to_html(inline=True)
    return page
