"""How often intervals hold that are worked out of 80 replicates in plain SQL, and how wide they are beside our own.

`auto` publishes drawn data that nobody looks at, every release is exported with replicates, and DuckDB asks the file:
sums over ranges or boxes, and of groups along the first attribute shares, quartiles, ratios of neighbours (whose
denominator is four errors above 0), the ten largest as they are named, and the sum of the ten largest. An interval is
the estimate ± 1.96 · error; that of a count is cut at 0 and rounded.
"""
# ruff: noqa: S608 -- questions are put together from constants and names of attributes drawn by number

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist.mechanisms.auto import Auto
from dphist.model.budget import Budget
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.making import release_of
from dphist.release import Release
from dphist.release.exporting import export
from dphist_bench.data import drawn
from dphist_bench.measuring import Failure, Line

Found = dict[str, tuple[float, float, float]]
_MAKE = {"line": drawn.drawn_line, "plane": drawn.drawn_plane, "people": drawn.drawn_people}
# Questions of a kind about each release; fewer of all releases are no case.
_ASKED, _FEWEST = 60, 16
_MEAN, _LEAST, _WIDEST = 0.93, 0.88, 1.15  # on average, in each case, and beside our own intervals
_COLUMNS = "columns('^(estimate|truth|r[0-9]+)$')"
# Along the first attribute, forty groups of it, and those of which more than noise is known.
_TABLES = f"""
create table line as select {{axis}} as x, draw, sum(people) as people
    from (unpivot cells on {_COLUMNS} into name draw value people) group by all;
create table placed as select x * 40 // (1 + max(x) over ()) as grp, draw, people from line;
create table groups as select grp, draw, sum(people) as people from placed group by all;
"""
_ERRORS = """
    select id, any_value(e.value) as told, any_value(t.value) as truth, sqrt(avg((r.value - e.value) ** 2)) as error
    from each r join each e using (id) join each t using (id)
    where r.draw like 'r%' and e.draw = 'estimate' and t.draw = 'truth' group by id order by id
"""
_KNOWN = f"""create table known as select id as grp from (with each as (
    select grp as id, draw, people as value from groups) {_ERRORS}) where told > 4 * error"""
_KINDS = {
    "shares": """select id, draw, sum(part) as value from (select grp // 4 as id, draw,
        people / sum(people) over (partition by draw) as part from groups) group by all""",
    "ratios": """select a.grp as id, a.draw, a.people / b.people as value from groups a
        join groups b on a.draw = b.draw and a.grp = b.grp + 1 join known on known.grp = b.grp""",
    "ten largest": """select grp as id, draw, people as value from groups where grp in
        (select grp from groups where draw = 'estimate' order by people desc limit 10)""",
    "sum of the ten largest": """select 0 as id, draw, sum(people) as value from (select *, row_number() over
        (partition by draw order by people desc) as place from groups) where place <= 10 group by all""",
    "quartiles": """select level as id, draw, min(x) as value from (select draw, x, sum(people) over (
        partition by draw order by x) / sum(people) over (partition by draw) as part from line),
        (values (0.25), (0.5), (0.75)) asked(level) where part >= level group by all""",
}


