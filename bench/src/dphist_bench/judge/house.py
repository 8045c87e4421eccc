"""What the house weighs: lines, files, constants, words, and the files that one call walks through."""

from __future__ import annotations

import ast
import json
import tokenize
from collections.abc import Iterator
from io import StringIO

from dphist_bench.mutants import ROOT
from dphist_bench.timing import run_python

_LONG = 450


def weigh() -> dict[str, float]:
    """Count lines, files, constants and words of this checkout, and the files met by a few calls."""
    source = sorted((ROOT / "src/dphist").rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in source}
    found: dict[str, float] = {
        "src: lines": sum(text.count("\n") for text in texts.values()),
        "src: lines of code": sum(_code(text) for text in texts.values()),
        "src: files": len(source),
        "src: MB": round(sum(len(text.encode()) for text in texts.values()) / 1e6, 3),
        "src: numeric constants": sum(_constants(text) for text in texts.values()),
        "src: files above 450 lines": sum(text.count("\n") > _LONG for text in texts.values()),
        "tests: lines": _lines("tests", "*.py"),
        "bench: lines": _lines("bench/src", "*.py"),
        "docs: words": sum(
            len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").rglob("*.md")
        ),
    }
    return found | {f"files met: {name}": met for name, met in _met()}


def _lines(folder: str, pattern: str) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in (ROOT / folder).rglob(pattern))


def _code(text: str) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    quiet = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type not in quiet:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _constants(text: str) -> int:
    """Module-level names in capitals that are bound to a number, several in one line included."""
    found = 0
    for node in ast.parse(text).body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        for target in targets:
            if isinstance(target, ast.Name):
                found += target.id.isupper() and _number(value)
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = zip(target.elts, value.elts, strict=False)
                found += sum(isinstance(t, ast.Name) and t.id.isupper() and _number(v) for t, v in pairs)
    return found


def _number(value: ast.expr) -> bool:
    """Whether a number is written there, as 14 or as 1 << 14."""
    if isinstance(value, ast.UnaryOp):
        return _number(value.operand)
    if isinstance(value, ast.BinOp):
        return _number(value.left) and _number(value.right)
    found = value.value if isinstance(value, ast.Constant) else None
    return isinstance(found, int | float) and not isinstance(found, bool)


_COUNTED = """
import json, sys, tempfile, warnings, pathlib
import numpy as np
import dphist
warnings.simplefilter("ignore")
def met(call):
    files = set()
    def seen(frame, event, _):
        if event == "call" and "/dphist/" in frame.f_code.co_filename:
            files.add(frame.f_code.co_filename)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files)
place = pathlib.Path(tempfile.mkdtemp())
line = dphist.Domain([dphist.Ordinal("x", range(1024))])
plane = dphist.Domain([dphist.Ordinal("x", range(64)), dphist.Ordinal("y", range(64))])
draw = np.random.default_rng(1)
(place / "x.csv").write_text("x\\n" + "\\n".join(str(v) for v in draw.integers(0, 1024, 5000)) + "\\n")
flat = dphist.Histogram(line, draw.poisson(20, 1024))
hills = dphist.Histogram(plane, draw.poisson(20, (64, 64)))
told = dict(epsilon=1, unattended=True)
calls = {
    "publish laplace from CSV": lambda: dphist.publish(str(place / "x.csv"), line, mechanism="laplace", **told),
    "publish auto on a line": lambda: dphist.publish(flat, **told),
    "publish auto on a plane": lambda: dphist.publish(hills, **told),
}
found = {}
for name, call in calls.items():
    call()
    found[name] = met(call)
dphist.publish(flat, **told).save(place / "line.parquet")
dphist.load(place / "line.parquet").answer("x between 3 and 90")
found["load and answer, auto on a line"] = met(
    lambda: dphist.load(place / "line.parquet").answer("x between 3 and 90")
)
print(json.dumps(found))
"""


def _met() -> Iterator[tuple[str, int]]:
    yield from json.loads(run_python(["-c", _COUNTED]).output.splitlines()[-1]).items()
