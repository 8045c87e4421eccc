"""What nobody measured is a guess between bounds that hold, and every place that shows it says so: never a NaN."""

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.mechanisms import Marginals
from dphist.release import load
from dphist.report import figure, report_page
from dphist.report.drawing import card
from dphist.uses import Cube
from dphist.web.view import View, compare

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


def drawn_rows(drawn):
    """The numbers of a figure."""
    return next(iter(drawn["datasets"].values())) if "datasets" in drawn else drawn["data"]["values"]


def test_python_says_so(release):
    answer = release.answer(BOTH)
    assert answer.guess
    assert not answer.measured
    assert 0 <= answer.low <= answer.value <= answer.high <= release.answer("sex = 'F'", confidence=0.99).high
    assert "  (not measured; 95% bounds 0" in str(answer)
    assert answer.method.startswith("bounds: ")
    assert "Fréchet" in answer.details
    sure = release.answer(BOTH, interval="guaranteed")
    assert sure.method.startswith("bounds: ")
    assert sure.method.endswith("; guaranteed, whatever the data")
    assert sure.high > answer.high
    assert release.answer("sex = 'F'").measured
    assert release.answer("sex = 'F'").method.startswith("exact: ")
    table = release.project("age", "sex")
    assert table.method == answer.method
    assert table.guessed.all()
    frame = table.to_pandas()
    assert (frame["low"] <= frame["estimate"]).all()
    assert (frame["estimate"] <= frame["high"]).all()
    assert release.project("age").guessed is None


def test_answers_of_a_workload_are_told_apart(release):
    low, high = np.array([[3, 0, 0], [3, 0, 0]]), np.array([[10, 1, 3], [10, 2, 3]])
    answers = release.answer(dphist.Workload(release.domain, low, high))
    assert answers.guessed.tolist() == [True, False]
    assert answers.measured.tolist() == [False, True]
    assert answers.method.startswith("exact: ")
    assert [answers[i].method.split(":")[0] for i in range(2)] == ["bounds", "exact"]
    together = release.answer(dphist.Workload(release.domain, low, high), simultaneous=True)
    assert together[0].method.endswith(", all questions at once")
    assert together.high[0] > answers.high[0]


def test_query_says_so(release, tmp_path):
    release.save(tmp_path / "out.parquet")
    told = CliRunner().invoke(app, ["query", str(tmp_path / "out.parquet"), BOTH])
    assert "(not measured; 95% bounds 0" in told.stdout
    assert "interval: bounds: " in told.stdout
    assert "nan" not in told.stdout
    told = CliRunner().invoke(app, ["query", str(tmp_path / "out.parquet"), BOTH, "--json"])
    found = json.loads(told.stdout, parse_constant=pytest.fail)
    assert found["low"] <= found["value"] <= found["high"]
    assert found["measured"] is False
    assert found["method"].startswith("bounds: ")


def test_show_draws_what_was_not_measured(unseen, tmp_path):
    unseen.save(tmp_path / "out.parquet")
    told = CliRunner().invoke(app, ["show", str(tmp_path / "out.parquet")])
    assert told.exit_code == 0, told.output
    assert told.stdout.count("· (not measured)") == 9
    assert load(tmp_path / "out.parquet").answer().measured


def test_the_report_says_so(unseen, release):
    page = report_page(unseen).split('<script type="module">')[0]
    assert "NaN" not in page
    assert ">nan<" not in page
    assert "Records by age, not measured: guesses between 95% bounds" in page
    assert page.count('<td class="number soft">') == 4 * 9  # both ends, as bounds and as guaranteed ones
    assert "Records by sex, with 95% intervals" in page
    assert "Intervals: bounds: not measured together" in page
    assert "Intervals: exact: " in page
    assert "not measured: bounds only" in report_page(release)
    assert "nan" not in card(unseen)


def test_the_report_shows_the_tables_that_were_measured(release):
    pairs = dphist.publish(
        dphist.Histogram(release.domain, np.full((20, 2, 3), 50)),
        epsilon=1,
        mechanism=Marginals(tables=((0, 1), (1, 2))),
    )
    page = report_page(pairs).split('<script type="module">')[0]
    assert "2 tables were measured: age × sex, sex × job. What" in page
    for names in (("age", "sex"), ("sex", "job")):
        assert f"Records by {names[0]} and {names[1]}, with 95% intervals" in page
        asked = pairs.answer(dphist.Workload.marginals(pairs.domain, [list(names)]))
        for low in asked.low:
            assert f'<td class="number">{low:,.1f}</td>' in page
    assert "Records by age and job" not in page
    # Where nothing but single attributes was measured there is no map of guesses.
    assert "Records by age and sex" not in report_page(release)
    plane = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("place", list("abc"))])
    apart = Marginals(tables=((0,), (1,)))
    page = report_page(
        dphist.publish(dphist.Histogram(plane, np.full((9, 3), 50)), epsilon=1, mechanism=apart)
    )
    assert "Records by age and place" not in page
    assert "2 tables were measured: age, place. What" in page


