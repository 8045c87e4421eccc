"""One messy file through all that speaks of it: forecast, intervals and dropped rows in the same words."""

from __future__ import annotations

import asyncio
import html
import json
import math
import re

import httpx
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.model.schema import Schema
from dphist.planning import plan
from dphist.planning.forecast import release_forecasts
from dphist.planning.starting import Start
from dphist.web import create_app
from dphist.web.start import create_start

PUBLIC = {"age": "0 to 9", "sex": "F, M", "region": "A, B, C"}


@pytest.fixture(scope="module")
def messy(tmp_path_factory):
    """A folder with a file in which a twentieth of the rows has no cell, for three reasons, and its schema."""
    folder = tmp_path_factory.mktemp("messy")
    rows = []
    for i in range(4_000):
        age = "n/a" if i % 50 == 0 else "4 years" if i % 100 == 7 else str(i * 7 % 10)
        rows.append(f"{age},{'f' if i % 80 == 3 else 'FM'[i % 3 == 0]},{'ABC'[i % 11 % 3]}\n")
    (folder / "messy.csv").write_text("age,sex,region\n" + "".join(rows))
    start = Start(source=str(folder / "messy.csv"), public=PUBLIC, workload="marginals:2", folder=folder)
    start.write()
    return folder, start


def said(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, (done.exception, done.output)
    return re.sub(r"\s+", " ", done.output)


def request(application, method, path, **given):
    async def ask():
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, timeout=120, **given)

    reply = asyncio.run(ask())
    assert reply.status_code == 200, reply.text
    return re.sub(r"\s+", " ", html.unescape(reply.text))


def test_a_messy_file_has_one_forecast_one_method_and_one_number_of_dropped_rows(messy):
    folder, start = messy
    schema, source, release = folder / "messy.toml", folder / "messy.csv", folder / "out.parquet"
    told = dphist.rehearse(source, start.domain, workload="marginals:2")
    (forecast,) = told.forecasts.values()
    # 80 ages are "n/a", 40 are "4 years" and 50 sexes are "f", none of them in one row.
    dropped = "rows 4,000, of which 170 (4.2%) would not be counted"
    assert (told.rows, told.dropped) == (4_000, 170)
    error, method = f"error what will be asked: {forecast.shown} at epsilon 1 ", forecast.intervals
    assert re.fullmatch(r"[\d.]+ \([\d.]+ to [\d.]+\)|[\d.]+ to [\d.]+", forecast.shown)

    # Before paying.
    rehearsed = said("rehearse", source, "--schema", schema)
    assert [words in rehearsed for words in (dropped, error, f"intervals {method}")] == [True] * 3
    planned = said("plan", "--schema", schema, "--mechanism", "auto")
    assert f"auto {forecast.shown} simulated" in planned
    assert f"intervals of auto: {method}" in planned
    (row,) = json.loads(said("plan", "--schema", schema, "--mechanism", "auto", "--json"))
    assert (row["error"], row["intervals"]) == (forecast.error, method)
    assert dict(start.curve(["1"]))["1"] == forecast
    page = create_start(str(source), folder)
    form = {f"public:{i}": words for i, words in enumerate(PUBLIC.values())} | {"workload": "marginals:2"}
    shown = request(page, "POST", "/", data=form | {"action": "rehearse"})
    assert f'1</th><td class="number">{forecast.shown}</td>' in shown
    assert [words in shown for words in (dropped, error, f"intervals {method}")] == [True] * 3

    # Paid for: what was dropped is the custodian's, and no other forecast is made.
    private = ["170", "4.2%", "3,830", "3830", "would not be counted"]
    published = said("publish", source, "--schema", schema, "--epsilon", 1, "-o", release, "--unattended")
    asked = said("query", release, "age < 5")
    facts = said("show", release)
    said("report", release, "-o", folder / "out.html")
    written = html.unescape((folder / "out.html").read_text())
    explored = request(create_app({"messy": dphist.load(release)}), "GET", "/api/view?q=age+%3C+5")
    assert f"interval: {method}" in asked
    for words in (published, asked, facts, written, explored):
        assert method in words
        assert "typically be off" not in words
    for words in (published, facts):
        assert not [each for each in private if each in words]


