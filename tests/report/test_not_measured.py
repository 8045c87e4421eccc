"""What nobody measured has no interval, and every place that shows it says so: never a NaN, never a made-up bound."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.cli.picture import bars
from dphist.mechanisms import Marginals
from dphist.release import load
from dphist.report import figure, report_page
from dphist.report.notebook import release_html
from dphist.uses import Cube, ask_sql
from dphist.web.compare import compare
from dphist.web.view import View

BOTH = "age between 3 and 9 and sex = 'F'"


@pytest.fixture(scope="module")
def release():
    domain = dphist.Domain(
        [
            dphist.Ordinal("age", range(20)),
            dphist.Nominal("sex", ["F", "M"]),
            dphist.Nominal("job", ["a", "b", "c"]),
        ]
    )
    counts = np.random.default_rng(0).poisson(20, domain.shape)
    single = Marginals(tables=((0,), (1,), (2,)))
    return dphist.publish(dphist.Histogram(domain, counts), epsilon=1, mechanism=single)


@pytest.fixture(scope="module")
def unseen():
    """A release of which not even the first attribute was measured by itself: only the last."""
    domain = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("sex", ["F", "M"])])
    return dphist.publish(
        dphist.Histogram(domain, np.full((9, 2), 50)), epsilon=1, mechanism=Marginals(tables=((1,),))
    )


def strict(value):
    """JSON as the standard has it, which knows no NaN."""
    return json.dumps(value, allow_nan=False)


def test_python_says_so(release):
    answer = release.answer(BOTH)
    assert not answer.measured
    assert str(answer).endswith("(not measured)")
    assert "method='not measured'" in repr(answer)
    assert release.answer("sex = 'F'").measured
    assert release.answer("sex = 'F'").method.startswith("exact: ")
    table = release.project("age", "sex")
    assert table.method == "not measured"
    assert table.to_pandas()[["low", "high"]].isna().all().all()


def test_query_says_so(release, tmp_path):
    release.save(tmp_path / "out.parquet")
    told = CliRunner().invoke(app, ["query", str(tmp_path / "out.parquet"), BOTH])
    assert "(not measured)" in told.stdout
    assert "nan" not in told.stdout
    told = CliRunner().invoke(app, ["query", str(tmp_path / "out.parquet"), BOTH, "--json"])
    found = json.loads(told.stdout, parse_constant=pytest.fail)
    assert (found["low"], found["high"], found["method"]) == (None, None, "not measured")


def test_show_draws_what_was_not_measured(unseen, tmp_path):
    unseen.save(tmp_path / "out.parquet")
    told = CliRunner().invoke(app, ["show", str(tmp_path / "out.parquet")])
    assert told.exit_code == 0, told.output
    assert told.stdout.count("(not measured)") == 9
    assert load(tmp_path / "out.parquet").answer().measured


def test_the_report_says_so(unseen, release):
    page = report_page(unseen).split('<script type="module">')[0]
    assert "NaN" not in page
    assert ">nan<" not in page
    assert "Records by age, not measured" in page
    assert page.count('class="number soft">not measured') == 9
    assert "Records by sex, with 95% intervals" in page
    assert "Intervals: not measured." in page
    assert "Intervals: exact: " in page
    assert "not measured" in report_page(release)
    for drawn in (bars(unseen, "age"), release_html(unseen)):
        assert "nan" not in drawn


def test_figures_draw_no_line(unseen):
    drawn = figure(unseen, "age").to_dict()
    rows = next(iter(drawn["datasets"].values())) if "datasets" in drawn else drawn["data"]["values"]
    strict(rows)
    assert {row["interval"] for row in rows} == {"not measured"}
    assert any("transform" in layer for layer in drawn["layer"])


def test_the_explorer_says_so(release):
    view = View.read(release, {"q": BOTH, "show": "age"}).to_json()
    strict(view)
    assert (view["answer"]["low"], view["answer"]["method"]) == (None, "not measured")
    assert view["intervals"] == "not measured"
    assert all(row["low"] is None for row in view["rows"])
    whole = View.read(release, {"show": "age"}).to_json()
    assert whole["intervals"] == "with 95% intervals"
    strict(View.read(release, {"show": "age", "by": "sex"}).to_json())
    written = View.read(release, {"q": BOTH, "show": "age"}).to_csv()
    assert written.splitlines()[1].endswith(",,")


def test_two_releases_are_compared(release, unseen):
    made = compare("one", release, "other", release, {"q": BOTH})
    assert not made["measured"]
    assert not made["apart"]
    assert compare("one", release, "other", release, {"q": "sex = 'F'"})["measured"]


def test_cube_says_so(release):
    cube = Cube(release)
    for table in (cube.by("age", "sex").count(), cube.by("sex").mean("age"), cube.by("sex").sum("age")):
        assert table.method == "not measured"
        assert np.isnan(table.low).all()
        assert np.isnan(table.high).all()
        assert np.isfinite(table.value).all()
    female = cube.slice(sex="F")
    quantiles = female.quantiles("age", [0.25, 0.5])
    assert quantiles.labels["from"] == quantiles.labels["to"] == ["not measured"] * 2
    assert np.isnan(quantiles.low).all()
    assert np.isnan(female.cdf("age").high).all()
    # What was measured keeps its intervals.
    assert np.isfinite(cube.mean("age").low).all()
    assert cube.quantiles("age", [0.5]).labels["from"] != ["not measured"]


def test_sql_has_no_bounds_where_a_cell_was_not_measured(release):
    found = ask_sql(release, "select * from release limit 1")
    assert found.columns == ("age", "sex", "job", "estimate", "low", "high")
    assert found.rows[0][-2:] == (None, None)
