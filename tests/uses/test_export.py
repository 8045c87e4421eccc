"""A release for whoever has no Python: tables that spreadsheets open, and what they mean beside them."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import InputError, OutputError
from dphist.release import exporting
from dphist.uses import export

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(30, 34)),
        dphist.Ordinal("day", dates=("2024-02-28", "2024-03-02")),
        dphist.Nominal("code", ["=1+1", 'a "quoted", b'], other=True),
    ]
)


@pytest.fixture(scope="module")
def release():
    counts = np.random.default_rng(1).integers(0, 50, DOMAIN.shape)
    histogram = dphist.Histogram(DOMAIN, counts)
    return dphist.publish(histogram, epsilon=1, mechanism="laplace", about={"publisher": "City of Example"})


def check(frame, release):
    assert list(frame.columns) == ["age", "day", "code", "estimate", "low", "high"]
    own = release.to_pandas()
    for name in ("age", "estimate", "low", "high"):
        assert np.allclose(frame[name], own[name])
    assert frame["code"].tolist() == own["code"].tolist()
    assert (pd.to_datetime(frame["day"]) == own["day"]).all()


def test_a_csv_and_its_description(release, tmp_path):
    written = export(release, tmp_path / "out.csv")
    check(pd.read_csv(tmp_path / "out.csv"), release)
    story = json.loads(written[1].read_text(encoding="utf-8"))
    assert written[1].name == "out.csv-metadata.json"
    assert story["url"] == "out.csv"
    kinds = {column["name"]: column["datatype"] for column in story["tableSchema"]["columns"]}
    assert kinds == {
        "age": "integer", "day": "date", "code": "string", "estimate": "number", "low": "number", "high": "number",
    }  # fmt: skip
    assert all(column["dc:description"] for column in story["tableSchema"]["columns"])
    assert story["dcterms:publisher"]["foaf:name"] == "City of Example"
    assert "1-differential privacy" in story["rdfs:comment"][0]
    check(pd.read_csv(export(release, tmp_path / "out.tsv")[0], sep="\t"), release)


def test_any_name_has_its_description(tmp_path):
    domain = dphist.Domain([dphist.Ordinal("a\nb", range(2)), dphist.Nominal("c: d, e", ["u", "v"])])
    release = dphist.publish(dphist.Histogram(domain, np.full((2, 2), 9)), epsilon=1, mechanism="laplace")
    _, beside = export(release, tmp_path / "odd.csv")
    told = {
        each["name"]: each["dc:description"]
        for each in json.loads(beside.read_text())["tableSchema"]["columns"]
    }
    assert list(told) == ["a\nb", "c: d, e", "estimate", "low", "high"]
    assert all(told.values())
    assert told["low"] == told["high"]


def test_a_spreadsheet_explains_itself(release, tmp_path, monkeypatch):
    export(release, tmp_path / "out.xlsx")
    book = pd.read_excel(tmp_path / "out.xlsx", sheet_name=None)
    check(book["counts"], release)
    told = pd.read_excel(tmp_path / "out.xlsx", sheet_name="about", header=None, index_col=0)[1]
    assert told["publisher"] == "City of Example"
    assert "1-differential privacy" in told["guarantee"]
    assert str(told["confidence"]) == "0.95"
    # Numbers are numbers, days are days, and a label is never a formula.
    import openpyxl

    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx")["counts"]
    first = [cell.value for cell in next(sheet.iter_rows(min_row=2, max_row=2))]
    assert first[:3] == [30, dt.datetime(2024, 2, 28), "=1+1"]
    assert sheet["C2"].data_type != "f"
    monkeypatch.setattr(exporting, "_SHEET", 30)
    with pytest.raises(OutputError, match=r"\.csv"):
        export(release, tmp_path / "large.xlsx")
    assert not (tmp_path / "large.xlsx").exists()


def test_the_command(release, tmp_path):
    release.save(tmp_path / "out.parquet")
    run = CliRunner()
    done = run.invoke(app, ["export", str(tmp_path / "out.parquet"), "-o", str(tmp_path / "table.csv")])
    assert done.exit_code == 0, done.output
    check(pd.read_csv(tmp_path / "table.csv"), release)
    with pytest.raises(InputError, match=r"\.xlsx"):
        export(release, tmp_path / "out.doc")


def test_a_missing_library_is_named(release, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(InputError, match=r"dphist\[excel\]"):
        export(release, tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir())


# ---- tables of some attributes ------------------------------------------------------------------------------

SURVEY = dphist.Domain(
    [
        dphist.Ordinal("age", range(30, 36)),
        dphist.Ordinal("pay", edges=[0, 10, 20, 50], other=True),
        dphist.Nominal("sex", ["F", "M"]),
        dphist.Nominal("place", {"north": ["a", "b"], "south": ["c"]}),
    ]
)
PAIRS = ["age, pay", "age, sex", "age, place", "pay, sex", "pay, place", "sex, place"]


@pytest.fixture(scope="module")
def survey():
    counts = np.random.default_rng(3).poisson(20, SURVEY.shape)
    return dphist.publish(
        dphist.Histogram(SURVEY, counts), epsilon=1, workload="marginals:2", mechanism="marginals"
    )


def rows_of(release, *tables):
    """Answers to every cell of tables, one table after the other."""
    found = [release.answer(dphist.Workload.marginals(release.domain, [list(names)])) for names in tables]
    return [np.concatenate([getattr(each, side) for each in found]) for side in ("value", "low", "high")]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_measured_tables_are_written_with_their_totals_and_no_guess(survey, tmp_path, kind):
    assert survey.cells.form == "tables"
    path = export(survey, tmp_path / f"out.{kind}")[0]
    frame = pd.read_csv(path) if kind == "csv" else pd.read_parquet(path)
    assert list(frame.table.unique()) == ["total", "age", "pay", "sex", "place", *PAIRS]
    assert frame.measured.all()
    assert len(frame) == 1 + 6 + 4 + 2 + 3 + 24 + 12 + 18 + 8 + 12 + 6
    total = survey.answer()
    assert frame.loc[0, ["estimate", "low", "high"]].tolist() == [total.value, total.low, total.high]
    pair = frame[frame.table == "age, sex"]
    assert np.allclose(pair[["estimate", "low", "high"]].T, rows_of(survey, ("age", "sex")))
    assert pair.age.tolist() == [age for age in range(30, 36) for _ in "FM"]
    assert pair.pay.isna().all() and pair.place_1.isna().all() and not pair.sex.isna().any()  # noqa: PT018


def test_every_column_of_tables_is_described(survey, tmp_path):
    story = json.loads(export(survey, tmp_path / "out.csv")[1].read_text(encoding="utf-8"))
    told = {each["name"]: each["dc:description"] for each in story["tableSchema"]["columns"]}
    assert list(told) == list(pd.read_csv(tmp_path / "out.csv").columns)
    assert "by the attributes that it keeps" in told["table"]
    assert "a guess" in told["measured"]
    words = pq.read_schema(export(survey, tmp_path / "out.parquet")[0]).metadata
    assert b"1-differential privacy" in words[b"guarantee"]
    assert b"measured: whether" in words[b"columns"]


def test_each_measured_table_has_a_sheet_with_totals(survey, tmp_path, monkeypatch):
    book = pd.read_excel(export(survey, tmp_path / "out.xlsx")[0], sheet_name=None)
    assert list(book) == [*PAIRS, "about"]
    sheet = book["sex, place"]
    assert list(sheet.columns) == ["sex", "place", "place_1", "estimate", "low", "high", "measured"]
    assert sheet.iloc[0, :2].tolist() == ["total", "total"]
    assert sheet.iloc[1:3, :2].to_numpy().tolist() == [["F", "total"], ["M", "total"]]
    assert sheet[(sheet.sex != "total") & (sheet.place != "total")].shape[0] == 6
    assert np.allclose(sheet.iloc[6:][["estimate", "low", "high"]].T, rows_of(survey, ("sex", "place")))
    # What has no number, the cell of everything else, is no total.
    assert book["pay, sex"].pay.tolist().count("total") == 3
    monkeypatch.setattr(exporting, "_SHEET", 35)
    with pytest.raises(OutputError, match="of age, pay would have 35; export it"):
        export(survey, tmp_path / "out.xlsx")


def test_guesses_are_written_when_asked_for_and_say_so(survey, tmp_path):
    frame = pd.read_csv(export(survey, tmp_path / "out.csv", guesses=True)[0])
    guesses = frame[~frame.measured]
    assert guesses.table.unique().tolist() == ["age, pay, sex, place"]
    assert np.allclose(guesses.estimate, survey.counts.reshape(-1))
    cells = survey.answer(dphist.Workload.cells(SURVEY))
    assert np.allclose(guesses[["low", "high"]].T, [cells.low, cells.high])
    book = pd.read_excel(export(survey, tmp_path / "out.xlsx", guesses=True)[0], sheet_name=None)
    assert list(book) == [*PAIRS, "guesses", "about"]
    assert not book["guesses"].measured.any()


def test_of_tables_that_were_not_measured_there_may_be_no_guess(tmp_path):
    names = [f"q{i}" for i in range(40)]
    domain = dphist.Domain([dphist.Nominal(name, list("abc")) for name in names])
    answers = pd.DataFrame({name: list("abc") * 200 for name in names})
    release = dphist.publish(answers, domain, epsilon=1, mechanism="residuals", workload="marginals:q0,q1;q2")
    assert release.cells.form == "tables"
    frame = pd.read_csv(export(release, tmp_path / "out.csv")[0])
    assert list(frame.table.unique()) == ["total", "q0", "q1", "q2", "q0, q1"]
    assert np.allclose(
        frame[frame.table == "q0, q1"].estimate, release.project("q0", "q1").counts.reshape(-1)
    )
    book = pd.read_excel(export(release, tmp_path / "out.xlsx")[0], sheet_name=None)
    assert list(book) == ["q2", "q0, q1", "about"]


def test_sums_of_tables_are_those_of_their_cells(tmp_path):
    frame = pd.DataFrame(
        {"age": [30, 35] * 400, "sex": ["F", "M"] * 400, "place": ["a", "c"] * 400, "cost": 3}
    )
    domain = dphist.Domain([SURVEY.attribute(name) for name in ("age", "sex", "place")])
    release = dphist.publish(
        frame,
        domain,
        epsilon=5,
        workload="marginals:1",
        mechanism="marginals",
        measures=[dphist.Measure("cost", 0, 10)],
    )
    rows = pd.read_csv(export(release, tmp_path / "out.csv")[0]).set_index("table")
    assert list(rows.index.unique()) == ["total", "age", "sex", "place"]
    for name in ("age", "sex", "place"):
        whole = release.to_pandas().groupby(name, sort=False).sum_cost.sum()
        assert np.allclose(rows.loc[name].sum_cost, whole)


def test_a_sheet_that_cannot_be_is_refused_before_anything_is_asked(survey, tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "_content", None)
    monkeypatch.setattr(exporting, "_SHEET", 100)
    with pytest.raises(OutputError, match=r"the one of guesses would have 144; .* without guesses"):
        export(survey, tmp_path / "out.xlsx", guesses=True)


def test_no_table_is_lost_to_another_of_the_same_name(tmp_path):
    names = ["a", "b, c", "a, b", "c"]
    domain = dphist.Domain([dphist.Nominal(name, ["u", "v"]) for name in names])
    people = dphist.Histogram(domain, np.full((2,) * 4, 50))
    release = dphist.publish(
        people, epsilon=1, mechanism=dphist.mechanisms.Marginals(tables=((0, 1), (2, 3)))
    )
    book = pd.read_excel(export(release, tmp_path / "out.xlsx")[0], sheet_name=None)
    assert list(book) == ["a, b, c", "a, b, c 2", "about"]
    assert [list(sheet.columns[:2]) for sheet in list(book.values())[:2]] == [["a", "b, c"], ["a, b", "c"]]


def test_sheets_have_names_that_spreadsheets_take(tmp_path):
    names = ["a very long question: how often?", "a very long question: how often*", "x/y", "about"]
    domain = dphist.Domain([dphist.Nominal(name, ["u", "v"]) for name in names])
    people = dphist.Histogram(domain, np.full((2,) * 4, 50))
    release = dphist.publish(people, epsilon=1, workload="marginals:1", mechanism="marginals")
    book = pd.read_excel(export(release, tmp_path / "out.xlsx")[0], sheet_name=None)
    assert len(book) == 5
    assert list(book)[2:] == ["x_y", "about 2", "about"]
