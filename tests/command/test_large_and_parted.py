"""The command line publishes piece by piece, and domains that no array holds."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphist

SCHEMA = """
[[attribute]]
name = "x"
kind = "ordinal"
range = [0, {size}]

[[attribute]]
name = "region"
kind = "nominal"
categories = ["n", "s"]
"""


@pytest.fixture
def folder(tmp_path):
    pq.write_table(
        pa.table({"x": [5] * 90 + [9] * 40, "region": ["n"] * 90 + ["s"] * 40}), tmp_path / "t.parquet"
    )
    return tmp_path


def run(folder, size, *words):
    (folder / "schema.toml").write_text(SCHEMA.format(size=size))
    command = [
        sys.executable,
        "-m",
        "dphist",
        "publish",
        "t.parquet",
        "--schema",
        "schema.toml",
        "--epsilon",
        "1",
    ]
    return subprocess.run([*command, "-o", "out.parquet", *words], cwd=folder, capture_output=True, text=True)


def test_piece_by_piece(folder):
    done = run(folder, 20, "--partition-by", "region", "--mechanism", "laplace")
    assert done.returncode == 0, done.stderr
    release = dphist.load(folder / "out.parquet")
    assert [entry.path for entry in release.transcript] == ["root/d0", "root/d1"]
    release.verify()


def test_too_large_is_told_of_the_sparse_mechanism_and_it_works(folder):
    refused = run(folder, 10**12)
    assert refused.returncode == 2
    assert "sparselaplace" in refused.stderr
    done = run(folder, 10**12, "--mechanism", "sparselaplace(threshold=35)")
    assert done.returncode == 0, done.stderr
    for words in (["show"], ["query"], ["verify"]):
        asked = [
            sys.executable,
            "-m",
            "dphist",
            words[0],
            "out.parquet",
            *(["x = 5"] if words == ["query"] else []),
        ]
        said = subprocess.run(asked, cwd=folder, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
