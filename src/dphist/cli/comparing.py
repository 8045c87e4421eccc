"""Compare mechanisms on data that are public or made up: a table, and who is on the skyline."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

from dphist.cli import screen
from dphist.cli.publishing import read_schema
from dphist.errors import InputError
from dphist.mechanisms import list_mechanisms
from dphist.model.workload import Workload
from dphist.planning.compare import Row, compare, sampled, skyline
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
    few = sampled(asked)
    rows: list[Row] = []
    started = time.monotonic()
    for place, name in enumerate(chosen):
        spent = time.monotonic() - started
        left = f", about {_duration(spent / place * (len(chosen) - place))} left" if place else ""
        say(f"running {name} ({place + 1} of {len(chosen)}{left})")
        rows += compare(histogram, epsilon, asked, [name], trials)
    rows = sorted(rows, key=lambda row: row.error)
    measured = [row for row in rows if math.isfinite(row.error)]
    free = set(skyline((row.name, row.seconds, row.error) for row in measured))
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
    part = "" if few is asked else f" (a sample of {len(few):,})"
    screen.line(
        f"error: root of the mean squared error over {workload}{part}, "
        f"{trials} runs each; ●: none is faster and better"
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


def _duration(seconds: float) -> str:
    """So long, as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
