"""The product alone: what it says without the laboratory, and that it carries none of it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# As if dphist-bench were not installed: no entry point, and nothing to import.
_ALONE = """
import importlib.metadata, sys
importlib.metadata.entry_points = lambda **asked: ()
sys.modules["dphist_bench"] = None
"""
_RUN = """
sys.argv = ["dphist", *{arguments!r}]
from dphist.cli import main
main()
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments", [["bench", "list"], ["bench"], ["audit", "--all"], ["bench", "run", "noise"]]
)
def test_without_the_laboratory_its_commands_say_what_to_install(arguments):
    done = run(_ALONE + _RUN.format(arguments=arguments))
    assert done.returncode == 2
    assert "pip install ./bench" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_laboratory_the_rest_works():
    done = run(_ALONE + _RUN.format(arguments=["audit", "laplace", "--runs", "300"]))
    assert done.returncode == 0, done.stderr


def test_help_names_bench_and_does_not_load_it():
    told = (
        'import atexit, sys\natexit.register(lambda: print("dphist_bench" in sys.modules, file=sys.stderr))\n'
    )
    done = run(told + _RUN.format(arguments=["--help"]))
    assert done.returncode == 0
    assert "bench" in done.stdout
    assert done.stderr.strip().endswith("False")


def test_the_distributions_share_one_version_and_no_files():
    product = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    bench = tomllib.loads((ROOT / "bench" / "pyproject.toml").read_text(encoding="utf-8"))
    written = [(ROOT / table["tool"]["hatch"]["version"]["path"]) for table in (product,)]
    written += [(ROOT / "bench" / bench["tool"]["hatch"]["version"]["path"]).resolve()]
    assert len(set(written)) == 1
    assert "version" in product["project"]["dynamic"]
    assert "version" in bench["project"]["dynamic"]
    assert product["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/dphist"]
    assert bench["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/dphist_bench"]
    assert not {"bench", "zoo", "peers", "papers"} & {
        path.name for path in (ROOT / "src" / "dphist").iterdir()
    }
