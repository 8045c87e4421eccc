"""Conditions in an attribute's own values, as ranges of cells, or as stretches that may cut cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from dphist.errors import QueryError
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.ordinal import Stretch, whole_cells
from dphist.model.domain.scales import MOST, Bins, Dates, Place
from dphist.model.domain.written import Attribute

Span = tuple[int, int]
End = TypeVar("End", int, Place)
# Cells, and which share of each is meant.
Piece = tuple[int, int, float]


def spans(attribute: Attribute, condition: Any) -> list[Span]:
    """The cells a condition allows, as disjoint half-open ranges in order; one that cuts a bin is refused."""
    return whole_cells(attribute, stretches(attribute, condition))


def stretches(attribute: Attribute, condition: Any) -> list[Stretch]:
    """The stretches of values a condition allows, disjoint and in order: they may begin and end inside of bins."""
    if isinstance(condition, range):
        raise QueryError(f"{attribute.name}: give a pair of bounds (low, high), both included, not a range")
    if isinstance(condition, np.ndarray) and condition.ndim == 0:
        # One value that NumPy has wrapped.
        condition = condition.item()
    listed = isinstance(condition, list | set | frozenset | np.ndarray)
    found = union([_stretch(attribute, item) for item in (condition if listed else [condition])])
    if not found:
        raise QueryError(f"{attribute.name}: the list is empty, and asks for nobody")
    return found


def _stretch(attribute: Attribute, condition: Any) -> Stretch:
    if condition is None:
        raise QueryError(
            f"{attribute.name}: None is no condition; leave the attribute out to allow all of it"
        )
    if not isinstance(condition, tuple):
        return equal(attribute, condition)
    if isinstance(attribute, Nominal):
        raise QueryError(
            f"{attribute.name}: a pair bounds a range, and these categories have no order; give a list of categories, "
            "or one"
        )
    if len(condition) != 2:
        raise QueryError(f"{attribute.name}: a range is a pair (low, high)")
    return attribute.places(*condition)


def equal(attribute: Attribute, value: Any) -> Stretch:
    """The stretch of one value, of a cell by its name, or of a group by its."""
    if isinstance(attribute, Nominal):
        start, stop = attribute.span(value, value)
        return (start, 0.0), (stop, 0.0)
    if isinstance(value, str) and isinstance(attribute.scale, Bins | Dates):
        start, stop = attribute.scale.named(value)
        if start < stop:
            return (start, 0.0), (stop, 0.0)
    cell = attribute.index(value)
    if cell == attribute.other_cell:
        return (cell, 0.0), (cell + 1, 0.0)
    return attribute.places(value, value)


def union(found: Iterable[tuple[End, End]]) -> list[tuple[End, End]]:
    """All of these ranges of cells or stretches, disjoint and in order."""
    merged: list[tuple[End, End]] = []
    for start, stop in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def both(one: Sequence[Stretch], other: Sequence[Stretch]) -> list[Stretch]:
    """What lies in one of these and in one of those."""
    met = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(start, stop) for start, stop in met if start < stop]


def pieces(allowed: Iterable[Stretch]) -> list[Piece]:
    """Cells that stretches hold whole, with the share 1, and those that they cut, each with its share below 1."""
    whole: list[Piece] = []
    cut: dict[int, float] = {}
    for (start, before), (stop, until) in allowed:
        if start == stop:
            cut[start] = cut.get(start, 0.0) + until - before
            continue
        if before:
            cut[start] = cut.get(start, 0.0) + 1.0 - before
        if until:
            cut[stop] = cut.get(stop, 0.0) + until
        if start + bool(before) < stop:
            whole.append((start + bool(before), stop, 1.0))
    return whole + [(cell, cell + 1, min(share, MOST)) for cell, share in sorted(cut.items())]