def test_figures_draw_a_broken_line(unseen):
    drawn = figure(unseen, "age").to_dict()
    rows = drawn_rows(drawn)
    strict(rows)
    assert all(row["guess"] and row["interval"].startswith("not measured; bounds 0") for row in rows)
    broken = [
        layer["encoding"]["strokeDash"] for layer in drawn["layer"] if "strokeDash" in layer["encoding"]
    ]
    assert [each["condition"]["test"] for each in broken] == ["datum.guess"]
    assert not any(row["guess"] for row in drawn_rows(figure(unseen, "sex").to_dict()))


def test_the_explorer_says_so(release):
    view = View.read(release, {"q": BOTH, "show": "age"}).to_json()
    strict(view)
    assert view["answer"]["method"].startswith("bounds: ")
    assert not view["answer"]["measured"]
    assert "is a guess" in view["answer"]["caveats"][0]
    assert view["intervals"] == "not measured: guesses between 95% bounds"
    assert all(not row["measured"] and row["low"] <= row["estimate"] <= row["high"] for row in view["rows"])
    whole = View.read(release, {"show": "age"}).to_json()
    assert whole["intervals"] == "with 95% intervals"
    strict(View.read(release, {"show": "age", "by": "sex"}).to_json())
    written = View.read(release, {"q": BOTH, "show": "age"}).to_csv()
    assert not any(line.endswith(",") for line in written.splitlines())


def test_parts_add_their_bounds_up():
    domain = dphist.Domain(
        [
            dphist.Nominal("place", ["n", "s"]),
            dphist.Ordinal("age", range(6)),
            dphist.Nominal("sex", ["F", "M"]),
        ]
    )
    counts = np.zeros(domain.shape, dtype=int)
    # Ages below three are all F, so that the upper end is the truth but for noise.
    counts[:, :3, 0], counts[:, 3:, 1] = 70, 90
    release = dphist.publish(
        dphist.Histogram(domain, counts),
        epsilon=2,
        mechanism=Marginals(tables=((0,), (1,))),
        partition_by="place",
    )
    release.verify()
    for where, truth in (({}, 420), ({"place": "n"}, 210)):
        for interval in ("calibrated", "guaranteed"):
            answer = release.answer(
                where={"age": (0, 2), "sex": "F", **where}, interval=interval, confidence=0.999
            )
            assert answer.guess
            assert answer.method.startswith("bounds: ")
            assert max(0, answer.low) <= min(truth, answer.value)
            assert max(truth, answer.value) <= answer.high < truth + 250
    assert release.answer("sex = 'F'").measured


def test_two_releases_are_compared(release, unseen):
    made = compare("one", release, "other", release, {"q": BOTH})
    assert not made["measured"]
    assert not made["apart"]
    assert compare("one", release, "other", release, {"q": "sex = 'F'"})["measured"]


def test_cube_has_no_number_where_there_is_not_even_a_guess():
    columns = [dphist.Nominal(f"answer {i}", ["yes", "no", "maybe", "never"]) for i in range(12)]
    domain = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("sex", ["F", "M"]), *columns])
    random = np.random.default_rng(0)
    records = pa.table({each.name: random.choice(each.labels, 2000) for each in domain.attributes})
    records = records.set_column(0, "age", pa.array(random.integers(0, 9, 2000)))
    cube = Cube(dphist.publish(records, domain, 1, mechanism="residuals", workload="marginals:1"))
    assert np.isfinite(cube.mean("age").low).all()
    groups = cube.by("sex")
    for table in (groups.mean("age"), groups.sum("age"), groups.quantiles("age", [0.5]), groups.cdf("age")):
        assert table.method == "not measured"
        assert np.isnan([table.value, table.low, table.high]).all()
    quantiles = groups.quantiles("age", [0.5])
    assert (
        quantiles.labels["age"] == quantiles.labels["from"] == quantiles.labels["to"] == ["not measured"] * 2
    )


def test_sql_has_the_measured_tables_and_bounds_where_a_product_was_not_measured(release):
    found = release.sql("select * from release where \"table\" = 'sex'")
    assert found.columns == ("table", "age", "sex", "job", "estimate", "low", "high")
    assert [row[1] for row in found.rows] == [None, None]
    found = release.polished(integer=True).sql("select * from release limit 1")
    assert found.columns == ("age", "sex", "job", "estimate", "low", "high")
    estimate, low, high = found.rows[0][-3:]
    assert 0 <= low <= estimate <= high
