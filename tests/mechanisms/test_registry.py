"""One list of mechanisms, one reading of their options: the same from Python, from text and from a file."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from fractions import Fraction
from typing import Annotated, Any, cast, get_args, get_origin

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.errors import EpsilonError, MechanismError
from dphist.mechanisms import DPCube, NoiseFirst, Tree, list_mechanisms
from dphist.mechanisms.options import _hints, from_json, parse, to_json
from dphist.mechanisms.registry import CLASSES, FAMILIES, INGREDIENTS, STATUSES, at


@pytest.mark.parametrize("name", list_mechanisms())
def test_an_entry_says_what_its_name_builds(name: str) -> None:
    entry = list_mechanisms()[name]
    built = entry()
    assert entry.name == name
    assert type(built) is entry.cls
    assert entry.family in FAMILIES
    assert entry.status in STATUSES
    assert 10 < len(entry.summary) < 90
    # A preset is made of what it says; a class stands for itself.
    assert (entry.preset_of is not None) == (not isinstance(entry.build, type))
    if entry.preset_of is not None:
        assert list_mechanisms()[entry.preset_of].cls is type(built)


def test_equal_names_are_called_aliases_and_nothing_else_is() -> None:
    built = {name: entry() for name, entry in list_mechanisms().items()}
    for name, entry in list_mechanisms().items():
        if entry.alias_of is not None:
            assert built[name] == built[entry.alias_of]
            assert list_mechanisms()[entry.alias_of].alias_of is None
    plain = [built[name] for name, entry in list_mechanisms().items() if entry.alias_of is None]
    assert len(set(plain)) == len(plain)


def test_the_default_is_what_publish_takes_and_reference_means_refused() -> None:
    from dphist.publishing.door import DEFAULT_MECHANISM

    by_status: dict[str, list[str]] = {}
    for name, entry in list_mechanisms().items():
        by_status.setdefault(entry.status, []).append(name)
    assert by_status["default"] == [DEFAULT_MECHANISM] == [next(iter(list_mechanisms()))]
    assert 3 <= len(by_status["recommended"]) <= 9
    assert by_status["reference"] == ["spa"]
    with pytest.raises(TypeError):
        list_mechanisms()["mine"] = list_mechanisms()["auto"]  # type: ignore[index]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_every_annotation_can_be_read(name: str) -> None:
    cls = at(CLASSES[name])
    assert set(_hints(cls)) >= {field for field in getattr(cls, "__dataclass_fields__", {}) if field != "_"}


# Options written in Python, as text on the command line, and as a file has them: one reading, one result.
SAME = [
    ("dpcube", "cells_share", "0.5", Fraction(1, 2)),
    ("dpcube", "cells_share", 0.1, Fraction(1, 10)),
    ("dpcube", "cells_share", "3/4", Fraction(3, 4)),
    ("dpcube", "threshold", "2.5", 2.5),
    ("dpcube", "threshold", "auto", "auto"),
    ("tree", "fanout", 16.0, 16),
    ("tree", "fanout", "16", 16),
    ("tree", "fanout", "hb", "hb"),
    ("tree", "root", "false", False),
    ("noisefirst", "price", "log", "log"),
    ("noisefirst", "price", "0.25", Fraction(1, 4)),
    ("noisefirst", "bins", 3.0, 3),
    ("noisefirst", "bins", None, None),
    ("fpa", "keep", [2, 3.0], (2, 3)),
    ("marginals", "tables", [[0], [1, 0]], ((0,), (1, 0))),
    ("adaptivegrid", "least", "7", 7),
    ("sparselaplace", "threshold", 20.0, 20),
    ("blocks", "inner", "tree(fanout=4)", Tree(fanout=4)),
]


@pytest.mark.parametrize(("name", "option", "given", "read"), SAME)
def test_python_text_and_file_read_options_alike(name: str, option: str, given: Any, read: Any) -> None:
    python = list_mechanisms()[name].cls(**{option: given})
    value = getattr(python, option)
    assert value == read
    assert type(value) is type(read)
    text = parse(f"{name}({option}={given!r})")
    file = from_json(json.loads(json.dumps(to_json(python))))
    assert python == text == file
    if not isinstance(given, list):
        # As somebody else may have written the file.
        assert from_json({"name": name, "options": {option: given}}) == python


WRONG = [
    ("dpcube", "cells_share", "half"), ("dpcube", "cells_share", True), ("dpcube", "cells_share", "nan"),
    ("dpcube", "cells_share", "1e999"), ("tree", "fanout", 16.5), ("tree", "fanout", "many"), ("tree", "fanout", True),
    ("tree", "fanout", 2**70), ("tree", "root", 1), ("tree", "budgets", "even"), ("noisefirst", "bins", 1.5),
    ("noisefirst", "statistic", 3), ("fpa", "keep", (1, "x")), ("blocks", "inner", "nothing"),
    ("blocks", "inner", "smooth"),
    ("mixture", "steps", 2**61), ("mixture", "classes", 2**61), ("mixture", "ways", 2**61),
    ("mixture", "steps", -(2**61)), ("mixture", "steps", 0), ("mixture", "classes", 0), ("mixture", "ways", 0),
    ("kdhybrid", "switch", 2**61), ("kdhybrid", "height", 65), ("mwem", "rounds", 1001),
    ("residuals", "ways", 2**61),
    ("dpcube", "threshold", "1e300"),
    *(("dpcube", "cells_share", given) for given in (0, 1)), ("dpcube", "threshold", "none"),
    ("dpcube", "threshold", -1.0), ("dpcube", "threshold", float("nan")), ("dpcube", "estimator", "best"),
    *(("fpa", "keep", given) for given in (0, -1, True, (), (2, 0))), ("fpa", "basis", "either"),
    *(("efpa", "share", given) for given in (0, 1, "3/2")), ("efpa", "basis", "wavelet"),
    ("uniformgrid", "total_share", 1), ("uniformgrid", "constant", 0.0), ("adaptivegrid", "first_share", 0),
    ("adaptivegrid", "least", 0), ("phpartition", "share", 0), ("phpartition", "share", 1),
    ("matrix", "workload", "everything"), ("mwem", "rounds", 0), ("mwem", "passes", 0),
    ("mwem", "total", 0), ("mwem", "total", 1), ("noisefirst", "statistic", "mode"), ("noisefirst", "bins", 0),
    ("noisefirst", "price", "cheap"), ("noisefirst", "price", -1), ("quadtree", "height", -1),
    ("quadtree", "height", "tall"), ("kdhybrid", "switch", -1), ("kdhybrid", "median_share", 1),
    ("hierarchicalkd", "median_share", 0), ("hierarchicalkd", "height", True), ("structurefirst", "statistic", "mode"),
    ("structurefirst", "bins", 0), ("structurefirst", "ceiling", 0), ("structurefirst", "split", 1),
    ("structurefirst", "inside", "forest"), ("tree", "fanout", 1), ("tree", "workload", "x"),
    ("privelet", "calibration", "loose"), ("blocks", "group", "squared"), ("blocks", "inner", 3),
    ("blocks", "order", "laplace"), ("sparselaplace", "threshold", "2.5"), ("adaptivetree", "estimator", "soon"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "option", "given"), WRONG)
def test_what_does_not_convert_is_refused_by_name_everywhere(name: str, option: str, given: Any) -> None:
    for build in (
        lambda: list_mechanisms()[name].cls(**{option: given}),
        lambda: parse(f"{name}({option}={given!r})"),
        lambda: from_json({"name": name, "options": {option: given}}),
    ):
        with pytest.raises(MechanismError, match=option):
            build()


def test_the_refusal_says_what_is_taken() -> None:
    with pytest.raises(MechanismError, match=r"tree: fanout must be .* 1,048,576, 'hb' or 'auto'"):
        Tree(fanout="many")  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match=r"dpcube: cells_share must be a number"):
        DPCube(cells_share=[])  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match=r"noisefirst: price must be 'log', 'paper' or a number"):
        NoiseFirst(price="dear")  # type: ignore[arg-type]


def test_python_keeps_its_own_words_for_options_there_are_not() -> None:
    with pytest.raises(TypeError, match="fan"):
        Tree(fan=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Tree(3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="metric"):
        dphist.mechanisms.Smooth("absolute", metric="squared")  # type: ignore[misc]


def test_epsilon_is_asked_for() -> None:
    domain = dphist.Domain([dphist.Ordinal("x", range(3))])
    histogram = dphist.Histogram(domain, np.arange(3))
    with pytest.raises(EpsilonError, match="epsilon is missing"):
        dphist.publish(histogram)
    assert dphist.publish(histogram, None, "1/2", "laplace").epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    "text",
    ["tree(fanout=4, fanout=8)", "tree()(fanout=4)", "blocks(inner=tree(fanout=4, fanout=8))", "laplace()()"],
)
def test_no_option_is_dropped_without_a_word(text):
    with pytest.raises(MechanismError, match=r"twice|cannot read"):
        parse(text)


def test_every_whole_number_says_how_large_it_may_be() -> None:
    """A file may come from anybody: `mixture(steps=2**61)` let whoever showed it wait for ever."""
    named = (entry.cls for entry in list_mechanisms().values())
    for cls in dict.fromkeys([*named, *map(at, (*CLASSES.values(), *INGREDIENTS.values()))]):
        for option, hint in _hints(cast(Any, cls)).items() if is_dataclass(cls) else ():
            # Of a union its parts; what says how large it may be is one part.
            parts = (hint,) if get_origin(hint) is Annotated else (hint, *get_args(hint))
            assert int not in parts, f"{cls.__name__}.{option}: write Large, or Annotated[int, Bounds(…)]"


def test_tables_of_all_combinations_are_as_few_as_can_be_fitted() -> None:
    domain = dphist.Domain([dphist.Nominal(f"a{place}", ["x", "y"]) for place in range(60)])
    rows = pa.table({name: ["x", "y"] for name in domain.names})
    for name in ("residuals", "mixture"):
        with pytest.raises(MechanismError, match=r"ways: .* tables are more than can be fitted"):
            dphist.publish(rows, domain, 1, f"{name}(ways=16)")
