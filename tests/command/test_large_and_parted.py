"""The command line publishes piece by piece, and domains that no array holds."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import TooLargeError


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A command in a folder that has records, and a schema of so many numbers and two regions."""
    monkeypatch.chdir(tmp_path)
    rows = {"x": [5] * 90 + [9] * 40, "region": ["n"] * 90 + ["s"] * 40}
    pq.write_table(pa.table(rows), "t.parquet")

    def command(size, *words):
        domain = dphist.Domain([dphist.Ordinal("x", range(size)), dphist.Nominal("region", ["n", "s"])])
        (tmp_path / "schema.toml").write_text(domain.to_toml())
        return CliRunner().invoke(app, words)

    return command


PUBLISH = ["publish", "t.parquet", "--schema", "schema.toml", "--epsilon", "1", "-o", "out.parquet"]


def test_piece_by_piece(run):
    done = run(20, *PUBLISH, "--partition-by", "region", "--mechanism", "laplace")
    assert done.exit_code == 0, done.exception
    release = dphist.load("out.parquet")
    assert [entry.path for entry in release.transcript] == ["root/d0", "root/d1"]
    release.verify()


def test_too_large_is_told_of_the_sparse_mechanism_and_it_works(run):
    refused = run(10**12, *PUBLISH)
    assert isinstance(refused.exception, TooLargeError)
    assert "sparselaplace" in str(refused.exception)
    for words in (
        [*PUBLISH, "--mechanism", "sparselaplace(threshold=35)"],
        ["show", "out.parquet"],
        ["query", "out.parquet", "x = 5"],
        ["verify", "out.parquet"],
    ):
        done = run(10**12, *words)
        assert done.exit_code == 0, (words, done.exception)
