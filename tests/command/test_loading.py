"""What commands load, and how they leave."""

import json
import subprocess
import sys

import numpy as np
import pytest

import dphist
from dphist.cli import main


def test_a_question_loads_no_compiler_and_no_engine(tmp_path):
    """Guarantees of trees that noise has shaped are the one answer that a compiled loop gives."""
    code = (
        "import sys, numpy as np, dphist\n"
        "domain = dphist.Domain([dphist.Ordinal('x', range(3000))])\n"
        "dphist.publish(dphist.Histogram(domain, np.full(3000, 9)), epsilon=1).save('a.parquet')\n"
        "from dphist.cli import main\n"
        "for more in ([], ['--confidence', '0.8']):\n"
        "    sys.argv = ['dphist', 'query', 'a.parquet', 'x between 3 and 40', *more]\n"
        "    try:\n        main()\n    except SystemExit as left:\n        assert not left.code\n"
        "print([each for each in ('rich', 'numba', 'scipy', 'duckdb') if each in sys.modules])\n"
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
