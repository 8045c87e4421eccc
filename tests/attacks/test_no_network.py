"""Nothing is fetched at run time: the whole way works on a machine without a network, and asks for none."""

import shutil
import subprocess
import sys
import textwrap

import pytest

from dphist.errors import SourceError
from dphist.sources import count
from dphist.sources.open import connect, open_path

WHOLE_WAY = """
import asyncio, sys, pathlib
import dphist
from dphist.cli.commands import app
from typer.testing import CliRunner

asked = []
WATCHED = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"}
sys.addaudithook(lambda event, args: asked.append((event, args)) if event in WATCHED else None)

def run(*words, code=0):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (words, result.output, result.exception)

place = pathlib.Path(sys.argv[1])
rows = [(i % 50, "FM"[i % 2]) for i in range(2_000)]
(place / "d.csv").write_text("age,sex\\n" + "\\n".join(f"{age},{sex}" for age, sex in rows) + "\\n")
(place / "d.jsonl").write_text("\\n".join(f'{{"age": {age}, "sex": "{sex}"}}' for age, sex in rows) + "\\n")
import pyarrow, pyarrow.parquet
columns = dict(age=[age for age, _ in rows], sex=[sex for _, sex in rows])
pyarrow.parquet.write_table(pyarrow.table(columns), place / "d.parquet")
schema = '[[attribute]]\\nname = "age"\\nkind = "ordinal"\\nrange = [0, 50]\\n'
schema += '[[attribute]]\\nname = "sex"\\nkind = "nominal"\\ncategories = ["F", "M"]\\n'
(place / "s.toml").write_text(schema)
run("schema", "new", str(place / "d.csv"))
run("ledger", "create", str(place / "b.db"), "people", "10")
for kind in ("csv", "jsonl", "parquet"):
    run("publish", str(place / f"d.{kind}"), "--schema", str(place / "s.toml"), "--epsilon", "1", "--ledger",
        str(place / "b.db"), "--dataset", "people", "-o", str(place / f"{kind}.release.parquet"))
release = str(place / "csv.release.parquet")
run("query", release, "age between 3 and 5")
run("sql", release, "select sum(estimate) from release")
run("show", release)
run("verify", release)
run("records", release, "10", "-o", str(place / "people.csv"))
run("report", release, "-o", str(place / "page.html"))
run("plot", release, "-o", str(place / "picture.png"))

import httpx
from dphist.web import create_app
served = create_app({"one": dphist.load(release)})

async def look():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=served), base_url="http://localhost") as client:
        for path in ("/", "/api/view", "/download.csv"):
            assert (await client.get(path)).status_code == 200

asyncio.run(look())
assert not asked, asked
print("done")
"""


def without_network():
    """Words before a command that take its network away, where the system lets us."""
    words = ["unshare", "--map-root-user", "--net"]
    allowed = (
        shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    )
    return words if allowed else []


@pytest.mark.slow
def test_the_whole_way_needs_no_network_and_asks_for_none(tmp_path):
    # Where the network cannot be taken away, Python's own connections are still watched.
    done = subprocess.run(
        [*without_network(), sys.executable, "-c", textwrap.dedent(WHOLE_WAY), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.endswith("done\n"), done.stderr


def setting(connection, name):
    ((value,),) = connection.execute(f"SELECT current_setting('{name}')").fetchall()
    return value


def test_duckdb_fetches_and_loads_nothing_by_itself():
    with connect() as connection:
        assert setting(connection, "autoinstall_known_extensions") is False
        assert setting(connection, "autoload_known_extensions") is False


def test_a_network_address_loads_what_is_there_and_fetches_only_if_told(tmp_path, monkeypatch):
    (tmp_path / "d.csv").write_text("x\n1\n")
    monkeypatch.delenv("DPHIST_INSTALL", raising=False)
    for told in (False, True):
        if told:
            monkeypatch.setenv("DPHIST_INSTALL", "1")
        engine = open_path(f"file://{tmp_path}/d.csv")
        assert setting(engine.connection, "autoload_known_extensions") is True  # type: ignore[attr-defined]
        assert setting(engine.connection, "autoinstall_known_extensions") is told  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "source", ["https://127.0.0.1:9/d.parquet", "s3://bucket/d.csv", "https://127.0.0.1:9/d.json"]
)
def test_an_address_out_of_reach_is_refused_with_the_way_out(source, monkeypatch, tmp_path):
    import dphist

    monkeypatch.delenv("DPHIST_INSTALL", raising=False)
    with pytest.raises(SourceError, match="DPHIST_INSTALL=1"):
        count(source, dphist.Domain([dphist.Ordinal("x", range(2))]))