def test_what_the_planners_page_says_is_what_plan_says():
    """Units and measures of the schema count on the page, too."""
    schema = 'unit = "rows=3"\n' + dphist.Domain([dphist.Ordinal("age", range(8))]).to_toml()
    schema += '[[measure]]\nname = "cost"\nlow = 0\nhigh = 9\n'
    form = {"schema": schema, "mechanism": "auto", "question": "", "only": "question"}
    page = json.loads(request(create_app({}), "POST", "/api/plan", data=form))
    known = Schema.read(schema)
    (own,) = plan(known.domain, 1, "ranges", mechanisms=["auto"], unit=known.unit, measures=known.measures)
    assert page["shown"]["ranges"] == own.shown
    (alone,) = plan(known.domain, 1, "ranges", mechanisms=["auto"])
    assert (own.error or 0.0) > 4.0 * (alone.error or 0.0)


def test_a_release_of_many_cells_has_one_forecast():
    """Above 8,192 cells the start had shown plain noise without saying so, and the plan nothing."""
    large = Start(
        source="large.csv", public={**PUBLIC, "place": "0 to 799", "hour": "0 to 23"}, workload="marginals:2"
    )
    (forecast,) = plan(large.domain, 1, "marginals:2", mechanisms=["auto"])
    assert forecast.shown.startswith("at most ")
    assert dict(large.curve(["1"]))["1"] == forecast
    (laplace,) = plan(large.domain, 1, "marginals:2", mechanisms=["laplace"])
    assert (forecast.error or 0.0) < (laplace.error or 0.0) / 2
    # Ranges adapt to the data, and nobody can try that out: this is said.
    (unknown,) = plan(large.domain, 1, "ranges", mechanisms=["auto"])
    assert unknown.said.startswith("not known: depends on the data, and 1,152,000 counts are too many")


def test_what_cannot_be_forecast_stops_neither_a_rehearsal_nor_a_start():
    domain = dphist.Domain([dphist.Ordinal("x", range(10**18))])
    told = dphist.rehearse(pa.table({"x": [1, 2, -1]}), domain)
    assert (told.rows, told.dropped) == (3, 1)
    assert "ranges: not known: workload: x has 1,000,000,000,000,000,000 values" in str(told)
    start = Start(source="x.csv", public={"x": f"0 to {10**18 - 1}"}, workload="ranges")
    assert {each.shown for _, each in start.curve()} == {"not known"}


def test_measures_leave_counts_a_part_of_the_budget():
    """A rehearsal had forecast the counts as if nothing else were paid for, and sums not at all."""
    regions, cost = [f"r{place}" for place in range(30)], dphist.Measure("cost", 0, 500)
    domain = dphist.Domain([dphist.Nominal("region", regions)])
    told = release_forecasts(domain, 1, "cells", measures=[cost])
    counts, sums = told["what will be asked"], told["sums of cost, what will be asked"]
    (own,) = plan(domain, "2/5", "cells", mechanisms=["laplace"])
    assert counts.error == pytest.approx(own.error)
    assert counts.limit == own.limit
    costs = [37 * i % 501 for i in range(600)]
    table = pa.table({"region": regions * 20, "cost": costs})
    true = np.array([sum(costs[place::30]) for place in range(30)])
    off = []
    for _ in range(10):
        release = dphist.publish(table, domain, 1, workload="cells", measures=[cost], unattended=True)
        off.append(release.by("region").sum("cost").value - true)
    # 300 sums of Laplace noise: their root mean square has a deviation of 6.5 %. The noise is the same in every run.
    assert math.sqrt(np.mean(np.square(off))) == pytest.approx(sums.error, rel=0.25)
