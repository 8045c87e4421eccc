"""Which lines and branches of the trusted rooms their tests run: `private/` and `sources/`, file by file.

The tests of those rooms are run under coverage.py (`pip install coverage`), in one process. What runs in compiled
kernels, in worker processes, in Spark's executors or after a fork is not seen. ``--page`` writes the table as a page;
what is left uncovered is listed there by the functions that it is in, which stay when lines move, with the reason where
one is known.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from dphist.errors import InputError
from dphist_bench.measuring import Line

ROOT = Path(__file__).resolve().parents[5]
ROOMS = ("src/dphist/private", "src/dphist/sources")
TESTS = (
    "tests/private",
    "tests/door",
    "tests/sources",
    "tests/attacks",
)
# Why lines of a file are left, by the beginning of its name; the longest that fits counts.
WHY: dict[str, str] = {
    "private/": "refusals of what nobody should ask, by public facts",
    "private/gate.py": "refusals; workloads of parts, which `tests/mechanisms` runs",
    "private/ledger/": "words for a disk, folder or server that fails; what runs in a forked child is not seen",
    "private/ledger/totals.py": "damaged lines of other kinds than those that are tried; pure totals in a reading",
    "private/noise/gaussian.py": "a tie of 80 bits, once in 10¹⁹ draws (`_stays` is tested by itself); a line that "
    "cannot be reached",
    "private/noise/hits.py": "a tie of 64 bits (`_settle` is tested by itself); a line that cannot be reached",
    "private/noise/keystream.py": "runs in a forked child",
    "private/noise/laplace.py": "lines that cannot be reached",
    "private/noise/tails.py": "noise so large that nothing is known of its tail; a δ below 10⁻¹⁰⁰",
    "private/questions.py": "words for arguments of other types",
    "private/records.py": "what mechanisms read and debuggers print; a refusal",
    "private/sparse.py": "answers without noise, for tests; refusals",
    "sources/": "refusals and errors of engines",
    "sources/files/delimited.py": "runs in threads of DuckDB's, which coverage.py does not see "
    "(`tests/attacks/test_lines.py` compares what is read)",
    "sources/frames.py": "columns of types that other tests use; polars queries that fail",
    "sources/files/lines.py": "runs in threads of DuckDB's",
    "sources/files/objects.py": "runs in threads of DuckDB's (`tests/attacks/test_lines.py` compares what is read)",
    "sources/databases/remote.py": "rows per person and ids of floats elsewhere, in slow tests; errors of engines",
    "sources/databases/spark.py": "types that quick tests do not use; a launcher for a Java that is installed already",
    "sources/files/text.py": "runs in threads of DuckDB's",
}


def measure(
    *,
    quick: bool,
    report: Annotated[Path | None, "what coverage.py wrote as JSON; without it the tests are run"] = None,
    page: Annotated[Path | None, "also write a page of Markdown"] = None,
) -> Iterator[Line]:
    """Give lines, branches and what is left for every file."""
    with tempfile.TemporaryDirectory() as folder:
        found = _read(report) if report is not None else _run(Path(folder), quick=quick)
    rows = [_row(name, found["files"][name]) for name in sorted(found["files"]) if _ours(name)]
    total = {room: _together(room, rows) for room in ROOMS}
    yield from rows
    yield from total.values()
    if page is not None:
        page.write_text(_page(rows, list(total.values())), encoding="utf-8")


def _ours(name: str) -> bool:
    return name.startswith(ROOMS)


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _run(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Run the tests of both rooms; quick: of one question alone."""
    if not (ROOT / "tests").is_dir():
        raise InputError(
            "coverage is measured in a checkout: run this from one, installed with pip install -e"
        )
    if find_spec("coverage") is None:
        raise InputError("coverage.py is missing: pip install coverage")
    tests = ["tests/private/test_linear.py"] if quick else [*TESTS, "-m", "not slow"]
    environment = os.environ | {"COVERAGE_FILE": str(folder / "data")}
    run = [sys.executable, "-m", "coverage"]
    watched = [*run, "run", "--branch", f"--source={','.join(ROOMS)}", "-m", "pytest", "-q", *tests]
    # Whether tests fail is for the tests to say.
    subprocess.run(watched, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
    subprocess.run([*run, "json", "-q", "-o", str(folder / "report")], cwd=ROOT, env=environment, check=True)
    return _read(folder / "report")


def _row(name: str, file: dict[str, Any]) -> dict[str, Any]:
    told = file["summary"]
    return {
        "file": name.removeprefix("src/dphist/"),
        "lines": told["num_statements"],
        "run": told["covered_lines"],
        "branches": told["num_branches"],
        "taken": told["covered_branches"],
        "left": places((ROOT / name).read_text(encoding="utf-8"), file["missing_lines"]),
    }


def places(source: str, lines: list[int]) -> str:
    r"""The functions and classes that lines are in, innermost, each once; the module where they are in none.

    Args:
        source: A module's text.
        lines: Line numbers.

    Returns:
        Names, in the order of the lines.

    Example:
        >>> places("import sys\n\nclass A:\n    def b(self):\n        return 1\n", [1, 5])
        'the module, `A.b`'
    """
    spans: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, outer: str) -> None:
        for inner in ast.iter_child_nodes(node):
            name = outer
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}.{inner.name}" if outer else inner.name
                spans.append((inner.lineno, inner.end_lineno or inner.lineno, name))
            visit(inner, name)

    visit(ast.parse(source), "")
    found: dict[str, None] = {}
    for line in lines:
        inside = [name for low, high, name in spans if low <= line <= high]
        found[f"`{inside[-1]}`" if inside else "the module"] = None
    return ", ".join(found)


def _together(room: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    name = room.removeprefix("src/dphist/") + "/"
    inside = [row for row in rows if row["file"].startswith(name)]
    added = {key: sum(row[key] for row in inside) for key in ("lines", "run", "branches", "taken")}
    return {"file": name, **added, "left": f"{added['lines'] - added['run']} lines"}


def _share(row: dict[str, Any]) -> str:
    lines, branches = row["lines"] or 1, row["branches"] or 1
    taken = f"{100 * row['taken'] / branches:.1f} %" if row["branches"] else "–"
    return f"{100 * row['run'] / lines:.1f} % | {taken}"


def _page(rows: list[dict[str, Any]], totals: list[dict[str, Any]]) -> str:
    """The page: totals, and what is left by file with the reasons."""
    words = [
        "# Lines and branches that tests run",
        "",
        "Made by `dphist bench run codecoverage --page bench/results/coverage-of-code.md`: the tests of both rooms",
        "(in `tests/`: `private`, `door`, `sources`, `attacks`, without the slow ones) under coverage.py. What",
        "compiled kernels, worker processes and Spark's executors run is not seen. That a line was run says little;",
        "that a bug in it is noticed is what [planted bugs](campaigns.md#planted-bugs) show.",
        "",
        f"Measured on {datetime.now(UTC).date().isoformat()}; files that changed since may have other figures.",
        "",
        "| Room | Lines | Branches | Lines left |",
        "|---|---|---|---|",
        *(
            f"| `{row['file']}` | {_share(row)} | {row['lines'] - row['run']} of {row['lines']:,} |"
            for row in totals
        ),
        "",
        "## What is left",
        "",
        "Files that are not listed have every line run.",
        "",
        "| File | Lines | Branches | Where lines were not run | Why |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        if row["left"]:
            why = WHY[max((name for name in WHY if row["file"].startswith(name)), key=len)]
            words.append(f"| `{row['file']}` | {_share(row)} | {row['left']} | {why} |")
    return "\n".join([*words, ""])
