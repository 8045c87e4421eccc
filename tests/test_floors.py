"""The floors guard: every contract holds, and each of them fails in a copy of the house in which it is broken."""

from __future__ import annotations

import ast
import functools
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
# Where a text may be turned into a module: lazy tables of public names, optional libraries, the laboratory's lists, the
# script that runs a peer in that peer's own Python.
BY_STRING = {
    "dphist/__init__.py",
    "dphist/uses/__init__.py",
    "dphist/mechanisms/registry.py",
    "dphist/extras.py",
    "dphist_bench/catalogue.py",
    "dphist_bench/peers/inside.py",
}
# What a mechanism may take from the gate: rights and what they answer with. Opening a gate needs the counts.
OPENERS = {"open_gate", "open_replay"}


parsed = functools.cache(ast.parse)


def modules(house: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every file of both distributions, by its path, parsed."""
    for base in (house / "src", house / "bench" / "src"):
        for path in sorted(base.rglob("*.py")):
            yield path.relative_to(base).as_posix(), parsed(path.read_text(encoding="utf-8"))


def imports_by_string(house: Path) -> list[str]:
    """Files that turn a text into a module and are not among the few that may."""
    found = []
    for name, tree in modules(house):
        words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        words |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        words |= {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        if words & {"import_module", "__import__", "exec_module"} and name not in BY_STRING:
            found.append(name)
    return found


def taken(house: Path, room: str, other: str) -> Iterator[tuple[str, str]]:
    """Names that the files of a room (or all but its own, with a leading "!") take from the modules of another."""
    for name, tree in modules(house):
        inside = name.startswith(room.removeprefix("!"))
        if inside == room.startswith("!"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{other}."):
                yield from ((name, alias.name) for alias in node.names)


def openers_in_mechanisms(house: Path) -> list[tuple[str, str]]:
    """Mechanisms that would open a gate by themselves."""
    found = taken(house, "dphist/mechanisms/", "dphist.private.gate")
    return [(name, what) for name, what in found if what in OPENERS or what.startswith("open_")]


def private_names(house: Path) -> list[tuple[str, str]]:
    """Files outside the trusted core that take one of its underscore names."""
    return [
        (name, what)
        for name, what in taken(house, "!dphist/private/", "dphist.private")
        if what.startswith("_") and not name.startswith("dphist_bench/")
    ]


def foreign_attributes(house: Path) -> list[tuple[str, str]]:
    """Files of the product that read an underscore attribute which only other rooms have."""
    own: dict[str, set[str]] = defaultdict(set)
    read = []
    for name, tree in modules(house):
        room = name.split("/")[1]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.append((name, room, node.attr))
            elif isinstance(node, ast.Attribute):
                own[room].add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own[room].add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                own[room].add(node.name)
    ours = set().union(*own.values())
    return [
        (name, attribute)
        for name, room, attribute in read
        if name.startswith("dphist/") and attribute.startswith("_") and not attribute.startswith("__")
        if attribute in ours and attribute not in own[room]
    ]


def circles() -> list[set[str]]:
    """Groups of files that import one another, inside functions and for their types alone included."""
    graph = grimp.build_graph("dphist", "dphist_bench", cache_dir=None)
    return knots({m: sorted(graph.find_modules_directly_imported_by(m)) for m in graph.modules})


def knots(below: Mapping[str, Sequence[str]]) -> list[set[str]]:
    """Groups that reach one another along arrows (Kosaraju's strongly connected components)."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(below):
        walk: list[tuple[str, Iterator[str]]] = []
        if start not in seen:
            seen.add(start)
            walk.append((start, iter(below[start])))
        while walk:
            module, rest = walk[-1]
            ahead = next((each for each in rest if each not in seen), None)
            if ahead is None:
                order.append(walk.pop()[0])
            else:
                seen.add(ahead)
                walk.append((ahead, iter(below[ahead])))
    above: dict[str, list[str]] = {module: [] for module in below}
    for module, each in below.items():
        for other in each:
            above[other].append(module)
    found, done = [], set()
    for start in reversed(order):
        group, left = set(), [start]
        while left:
            module = left.pop()
            if module not in done:
                done.add(module)
                group.add(module)
                left += above[module]
        if len(group) > 1:
            found.append(group)
    return found


def test_nothing_is_imported_by_a_string_outside_the_tables():
    assert imports_by_string(ROOT) == []


def test_mechanisms_take_rights_from_the_gate_and_open_none():
    assert openers_in_mechanisms(ROOT) == []


def test_nobody_takes_underscore_names_of_the_trusted_core():
    assert private_names(ROOT) == []


def test_nobody_reads_underscore_attributes_of_another_room():
    assert foreign_attributes(ROOT) == []


def test_a_mechanism_that_reaches_into_its_right_is_found(tmp_path):
    """`data._right` holds the true counts, and no import of it is needed to take them."""
    for room, text in (
        ("private", "class Counts:\n    def __init__(self, right):\n        self._right = right\n"),
        ("mechanisms", "def estimate(data):\n    return data._right[0]\n"),
    ):
        (tmp_path / "src/dphist" / room).mkdir(parents=True)
        (tmp_path / "src/dphist" / room / "a.py").write_text(text)
    (tmp_path / "bench/src").mkdir(parents=True)
    assert foreign_attributes(tmp_path) == [("dphist/mechanisms/a.py", "_right")]


def test_no_file_imports_itself_in_a_circle():
    assert circles() == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Both distributions and the contracts, in a place where they may be broken."""
    house = tmp_path_factory.mktemp("house")
    skip = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for part in ("src", "bench/src"):
        shutil.copytree(ROOT / part, house / part, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", house)
    return house


def lint(house: Path) -> tuple[int, str]:
    """Run the linter there; its words, without line breaks."""
    places = os.pathsep.join(str(house / part) for part in ("src", "bench/src"))
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as go; go()"],
        cwd=house,
        env={**os.environ, "PYTHONPATH": places, "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


class Broken:
    """A line at the end of a file of the copy, for as long as it is looked at."""

    def __init__(self, path: Path, line: str) -> None:
        self.path, self.line = path, line
        self.before = path.read_text(encoding="utf-8") if path.exists() else None

    def __enter__(self) -> None:
        self.path.write_text(f"{self.before or ''}\n{self.line}\n", encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        if self.before is None:
            self.path.unlink()
        else:
            self.path.write_text(self.before, encoding="utf-8")


def test_the_copy_keeps_every_contract(copy):
    code, said = lint(copy)
    assert code == 0, said


LAB, PRODUCT = "bench/src/dphist_bench", "src/dphist"
BREAKS = [
    (f"{PRODUCT}/kernels/grouping.py", "import dphist.model.unit", "Data flow one way"),
    (f"{PRODUCT}/stray.py", "import dphist.errors", "Data flow one way"),
    (f"{PRODUCT}/inference/estimate.py", "import dphist.sources", "Data flow one way"),
    (f"{LAB}/results.py", "import dphist_bench.pages", "The laboratory stands above"),
    (f"{LAB}/stray.py", "import dphist.errors", "The laboratory stands above"),
    (f"{PRODUCT}/cli/screen.py", "import dphist_bench.metrics", "The product does not know"),
    (f"{PRODUCT}/mechanisms/tree.py", "from dphist.model.histogram import Histogram", "A mechanism has no"),
    (f"{PRODUCT}/mechanisms/tree.py", "from dphist.private.noise import Noise", "A mechanism has no"),
    (f"{PRODUCT}/mechanisms/tree.py", "from dphist.private import ledger", "A mechanism has no"),
    (f"{PRODUCT}/mechanisms/tree.py", "def f():\n    from dphist.sources import count", "A mechanism has no"),
    (f"{PRODUCT}/private/gate.py", "import dphist.sources.count", "The trusted core imports nothing"),
    (f"{PRODUCT}/private/gate.py", "import dphist.release", "The trusted core imports nothing"),
    (f"{PRODUCT}/report/facts.py", "from dphist.private.noise import Noise", "Noise is drawn"),
    (f"{PRODUCT}/web/view.py", "from dphist.private.ledger import Ledger", "Budgets are kept"),
    (f"{PRODUCT}/publishing/door.py", "import dphist.private.noise.keystream", "Nobody outside reaches"),
    (f"{PRODUCT}/errors.py", "import dphist.extras", "Errors stand on nothing"),
    (f"{PRODUCT}/release/cells/cells.py", "import dphist.release.asking", "A release is put together"),
    (f"{PRODUCT}/release/stray.py", "import dphist.errors", "A release is put together"),
    (f"{PRODUCT}/sources/files/lines.py", "import dphist.sources.databases.spark", "Rows mean the same"),
    (f"{PRODUCT}/sources/stray.py", "import dphist.errors", "Rows mean the same"),
    (
        f"{PRODUCT}/inference/tables/shrunk.py",
        "import dphist.inference.neighbours",
        "Rooms of inference",
    ),
    (f"{PRODUCT}/inference/stray.py", "import dphist.errors", "Rooms of inference"),
    (f"{PRODUCT}/kernels/special.py", "import scipy.special", "The product does without SciPy"),
]


def rounds() -> list[list[tuple[str, str, str]]]:
    """One break of every contract, then a second one of those that have two …: a look at all of them takes seconds."""
    found: list[list[tuple[str, str, str]]] = []
    for each in BREAKS:
        if not any(each[2] not in {other[2] for other in part} for part in found):
            found.append([])
        next(part for part in found if each[2] not in {other[2] for other in part}).append(each)
    return found


@pytest.mark.parametrize("breaks", rounds(), ids=lambda breaks: f"{len(breaks)} at once")
def test_each_contract_fails_when_it_is_broken(copy, breaks):
    with ExitStack() as stack:
        for file, line, _ in breaks:
            stack.enter_context(Broken(copy / file, line))
        code, said = lint(copy)
    assert code == 1
    broken = [words.rpartition(" KEPT ")[2] for words in said.split(" BROKEN")[:-1]]
    told = said[said.index("Broken contracts") :] if "Broken contracts" in said else ""
    for file, line, contract in breaks:
        assert any(contract in words for words in broken), said
        # What is said of this contract names the file with the line, so that no other break stands in for it.
        about = told[told.rindex(contract) :]
        others = [about.index(other) for _, _, other in breaks if other != contract and other in about]
        module = file.split("src/")[-1].removesuffix(".py").replace("/", ".")
        assert module.removesuffix(".__init__") in about[: min(others, default=len(about))], (
            contract,
            line,
            told,
        )


def test_the_other_checks_fail_when_they_are_broken(tmp_path):
    tree = tmp_path / PRODUCT / "mechanisms" / "tree.py"
    tree.parent.mkdir(parents=True)
    tree.write_text("from dphist.private.gate import PrivateCounts\n")
    assert imports_by_string(tmp_path) == openers_in_mechanisms(tmp_path) == private_names(tmp_path) == []  # type: ignore[comparison-overlap]
    with Broken(tree, "import importlib\nimportlib.import_module('dphist.sources')"):
        assert imports_by_string(tmp_path) == ["dphist/mechanisms/tree.py"]
    with Broken(tree, "__import__('dphist.sources')"):
        assert imports_by_string(tmp_path) == ["dphist/mechanisms/tree.py"]
    with Broken(tree, "from dphist.private.gate import open_gate"):
        assert openers_in_mechanisms(tmp_path) == [("dphist/mechanisms/tree.py", "open_gate")]
    with Broken(tree, "from dphist.private.gate import _Nothing"):
        assert private_names(tmp_path) == [("dphist/mechanisms/tree.py", "_Nothing")]


def test_a_circle_is_seen():
    graph = {"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": [], "e": ["e2"], "e2": ["e"]}
    assert sorted(map(sorted, knots(graph))) == [["b", "c"], ["e", "e2"]]
