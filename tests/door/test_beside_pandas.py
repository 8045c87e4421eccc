"""Releases with hardly any noise beside pandas: every source, kind of attribute, zone and way out says the same.

The noise of an ε of 10⁷ rounds away, so whatever differs is an answer that is wrong. What was not measured says so, or
has an interval that holds what pandas says.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dphist import Domain, Histogram, Measure, Nominal, Ordinal, Release, Unit, load, publish, rehearse
from dphist.cli.commands import app
from dphist.errors import CustodyWarning, DroppedRows, InputError, QueryError
from dphist.sources.count import count
from dphist.uses import ReleaseID3, export
from textbook import picked

EPSILON = 10**7
ZONES = ["UTC", "America/New_York", "Asia/Kathmandu"]
SOURCES = ["csv", "json", "parquet", "duckdb", "pandas", "polars", "arrow"]
EDGES = [each / 10 for each in range(11)]
DAYS = pd.date_range("2013-01-01", "2013-01-06")
ROWS = 600
AXES: dict[str, list[Any]] = {
    "sex": ["F", "M", "other"],
    "place": ["a", "b", "c"],
    "self": [0, 1, 2],
    "share": list(range(10)),
    "at": list(DAYS),
}


def frame() -> pd.DataFrame:
    """Records with a value of every kind, some missing, some that no cell is for, some on edges and midnights."""
    rng = np.random.default_rng(18)
    hours = pd.to_datetime("2013-01-01T00:00Z") + pd.to_timedelta(rng.integers(-10, 150, ROWS), unit="h")
    found = pd.DataFrame(
        {
            "who": [f"p{each}" for each in rng.integers(0, 250, ROWS)],
            "sex": rng.choice(
                np.array(["F", "M", "x", None], dtype=object), ROWS, p=[0.45, 0.45, 0.05, 0.05]
            ),
            "place": rng.choice(["a", "b", "c"], ROWS),
            # An attribute may be called like the first argument of a method.
            "self": rng.choice([0.0, 1.0, 2.0, np.nan], ROWS),
            "share": rng.choice([*EDGES, 0.25, 0.999, np.nan], ROWS),
            "at": hours,
            "hours": np.round(rng.random(ROWS) * 6, 2),
        }
    )
    found.loc[rng.random(ROWS) < 0.03, "at"] = pd.NaT
    return found


def source(kind: str, records: pd.DataFrame, folder: Path) -> Any:
    """The same records in a file, a database or a table; in text with offsets of their own."""
    table = pa.Table.from_pandas(records, preserve_index=False)
    path = folder / f"records.{kind}"
    if kind in ("csv", "json"):
        offsets = ["UTC", "America/New_York", "Asia/Tokyo"]
        texts = records.assign(
            at=[
                None if pd.isna(at) else at.tz_convert(offsets[row % 3]).isoformat()
                for row, at in enumerate(records["at"])
            ]
        )
        if kind == "csv":
            texts.to_csv(path, index=False)
        else:
            texts.to_json(path, orient="records", lines=True, date_format="iso")
        return path
    if kind == "parquet":
        pq.write_table(table, path)
        return path
    if kind == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE t AS SELECT * FROM given")
        return f"{path}::t"
    return {"pandas": records, "polars": pl.from_arrow(table), "arrow": table}[kind]


def domain(zone: str) -> Domain:
    return Domain(
        [
            Nominal("sex", ["F", "M"], other=True),
            Nominal("place", {"north": ["a", "b"], "south": ["c"]}),
            Ordinal("self", range(3)),
            Ordinal("share", edges=EDGES),
            Ordinal("at", dates=("2013-01-01", "2013-01-07"), zone=zone),
        ]
    )


def distinct_text(records: pd.DataFrame, zone: str) -> pd.DataFrame:
    """By pandas: the labels of the cell of every row that has one."""
    share, day = records["share"], records["at"].dt.tz_convert(zone).dt.tz_localize(None).dt.normalize()
    # The last bin is closed.
    bins = np.minimum(np.searchsorted(EDGES, share.fillna(-1), side="right") - 1, 9)
    found = pd.DataFrame(
        {
            "sex": records["sex"].where(records["sex"].isin(["F", "M"]), "other"),
            "place": records["place"],
            "self": records["self"],
            "share": bins,
            "at": day,
            "who": records["who"],
            "north": records["place"] != "c",
            "hours": records["hours"],
            "exactly": share,
        }
    )
    return found[records["self"].notna() & share.notna() & day.isin(DAYS)]


def cube(rows: pd.DataFrame) -> np.ndarray:
    counts = np.zeros((3, 3, 3, 10, 6), dtype=int)
    for *labels, n in rows.groupby(list(AXES)).size().reset_index().itertuples(False):
        counts[tuple(axis.index(label) for axis, label in zip(AXES.values(), labels, strict=True))] = n
    return counts


def asked(rows: pd.DataFrame, zone: str) -> list[tuple[Any, str, pd.Series]]:
    """Questions as Python and as the command line put them, and the rows that they are about."""
    noon = pd.Timestamp("2013-01-03T12:00", tz=zone)
    return [
        ({}, "", rows["sex"].notna()),
        ({"sex": "F"}, "sex = 'F'", rows["sex"] == "F"),
        ({"sex": ["M", "other"]}, "sex in ('M', 'other')", rows["sex"] != "F"),
        ({"place": "north"}, "place = 'north'", rows["north"]),
        ({"self": (1, 2)}, "self between 1 and 2", rows["self"] >= 1),
        ({"self": [0, 2]}, "self in (0, 2)", rows["self"] != 1),
        ({"share": "[0.3, 0.4)"}, "share >= 0.3 and share < 0.4", rows["share"] == 3),
        ({"at": (DAYS[1], DAYS[2])}, "at between 2013-01-02 and 2013-01-03", rows["at"].isin(DAYS[1:3])),
        # A moment is asked about in whatever zone it has.
        ({"at": noon.tz_convert("Asia/Tokyo")}, "at = 2013-01-03", rows["at"] == DAYS[2]),
        (
            {"at": (noon.tz_convert("UTC"), noon + pd.Timedelta(days=2)), "sex": "M", "self": 1},
            "at between 2013-01-03 and 2013-01-05 and sex = 'M' and self = 1",
            rows["at"].isin(DAYS[2:5]) & (rows["sex"] == "M") & (rows["self"] == 1),
        ),
    ]


def check_answers(release: Release, rows: pd.DataFrame, zone: str) -> None:
    for where, text, about in asked(rows, zone):
        for answer in (release.answer(where=where), release.query(text)):
            assert round(answer.value, 3) == about.sum(), (where, text)
            assert answer.low - 1e-3 <= about.sum() <= answer.high + 1e-3
            assert answer.measured
        inside = rows[about]
        if where.get("self") != [0, 2]:
            # Means of two ranges at once are refused.
            assert math.isclose(release.mean("self", where=where).value, inside["self"].mean(), abs_tol=1e-3)
            assert math.isclose(release.sum("self", where=where).value, inside["self"].sum(), abs_tol=1e-2)
        if "share" not in where:
            # What lies where in a bin nobody said: an interval, which holds.
            mean = release.mean("share", where=where)
            assert mean.low <= inside["exactly"].mean() <= mean.high
            quarters = release.quantiles("share", [0.25, 0.5, 0.75], where=where)
            truth = np.quantile(inside["exactly"], [0.25, 0.5, 0.75], method="inverted_cdf")
            assert (quarters.low - 1e-9 <= truth).all()
            assert (truth <= quarters.high + 1e-9).all()


def totals(table: pd.DataFrame, names: list[str], value: str) -> dict[tuple[str, ...], float]:
    """Groups by their labels as text, and what they add up to; those of nobody are left out."""
    labels = [
        pd.to_datetime(table[name]).dt.strftime("%Y-%m-%d")
        if name == "at"
        else table[name].astype(str).str[:1]
        for name in names
    ]
    found = table[value].groupby([each.rename(name) for each, name in zip(labels, names, strict=True)]).sum()
    return {label: round(n, 3) for label, n in found.items() if round(n, 3)}


def check_tables(release: Release, rows: pd.DataFrame, path: Path) -> None:
    """Groups, SQL, the file and what is exported of it hold the same tables as pandas."""
    release.save(path)
    spreadsheet, _ = export(load(path), path.with_suffix(".csv"))
    sheet, cells = pd.read_csv(spreadsheet), pd.read_parquet(path)
    for names in (["sex"], ["place", "self"], ["at"], ["sex", "at"]):
        truth = totals(rows.assign(one=1), names, "one")
        listed = ", ".join(f'"{name}"' for name in names)
        sql = release.sql(f"select {listed}, sum(estimate) as estimate from release group by all")
        for each in (pd.DataFrame(sql.records()), sheet, cells):
            assert totals(each, names, "estimate") == truth
        assert totals(release.by(*names).count().to_pandas(), names, "value") == truth
    bins = release.by("share").count()
    assert (
        bins.value.round(3).tolist() == rows.groupby("share").size().reindex(range(10), fill_value=0).tolist()
    )
    within = release.by("sex", "place").mean("self").to_pandas().set_index(["sex", "place"])["value"]
    truth = rows.groupby(["sex", "place"])["self"].mean()
    assert np.allclose(within.to_numpy(), truth.to_numpy(), atol=1e-3)


def asked_on_the_command_line(path: Path, questions: list[str]) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["query", str(path), *questions, "--json"], catch_exceptions=False)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


# Every source, each zone twice at least; texts with offsets of their own in all of them.
@pytest.mark.parametrize(
    ("kind", "zone"),
    [*((kind, ZONES[place % 3]) for place, kind in enumerate(SOURCES)), ("csv", ZONES[1]), ("csv", ZONES[2])],
)
@pytest.mark.usefixtures("no_forecasts")
def test_every_source_and_way_out_says_what_pandas_says(kind: str, zone: str, tmp_path: Path) -> None:
    records = frame()
    given = source(kind, records, tmp_path)
    rows = distinct_text(records, zone)
    with pytest.raises(DroppedRows):
        publish(given, domain(zone), EPSILON, "laplace", allow_dropped=1 - len(rows) / ROWS)
    release = publish(given, domain(zone), EPSILON, "laplace", allow_dropped=1)
    assert np.array_equal(release.counts.round(3), cube(rows))
    check_answers(release, rows, zone)
    check_tables(release, rows, tmp_path / "release.parquet")
    told = rehearse(given, domain(zone))
    others = (rows["sex"] == "other").sum()
    assert (told.rows, told.dropped, told.elsewhere) == (ROWS, ROWS - len(rows), others)
    assert f"{records['at'].notna().sum()} rows with an offset from UTC, by the day in {zone}" in str(told)
    # Which rows of a person are kept hangs on their cells, and so on the zone, and on nothing else.
    rows["cell"] = np.ravel_multi_index(
        [rows[name].map(dict(zip(each, range(99), strict=False))) for name, each in AXES.items()],
        release.counts.shape,
    )
    unit = Unit(rows=2, id="who")
    cells = [
        cell
        for who, each in rows.groupby("who")
        for cell in picked(str(who), each["cell"].tolist(), unit.rows)
    ]
    counted = np.bincount(cells, minlength=release.counts.size)
    assert np.array_equal(count(given, domain(zone), unit).counts.reshape(-1), counted)


def test_the_command_line_says_what_pandas_says(tmp_path: Path) -> None:
    zone, path = ZONES[1], tmp_path / "release.parquet"
    rows = distinct_text(frame(), zone)
    publish(frame(), domain(zone), EPSILON, "laplace", allow_dropped=1).save(path)
    questions = asked(rows, zone)
    answers = asked_on_the_command_line(path, [text for _, text, _ in questions])
    assert [round(each["value"], 3) for each in answers] == [about.sum() for _, _, about in questions]


@pytest.mark.parametrize("mechanism", ["laplace", "residuals", "marginals", "auto"])
def test_sums_and_means_are_those_of_pandas_or_no_numbers(mechanism: str, tmp_path: Path) -> None:
    records, hours = frame(), Measure("hours", low=0, high=6, step="0.01")
    names = ["sex", "place", "self"]
    rows = distinct_text(records.assign(at=DAYS[0].tz_localize("UTC"), share=0.5), "UTC")
    release = publish(
        records, Domain(domain("UTC").attributes[:3]), EPSILON, mechanism, workload="marginals:1", measures=[hours],
        allow_dropped=1,
    )  # fmt: skip
    for by in (["sex"], ["place"], ["self"], ["sex", "place"], names):
        groups = rows.groupby(by)["hours"]
        for table, truth, most in (
            (release.by(*by).mean("hours"), groups.mean(), 0.01),
            (release.by(*by).sum("hours"), groups.sum(), 0.1),
            (release.by(*by).count(), groups.size(), 0.1),
        ):
            close = np.abs(table.value - truth.to_numpy()) < most
            if len(by) == 1 or mechanism == "laplace":
                assert close.all()
            # Who guesses says so, and what has no number has none.
            assert (close | ~table.to_pandas()["measured"].to_numpy(dtype=bool)).all()
            assert not (table.low > truth.to_numpy() + most).any()
            assert not (table.high < truth.to_numpy() - most).any()
    release.save(tmp_path / "release.parquet")
    found = asked_on_the_command_line(
        tmp_path / "release.parquet",
        ["mean hours where sex = 'F'", "mean hours where sex = 'F' and place = 'a'"],
    )
    inside = rows[(rows["sex"] == "F")]
    assert math.isclose(found[0]["value"], inside["hours"].mean(), abs_tol=0.01)
    if mechanism == "laplace":
        assert math.isclose(found[1]["value"], inside["hours"][inside["place"] == "a"].mean(), abs_tol=0.01)
    else:
        assert (found[1]["value"], found[1]["low"], found[1]["measured"]) == (None, None, False)


def test_what_pandas_puts_in_another_order_or_type_is_not_mistaken(tmp_path: Path) -> None:
    records = frame()
    few = Domain(domain("UTC").attributes[:3])
    for counts in (records["place"].value_counts(), pd.crosstab(records["place"], records["self"])):
        labelled = Domain(domain("UTC").attributes[1 : 1 + counts.ndim])
        with pytest.raises(InputError, match="labels"):
            Histogram(labelled, counts)
    release = publish(records, few, EPSILON, "laplace", allow_dropped=1)
    with pytest.raises(QueryError, match="list of categories"):
        release.answer(where={"sex": ("F", "M")})
    whole = records.dropna(subset=["self"])
    foretold = ReleaseID3("self").fit(release).predict(whole)
    assert np.mean(foretold == whole["self"]) > 1 / 3
    assert "(99.5% interval" in str(release.answer(confidence=0.995))
    for name in ("release.csv", "release.xlsx"):
        with pytest.raises(InputError, match="Parquet"):
            release.save(tmp_path / name)


def test_edges_that_adding_up_made_do_not_move_rows_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dphist.reminding._reminded", set())
    with pytest.warns(CustodyWarning, match=r"0\.30000000000000004 is not 0\.3"):
        publish(frame(), Domain([Ordinal("share", edges=np.arange(0, 1.05, 0.1))]), EPSILON, "laplace")
