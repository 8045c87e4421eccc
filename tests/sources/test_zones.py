"""A time with an offset is one moment in every source, in the day that the attribute's zone had then by Python."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from dphist import Domain, Histogram, Nominal, Ordinal, Unit, load, publish, rehearse
from dphist.cli.showing import describe
from dphist.errors import DomainError, QueryError
from dphist.model.domain.scales import Dates
from dphist.model.domain.zones import turns
from dphist.sources.count import count

UTC = dt.UTC
# Turned at a minute past midnight, by a whole day, by seconds, by half an hour, and never.
ZONES = [
    ("UTC", "2013-01-01", "2013-02-01"),
    ("America/New_York", "2013-01-01", "2013-12-31"),
    ("America/St_Johns", "1990-01-01", "1991-01-01"),
    ("Pacific/Apia", "2011-12-01", "2012-01-15"),
    ("Africa/Monrovia", "1971-12-01", "1972-02-01"),
    ("Asia/Kathmandu", "2013-01-01", "2013-01-15"),
]


def moments(zone: str, first: str, last: str) -> list[dt.datetime]:
    """Many moments of these days and around, those at which clocks turned and midnights among them."""
    begin, end = (dt.datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, last))
    rng = np.random.default_rng(47)
    span = int((end - begin).total_seconds())
    found = [begin + dt.timedelta(seconds=int(at)) for at in rng.integers(-200_000, span + 200_000, 400)]
    turned = [at.replace(tzinfo=UTC) for at, _ in turns(zone, begin.date(), end.date())]
    days = [begin.date() + dt.timedelta(days=day) for day in range(0, (end - begin).days + 1, 3)]
    turned += [dt.datetime.combine(day, dt.time(), ZoneInfo(zone)).astimezone(UTC) for day in days]
    for at in turned:
        found += [at, at - dt.timedelta(microseconds=1), at + dt.timedelta(microseconds=999_999)]
    return found


def offsets(found: list[dt.datetime]) -> list[str]:
    """The same moments as texts, each with an offset of its own."""
    hours = [dt.timezone(dt.timedelta(minutes=minutes)) for minutes in (0, -300, 345, 840)]
    return [at.astimezone(hours[place % 4]).isoformat(" T"[place % 2]) for place, at in enumerate(found)]


def sources(found: list[dt.datetime], folder: Path) -> dict[str, Any]:
    texts = offsets(found)
    table = pa.table({"t": pa.array(found, pa.timestamp("us", "Asia/Tokyo"))})
    (folder / "t.csv").write_text("t\n" + "\n".join(texts) + "\n")
    (folder / "t.jsonl").write_text("".join(json.dumps({"t": text}) + "\n" for text in texts))
    pq.write_table(table, folder / "t.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("found", table)
        connection.execute("SET TimeZone = 'America/Los_Angeles'; CREATE TABLE t AS SELECT t FROM found")
    # Somebody's connection may live anywhere.
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Pacific/Kiritimati'")
    elsewhere = ibis.duckdb.from_connection(connection)
    frame = table.to_pandas()
    mixed = frame.astype(object)
    mixed.loc[len(mixed), "t"] = "nothing"
    return {
        "csv": folder / "t.csv",
        "json": folder / "t.jsonl",
        "parquet": folder / "t.parquet",
        "duckdb": f"{folder / 't.duckdb'}::t",
        "pandas": frame,
        "objects": mixed,
        "texts": pd.DataFrame({"t": texts}, dtype=object),
        "polars": pl.from_arrow(table),
        "pyarrow": table,
        "nanoseconds": table.cast(pa.schema([("t", pa.timestamp("ns", "UTC"))])),
        "dataset": pyarrow.dataset.dataset(folder / "t.parquet"),
        "ibis": elsewhere.create_table("t", table),
    }


@pytest.mark.parametrize(("zone", "first", "last"), ZONES, ids=[zone for zone, *_ in ZONES])
@pytest.mark.parametrize("step", ["1d", "1mo"])
def test_every_source_counts_a_moment_in_the_day_that_pythons_calendar_has(
    zone: str, first: str, last: str, step: str, tmp_path: Path
) -> None:
    found = moments(zone, first, last)
    attribute = Ordinal("t", dates=(first, last, step), zone=zone)
    assert isinstance(attribute.scale, Dates)
    expected = np.zeros(attribute.size, dtype=np.int64)
    for at in found:
        day = at.astimezone(ZoneInfo(zone)).date()
        if attribute.scale.start <= day < attribute.scale.stop:
            expected[attribute.index(day)] += 1
    assert 0 < expected.sum() < len(found)
    for name, source in sources(found, tmp_path).items():
        assert count(source, Domain([attribute])).counts.tolist() == expected.tolist(), name
    # The same rule where values are handed over one by one.
    assert [attribute.scale.find(at) for at in found] == list(attribute.cells(found))
    assert (
        np.bincount([cell for cell in attribute.cells(found) if cell >= 0]).tolist()
        == np.trim_zeros(expected, "b").tolist()
    )


def test_which_rows_of_a_person_are_kept_is_the_same_in_every_source(tmp_path: Path) -> None:
    found = moments("America/New_York", "2013-01-01", "2013-03-31")
    domain = Domain([Ordinal("t", dates=("2013-01-01", "2013-04-01"), zone="America/New_York")])
    people = [place % 37 for place in range(len(found))]
    table = pa.table({"t": pa.array(found, pa.timestamp("us", "UTC")), "who": people})
    lines = (f"{text},{who}\n" for text, who in zip(offsets(found), people, strict=True))
    (tmp_path / "t.csv").write_text("t,who\n" + "".join(lines))
    unit = Unit(rows=3, id="who")
    kept = count(table, domain, unit)
    assert kept.counts.sum() == 3 * 37
    assert (
        count(tmp_path / "t.csv", domain, unit)
        == kept
        == count(table.to_pandas().astype(object), domain, unit)
    )


def test_texts_with_offsets_are_read_however_they_are_written(tmp_path: Path) -> None:
    lines = {
        "2013-01-01T22:00:00-05:00": 1, "2013-01-01 22:00:00-05": 1, "2013-01-01T22:00-0500": 1,
        "2013-01-01 22:00:00.123456789 -05:00": 1, "2013-01-01T22:00:00Z": 0, "2013-01-01 22:00:00 UTC": 0,
        "2013-01-01T22:00z": 0, "2013-01-02": 1, "2013-01-02 00:00": 1, "2013-01-01 23:59:59.999": 0,
        "2013-01-02T01:00:00+05:30": 0, " 2013-01-01 22:00:00-05 ": 1,
        # What no calendar or zone has is no date, and takes nothing else with it.
        "infinity": None, "2013-01-01 22:00:00 America/New_York": None, "2013-01-01 22:00:00-99:99": None,
        "294246-12-31 23:59:59-12:00": None, "290000-01-01 (BC) 00:00:00+14": None, "": None, "-": None,
    }  # fmt: skip
    for text, day in lines.items():
        (tmp_path / "t.csv").write_text(f"t,x\n{text},\n2013-01-05,\n")
        expected = [0, 0, 0, 0, 1]
        if day is not None:
            expected[day] += 1
        domain = Domain([Ordinal("t", dates=("2013-01-01", "2013-01-06"))])
        assert count(tmp_path / "t.csv", domain).counts.tolist() == expected, text


def test_what_has_no_offset_lies_in_the_day_that_it_says() -> None:
    clock = pa.array([dt.datetime(2013, 1, 1, 23, 59), dt.datetime(2013, 1, 2)], pa.timestamp("us"))
    domain = Domain([Ordinal("t", dates=("2013-01-01", "2013-01-03"), zone="Asia/Tokyo")])
    for column in (clock, clock.cast(pa.date32(), safe=False), pa.array([None, None])):
        expected = [0, 0] if column.null_count else [1, 1]
        assert count(pa.table({"t": column}), domain).counts.tolist() == expected
    texts = pd.DataFrame({"t": ["2013-01-01", "2013-01-02 23:59"]}, dtype=object)
    assert count(texts, domain).counts.tolist() == [1, 1]


def test_a_question_is_converted_by_the_zone() -> None:
    day = Ordinal("t", dates=("2013-01-01", "2013-01-05"), zone="America/New_York")
    late = dt.datetime(2013, 1, 3, 3, tzinfo=UTC)
    elsewhere = pd.Timestamp(late).tz_convert("Asia/Tokyo")
    for value in (late, pd.Timestamp(late), elsewhere, late.isoformat(), "2013-01-03T03:00:00Z"):
        assert day.index(value) == 1
        assert day.span(value, value) == (1, 2)
    assert Ordinal("t", dates=("2013-01-01", "2013-01-05")).index(late) == 2
    assert day.index(dt.datetime(2013, 1, 3, 3)) == day.index("2013-01-03T03:00:00") == 2
    with pytest.raises(QueryError, match="the release has no such value"):
        day.index("2013-01-01T01:00:00Z")
    assert Histogram(Domain([day]), np.arange(4)).domain.attributes[0].cells([late, pd.NaT]).tolist() == [
        1,
        -1,
    ]


def test_a_zone_is_written_down_and_read() -> None:
    day = Ordinal("t", dates=("2013-01-01", "2014-01-01", "1mo"), zone="Europe/Berlin", other=True)
    plain = Ordinal("t", dates=("2013-01-01", "2014-01-01", "1mo"), other=True)
    domain = Domain([day, Nominal("x", ["a"])])
    assert Domain.from_json(domain.to_json()) == domain != Domain([plain, Nominal("x", ["a"])])
    assert Domain.from_toml(domain.to_toml()) == domain
    assert 'zone = "Europe/Berlin"' in domain.to_toml()
    assert "zone" not in Domain([plain]).to_toml()
    assert eval(repr(day)) == day  # noqa: S307
    assert isinstance(day.scale, Dates)
    assert isinstance(plain.scale, Dates)
    assert (day.scale.zone, plain.scale.zone) == ("Europe/Berlin", "UTC")


@pytest.mark.parametrize(
    "zone",
    ["Europe", "localtime", "right/Europe/Berlin", "../etc/passwd", "Nowhere/City", "europe/berlin", "", 5],
)
def test_a_zone_that_is_none_is_refused_by_name(zone: Any) -> None:
    with pytest.raises(DomainError, match=r"t: zone: .*Europe/Berlin"):
        Ordinal("t", dates=("2013-01-01", "2014-01-01"), zone=zone)


def test_only_dates_have_a_zone() -> None:
    with pytest.raises(DomainError, match="zone: dates alone"):
        Ordinal("t", range(5), zone="UTC")
    with pytest.raises(DomainError, match="zone"):
        Domain.from_toml('[[attribute]]\nname = "t"\nkind = "ordinal"\nrange = [0, 5]\nzone = "UTC"\n')


def test_rehearsals_and_show_say_whose_days_are_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t\n2013-01-01T22:00:00-05:00\n2013-01-02\n2013-01-02T01:00Z\n")
    zoned = pa.table({"t": pa.array([dt.datetime(2013, 1, 2), None], pa.timestamp("us", "Asia/Tokyo"))})
    for zone in ("UTC", "America/New_York"):
        domain = Domain([Ordinal("t", dates=("2013-01-01", "2013-01-05"), zone=zone)])
        told = rehearse(tmp_path / "t.csv", domain)
        assert (told.attributes[0].zoned, told.attributes[0].zone) == (2, zone)
        assert f"2 rows with an offset from UTC, by the day in {zone}" in str(told)
        assert rehearse(zoned, domain).attributes[0].zoned == 1
        release = publish(Histogram(domain, np.full(4, 50)), epsilon=1)
        assert describe(release)["days"] == f"t in {zone}, of times that have an offset"
        release.save(tmp_path / "t.dph")
        assert load(tmp_path / "t.dph").domain == domain
    assert "offset" not in str(
        rehearse(pa.table({"t": ["2013-01-01"]}).cast(pa.schema([("t", pa.date32())])), domain)
    )
