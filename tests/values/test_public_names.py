import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import dphist
from dphist.mechanisms import CLASSES

HEAVY = ("numpy", "numba", "ibis", "pandas", "duckdb", "pyarrow", "scipy")


def test_every_public_name_is_there_sorted_and_typed():
    names = [name for name in dphist.__all__ if name != "__version__"]
    assert names == sorted(names)
    for name in names:
        assert getattr(dphist, name) is not None
    # What type checkers see is what there is.
    tree = ast.parse(Path(dphist.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert typed == {*names, *dphist._ROOMS}
    for name in dphist._ROOMS:
        assert getattr(dphist, name).__name__ == f"dphist.{name}"


@pytest.mark.parametrize("module", [dphist, dphist.mechanisms], ids=lambda module: module.__name__)
def test_type_checkers_can_read_what_is_exported(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    assigned = [
        node
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"  # type: ignore[attr-defined]
    ]
    assert ast.literal_eval(assigned[0].value) == module.__all__
    assert not any(isinstance(node, ast.AugAssign) for node in tree.body)


def test_the_face_has_at_most_twenty_names():
    assert len(dphist.__all__) <= 20
    assert set(dphist.__all__) == {"__version__", *dphist._HOMES}
    assert set(dphist.__all__) >= {
        "Answer", "Answers", "Domain", "Histogram", "Ledger", "Nominal", "Ordinal", "Release", "Unit", "Workload",
        "audit", "errors", "list_mechanisms", "load", "mechanisms", "publish", "testing", "__version__",
    }  # fmt: skip
    assert set(dir(dphist)) == set(dphist.__all__)


def test_mechanisms_is_a_plain_module_of_classes():
    assert type(dphist.mechanisms) is ModuleType
    with pytest.raises(TypeError):
        dphist.mechanisms()  # type: ignore[operator]
    assert set(dphist.mechanisms.__all__) >= set(CLASSES)
    for name in CLASSES:
        assert getattr(dphist.mechanisms, name).__name__ == name
        assert name in dir(dphist.mechanisms)
    tree = ast.parse(Path(dphist.mechanisms.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert {alias.name for node in block.body for alias in node.names} == set(CLASSES)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Nothing"):
        dphist.mechanisms.Nothing  # noqa: B018


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_an_old_spelling_works_for_one_version_and_says_where_it_went(name):
    with pytest.warns(DeprecationWarning, match=rf"dphist\.mechanisms\.{name}"):
        assert getattr(dphist, name) is getattr(dphist.mechanisms, name)


def test_a_name_that_nobody_has_is_refused():
    with pytest.raises(AttributeError, match="Nothing"):
        dphist.Nothing  # noqa: B018


def test_the_version_is_written_once():
    assert re.fullmatch(r"\d+\.\d+\.\d+", dphist.__version__)
    root = Path(__file__).parent.parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/dphist/version.py"


def test_importing_dphist_imports_nothing_heavy():
    code = f"import sys, dphist; print([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_help_imports_nothing_heavy():
    code = f"import sys\nfrom dphist.cli import commands\nprint([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
