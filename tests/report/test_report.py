"""Reports, figures and pictures: true numbers, nothing fetched, every kind of release."""

import re
import subprocess
import sys

import numpy as np
import pyarrow
import pytest

import dphist
from dphist.mechanisms.options import parse
from dphist.release.guarantee import Maker
from dphist.report import figure, picture, report_page
from dphist.report.accuracy import accuracy
from dphist.report.facts import budget_tree
from dphist.report.figures import specification, table
from dphist.web.view import View

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(50)),
        dphist.Nominal("place", {"north": ["a", "b"], "south": ["c"]}),
        dphist.Ordinal("hour", range(24)),
    ]
)


def publish(names, mechanism="laplace", epsilon=1):
    domain = DOMAIN.project(names)
    counts = np.random.default_rng(1).poisson(25, domain.shape)
    return dphist.publish(dphist.Histogram(domain, counts), epsilon=epsilon, mechanism=mechanism)


@pytest.fixture(scope="module")
def release():
    return publish(["age", "place", "hour"])


@pytest.mark.parametrize("names", [["age"], ["place"], ["age", "hour"], ["age", "place", "hour"]])
def test_a_report_of_any_shape_is_one_file_that_needs_no_other(names):
    made = publish(names)
    page = report_page(made, title="Visits & <visitors>", file="visits.parquet")
    assert 500_000 < len(page) < 1_700_000
    assert "Visits &amp; &lt;visitors&gt;" in page
    outside = re.findall(
        r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=", page.split('<script type="module">')[0]
    )
    assert outside == []
    assert "default-src 'none'" in page
    assert str(made.answer()).split()[0] in page
    assert made.guarantee.describe() in page
    assert "dphist query visits.parquet" in page


def test_a_report_names_the_attributes_that_it_does_not_draw():
    domain = dphist.Domain([dphist.Nominal(f"<a{place}>", ["x", "y"]) for place in range(10)])
    made = dphist.publish(dphist.Histogram(domain, np.full(domain.shape, 9)), epsilon=1, mechanism="laplace")
    page = report_page(made)
    assert "The first 8 of 10 attributes are drawn. Not drawn: &lt;a8&gt;, &lt;a9&gt;." in page
    assert "Not drawn" not in report_page(publish(["age"]))


def test_a_map_shows_what_lies_beside_a_heap():
    """In even steps a value that most records have leaves all other squares in one colour."""
    domain = dphist.Domain([dphist.Ordinal("age", range(30)), dphist.Ordinal("gain", range(30))])
    even, heap = np.full((30, 30), 10), np.full((30, 30), 10)
    heap[:, 0] = 2_000
    colours = []
    for counts in (even, heap):
        made = dphist.publish(dphist.Histogram(domain, counts), epsilon=1, mechanism="laplace")
        for spec in (figure(made, ["age", "gain"]).to_dict(), specification(table(made, ["age", "gain"]))):
            colours.append(spec["encoding"]["color"])
    assert [colour["scale"].get("type") for colour in colours] == [None, None, "symlog", "symlog"]
    assert [colour["title"] for colour in colours[1:3]] == ["records", "records (log)"]
    assert colours[3]["legend"]["values"] == [0, 10, 100, 1_000]


def test_the_numbers_of_a_figure_are_answers(release):
    numbers = table(release, "age", chosen={"place": [(0, 2)]})
    own = [release.answer(where={"age": age, "place": "north"}) for age in range(50)]
    assert numbers.answers.value.tolist() == [each.value for each in own]
    assert numbers.answers.low.tolist() == [each.low for each in own]
    rows = specification(numbers)["datasets"]["numbers"]
    assert [row["high"] for row in rows] == [each.high for each in own]


def test_two_ways_to_a_figure_give_the_same_one(release):
    numbers = table(release, ["age", "hour"])
    drawn = figure(release, ["age", "hour"], width="container").to_dict()
    quick = specification(numbers)
    assert {key: value for key, value in drawn.items() if key not in ("data", "datasets", "config")} == {
        key: value for key, value in quick.items() if key not in ("data", "datasets", "config")
    }
    assert (
        next(iter(drawn.get("datasets", {}).values()), drawn["data"].get("values"))
        == quick["datasets"]["numbers"]
    )
    # Both axes are named, the upright one above its labels, which may be long.
    assert drawn["encoding"]["x"]["title"] == "age"
    assert drawn["encoding"]["y"]["title"] == "hour"
    assert drawn["encoding"]["y"]["axis"]["titleAngle"] == 0
    assert drawn["encoding"]["y"]["axis"]["titleY"] < 0


@pytest.mark.parametrize("names", [["age"], ["place"], ["age", "hour"], ["place", "hour"]])
def test_pictures_are_drawn_in_light_and_dark(release, names):
    chart = release.plot(*names)
    svg = picture(chart, "svg", dark=True).decode()
    assert svg.startswith("<svg")
    assert "#14181d" in svg
    assert picture(chart, "png", scale=1).startswith(b"\x89PNG")


def test_wrong_figures_are_refused(release):
    for names in (["age", "age"], ["age", "place", "hour"]):
        with pytest.raises(dphist.errors.QueryError, match="one attribute, or two"):
            release.plot(*names)
    with pytest.raises(dphist.errors.DphistError, match="no attribute"):
        release.plot("height")


