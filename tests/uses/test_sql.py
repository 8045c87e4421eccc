"""SQL over a release: right answers, and no way out of the table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dphist import Histogram, publish
from dphist.errors import QueryError
from dphist.model.domain import Domain, Nominal, Ordinal

DOMAIN = Domain([Ordinal("age", range(10)), Nominal("sex", ["F", "M"])])


@pytest.fixture(scope="module")
def release():
    return publish(Histogram(DOMAIN, np.arange(20).reshape(10, 2)), epsilon=1, mechanism="dpcube")


def test_sums_are_those_of_the_estimate(release):
    found = release.sql(
        "select sex, sum(estimate) as n from release where age >= 5 group by sex order by sex"
    )
    assert found.columns == ("sex", "n")
    assert [row[0] for row in found.rows] == ["F", "M"]
    assert [row[1] for row in found.rows] == pytest.approx(release.counts[5:].sum(axis=0).tolist())
    assert found.records()[0]["sex"] == "F"
    assert len(release.sql("select * from release", rows=3).rows) == 3
    with pytest.raises(QueryError, match="rows"):
        release.sql("select * from release", rows=-1)
    assert release.sql("select count(*) from release where age = ?", parameters=[4]).rows == [(2,)]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{file}')",
        "select * from read_text('{file}')",
        "select * from read_blob('{file}')",
        "select * from '{file}'",
        "select * from glob('*')",
        "select * from sniff_csv('{file}')",
        "attach '{file}' as other",
        "copy release to '{file}'",
        "copy (select 1) to '{file}'",
        "export database '{file}'",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "reset lock_configuration",
        "create table x as select 1",
        "insert into release select * from release",
        "delete from release",
        "drop table release",
        "pragma enable_external_access",
        "select 1; select 2",
        "select 1; copy release to '{file}'",
        "select * from secret_frame",
        "select * from 'https://example.org/x.csv'",
        "selec 1",
        "",
    ],
)
def test_nothing_else_can_be_reached(release, query, tmp_path):
    secret_frame = np.arange(3)  # noqa: F841 -- a query must not find Python objects by name
    file = tmp_path / "file.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(QueryError):
        release.sql(query.format(file=file))
    assert file.read_text() == "a,b\n1,2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"]


def test_settings_are_locked_for_the_query(release):
    found = release.sql(
        "select name, value from duckdb_settings() where name in "
        "('enable_external_access', 'lock_configuration', 'python_enable_replacements')"
    )
    assert dict(found.rows) == {
        "enable_external_access": "false",
        "lock_configuration": "true",
        "python_enable_replacements": "false",
    }


def test_an_attribute_may_be_called_estimate():
    domain = Domain([Ordinal("estimate", range(3))])
    made = publish(Histogram(domain, np.arange(3)), epsilon=1)
    assert made.sql("select estimate, estimate_ from release order by 1").columns == ("estimate", "estimate_")


def test_command(release, tmp_path):
    from dphist.cli.commands import app

    path = tmp_path / "release.parquet"
    release.save(path)
    query = "select sex, sum(estimate) as n from release group by sex order by sex"
    told = json.loads(CliRunner().invoke(app, ["sql", str(path), query, "--json"]).stdout)
    assert [row["n"] for row in told] == pytest.approx(release.counts.sum(axis=0).tolist())
    shown = CliRunner().invoke(app, ["sql", str(path), query])
    assert "sex" in shown.stdout
    # A name is a name, also where it looks like a mark of what draws the table.
    shown = CliRunner().invoke(
        app, ["sql", str(path), 'select 1 as "[/red]", 2 as "[bold]n[/bold]" from release limit 1']
    )
    assert shown.exit_code == 0, shown.exception
    assert "[/red]" in shown.stdout
    assert "[bold]n[/bold]" in shown.stdout
    refused = CliRunner().invoke(app, ["sql", str(path), "drop table release"])
    assert refused.exit_code != 0
