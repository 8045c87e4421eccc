import ast
import subprocess
import sys
from pathlib import Path

import dphist

HEAVY = ("numpy", "numba", "ibis", "pandas", "duckdb", "pyarrow", "scipy")


def test_every_public_name_is_there_sorted_and_typed():
    names = [name for name in dphist.__all__ if name != "__version__"]
    assert names == sorted(names)
    for name in names:
        assert getattr(dphist, name) is not None
    # What type checkers see is what there is.
    tree = ast.parse(Path(dphist.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == set(names)


def test_functions_named_like_their_module_are_functions():
    assert callable(dphist.publish)
    assert callable(dphist.mechanisms)
    assert "laplace" in dphist.mechanisms()


def test_importing_dphist_imports_nothing_heavy():
    code = f"import sys, dphist; print([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_help_imports_nothing_heavy():
    code = f"import sys\nfrom dphist.cli import commands\nprint([m for m in {HEAVY} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