def measure(
    *,
    quick: bool,
    sort: Annotated[Literal["line", "plane", "people", "all"], "which data"] = "all",
    first: Annotated[int, "the number of the first data"] = 720,
    cases: Annotated[int, "how many data of each sort"] = 6,
    releases: Annotated[int, "how often each is published"] = 16,
) -> Iterator[Line]:
    """Publish, export, ask, count."""
    for each in _MAKE if sort == "all" else (sort,):
        held: dict[str, list[tuple[float, float]]] = {}
        for number in range(first, first + (1 if quick else cases)):
            _, histogram, epsilon = _MAKE[each](number)
            found: dict[str, list[tuple[float, float, float]]] = {}
            for seed in range(2 if quick else releases):
                noise, budget = Noise(Keystream.for_tests(1000 * number + seed)), Budget(Fraction(epsilon))
                release = release_of(histogram, budget, Auto(), Unit(), None, noise)
                for kind, one in _asked(release, histogram).items():
                    found.setdefault(kind, []).append(one)
            for kind, ones in found.items():
                hits, asked, width = np.mean(ones, axis=0)
                if len(ones) * asked >= _FEWEST:
                    held.setdefault(kind, []).append((hits / asked, width))
        for kind, of_cases in held.items():
            part, width = np.array(of_cases).T
            mean, least, beside = part.mean().item(), part.min().item(), width.mean().item()
            row = {"data": each, "statistic": kind, "cases": len(part), "held at 95 %": round(mean, 3)}
            told = None if np.isnan(beside) else round(beside, 2)
            yield row | {"least case": round(least, 3), "width beside ours": told}
            if not quick and (mean < _MEAN or least < _LEAST or beside > _WIDEST):
                yield Failure(f"{each}, {kind}: less than {_MEAN}, {_LEAST} in one, or wider than {_WIDEST}")


def _asked(release: Release, histogram: Histogram) -> Found:
    """Of each kind how many intervals held, how many there were, and how wide they were beside our own."""
    axis, tables, truth = histogram.domain.names[0], release.cells.form == "tables", histogram.counts
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as sql:
        (path,) = export(release, Path(folder) / "cells.parquet", replicates=80)
        cells = pq.read_table(path, filters=[("table", "=", axis)] if tables else None)
        truth = truth.sum(axis=tuple(range(1, truth.ndim))) if tables else truth
        sql.register("cells", cells.append_column("truth", pa.array(truth.reshape(-1).astype(float))))
        sql.execute(_TABLES.format(axis=axis) + _KNOWN)
        found = {}
        for kind, asked in _KINDS.items():
            rows = sql.execute(f"with each as ({asked}) {_ERRORS}").fetchnumpy()
            if len(rows["id"]):
                low, high = _ends(rows, whole=kind not in ("shares", "ratios"))
                found[kind] = *_held(rows, low, high), np.nan
        return found | _sums(sql, release, histogram, 1 if tables else len(histogram.domain.names))


def _sums(sql: Any, release: Release, histogram: Histogram, axes: int) -> Found:
    """Sums over boxes of cells; over ranges of the first attribute where tables were measured."""
    domain, found = histogram.domain, {}
    boxes, kept = Workload.random(domain, _ASKED, seed=13), np.arange(len(domain.shape)) < axes
    for kind, longest in {"long": domain.size, "short": 16, "cells": 1}.items():
        low = np.where(kept, boxes.low, 0)
        high = np.where(kept, np.minimum(boxes.high, low + longest), domain.shape)
        bounds = {f"l{a}": low[:, a] for a in range(axes)} | {f"h{a}": high[:, a] for a in range(axes)}
        sql.register("asked", pa.table({"question": np.arange(len(low)), **bounds}))
        inside = " and ".join(f"{domain.names[a]}::int between l{a} and h{a} - 1" for a in range(axes))
        wide = f"select question as id, sum({_COLUMNS}) from cells join asked on {inside} group by id"
        long = f"unpivot ({wide}) on {_COLUMNS} into name draw value value"
        rows = sql.execute(f"with each as ({long}) {_ERRORS}").fetchnumpy()
        ours = release.answer(Workload(domain, low, high))
        ends = _ends(rows, whole=True)
        width = float((ends[1] - ends[0]).mean()) / max(float((ours.high - ours.low).mean()), 1.0)
        found[f"sums: {kind}"] = *_held(rows, *ends), width
    return found


def _ends(rows: dict[str, Any], *, whole: bool) -> Any:
    """The ends of intervals: whole numbers, none below 0, where the truth is one."""
    ends = np.stack([rows["told"] + side * 1.96 * rows["error"] for side in (-1.0, 1.0)])
    return np.maximum(np.rint(ends), 0.0) if whole else ends


def _held(rows: dict[str, Any], low: Any, high: Any) -> tuple[float, float]:
    held = (low - 1e-9 <= rows["truth"]) & (rows["truth"] <= high + 1e-9)
    return float(held.sum()), float(held.size)
