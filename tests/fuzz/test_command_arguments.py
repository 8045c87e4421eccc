"""Any arguments: the command line ends with its exit code and one line, never a traceback."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import DphistError

COMMANDS = [
    "query", "show", "records", "verify", "sql", "mechanisms", "plan", "schema", "ledger", "publish", "audit", "report",
]  # fmt: skip
WORDS = [
    "r.parquet", "s.toml", "d.csv", "missing", "x.db", "people", "1", "0", "-1", "1e999", "nan", "1/0", "age = 3",
]  # fmt: skip
# Long campaigns, servers and pictures are not started; everything that parses is.
OPTIONS = [
    "--json", "--epsilon", "--confidence", "--rows", "--id", "--replace", "--schema", "-o", "--output", "--count",
    "--seed", "--workload", "--mechanism", "--ledger", "--dataset", "check", "new", "open", "show", "--help",
    "--integer",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    domain = dphist.Domain([dphist.Ordinal("age", range(10)), dphist.Nominal("sex", ["F", "M"])])
    dphist.publish(dphist.Histogram(domain, np.ones((10, 2), dtype=np.int64)), epsilon=1).save(
        place / "r.parquet"
    )
    (place / "s.toml").write_text('[[attribute]]\nname = "age"\nkind = "ordinal"\nrange = [0, 10]\n')
    (place / "d.csv").write_text("age,sex\n1,F\n2,M\n")
    return place


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_arguments_end_in_an_exit_code(folder, data, monkeypatch):
    monkeypatch.chdir(folder)
    words = st.one_of(
        st.sampled_from(OPTIONS),
        st.sampled_from(WORDS),
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
    )
    arguments = [data.draw(st.sampled_from(COMMANDS)), *data.draw(st.lists(words, max_size=6))]
    if "audit" in arguments:
        arguments += ["--runs", "30"]
    result = CliRunner().invoke(app, arguments)
    # Errors we raise on purpose become one line in `main`; anything else would be a traceback.
    assert result.exception is None or isinstance(result.exception, SystemExit | DphistError), (
        arguments,
        result.exception,
    )
    assert result.exit_code in (0, 1, 2, 3)


def test_an_error_that_nobody_foresaw_quotes_nothing(monkeypatch, capsys):
    from dphist import cli

    def broken():
        raise RuntimeError("record 987654321 of Mrs Smith")

    monkeypatch.setattr("dphist.cli.application.asked_for", lambda app, arguments: broken)
    monkeypatch.delenv("DPHIST_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert "RuntimeError" in told
    assert "987654321" not in told


def test_bytes_that_are_no_text_on_the_command_line(folder):
    command: list[str | bytes] = [
        sys.executable,
        "-m",
        "dphist",
        "sql",
        str(folder / "r.parquet"),
        b"select '\xff'",
    ]
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode in (1, 2), done.stderr
    assert b"Traceback" not in done.stderr
