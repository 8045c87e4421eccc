"""What the custodian says on the command line stands in the file, and nothing else does."""

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app


def test_what_the_custodian_says_when_publishing_is_in_the_file(tmp_path):
    pa.csv.write_csv(pa.table({"age": [30, 31, 31] * 50}), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(
        '[[attribute]]\nname = "age"\nkind = "ordinal"\nrange = [30, 33]\n', encoding="utf-8"
    )
    said = [
        "--title",
        "Ages",
        "--publisher",
        "City of Example",
        "--licence",
        "CC0-1.0",
        "--contact",
        "x@example.org",
    ]
    given = [
        "publish", str(tmp_path / "people.csv"), "--schema", str(tmp_path / "people.toml"), "--epsilon", "1",
        "-o", str(tmp_path / "out.parquet"), *said, "--release-version", "2",
    ]  # fmt: skip
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    about = dphist.load(tmp_path / "out.parquet").about
    assert (about.title, about.publisher, about.licence) == ("Ages", "City of Example", "CC0-1.0")
    assert (about.contact, about.version) == ("x@example.org", "2")
    words = pq.read_schema(tmp_path / "out.parquet").metadata
    assert words[b"publisher"] == b"City of Example"
    assert words[b"created"].decode() == about.created != ""
