"""What people write for a workload: ``"ranges"``, ``"marginals:2"``, ``"marginals:age,sex;sex,region"``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from dphist.errors import QueryError, TooLargeError
from dphist.model.domain import Domain, Nominal
from dphist.model.workload.questions import Kind, Tables

# What is written, and what it is called in a release.
KINDS: dict[str, Kind] = {
    "cells": "cells",
    "prefixes": "prefixes",
    "ranges": "all_ranges",
    "all_ranges": "all_ranges",
    "marginals": "marginals",
}
FORMS = (
    "cells, prefixes, ranges, marginals, marginals:2, marginals:age,sex;sex,region or 3 cells + marginals:2"
)
_INSIDE = " ranges:"
_BETWEEN = " + "
_PART = re.compile(r"\s*(?:(\d+(?:\.\d+)?|\.\d+)\s+)?(\S.*)", re.ASCII | re.DOTALL)


def read_mixture(text: str) -> list[tuple[float, str]]:
    """What a text such as ``3 cells + marginals:2`` is a mixture of, with weights; nothing if it is none.

    A name of an attribute may hold a plus: what follows one is a part only if it begins with a kind of questions.
    """
    found: list[tuple[float, str]] = []
    for part in text.split(_BETWEEN):
        match = _PART.fullmatch(part)
        word = match[2].partition(":")[0].split()[0].lower() if match else ""
        if match is None or word not in KINDS:
            return []
        found.append((float(match[1] or 1.0), match[2].strip()))
    return found if len(found) > 1 or found[0][0] != 1.0 else []


def weighted(parts: Any) -> list[tuple[float, Any]]:
    """The parts of a mixture: how much each counts, and what will be asked."""
    listed = isinstance(parts, Sequence) and not isinstance(parts, str) and len(parts) > 0
    if not listed or any(isinstance(p, str) or not isinstance(p, Sequence) or len(p) != 2 for p in parts):
        raise QueryError("workload: a mixture lists pairs of a weight and what will be asked")
    for weight, _ in parts:
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0.0 < weight < math.inf:
            raise QueryError(
                "workload: give each part of a mixture a weight above zero, as in 3 cells + marginals:2"
            )
    return [(float(weight), asked) for weight, asked in parts]


def read_text(domain: Domain, text: str) -> tuple[Kind, int | list[list[str]]]:
    """The kind of questions, and for tables which: how many attributes each, or their names."""
    word, colon, rest = text.strip().partition(":")
    kind = KINDS.get(word.strip().lower())
    if kind is None:
        raise QueryError(f"workload: {text.strip()[:60]!r} is not understood; write {FORMS}")
    rest = rest.strip()
    if bool(colon) != bool(rest) or (rest and kind != "marginals"):
        raise QueryError(f"workload: {text.strip()[:60]!r} is not understood after its colon; write {FORMS}")
    if not rest:
        return kind, 1
    if rest.isascii() and rest.isdigit() and rest not in domain.names:
        if int(rest[:9]) == 0:
            raise QueryError("workload: tables have at least one attribute: marginals:1, marginals:2, …")
        return kind, int(rest[:9])
    return kind, [[name.strip() for name in table.split(",")] for table in rest.split(";")]


def read_ranges(text: str) -> tuple[str, list[str]]:
    """A text without the ranges at its end, and the attributes that they are of."""
    before, inside, names = text.rpartition(_INSIDE)
    if not inside:
        return text, []
    return before, [name.strip() for name in names.split(",")]


def ranges(domain: Domain, names: Any) -> tuple[int, ...]:
    """The axes of attributes whose ranges are asked inside tables."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise QueryError("workload: ranges takes a list of names of attributes")
    ranged = [
        axis
        for axis, attribute in enumerate(domain.attributes)
        if not isinstance(attribute, Nominal) or attribute.hierarchy.levels > 2
    ]
    if list(names) == ["*"]:
        return tuple(ranged)
    for name in names:
        if axis(domain, name) not in ranged:
            raise QueryError(f"workload: ranges of {name[:60]}: it has neither an order nor a hierarchy")
    return tuple(sorted({domain.axis(name) for name in names}))


def axis(domain: Domain, name: Any) -> int:
    """The place of an attribute, by its name."""
    if name not in domain.names:
        raise QueryError(
            f"workload: there is no attribute {str(name)[:60]!r}; there are {', '.join(domain.names)}"
        )
    return domain.axis(name)


def read_mapping(value: Mapping[str, Any]) -> tuple[Any, Any]:
    """The tables of ``{"marginals": …}``, how many attributes each or their names, and of which ranges are asked."""
    if "marginals" not in value or not set(value) <= {"marginals", "ranges"}:
        raise QueryError(
            "workload: a mapping says {'marginals': 2} or {'marginals': [['age', 'sex'], ['sex', 'region']]}"
        )
    return value["marginals"], value.get("ranges", ())


def tables(domain: Domain, ways: Any) -> Tables:
    """The axes of every table: all of ``ways`` attributes, or those that are named."""
    if isinstance(ways, int) and not isinstance(ways, bool):
        if not 0 <= ways <= len(domain.shape):
            raise QueryError(
                f"workload: ways must be between 0 and the number of attributes: tables of {ways} are not to be had "
                f"from {len(domain.shape)}"
            )
        if math.comb(len(domain.shape), ways) > 1_000_000:
            raise TooLargeError(
                f"workload: all tables of {ways} attributes are too many to list; name those that matter"
            )
        return tuple(combinations(range(len(domain.shape)), ways))
    if isinstance(ways, str) or not isinstance(ways, Sequence):
        raise QueryError("workload: marginals take a number of attributes, or a list of lists of their names")
    named = [(table,) if isinstance(table, str) else table for table in ways]
    if not named:
        raise QueryError("workload: name at least one table")
    found = []
    for table in named:
        if not isinstance(table, Sequence) or not all(isinstance(name, str) for name in table):
            raise QueryError("workload: a table is a list of names of attributes")
        if len(set(table)) < len(table):
            raise QueryError(f"workload: a table names {max(table, key=list(table).count)} twice")
        found.append(tuple(axis(domain, name) for name in table))
    return tuple(found)


def axes_of(domain: Domain, value: Any) -> Tables:
    """The tables of a file, by their axes."""
    if not isinstance(value, list) or not value:
        raise QueryError("workload: tables must be lists of axes")
    for axes in value:
        if (
            not isinstance(axes, list)
            or not all(type(axis) is int and 0 <= axis < len(domain.shape) for axis in axes)
            or len(set(axes)) < len(axes)
        ):
            raise QueryError("workload: tables must be lists of axes of the domain, each once")
    return tuple(tuple(axes) for axes in value)
