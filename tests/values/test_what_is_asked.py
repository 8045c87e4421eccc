"""What people write for a workload and for who is protected, in Python, schemas and on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dphist
from dphist.errors import DphistError, QueryError
from dphist.model.schema import Schema
from dphist.model.unit import Unit
from dphist.model.workload import Workload

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(6)),
        dphist.Nominal("sex", ["F", "M"]),
        dphist.Nominal("a,b", ["x", "y", "z"]),
    ]
)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("cells", Workload.cells(DOMAIN)),
        (" Prefixes ", Workload.prefixes(DOMAIN)),
        ("ranges", Workload.all_ranges(DOMAIN)),
        ("marginals", Workload.marginals(DOMAIN, 1)),
        ("marginals:2", Workload.marginals(DOMAIN, 2)),
        ("marginals: age, sex ; sex", Workload.marginals(DOMAIN, [["age", "sex"], ["sex"]])),
        ({"marginals": [["a,b", "sex"]]}, Workload.marginals(DOMAIN, [["a,b", "sex"]])),
        ({"marginals": 2}, Workload.marginals(DOMAIN, 2)),
        (Workload.cells(DOMAIN), Workload.cells(DOMAIN)),
    ],
)
def test_a_workload_is_read_from_what_people_write(text, same):
    read = Workload.parse(DOMAIN, text)
    assert read == same
    assert read.kind == same.kind
    assert Workload.from_json(DOMAIN, json.loads(json.dumps(read.to_json()))) == read


@pytest.mark.parametrize(
    "wrong",
    ["", "cell", "marginals:", "marginals:0", "marginals:4", "marginals:²", "marginals:age,,sex", "marginals:age,age",
     "marginals:who", "cells:2", 3, None, ["age"], {"tables": 2}, {"marginals": "age"}, {"marginals": []},
     {"marginals": True}, {"marginals": [[1]]}, Workload.cells(dphist.Domain([dphist.Ordinal("x", range(3))]))],
    ids=repr,
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_what_to_write(wrong):
    with pytest.raises(QueryError, match="workload"):
        Workload.parse(DOMAIN, wrong)


def test_tables_are_not_written_out_before_they_are_read():
    wide = dphist.Domain([dphist.Ordinal(f"x{i}", range(1000)) for i in range(60)])
    pairs = Workload.parse(wide, "marginals:2")
    assert len(pairs) == 1770 * 10**6
    assert len(pairs.tables or ()) == 1770
    assert pairs.spread(10).low.shape == (10, 60)
    with pytest.raises(dphist.errors.TooLargeError):
        Workload.parse(wide, "marginals:30")
    some = Workload.parse(DOMAIN, "marginals:2")
    assert np.array_equal(np.concatenate([part.low for part in some.chunks(5)]), some.low)


@pytest.mark.parametrize("value", [[[3]], [[0, 0]], [["age"]], [], [0], [[True]], "x"])
def test_tables_of_a_damaged_file_are_refused(value):
    with pytest.raises(QueryError, match="tables"):
        Workload.from_json(DOMAIN, {"kind": "marginals", "tables": value})


@pytest.mark.parametrize(
    ("given", "unit"),
    [
        (None, Unit()),
        ("row", Unit()),
        ("rows=5", Unit(rows=5)),
        ("rows=5, id=user", Unit(rows=5, id="user")),
        ("row, replace", Unit(replace=True)),
        ({"rows": 2, "replace": True}, Unit(rows=2, replace=True)),
    ],
)
def test_a_unit_is_read_from_what_people_write(given, unit):
    assert Unit.parse(given) == unit


@pytest.mark.parametrize(
    "wrong", ["person", "rows", "rows=five", "rows=0", "id=", "rows=1, rows=2", 5, {"row": 1}, "", []]
)
def test_a_unit_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(dphist.errors.InputError, match="unit"):
        Unit.parse(wrong)


def test_publish_takes_words():
    counts = dphist.Histogram(DOMAIN, np.full(DOMAIN.shape, 9))
    release = dphist.publish(
        counts, epsilon=1, workload="marginals:age,sex", unit="rows=2", mechanism="marginals"
    )
    assert release.workload == Workload.marginals(DOMAIN, [["age", "sex"]])
    assert release.guarantee.unit == Unit(rows=2)
    release.verify()
    with pytest.raises(QueryError, match="marginals:2"):
        dphist.publish(counts, epsilon=1, workload="tables")
    with pytest.raises(QueryError, match="another domain"):
        dphist.publish(counts, epsilon=1, workload=Workload.cells(DOMAIN.project("sex")))


SCHEMA = f'workload = "marginals:2"\nunit = {{rows = 3}}\n{DOMAIN.to_toml()}'


def test_a_schema_says_what_will_be_asked_and_who_is_protected():
    schema = Schema.read(SCHEMA)
    assert schema.workload == Workload.marginals(DOMAIN, 2)
    assert schema.unit == Unit(rows=3)
    assert dphist.Domain.from_toml(SCHEMA) == schema.domain == DOMAIN
    for wrong in ('workload = "tables"\n', "unit = 5\n", "epsilon = 1\n"):
        with pytest.raises(DphistError):
            Schema.read(wrong + DOMAIN.to_toml())


def test_the_command_line_says_it_too(tmp_path):
    from dphist.cli.commands import app

    (tmp_path / "people.csv").write_text('age,sex,"a,b"\n1,F,x\n2,M,y\n')
    (tmp_path / "schema.toml").write_text(SCHEMA)
    out = tmp_path / "out.parquet"

    def run(*options: str):
        return CliRunner().invoke(
            app, ["publish", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "1",
                  "-o", str(out), "--mechanism", "marginals", *options],
        )  # fmt: skip

    for options, tables in (
        ((), ((0, 1), (0, 2), (1, 2))),
        (("--workload", "marginals:sex"), ((1,),)),
        (("--marginals", "age,sex", "--marginals", "sex"), ((0, 1), (1,))),
    ):
        out.unlink(missing_ok=True)
        made = run(*options)
        assert made.exit_code == 0, made.output
        release = dphist.load(out)
        assert release.workload is not None
        assert release.workload.tables == tables
        assert release.guarantee.unit.rows == 3
    assert isinstance(
        run("--force", "--workload", "cells", "--marginals", "sex").exception, dphist.errors.InputError
    )
    asked = ["query", str(out), "sex = 'F'", "sex = 'M'", "age < 3"]
    alone, together = (
        json.loads(CliRunner().invoke(app, [*asked, "--json", *more]).stdout)
        for more in ([], ["--simultaneous"])
    )
    assert [each["value"] for each in alone] == [each["value"] for each in together]
    assert all(b["low"] <= a["low"] and a["high"] <= b["high"] for a, b in zip(alone, together, strict=True))
    theorem = CliRunner().invoke(app, [*asked, "--guaranteed", "--simultaneous"]).stdout
    assert "guaranteed" in theorem or "exact" in theorem


def test_the_version_is_told():
    from dphist.cli.commands import app

    assert CliRunner().invoke(app, ["--version"]).stdout == f"dphist {dphist.__version__}\n"
    silent = CliRunner().invoke(app, [])
    assert silent.exit_code == 2
    assert "publish" in silent.output
