"""Every question and mechanism has its argument beside it, and the index leads to all of them."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import dphist

INDEX = (Path(__file__).parents[2] / "docs" / "trust" / "proofs.md").read_text(encoding="utf-8")


def questions():
    for package in ("queries", "scores", "segments"):
        home = importlib.import_module(f"dphist.private.{package}")
        for info in pkgutil.iter_modules(home.__path__):
            module = importlib.import_module(f"dphist.private.{package}.{info.name}")
            for name, made in vars(module).items():
                asks = any(hasattr(made, verb) for verb in ("answer", "stages", "segment", "perturb"))
                if inspect.isclass(made) and made.__module__ == module.__name__ and asks and name[0] != "_":
                    yield made, module


@pytest.mark.parametrize(("question", "module"), list(questions()), ids=lambda x: getattr(x, "__name__", ""))
def test_every_question_argues_for_its_promise(question, module):
    argued = f"{question.__doc__} {module.__doc__}"
    assert any(word in argued for word in ("promise", "private", "step", "range")), question
    assert len(argued) > 120
    assert f"`{question.__name__}`" in INDEX


@pytest.mark.parametrize("name", sorted(dphist.list_mechanisms()))
def test_every_mechanism_is_in_the_index(name):
    assert inspect.getdoc(dphist.list_mechanisms()[name].cls)
    rows = [line for line in INDEX.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1
    assert f"| {dphist.list_mechanisms()[name].authors} |" in rows[0]
