"""A release for whoever has no Python: tables that spreadsheets open, and what they mean beside them."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import InputError, OutputError
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


def test_a_spreadsheet_explains_itself(release, tmp_path):
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
    with pytest.raises(OutputError, match=r"\.csv"):
        export(release, tmp_path / "large.xlsx", largest=30)
    assert not (tmp_path / "large.xlsx").exists()


def test_what_was_not_measured_has_bounds(tmp_path):
    domain = dphist.Domain([dphist.Ordinal("x", range(4)), dphist.Nominal("y", ["a", "b"])])
    release = dphist.publish(
        dphist.Histogram(domain, np.full((4, 2), 7)), epsilon=1, mechanism="marginals",
        workload=dphist.Workload.marginals(domain, [["x"], ["y"]]),
    )  # fmt: skip
    for name in ("out.csv", "out.xlsx"):
        path = export(release, tmp_path / name)[0]
        frame = pd.read_csv(path) if name.endswith("csv") else pd.read_excel(path)
        assert (frame["low"] <= frame["estimate"]).all()
        assert (frame["estimate"] <= frame["high"]).all()


def test_the_command(release, tmp_path):
    release.save(tmp_path / "out.parquet")
    run = CliRunner()
    done = run.invoke(app, ["export", str(tmp_path / "out.parquet"), str(tmp_path / "table.csv")])
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
