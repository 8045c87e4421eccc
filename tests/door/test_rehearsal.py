"""A rehearsal tells the custodian and spends nothing; too many rows without a cell stop a release before paying."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import CustodyWarning, DroppedRows, InputError
from dphist.sources import count
from dphist.sources.engine import Tallied
from dphist.sources.unmatched import reason

AGE = dphist.Ordinal("age", range(100))
SEX = dphist.Nominal("sex", ["F", "M"])
DAY = dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo"))
COST = dphist.Ordinal("cost", edges=[0, 1, 10, 100])
PLACE = dphist.Nominal("place", ["Orléans", "Paris"])


def day(i: int) -> str:
    return f"{1 + i % 28:02}/{1 + i % 12:02}/2024"


# What is in the file, what the schema says, the encoding it is written in, and what a rehearsal must name.
MESSY = {
    "d/m/Y dates": (DAY, [day(i) for i in range(200)], "utf-8", "a date written another way"),
    "decimal commas": (COST, [f'"{i % 90},{i % 10}"' for i in range(200)], "utf-8", "a decimal comma"),
    "mixed case": (SEX, ["F", "M", "f", "m"] * 50, "utf-8", "written in other letters"),
    "Latin-1": (PLACE, ["Orléans", "Paris"] * 100, "latin-1", "not UTF-8"),
}


@pytest.mark.parametrize("name", MESSY)
def test_nothing_is_spent_on_a_messy_file_before_the_custodian_has_been_told(name, tmp_path):
    messy: Any = MESSY[name]
    attribute, values, encoding, told = messy
    file, schema, book = tmp_path / "messy.csv", tmp_path / "schema.toml", tmp_path / "budget.db"
    file.write_bytes("\n".join([attribute.name, *values, ""]).encode(encoding))
    schema.write_text(dphist.Domain([attribute]).to_toml())
    with dphist.Ledger.open(book) as ledger:
        ledger.create("people", 1)
    options = ["--schema", str(schema), "--epsilon", "1", "--ledger", str(book), "--dataset", "people"]
    out = tmp_path / "out.parquet"
    stopped = CliRunner().invoke(app, ["publish", str(file), *options, "-o", str(out)])
    assert isinstance(stopped.exception, DroppedRows)
    assert "dphist rehearse" in str(stopped.exception)
    assert not out.exists()
    with dphist.Ledger.open(book) as ledger:
        assert ledger.spent("people") == 0
    shown = CliRunner().invoke(app, ["rehearse", str(file), "--schema", str(schema)])
    assert shown.exit_code == 0
    assert shown.stdout.startswith("PRIVATE")
    assert told in shown.stdout
    with dphist.Ledger.open(book) as ledger:
        assert ledger.spent("people") == 0
    allowed = CliRunner().invoke(
        app, ["publish", str(file), *options, "-o", str(out), "--allow-dropped", "1"]
    )
    assert allowed.exit_code == 0, allowed.exception
    with dphist.Ledger.open(book) as ledger:
        assert ledger.spent("people") == 1


ROWS: dict[str, list[Any]] = {
    "age": [1, 2, 3, 200, 300, None],
    "sex": ["F", "M", "F", "x", "M", "F"],
    "who": [1, 1, 2, 2, 3, None],
}
DOMAIN = dphist.Domain([AGE, SEX])


@pytest.mark.parametrize("form", ["arrow", "csv", "parquet", "jsonl", "duckdb"])
@pytest.mark.parametrize("unit", ["row", "rows=1, id=who"])
@pytest.mark.usefixtures("no_forecasts")
def test_rows_without_a_cell_are_tallied_while_they_are_counted(form, unit, tmp_path):
    import duckdb

    table = pa.table(ROWS)
    source: object = table
    connection = duckdb.connect(str(tmp_path / "x.duckdb"))
    connection.register("given", table)
    if form == "duckdb":
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
        source = f"{tmp_path / 'x.duckdb'}::t"
    elif form != "arrow":
        source = str(tmp_path / f"x.{form}")
        kind = {"csv": "csv, header", "parquet": "parquet", "jsonl": "json"}[form]
        connection.execute(f"COPY given TO '{source}' (FORMAT {kind})")
    connection.close()
    seen = Tallied(source)
    counted = count(seen, DOMAIN, dphist.Unit.parse(unit))
    # Of who has two rows in cells the unit keeps one: the other does not count, either.
    placed = 3 if unit == "row" else 2
    assert (seen.tally.rows, seen.tally.placed, seen.tally.dropped) == (6, placed, 6 - placed)
    assert counted.counts.sum() == placed
    told = dphist.rehearse(source, DOMAIN, unit)
    assert (told.rows, told.dropped, told.beyond) == (6, 6 - placed, 3 - placed)
    assert {each.name: each.missed for each in told.attributes} == {"age": 3, "sex": 1}
    if unit != "row":
        assert (dict(told.people), told.nobody) == ({1: 1, 2: 2}, 1)
    for mechanism in ("laplace", "sparselaplace"):
        with pytest.raises(DroppedRows) as stop:
            dphist.publish(source, DOMAIN, epsilon=1, unit=unit, mechanism=mechanism)
        assert "nothing was spent" in str(stop.value)
        assert not set("2356") & set(str(stop.value).replace("0.5", ""))
        with pytest.raises(DroppedRows):
            # Who wants no reminders wants this one.
            dphist.publish(source, DOMAIN, epsilon=1, unit=unit, mechanism=mechanism, unattended=True)
        dphist.publish(source, DOMAIN, epsilon=1, unit=unit, mechanism=mechanism, allow_dropped=1)
        dphist.publish(source, DOMAIN, epsilon=1, unit=unit, mechanism=mechanism, allow_dropped=0.7)


LOST = {
    "who": [i % 30 for i in range(3000)],
    "sex": ["F", "M"] * 1500,
    "year": [2019 + i % 5 for i in range(3000)],
}


@pytest.mark.parametrize("mechanism", ["laplace", "sparselaplace", "marginals"])
@pytest.mark.parametrize(
    "unit", ["id=who", "rows=10, id=who", "rows=50, id=year", "cells=2, per_cell=20, id=who"]
)
@pytest.mark.usefixtures("no_forecasts")
def test_rows_lost_to_the_unit_count_as_dropped(unit, mechanism, tmp_path):
    """Publishing had been silent about them: one row a person, 10 of 100, or 25 of all by a mistaken id."""
    table = pa.table(LOST)
    domain = dphist.Domain([SEX, dphist.Ordinal("who", range(30))])
    unit = dphist.Unit.parse(unit)
    kept = int(count(table, domain, unit).counts.sum())
    told = dphist.rehearse(table, domain, unit)
    assert (told.rows, told.dropped, told.beyond) == (3000, 3000 - kept, 3000 - kept)
    assert "publish stops before it pays, unless it is told --allow-dropped" in str(told)
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 1)
        paid: dict[str, Any] = {"unit": unit, "mechanism": mechanism, "ledger": ledger, "dataset": "people"}
        with pytest.raises(DroppedRows, match=f"beyond the {unit.rows} that count of one {unit.id}") as stop:
            dphist.publish(table, domain, 1, **paid)
        assert str(3000 - kept) not in str(stop.value)
        assert ledger.spent("people") == 0
        dphist.publish(table, domain, 1, **paid, allow_dropped=0.99)


@pytest.mark.parametrize("mechanism", ["laplace", "sparselaplace", "marginals"])
@pytest.mark.parametrize("unit", ["row", "rows=3, id=who"])
@pytest.mark.parametrize("room", [0, 1 << 29], ids=["streamed", "held"])
@pytest.mark.usefixtures("no_forecasts")
def test_a_cell_for_everything_else_does_not_silence_the_stop(unit, mechanism, room, tmp_path, monkeypatch):
    """Of 52 rows written in other letters 52 went there, and were published without a word."""
    from dphist.sources import coded

    monkeypatch.setattr(coded, "_KEPT", room)
    rows = {
        "sex": ["f", "m"] * 20 + ["F", "M"] * 6,
        "age": [1] * 20 + [500] * 28 + [2] * 4,
        "who": list(range(52)),
    }
    domain = dphist.Domain(
        [dphist.Nominal("sex", ["F", "M"], other=True), dphist.Ordinal("age", range(100), other=True)]
    )
    told = dphist.rehearse(pa.table(rows), domain, unit)
    assert (told.rows, told.dropped, told.elsewhere) == (52, 0, 48)
    assert "48 rows counted only as everything else" in str(told)
    assert "publish stops before it pays, unless it is told --allow-dropped 0.93" in str(told)
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 1)
        paid: dict[str, Any] = {"unit": unit, "mechanism": mechanism, "ledger": ledger, "dataset": "people"}
        with pytest.raises(
            DroppedRows, match=r"or count only as everything else \(other = true\); nothing was"
        ):
            dphist.publish(pa.table(rows), domain, 1, **paid)
        assert ledger.spent("people") == 0
        dphist.publish(pa.table(rows), domain, 1, **paid, allow_dropped=0.93)


def test_keys_beside_a_cell_for_everything_else_are_stopped_as_well():
    rows = pa.table({"sex": ["f", "m"] * 100, "page": ["home"] * 200})
    domain = dphist.Domain(
        [dphist.Nominal("sex", ["F", "M"], other=True), dphist.Nominal("page", discover=True)]
    )
    with pytest.raises(DroppedRows, match="everything else"):
        dphist.publish(rows, domain, 1, delta="1e-6")
    assert dphist.publish(rows, domain, 1, delta="1e-6", allow_dropped=1).counts.shape == (3, 1)


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb", "frame"])
@pytest.mark.usefixtures("no_forecasts")
def test_a_source_without_rows_is_not_published(kind, tmp_path):
    """A file of a first line alone had been published, and paid for."""
    import duckdb
    import pyarrow.parquet as pq

    empty = pa.table({"age": pa.array([], pa.int64()), "sex": pa.array([], pa.string())})
    source: Any = empty
    if kind == "duckdb":
        with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
            connection.execute("CREATE TABLE t (age BIGINT, sex VARCHAR)")
        source = f"{tmp_path / 'x.duckdb'}::t"
    elif kind != "frame":
        source = tmp_path / f"x.{kind}"
        source.write_text("age,sex\n")
    if kind == "parquet":
        pq.write_table(empty, source)
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 3)
        for mechanism in ("laplace", "sparselaplace", "marginals"):
            paid: dict[str, Any] = {"mechanism": mechanism, "ledger": ledger, "dataset": "people"}
            with pytest.raises(DroppedRows, match="source: there are no rows in it; nothing was spent"):
                dphist.publish(source, DOMAIN, 1, **paid, unattended=True)
        assert ledger.spent("people") == 0
        dphist.publish(source, DOMAIN, 1, ledger=ledger, dataset="people", allow_dropped=1)
    assert "publish stops before it pays" in str(dphist.rehearse(source, DOMAIN))


@pytest.mark.usefixtures("no_forecasts")
def test_a_rehearsal_adds_up_all_rows_of_people_who_have_very_many():
    """People with more than 1,000 rows had been taken for people with 1,000."""
    table = pa.table({"who": [1] * 2500 + [2] * 1200 + [3] * 4, "sex": ["F", "M"] * 1852})
    told = dphist.rehearse(table, dphist.Domain([SEX]), "rows=10, id=who")
    assert (told.rows, told.dropped, told.beyond) == (3704, 3704 - 24, 3704 - 24)
    assert dict(told.people) == {4: 1, 1200: 1, 2500: 1}
    assert "one has 2,500\n" in str(told)
    assert "with more than the 10 that are counted: 2; rows left out for it: 3,680" in str(told)


@pytest.mark.parametrize("unit", ["row", "rows=1, id=who"])
@pytest.mark.parametrize("room", [0, 1 << 29], ids=["streamed", "held"])
def test_tables_of_few_attributes_tell_as_well(unit, room, monkeypatch, tmp_path):
    from dphist.sources import coded

    monkeypatch.setattr(coded, "_KEPT", room)
    # One more, who has a cell and no name, and another row of somebody in cells.
    rows = {"age": [*ROWS["age"], 5, 6], "sex": [*ROWS["sex"], "F", "F"], "who": [*ROWS["who"], None, 2]}
    lines = ["age,sex,who", *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True)), ""]
    (tmp_path / "x.csv").write_text("\n".join(lines).replace("None", ""))
    for source in (pa.table(rows), str(tmp_path / "x.csv")):
        seen = Tallied(source)
        coded.coded(seen, DOMAIN, dphist.Unit.parse(unit))
        assert (seen.tally.rows, seen.tally.placed) == (8, 5 if unit == "row" else 2)
        with pytest.raises(DroppedRows):
            dphist.publish(source, DOMAIN, epsilon=1, unit=unit, mechanism="mixture")


def test_a_stop_says_that_what_is_added_up_must_be_a_number(tmp_path):
    """A measure of a column of text had been refused as rows without a cell, with no word of the measure."""
    (tmp_path / "x.csv").write_text("age,note\n1,old\n2,new\n")
    domain = dphist.Domain([dphist.Ordinal("age", range(10))])
    with pytest.raises(DroppedRows, match="and for --measure rows without a number in note"):
        dphist.publish(str(tmp_path / "x.csv"), domain, epsilon=1, measures=[dphist.Measure("note", 0, 9)])
    with pytest.raises(InputError, match="column note holds text"):
        dphist.rehearse(
            str(tmp_path / "x.csv"),
            dphist.Domain([dphist.Nominal("note", ["old", "new"])]),
            measures=[dphist.Measure("note", 0, 9)],
        )


def test_rows_without_a_value_of_what_is_added_up_are_told(tmp_path):
    (tmp_path / "x.csv").write_text('age,cost\n1,5\n2,\n3,"7,5"\n4,900\n')
    domain, cost = dphist.Domain([AGE]), dphist.Measure("cost", 0, 10)
    both = [cost, dphist.Measure("age", 0, 10)]
    told = dphist.rehearse(str(tmp_path / "x.csv"), domain, measures=both)
    assert (told.rows, told.dropped) == (4, 2)
    assert {each.name: each.missed for each in told.attributes} == {"age": 0, "cost": 2, "age (added up)": 0}
    assert {why.partition(":")[0] for why, _ in told.attributes[1].reasons} == {"missing", "a decimal comma"}
    # As many as stop a release, of which the stop says that a rehearsal shows them.
    with pytest.raises(DroppedRows, match="rehearse"):
        dphist.publish(str(tmp_path / "x.csv"), domain, epsilon=1, measures=[cost])
    filled = dphist.Measure("cost", 0, 10, missing=0)
    assert dphist.rehearse(str(tmp_path / "x.csv"), domain, measures=[filled]).dropped == 0


def test_keys_are_tallied_beside_an_attribute_of_many_bins():
    many = dphist.Domain(
        [dphist.Ordinal("age", edges=[0.5 * i for i in range(200)]), dphist.Nominal("sex", discover=True)]
    )
    seen = Tallied(pa.table({"age": [1.0, 2.0, 500.0], "sex": ["F", None, "M"]}))
    from dphist.sources.count import keys_of

    keys_of(seen, many, dphist.Unit())
    assert (seen.tally.rows, seen.tally.placed) == (3, 1)


@pytest.mark.postgres
@pytest.mark.parametrize("unit", ["row", "rows=1, id=who"])
def test_a_database_tells_in_the_same_statement(unit, postgres_address):
    import psycopg

    from dphist.sources.coded import coded
    from dphist.sources.count import keys_of

    with psycopg.connect(f"{postgres_address}/postgres", autocommit=True) as connection:
        connection.execute(
            "DROP TABLE IF EXISTS rehearsed; CREATE TABLE rehearsed (age int, sex text, who int)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO rehearsed VALUES (%s, %s, %s)", list(zip(*ROWS.values(), strict=True))
            )
    seen = Tallied(f"{postgres_address}/postgres::rehearsed")
    plain = count(seen.source, DOMAIN, dphist.Unit.parse(unit))
    counted = count(seen, DOMAIN, dphist.Unit.parse(unit))
    assert np.array_equal(plain.counts, counted.counts)
    placed = 3 if unit == "row" else 2
    assert (seen.tally.rows, seen.tally.placed) == (6, placed)
    # Tables of few attributes are counted there later; how many rows have a cell is asked before anything is paid.
    wide = Tallied(seen.source)
    coded(wide, DOMAIN, dphist.Unit.parse(unit))
    assert (wide.tally.rows, wide.tally.placed) == (6, placed)
    _, counts = keys_of(
        found := Tallied(seen.source),
        dphist.Domain([AGE, dphist.Nominal("sex", discover=True)]),
        dphist.Unit.parse(unit),
    )
    assert (found.tally.rows, found.tally.placed, counts.sum()) == (6, placed, placed)
    told = dphist.rehearse(seen.source, DOMAIN, unit, measures=[dphist.Measure("who", 0, 10)])
    assert (told.rows, told.dropped) == (6, 6 - placed)
    assert {each.name: each.missed for each in told.attributes} == {"age": 3, "sex": 1, "who": 1}


def test_a_rehearsal_says_what_it_found_and_is_not_kept(tmp_path):
    source = tmp_path / "x.csv"
    lines = ["age,sex,day,cost", *(f"{i},F,2024-01-02,3" for i in range(90))]
    lines += ['7,YES,31/12/2024,"3,5"', "-1,F,2023-01-01,1e9", "3.5,,later,EUR 3", "8,F"]
    source.write_text("\n".join(lines) + "\n")
    domain = dphist.Domain(
        [AGE, SEX, dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo"), other=True), COST]
    )
    told = dphist.rehearse(source, domain, epsilon="1/2", workload="marginals:age,sex")
    assert (told.rows, told.dropped, told.unreadable) == (94, 4, (0, 1))
    text = str(told)
    for words in (
        "PRIVATE", "above the schema's range", "below the schema's range", "between the schema's values", "missing",
        "not in the schema's list", "a decimal comma", "with a unit", "are counted as everything", "not a date",
        "before the schema's first date", "'YES' × 1", "at epsilon 1/2", "Nothing was spent", "counts ",
    ):  # fmt: skip
        assert words in text, words
    with pytest.raises(InputError, match="private"):
        pickle.dumps(told)
    wrong: Any
    for wrong in ({"domain": None}, {"workload": "tables"}, {"unit": 3}):
        with pytest.raises(InputError):
            dphist.rehearse(source, **{"domain": domain, **wrong})
    with pytest.raises(InputError, match="histogram"):
        dphist.rehearse(dphist.Histogram(DOMAIN, np.zeros(DOMAIN.shape, int)), DOMAIN)


@pytest.mark.parametrize(
    ("attribute", "text", "why"),
    [
        (AGE, None, "missing"), (AGE, " N/A ", "missing"), (AGE, "nan", "missing"), (AGE, "1,234", "thousands"),
        (AGE, "40 years", "unit"), (AGE, "forty", "not a number"), (AGE, "100", "above"), (AGE, "-3", "below"),
        (COST, "3,5", "decimal comma"), (COST, "1.234,50", "decimal comma"), (PLACE, "ORLÉANS", "other letters"),
        (PLACE, "OrlÃ©ans", "encoding"), (PLACE, "Orl\ufffdans", "encoding"), (PLACE, "Lyon", "list"),
        (DAY, "3.4.2024", "another way"), (DAY, "2025-01-01", "end"), (DAY, "soon", "not a date"),
        (dphist.Ordinal("grade", ["low", "high"]), "LOW", "other letters"),
    ],
)  # fmt: skip
def test_reasons(attribute, text, why):
    assert why in reason(attribute, text)


def test_a_noised_number_of_rows_not_counted_is_paid_for(tmp_path):
    from dphist.publishing.checking import verify_file
    from dphist.publishing.uncounted import publish_uncounted

    (tmp_path / "x.csv").write_text("age,sex\n" + "1,F\n" * 300 + "1,f\n" * 200 + "broken\n" * 100)
    (tmp_path / "s.toml").write_text(DOMAIN.to_toml())
    with dphist.Ledger.open(tmp_path / "b.db") as ledger:
        ledger.create("people", 2)
    place = tmp_path / "uncounted.parquet"
    words = ["uncounted", str(tmp_path / "x.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1",
             "--ledger", str(tmp_path / "b.db"), "--dataset", "people", "-o", str(place)]  # fmt: skip
    assert CliRunner().invoke(app, words).exit_code == 0
    release = dphist.load(place)
    release.verify()
    assert abs(release.answer().value - 300) < 60
    with dphist.Ledger.open(tmp_path / "b.db") as ledger:
        assert ledger.spent("people") == 1
        # The ledger knows the file, as it does of any release.
        assert verify_file(place, ledger).receipt == release.receipt
    assert isinstance(CliRunner().invoke(app, words).exception, dphist.errors.OutputError)
    # One line more or less, whatever it holds, moves the number by at most one: the sensitivity that the noise is for.
    lines = ["1,F", "1,f", "broken", "\u00e9", "300,M", ",", "1,F,3"]
    for line in lines:
        seen = []
        for text in ("age,sex\n1,F\n2,x\n", f"age,sex\n1,F\n2,x\n{line}\n"):
            (tmp_path / "y.csv").write_bytes(text.encode("latin-1"))
            tallied = Tallied(str(tmp_path / "y.csv"))
            count(tallied, DOMAIN)
            seen.append(tallied.tally.dropped or 0)
        assert abs(seen[1] - seen[0]) <= 1, line
    # A row without a value of what is added up is not counted, either.
    costs = pa.table({"age": [1] * 300, "sex": ["F"] * 300, "cost": [1.0] * 100 + [None] * 200})
    told = publish_uncounted(costs, DOMAIN, 1, measures=[dphist.Measure("cost", 0, 10)])
    assert abs(told.answer().value - 200) < 60
    with pytest.raises(InputError, match="id"):
        publish_uncounted(pa.table(ROWS), DOMAIN, 1, unit="rows=2, id=who")
    with pytest.raises(InputError, match="histogram"):
        publish_uncounted(dphist.Histogram(DOMAIN, np.zeros(DOMAIN.shape, int)), DOMAIN, 1)


def test_a_share_is_a_share():
    wrong: Any
    for wrong in (-0.1, 1.1, True, "0.5", None, float("nan")):
        with pytest.raises(InputError, match="allow_dropped"):
            dphist.publish(pa.table(ROWS), DOMAIN, epsilon=1, allow_dropped=wrong)


def test_what_a_reminder_says_is_true_of_what_is_refused_and_comes_before_any_noise(monkeypatch):
    from dphist import reminding

    astray = pa.table({"age": [1, 999, 999], "sex": ["F", "M", "M"]})
    for allowed in (0.0, 0.9):
        monkeypatch.setattr(reminding, "_reminded", set())
        with warnings.catch_warnings():
            # Whoever makes an error of it is stopped before anything was spent.
            warnings.simplefilter("error")
            with pytest.raises(CustodyWarning, match="no ledger keeps account"):
                dphist.publish(astray, DOMAIN, epsilon=1, allow_dropped=allowed)
    with pytest.raises(DroppedRows):
        dphist.publish(astray, DOMAIN, epsilon=1)


def test_reminders_are_said_once_and_not_to_a_pipeline(monkeypatch):
    from dphist import reminding

    table = pa.table({"age": [1, 2], "sex": ["F", "M"]})
    monkeypatch.setattr(reminding, "_reminded", set())

    def twice():
        for _ in range(2):
            dphist.publish(table, DOMAIN, epsilon=11)

    with pytest.warns(CustodyWarning) as told:
        twice()
    assert sorted("ledger" in str(each.message) for each in told) == [False, True]
    assert Path(told[0].filename).name == "test_rehearsal.py"
    monkeypatch.setattr(reminding, "_reminded", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dphist.publish(table, DOMAIN, epsilon=11, unattended=True)


@pytest.mark.parametrize("delta", ["0.5", 0.5, "1e-9"])
def test_a_delta_that_promises_next_to_nothing_is_reminded_of(monkeypatch, delta):
    from dphist import reminding

    table = pa.table({"age": [1, 2] * 2000, "sex": ["F", "M"] * 2000})
    found = dphist.Domain([dphist.Nominal("sex", discover=True)])
    for domain, mechanism in ((DOMAIN, "gaussian"), (found, "laplace")):
        monkeypatch.setattr(reminding, "_reminded", {"ledger"})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            dphist.publish(table, domain, epsilon=1, delta=delta, mechanism=mechanism)
        said = ["a delta of 0.5 promises little" in str(each.message) for each in told]
        assert said == ([] if delta == "1e-9" else [True])


def test_a_price_beyond_what_was_said_is_told_before_it_is_paid(monkeypatch, tmp_path):
    """A budget for rows pays twice for a release that protects people, one row of each."""
    from dphist import reminding

    table = pa.table({"age": list(range(100)), "sex": ["F", "M"] * 50, "who": list(range(100))})
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("visits", 1, unit=dphist.Unit())
        monkeypatch.setattr(reminding, "_reminded", set())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(
                CustodyWarning, match=r"0\.1 ε for .* takes 0\.2 ε of the budget 'visits', .*one row"
            ):
                dphist.publish(table, DOMAIN, "0.1", unit="rows=1, id=who", ledger=ledger, dataset="visits")
            assert ledger.spent("visits") == 0
            dphist.publish(table, DOMAIN, "0.1", ledger=ledger, dataset="visits")
        assert str(ledger.spent("visits")) == "1/10"


def test_a_suggestion_costs_what_was_said_whomever_the_budget_protects(tmp_path):
    """0.1 for bounds and rows per person had taken 0.2 of a budget for rows."""
    from dphist.publishing.suggest import suggest

    table = pa.table({"cost": list(range(3000)), "who": list(range(3000))})
    for unit in (dphist.Unit(), dphist.Unit(id="who")):
        place = tmp_path / f"{unit.id}.db"
        with dphist.Ledger.open(place) as ledger:
            ledger.create("visits", "0.4", unit=unit)
        with warnings.catch_warnings():
            # Which part of it that leaves for people is reminded of.
            warnings.simplefilter("ignore")
            found = suggest(table, ["cost"], "0.4", unit="rows=1, id=who", ledger=place, dataset="visits")
        with dphist.Ledger.open(place) as ledger:
            assert str(ledger.spent("visits")) == "2/5"
        assert [str(part.epsilon) for part in found.parts] == ["1/10" if unit.id is None else "1/5"] * 2
        with pytest.raises(dphist.errors.BudgetExhausted):
            suggest(table, ["cost"], "0.4", unit="rows=1, id=who", ledger=place, dataset="visits")


def test_edges_that_were_added_up_are_reminded_of(monkeypatch):
    import numpy as np

    from dphist import reminding

    table = pa.table({"x": [0.3, 0.3, 1.7]})
    for edges, odd in (
        (np.arange(0, 5, 0.1), True),
        (np.round(np.arange(0, 5, 0.1), 9), False),
        ([1 / 3, 2.5], False),
    ):
        monkeypatch.setattr(reminding, "_reminded", {"ledger"})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            dphist.publish(
                table, dphist.Domain([dphist.Ordinal("x", edges=edges)]), epsilon=1, allow_dropped=1
            )
        said = [
            str(each.message)
            for each in told
            if "x: the edge 0.30000000000000004 is not 0.3" in str(each.message)
        ]
        assert len(said) == odd, edges
        assert all(Path(each.filename).name == "test_rehearsal.py" for each in told)


def test_a_paid_release_is_not_written_over(tmp_path):
    (tmp_path / "x.csv").write_text("age,sex\n1,F\n")
    (tmp_path / "s.toml").write_text(DOMAIN.to_toml())
    with dphist.Ledger.open(tmp_path / "b.db") as ledger:
        ledger.create("people", 2)
    words = ["publish", str(tmp_path / "x.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "1",
             "--ledger", str(tmp_path / "b.db"), "--dataset", "people", "-o", str(tmp_path / "o.parquet")]  # fmt: skip
    assert CliRunner().invoke(app, words).exit_code == 0
    before = (tmp_path / "o.parquet").read_bytes()
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, dphist.errors.OutputError)
    assert "--force" in str(refused.exception)
    with dphist.Ledger.open(tmp_path / "b.db") as ledger:
        assert ledger.spent("people") == 1
    assert (tmp_path / "o.parquet").read_bytes() == before
    assert CliRunner().invoke(app, [*words, "--force"]).exit_code == 0