@pytest.mark.parametrize(
    "mechanism", ["laplace", "structurefirst", "adaptivetree", "dawa", "privelet", "mwem"]
)
def test_the_budget_tree_adds_up_to_what_was_spent(mechanism):
    made = publish(["age"], mechanism, "1/3")
    tree = budget_tree(made)
    assert tree.cost == made.transcript.spent() <= made.epsilon
    assert tree.parts
    assert made.maker.words
    assert made.maker.reference


@pytest.mark.parametrize(
    ("mechanism", "first", "year"),
    [
        ("quadtree", "Cormode", 2012),
        ("kdhybrid", "Cormode", 2012),
        ("hierarchicalkd", "Inan", 2010),
        ("uniformgrid", "Qardaji", 2013),
        ("adaptivegrid", "Qardaji", 2013),
        ("dawa", "Li", 2014),
        ("dawa(centre='median')", "Li", 2014),
        ("ahp", "Zhang", 2014),
        ("hb", "Qardaji", 2013),
        ("greedyh", "Li", 2014),
        ("boost", "Hay", 2010),
        ("s1+h", "Kellaris", 2019),
        ("auto(chosen=privelet)", "Xiao", 2011),
    ],
)
def test_papers_for_boards_name_who_thought_of_a_mechanism(mechanism, first, year):
    """By their home alone quadtrees and grids were ours, and all presets those of whoever took them apart."""
    reference = Maker.of(parse(mechanism)).reference
    assert re.search(rf"[A-Z]\. {first}[,:].*{year}\.", reference)
    assert reference.startswith("dphist's own") == mechanism.startswith("auto")


def test_wider_questions_have_wider_intervals_under_plain_noise(release):
    rows = [row for row in accuracy(release) if row["about"] == "all attributes"]
    assert rows[0]["cells"] == 1
    assert rows[-1]["cells"] == release.domain.size
    widths = [row["half_width"] for row in rows]
    assert widths == sorted(widths)
    own = release.answer()
    assert widths[-1] == pytest.approx((own.high - own.low) / 2)


def test_a_release_shows_itself_in_a_notebook_without_anything_to_install(release, monkeypatch):
    for heavy in ("altair", "vl_convert", "jinja2", "fastapi"):
        monkeypatch.setitem(sys.modules, heavy, None)
    card = release._repr_html_()
    assert "age (50)" in card
    assert card.count("<rect") == 50
    assert str(release.answer()) in card


def test_what_is_missing_is_named(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(dphist.errors.InputError, match=r"dphist\[report\]"):
        release.plot("age")


def test_what_discovered_keys_add_up_to_is_not_called_everything():
    pages = pyarrow.table({"page": ["a"] * 900 + ["b"] * 400 + ["c"] * 2, "who": range(1302)})
    found = dphist.publish(
        pages,
        dphist.Domain([dphist.Nominal("page", discover=True)]),
        rho="1/8",
        delta="1e-9",
        unit="cells=1, id=who",
    )
    told = "are counted in it: records whose name stayed below a noisy count of"
    page = report_page(found, title="Pages")
    assert "<p>All names that are shown: <strong>" in page
    assert told in page
    assert "In all" not in page
    assert "records of keys shown" in found._repr_html_()
    assert told in " ".join(View.read(found, {}).to_json()["answer"]["caveats"])
    page = report_page(publish(["age"]), title="Ages")
    assert "<p>In all: <strong>" in page
    assert told not in page


def test_a_map_of_how_far_off_numbers_may_be_is_drawn_only_where_they_differ():
    domain = dphist.Domain([dphist.Ordinal("a", range(40)), dphist.Ordinal("b", range(30))])
    full, corner = np.full((40, 30), 500), np.zeros((40, 30), dtype=int)
    corner[:4, :4] = 500
    level, uneven = (
        report_page(dphist.publish(dphist.Histogram(domain, counts), epsilon=1, mechanism=mechanism))
        for mechanism, counts in (("laplace", full), ("adaptivetree", corner))
    )
    # What is guaranteed is no narrower, and a box to tick shows it elsewhere: both are said.
    told = re.search(r"interval is about ([\d.]+), of a guaranteed one ([\d.]+) records", level)
    assert told is not None
    assert 0 < float(told[1]) <= float(told[2])
    assert "How far off they may be" not in level
    assert "How far off they may be" in uneven
    assert "interval is about" not in uneven


def test_without_docstrings_charts_are_refused_by_name_and_pages_written(tmp_path):
    """Altair puts its own together from others, which Python drops under -OO."""
    script = """
import dphist, numpy as np
domain = dphist.Domain([dphist.Ordinal("age", range(20))])
release = dphist.publish(dphist.Histogram(domain, np.ones(20, int)), epsilon=1, mechanism="laplace")
release.report("r.html")
try:
    release.plot("age")
except dphist.errors.InputError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-OO", "-W", "ignore", "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert "-OO" in done.stdout, done.stderr
    assert "Records by age" in (tmp_path / "r.html").read_text(encoding="utf-8")
