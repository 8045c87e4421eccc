"""Golden files, made once and never again, are answered as on the day they were made, by dphist and a second reader.

The second reader was written from docs/format.md. It has no line of dphist: what both agree on is what the page says.
"""

import ast
import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import second_linear  # noqa: F401 -- names its kinds, as the others do
import second_parts
import second_predictive  # noqa: F401
import second_tables  # noqa: F401
from second_reader import KINDS, Reader

from dphist.inference import models

HERE = Path(__file__).parent / "golden"
ANSWERS = json.loads((HERE / "answers.json").read_text(encoding="utf-8"))
FILES = sorted(ANSWERS)
SECOND = sorted(Path(__file__).parent.glob("second_*.py"))
# Kinds whose boxes machine code asks about, as NumPy takes several times as long.
COMPILED = {"pieces", "tree", "leaves", "wavelets"}
# Of no kind yet: what a file may hold and the second reader does not read would stand here.
NOT_COVERED: set[str] = set()


def kinds(told):
    """The kinds of all models in a description."""
    inside = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    own = {told["model"]} if isinstance(told, dict) and isinstance(told.get("model"), str) else set()
    return own.union(*map(kinds, inside))


def described(name):
    return json.loads(pq.read_schema(HERE / f"{name}.parquet").metadata[b"dphist"])


def asked(name, answer, sums):
    """What a reader answers to the questions about a file, in the order in which they are kept."""
    kept = {key: found for key, found in ANSWERS[name].items() if key not in ("digest", "boxes")}
    for told, found in kept.items():
        ask, sure = (sums if told.startswith("sums") else answer), float(told.split()[-1])
        for box, ours in zip(ANSWERS[name]["boxes"], found, strict=True):
            yield ask(*box, sure), [float("nan") if end is None else end for end in ours]


def test_every_kind_and_form_has_a_golden_file():
    stories = [described(name) for name in FILES]
    assert set(models.KINDS) == set().union(*map(kinds, stories))
    assert {story.get("form") for story in stories} == {None, "tables", "sparse"}
    assert any("measures" in story for story in stories)
    assert any(story.get("polish") for story in stories)
    assert any("discovered" in story["guarantee"] for story in stories)
    assert any("rho" in story["guarantee"] for story in stories)
    assert {story["format"] for story in stories} == {"1.0"}


def test_golden_files_are_those_that_were_made_and_small():
    assert sorted(path.stem for path in HERE.glob("*.parquet")) == FILES
    for name in FILES:
        path = HERE / f"{name}.parquet"
        assert sha256(path.read_bytes()).hexdigest() == ANSWERS[name]["digest"]
    assert sum(path.stat().st_size for path in HERE.iterdir()) <= 300_000


OURS = """
import json, sys

class Closed:
    def find_spec(self, name, path=None, target=None):
        if name in {"dphist.mechanisms", "dphist.private", "dphist.sources", sys.argv[2]}:
            raise AssertionError(f"a reader loaded {name}")

sys.meta_path.insert(0, Closed())
sys.path.insert(0, sys.argv[1])
import dphist
from golden_answers import told

found = {}
for path in sys.argv[3:]:
    boxes = json.loads(sys.stdin.readline())
    found[path] = told(dphist.load(path), boxes)
print(json.dumps(found))
"""


@pytest.mark.parametrize("closed", ["numba", "no other"])
def test_dphist_answers_golden_files_as_ever_and_loads_no_mechanism(closed):
    names = [name for name in FILES if bool(kinds(described(name)) & COMPILED) is (closed != "numba")]
    paths = [str(HERE / f"{name}.parquet") for name in names]
    boxes = "".join(json.dumps(ANSWERS[name]["boxes"]) + "\n" for name in names)
    line = [sys.executable, "-c", OURS, str(HERE.parent), closed, *paths]
    run = subprocess.run(line, input=boxes, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    again = json.loads(run.stdout)
    for name, path in zip(names, paths, strict=True):
        for told, found in again[path].items():
            # Processors add up in different orders: the last of sixteen digits may differ.
            for ours, kept in zip(found, ANSWERS[name][told], strict=True):
                assert ours == [
                    None if end is None else pytest.approx(end, rel=1e-12, abs=1e-12) for end in kept
                ]


@pytest.mark.parametrize("name", FILES)
def test_the_second_reader_answers_the_same(name):
    if kinds(described(name)) & NOT_COVERED:
        pytest.skip("not covered")
    reader = Reader(HERE / f"{name}.parquet")

    def sums(low, high, sure):
        return second_parts.sum_of(reader, 0, low, high, sure)

    for theirs, ours in asked(name, reader.answer, sums):
        assert list(theirs) == pytest.approx(ours, rel=1e-9, abs=1e-9, nan_ok=True)


def test_the_second_reader_is_short_and_has_nothing_of_dphist():
    assert set(KINDS) | NOT_COVERED == set(models.KINDS)
    known = sys.stdlib_module_names | {"numpy", "pyarrow", *(each.stem for each in SECOND)}
    for path in SECOND:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 300
        for node in ast.walk(ast.parse(text)):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= known


def test_a_damaged_file_and_another_major_number_are_refused(tmp_path):
    table = pq.read_table(HERE / "independent.parquet")
    for change in ({b"note": b"518 women"}, {b"format": b"2"}):
        pq.write_table(
            table.replace_schema_metadata({**table.schema.metadata, **change}), tmp_path / "r.parquet"
        )
        with pytest.raises(ValueError, match="damaged"):
            Reader(tmp_path / "r.parquet")
