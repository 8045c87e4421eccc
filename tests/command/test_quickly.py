"""Commands that are read without the library that reads all others say and take the very same."""

import json
import subprocess
import sys
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dphist
from dphist.cli import main, quickly
from dphist.cli.commands import app


@pytest.fixture(scope="module")
def whole():
    return typer.main.get_command(app)


@pytest.mark.parametrize("name", quickly.COMMANDS)
def test_a_plain_line_with_every_option_is_read_alike(whole, name):
    """Whatever the command takes is known here, under the same names and as the same values; so are the defaults."""
    command = whole.commands[name]
    line, spelled = ["a.parquet"], dict[str, list[str]]()
    for each in command.params:
        if each.param_type_name == "option" and each.name != "help":
            value = {"confidence": "0.9", "bins": "spread"}.get(each.name, "words of its own")
            for opt in each.opts:
                spelled.setdefault(each.name, []).append(opt)
            line += [each.opts[0]] if each.is_flag else [each.opts[-1], value]
    line += ["age = 3", "age = 4"] if name == "query" else []
    run = quickly.runs(name)
    assert quickly.read(run, line) == command.make_context(name, list(line)).params
    plain = command.make_context(name, ["a.parquet"]).params
    defaults = {each: parameter.default for each, parameter in signature(run).parameters.items()}
    assert {key: value or None for key, value in plain.items()} == {
        key: value or None for key, value in (defaults | {"release": Path("a.parquet")}).items()
    }
    for spellings in spelled.values():
        for each in spellings:
            assert quickly.read(run, ["a.parquet", each, *["0.9"] * (each not in FLAGS)]) is not None


FLAGS = ("--guaranteed", "--simultaneous", "--choice", "--exact", "--json")


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["query"], ["query", ""], ["query", "--help"], ["show", "-h"], ["show", "a", "b"],
        ["query", "a", "--confidence"],
        ["query", "a", "--confidence", "much"], ["query", "a", "--confidence", "nan"],
        ["query", "a", "--confidence=0.9"], ["query", "a", "--", "-3"], ["publish", "a"],
        ["verify", "a", "--ledger", "--json"], ["--version", "show"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_not_plain_is_left_to_the_whole(arguments):
    assert quickly.plain_command(arguments) is None


def test_the_version_is_told_alike_and_loads_next_to_nothing():
    code = (
        "import sys\nfrom dphist.cli import main\nsys.argv = ['dphist', '--version']\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code\n"
        "print([each for each in ('typer', 'numpy', 'pyarrow') if each in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    whole = CliRunner().invoke(app, ["--version"])
    assert run.stdout == f"{whole.stdout}[]\n", run.stderr


def test_completion_is_left_to_the_whole(monkeypatch):
    assert quickly.plain_command(["show", "a.parquet"]) is not None
    monkeypatch.setenv("_DPHIST_COMPLETE", "complete_bash")
    assert quickly.plain_command(["show", "a.parquet"]) is None


def test_a_question_loads_neither_the_command_line_nor_a_compiler(tmp_path):
    """Guarantees of trees that noise has shaped are the one answer that a compiled loop gives."""
    code = (
        "import sys, numpy as np, dphist\n"
        "domain = dphist.Domain([dphist.Ordinal('x', range(3000))])\n"
        "dphist.publish(dphist.Histogram(domain, np.full(3000, 9)), epsilon=1).save('a.parquet')\n"
        "from dphist.cli import main\n"
        "for more in ([], ['--confidence', '0.8']):\n"
        "    sys.argv = ['dphist', 'query', 'a.parquet', 'x between 3 and 40', *more]\n"
        "    try:\n        main()\n    except SystemExit as left:\n        assert not left.code\n"
        "print([each for each in ('typer', 'pydantic', 'rich', 'numba', 'scipy', 'duckdb') if each in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "[]"


def test_a_process_that_leaves_at_once_has_said_everything(tmp_path):
    code = (
        "import atexit, sys, numpy as np, dphist\n"
        "from dphist.cli import run\n"
        "domain = dphist.Domain([dphist.Ordinal('x', range(9))])\n"
        "dphist.publish(dphist.Histogram(domain, np.full(9, 9)), epsilon=1).save('a.parquet')\n"
        "atexit.register(sys.stdout.write, 'and what others wanted at the end')\n"
        "sys.argv = ['dphist', 'show', 'a.parquet', '--json']\n"
        "run()\n"
    )
    # Into a pipe, which Python writes to in blocks.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said, end = done.stdout.rsplit("\n", 1)
    assert len(json.loads(said)) > 3
    assert end == "and what others wanted at the end"
    refused = subprocess.run(
        [sys.executable, "-m", "dphist", "show", "nothing"], capture_output=True, cwd=tmp_path
    )
    assert refused.returncode == 2
    assert refused.stderr


def test_a_refusal_is_one_line_and_an_exit_code(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dphist", "show", "missing.parquet"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert capsys.readouterr().err == "dphist: there is no file missing.parquet\n"


def test_a_release_with_dates_is_read_without_pandas(tmp_path):
    """Dates, and numbers of which some are missing, are compared in Arrow: a list made into its array loads pandas."""
    pytest.importorskip("pandas")
    day = dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo"), other=True)
    domain = dphist.Domain([day, dphist.Ordinal("age", range(9), other=True)])
    made = dphist.publish(dphist.Histogram(domain, np.full(domain.shape, 9)), epsilon=1, mechanism="laplace")
    made.save(tmp_path / "a.parquet")
    code = "import sys, dphist\ndphist.load('a.parquet').answer()\nprint('pandas' in sys.modules)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stdout == "False\n", done.stderr
