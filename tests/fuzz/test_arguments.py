"""Errors name the argument that is not of the kind that was asked for, and only that one; ours pass as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest

import dphist
from dphist.arguments import explained
from dphist.errors import ArgumentError, InputError, QueryError

Kind = Literal["a", "b"]


@explained
def broken(
    names: Sequence[str] | None = None,
    number: float = 1.0,
    whole: int = 1,
    kind: Kind = "a",
    shape: tuple[int, ...] = (),
    table: Mapping[str, int] | None = None,
    domain: dphist.Domain | None = None,
) -> None:
    """Fail whatever is given."""
    raise RuntimeError("ours")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("names", 5, "names must be Sequence.str. | None, not int"),
        ("names", ["a", Fraction(1)], "not list of Fraction, str"),
        ("names", "abc", "not str"),
        ("names", {"a": 1}, "not dict"),
        ("number", "1", "number must be float, not str"),
        ("number", 10**400, "no finite number|more than 64 bits"),
        ("whole", 1.5, "whole must be int, not float"),
        ("whole", 2**70, "more than 64 bits"),
        ("kind", "c", "kind must be Kind, not str"),
        ("kind", [], "not list"),
        ("shape", (1, "a"), "shape must be"),
        ("table", {"a": "b"}, "table must be"),
        ("domain", 3, "domain must be"),
    ],
)
def test_the_argument_is_named_and_not_quoted(name, value, words):
    with pytest.raises(InputError, match=words) as told:
        broken(**{name: value})
    assert told.value.__cause__ is None
    assert "Fraction(1" not in str(told.value)


@pytest.mark.parametrize(
    "fitting",
    [
        {"names": ["a"]}, {"names": ("a", "b")}, {"number": np.float32(2)}, {"number": Fraction(1, 3)}, {"number": 3},
        {"whole": np.int64(3)}, {"kind": "b"}, {"shape": (1, 2)}, {"table": {"a": 1}},
        {"domain": dphist.Domain([dphist.Ordinal("a", range(2))])},
    ],
)  # fmt: skip
def test_a_failure_of_ours_is_not_put_down_to_the_caller(fitting):
    with pytest.raises(RuntimeError, match="ours"):
        broken(**fitting)


def test_what_works_goes_on_working_and_our_own_errors_pass():
    @explained
    def lenient(names: Sequence[str]) -> int:
        """Take what can be counted."""
        if len(names) > 3:
            raise QueryError("too many")
        return len(names)

    assert lenient({1, 2}) == 2  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="too many"):
        lenient({1, 2, 3, 4})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs names"):
        lenient()  # type: ignore[call-arg]


def test_methods_of_a_class_name_their_arguments():
    domain = dphist.Domain([dphist.Ordinal("age", range(4))])
    with pytest.raises(InputError, match=r"Domain.project: names must be Sequence.str., not int"):
        domain.project(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="path: where the release is"):
        dphist.load(3.5)  # type: ignore[arg-type]


def test_a_method_is_called_by_the_class_that_people_know():
    domain = dphist.Domain([dphist.Ordinal("age", range(3))])
    release: Any = dphist.publish(dphist.Histogram(domain, [1, 2, 3]), epsilon=1, mechanism="laplace")
    ordinal: Any = dphist.Ordinal
    parse: Any = dphist.Unit.parse
    with pytest.raises(ArgumentError, match=r"^Release\.answer has no argument age"):
        release.answer(age=30)
    with pytest.raises(InputError, match=r"^Release\.records: count must be"):
        release.records(2.5)
    ask: Any = dphist.publish
    with pytest.raises(ArgumentError, match=r"^publish has no argument seed; there are source, domain"):
        ask(release, epsilon=1, seed=1)
    with pytest.raises(ArgumentError, match=r"^Ordinal has no argument bins"):
        ordinal("age", bins=[1, 2])
    with pytest.raises(ArgumentError, match=r"^Unit\.parse needs given"):
        parse()
