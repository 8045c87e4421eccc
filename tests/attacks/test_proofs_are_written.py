"""Every question and mechanism has its argument beside it, and the index leads to all of them."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import dphist.private
from dphist.private.questions import _PROVEN

INDEX = (Path(__file__).parents[2] / "docs" / "trust" / "proofs.md").read_text(encoding="utf-8")


def questions():
    for info in pkgutil.walk_packages(dphist.private.__path__, "dphist.private."):
        module = importlib.import_module(info.name)
        for made in vars(module).values():
            if inspect.isclass(made) and made.__module__ == module.__name__ and made in _PROVEN:
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
