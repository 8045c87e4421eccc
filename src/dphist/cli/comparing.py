"""Compare mechanisms on data that are public or made up: a table, and who is on the skyline."""

from __future__ import annotations

import math
from pathlib import Path

from dphist.cli import screen
from dphist.cli.publishing import read_schema
from dphist.errors import InputError
from dphist.mechanisms import list_mechanisms
from dphist.model.workload import Workload
from dphist.planning.compare import compare, sampled, skyline
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
) -> None:
    """Run every mechanism and show its error and time on a workload."""
    domain = read_schema(schema)
    asked = Workload.parse(domain, workload)
    if trials < 1:
        raise InputError("trials must be at least 1")
    rows = compare(count(source, domain), epsilon, asked, names or _comparable(), trials)
    measured = [row for row in rows if math.isfinite(row.error)]
    free = set(skyline((row.name, row.seconds, row.error) for row in measured))
    if as_json:
        listed = [{**row.__dict__, "skyline": row.name in free} for row in measured]
        screen.data(listed)
        return
    screen.table(
        ("mechanism", "error", "over the best", "CPU seconds", "skyline"),
        [
            (
                row.name,
                f"{row.error:,.2f}",
                "" if math.isnan(row.ratio) else f"{row.ratio:.2f}",
                f"{row.seconds:.3f}",
                "●" if row.name in free else "",
            )
            for row in measured
        ],
    )
    for row in rows:
        if row.why_not:
            screen.line(f"{row.name}: {row.why_not}")
    few = sampled(asked)
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
