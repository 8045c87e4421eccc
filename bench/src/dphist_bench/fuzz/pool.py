"""Values that cannot be drawn out of nothing: domains, histograms, releases, budgets, files. Made once a process."""

from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

#: Files that `write_files` leaves in the working folder, and one that is not there.
FILES = [
    "release.parquet",
    "sparse.parquet",
    "rows.csv",
    "rows.jsonl",
    "schema.toml",
    "budget.db",
    "missing.parquet",
]

# Mechanisms that are made of others, and ingredients.
_INGREDIENTS = ("ByPart", "Smooth", "Sort")


@cache
def things() -> dict[str, list[Any]]:
    """Some of every class that arguments are of, by the name that annotations use."""
    import dphist
    from dphist.mechanisms import CLASSES

    age, sex = dphist.Ordinal("age", range(8)), dphist.Nominal("sex", ["F", "M"])
    day = dphist.Ordinal("day", dates=("2024-01-01", "2024-01-06", "1d"), other=True)
    line, plane, cube = dphist.Domain([age]), dphist.Domain([age, sex]), dphist.Domain([age, sex, day])
    edges = dphist.Ordinal("x", edges=[0.0, 0.5, 2.0])
    histograms = [
        dphist.Histogram(each, np.arange(each.size).reshape(each.shape)) for each in (line, plane, cube)
    ]
    releases = [
        dphist.publish(histograms[0], epsilon=1, mechanism="laplace"),
        dphist.publish(histograms[1], epsilon=1),
        dphist.publish(histograms[2], epsilon=1, mechanism="marginals"),
        dphist.publish(histograms[0], epsilon="1/3", mechanism="privelet"),
        dphist.publish(histograms[1], epsilon=1, mechanism="sparselaplace"),
        dphist.publish(histograms[1], rho="1/10", mechanism="gaussian"),
        dphist.publish(histograms[2], epsilon=1, mechanism="residuals"),
    ]
    book = dphist.Ledger.open("budget.db")
    if "people" not in book.datasets():
        book.create("people", 10**9)
    tables = [releases[1].answer(where={"age": (1, 2)})]
    cubes = [dphist.uses.Cube(releases[1]), dphist.uses.Cube(releases[2], where={"sex": "F"})]
    forest = dphist.uses.ReleaseID3("sex").fit(releases[1])
    return {
        "Domain": [line, plane, cube],
        "Attribute": [age, sex, day, edges],
        "Ordinal": [age, day, edges],
        "Nominal": [sex],
        "Histogram": histograms,
        "Unit": [dphist.Unit(), dphist.Unit(rows=3), dphist.Unit(rows=2, id="user")],
        "Workload": [
            dphist.Workload.cells(plane),
            dphist.Workload.prefixes(line),
            dphist.Workload.marginals(cube, 2),
            dphist.Workload.where(plane, age=(1, 3)),
        ],
        "Measure": [dphist.Measure("income", 0, 100), dphist.Measure("hours", -5, 5)],
        "Release": releases,
        "Ledger": [book],
        "Mechanism": [getattr(dphist.mechanisms, name)() for name in CLASSES if name not in _INGREDIENTS],
        "Answer": tables,
        "Cube": cubes,
        "ReleaseID3": [forest, dphist.uses.ReleaseID3("sex")],
        "Blocking": [dphist.uses.Blocking.from_releases(releases[1], releases[1])],
        "Pair": dphist.audit.worst_pairs((4,)),
        "Reservation": [1, 7],
    }


def of(name: str) -> list[Any]:
    """The values of a class, or none."""
    return things().get(name, [])


@cache
def values() -> list[Any]:
    """One after the other of all."""
    return [each for some in things().values() for each in some]


@cache
def sources() -> list[Any]:
    """Tables of records, some of them odd."""
    import pandas
    import polars
    import pyarrow

    rows = {"age": [1, 2, 3, None], "sex": ["F", "M", "F", "x"], "user": ["a", "a", "b", None]}
    odd = {
        "age": [1, "two", b"3", dt.date(2024, 1, 1)],
        "sex": [1.5, None, [1], {"a": 1}],
        "user": [1, 2, 2, 3],
    }
    frame = pandas.DataFrame(rows)
    return [
        frame, pandas.DataFrame(odd), pandas.DataFrame(), frame.rename(columns={"age": "sex"}), frame.set_index("age"),
        polars.DataFrame(rows), polars.DataFrame(rows).lazy(), polars.DataFrame(), pyarrow.table(rows),
        pyarrow.table({"age": pyarrow.array([[1], [2]])}), [{"age": 1, "sex": "F"}], [], {"age": [1]}, np.arange(3),
    ]  # fmt: skip


def write_files() -> None:
    """Put the files that words name into the working folder."""
    import dphist

    releases = things()["Release"]
    releases[1].save("release.parquet")
    releases[4].save("sparse.parquet")
    Path("rows.csv").write_text("age,sex,user\n1,F,a\n2,M,b\n")
    Path("rows.jsonl").write_text('{"age": 1, "sex": "F"}\n{"age": 2, "sex": "M"}\n')
    Path("schema.toml").write_text(dphist.Domain.to_toml(things()["Domain"][1]))
