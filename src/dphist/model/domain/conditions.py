"""Conditions in an attribute's own values, as ranges of cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphist.errors import QueryError
from dphist.model.domain.labels import OTHER
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.written import Attribute


def spans(attribute: Attribute, condition: Any) -> list[tuple[int, int]]:
    """The cells a condition allows, as disjoint half-open ranges in order."""
    if isinstance(condition, range):
        raise QueryError(f"{attribute.name}: give a pair of bounds (low, high), both included, not a range")
    if isinstance(condition, np.ndarray) and condition.ndim == 0:
        # One value that NumPy has wrapped.
        condition = condition.item()
    pair = isinstance(condition, tuple) and not isinstance(attribute, Nominal)
    if isinstance(condition, list | set | frozenset | np.ndarray) or (
        isinstance(condition, tuple) and not pair
    ):
        ranges = sorted(_span(attribute, item) for item in condition)
    else:
        ranges = [_span(attribute, condition)]
    merged: list[tuple[int, int]] = []
    for start, stop in ranges:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    found = [span for span in merged if span[0] < span[1]]
    if not found:
        raise QueryError(f"{attribute.name}: the list is empty, and asks for nobody")
    return found


def _span(attribute: Attribute, condition: Any) -> tuple[int, int]:
    if condition is None:
        raise QueryError(
            f"{attribute.name}: None is no condition; leave the attribute out to allow all of it"
        )
    if attribute.other_cell is not None and isinstance(condition, str) and condition == OTHER:
        return attribute.other_cell, attribute.other_cell + 1
    if isinstance(attribute, Nominal):
        return attribute.span(condition)
    if isinstance(condition, tuple):
        if len(condition) != 2:
            raise QueryError(f"{attribute.name}: a range is a pair (low, high)")
        return attribute.span(*condition)
    cell = attribute.index(condition)
    return cell, cell + 1
