"""Questions and SQL reach the release and nothing else: no file, no network, no configuration, no second statement."""

import contextlib

import numpy as np
import pytest

import dphist
from dphist.errors import QueryError
from dphist.release.asking import read_question
from dphist.release.held import stamped

DOMAIN = dphist.Domain([dphist.Ordinal("age", range(10)), dphist.Nominal("sex", ["F", "M"])])


@pytest.fixture(scope="module")
def release():
    return dphist.publish(dphist.Histogram(DOMAIN, np.ones((10, 2), dtype=np.int64)), epsilon=1)


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "schema.sql").write_text("zebra crossing;")
    (tmp_path / "load.sql").write_text("zebra crossing;")
    (tmp_path / "secret.csv").write_text("zebra\n1\n")
    return tmp_path


@pytest.mark.parametrize(
    "query",
    [
        "select * from '{d}/secret.csv'",
        "select * from read_csv('{d}/secret.csv')",
        "select * from read_text('{d}/secret.csv')",
        "select * from read_blob('{d}/secret.csv')",
        "select * from read_json('{d}/secret.csv')",
        "select * from read_parquet('{d}/secret.csv')",
        "select * from sniff_csv('{d}/secret.csv')",
        "select * from glob('{d}/*')",
        "select * from parquet_metadata('{d}/secret.csv')",
        "copy release to '{d}/out.csv'",
        "copy (select 1) to '{d}/out.csv'",
        "select * from query('copy (select 1) to ''{d}/out.csv''')",
        "export database '{d}/out.csv'",
        "import database '{d}'",
        "attach '{d}/out.csv'",
        "install httpfs",
        "load httpfs",
        "install '{d}/secret.csv'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma enable_external_access",
        "create table x as select 1",
        "drop table release",
        "insert into release select * from release",
        "update release set estimate = 0",
        "delete from release",
        "select 1; select 2",
        "select 1; copy release to '{d}/out.csv'",
        "create secret s (type s3)",
        "select * from 'https://example.org/x.parquet'",
        "select * from read_csv('http://127.0.0.1:9/x.csv')",
        "select getenv('HOME')",
        "select * from secret",
        "select * from release_frame",
        "call pragma_version()",
        "checkpoint",
        "",
        ";",
        "\x00",
        "select '\ud800'",
    ],
)
def test_sql_reaches_nothing_but_the_release(release, secret, query):
    release_frame = "in reach of DuckDB's replacement scans"  # noqa: F841
    with pytest.raises(QueryError) as caught:
        release.sql(query.replace("{d}", str(secret)))
    # Nor does the refusal quote what is in the file.
    assert "zebra" not in str(caught.value)
    assert not (secret / "out.csv").exists()


def test_sql_reads_the_release(release):
    assert release.sql("select count(*) from release").rows == [(20,)]
    assert release.sql("with a as (select 1) from a").rows == [(1,)]


def test_sql_leaves_nothing_on_disk(release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(QueryError):
        release.sql("select count(*) from (select * from range(3000000) order by hash(range))")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["age = 1; drop table release", "age = 1 or 1 = 1", "'../x' = 1", "__class__ = 1", "age = (1)"]
)
def test_the_question_language_only_selects_cells(text):
    with pytest.raises(QueryError):
        read_question(text, DOMAIN)


def test_a_release_from_elsewhere_imports_nothing(release, tmp_path):
    """A tampered file may name any module as its mechanism; it stays a name."""
    import json
    import sys

    import pyarrow.parquet as pq

    release.save(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    story = json.loads(table.schema.metadata[b"dphist"])
    story["mechanism"] = {"name": "antigravity:fly", "options": {}}
    pq.write_table(
        table.replace_schema_metadata(
            stamped(table.schema.metadata | {b"dphist": json.dumps(story).encode()})
        ),
        tmp_path / "evil.parquet",
    )
    with pytest.raises(dphist.errors.DphistError, match=r"there is no mechanism|says other things"):
        dphist.load(tmp_path / "evil.parquet").verify()
    assert "antigravity" not in sys.modules
