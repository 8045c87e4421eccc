"""Every public function and class says what it takes, what it gives, and shows itself in use; the examples run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import surface
from dphist.model.workload.questions import Questions
from dphist.release.derived import Derived
from dphist.release.tables import Tables

ROOT = Path(__file__).parent.parent


PUBLIC = surface.names()


# Classes that are a part of one public class, in a file of their own.
PARTS = (Derived, Questions, Tables)


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    parts = [vars(part) for part in cls.__mro__[1:] if part in PARTS]
    for name, value in (pair for each in (vars(cls), *parts) for pair in each.items()):
        inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and isinstance(inner, FunctionType):
            yield name, inner


# What every mechanism has, and the registry describes once for all of them.
COMMON = {"estimate"}
METHODS = {
    f"{name}.{method}": function
    for name, value in PUBLIC.items()
    if inspect.isclass(value) and not name.startswith(("mechanisms.", "release.", "audit.", "planning."))
    for method, function in methods(value)
    # What a class above describes need not be described again.
    if method not in COMMON
    and not any(hasattr(above, method) for above in value.__mro__[1:] if above not in PARTS)
}


def parameters(value: Any) -> list[str]:
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def described_fields(cls: type) -> set[str]:
    """Fields with a docstring of their own, as ours have: a text right below the annotation."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    node = next(each for each in tree.body if isinstance(each, ast.ClassDef))
    pairs = zip(node.body, node.body[1:], strict=False)
    return {
        one.target.id
        for one, other in pairs
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        and isinstance(other, ast.Expr) and isinstance(other.value, ast.Constant)
    }  # fmt: skip


def missing(value: Any, *, example: bool) -> list[str]:
    text = inspect.getdoc(value) or ""
    told = described_fields(value) if inspect.isclass(value) else set()
    section = text[text.find("Args:") :] if "Args:" in text else ""
    wrong = [
        f"Args: {name}"
        for name in parameters(value)
        if name not in told and not re.search(rf"^ +\*{{0,2}}{name}:", section, re.MULTILINE)
    ]
    returns = inspect.signature(value).return_annotation
    if not inspect.isclass(value) and returns not in (None, "None") and "Returns:" not in text:
        wrong.append("Returns")
    if example and ">>>" not in text:
        wrong.append("Example")
    return wrong


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_has_arguments_results_and_an_example(name: str) -> None:
    assert not missing(PUBLIC[name], example=True)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_public_method_has_arguments_and_results(name: str) -> None:
    assert not missing(METHODS[name], example=False)


def test_the_check_can_fail() -> None:
    def bare(one: int) -> int:
        """Say nothing of use."""
        return one

    assert missing(bare, example=True) == ["Args: one", "Returns", "Example"]


EXAMPLES = {
    name: value
    for name, value in {**PUBLIC, **METHODS}.items()
    if ">>>" in (inspect.getdoc(value) or "") and not name.startswith("web.serve")
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_its_example_runs(name: str) -> None:
    value = EXAMPLES[name]
    module = inspect.getmodule(value)
    assert module is not None
    names = dict(vars(module))
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", names, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    told: list[str] = []
    runner.run(example, out=told.append)
    assert not runner.failures, "".join(told)


MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for path in (ROOT / "src" / "dphist").rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8") and path.stem != "__init__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_what_is_not_public_run_too(name: str) -> None:
    module = importlib.import_module(name)
    shown = {id(getattr(value, "__wrapped__", value)) for value in EXAMPLES.values()}
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    for found in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        value = _named(module, found.name.removeprefix(f"{name}."))
        if id(value) in shown or "web.serve" in found.name:
            continue
        runner, told = doctest.DocTestRunner(optionflags=flags), list[str]()
        runner.run(found, out=told.append)
        assert not runner.failures, "".join(told)


def _named(module: object, path: str) -> object:
    for part in path.split("."):
        module = getattr(module, part, None)
    return module


def test_the_reference_lists_every_public_name() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: (dphist[\w.]*)$", page, re.MULTILINE)
    assert len(set(listed)) == len(listed)
    wanted = {f"{value.__module__}.{value.__qualname__}" for value in PUBLIC.values()} | {"dphist.errors"}
    assert wanted == set(listed)
