"""What will be asked of several attributes, as kinds of boxes and how much each counts: announced, or a mixture.

Candidates are compared by it (`forecast`). Public facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.trees.planning import SAMPLE, asked_ranges
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Kind, Workload

# If nothing was announced single cells count half as much as all kinds of sums of them together: a third of the whole.
_CELLS = 0.5
# An ordered attribute of at least 16 values is asked for ranges.
_LONG = 16
_WAYS = {1: "one", 2: "two", 3: "three"}
_KINDS = {"cells": "single counts", "prefixes": "running totals", "all_ranges": "ranges"}


@dataclass(frozen=True, eq=False)
class Asked:
    """One kind of question: boxes, how often each is asked (parts of one), and how much the kind counts."""

    name: str
    low: IntArray
    high: IntArray
    times: FloatArray
    weight: float = 1.0

    @property
    def some(self) -> tuple[IntArray, IntArray]:
        """Where some of the boxes begin and end: enough of them to plan by."""
        step = max(1, len(self.low) // SAMPLE)
        return self.low[::step], self.high[::step]


def asked_kinds(
    shape: tuple[int, ...],
    domain: Domain | None,
    workload: Workload | None,
    kind: Kind | None,
) -> tuple[Asked, ...]:
    """What will be asked: what was announced, or a mixture if nobody said, in which every kind but cells counts alike.

    ``kind`` is that of the workload, or one announced by its name alone; None for a mixture that was announced.
    """
    every = range(len(shape))
    if workload is not None and workload.parts and kind is None:
        # A mixture that was announced: each part by itself, and how much it counts.
        return tuple(
            replace(asked_kinds(shape, domain, part, part.kind)[0], weight=weight)
            for weight, part in workload.parts
        )
    if kind == "marginals":
        from dphist.mechanisms.marginals import tables_of

        told = workload is not None and workload.kind == "marginals"
        tables = tables_of(workload) if told and workload is not None else tuple((axis,) for axis in every)
        return (asked_tables("tables", shape, tables),)
    if kind == "cells":
        return (asked_tables("cells", shape, [tuple(every)]),)
    if kind is not None:
        return (_boxes("ranges", asked_ranges(workload, domain, shape)),)
    some = asked_ranges(None, domain, shape)
    mixture = [asked_tables("cells", shape, [tuple(every)])]
    if len(shape) > 1:
        mixture.append(asked_tables("tables of 1", shape, [(axis,) for axis in every]))
    if len(shape) > 2:
        pairs = list(combinations(every, 2))
        mixture.append(asked_tables("tables of 2", shape, pairs))
        low, high = some.low.copy(), some.high.copy()
        for row in range(len(low)):
            free = [axis for axis in every if axis not in pairs[row % len(pairs)]]
            low[row, free], high[row, free] = 0, np.array(shape)[free]
        mixture.append(Asked("ranges of 2", low, high, np.full(len(low), 1.0 / len(low))))
    mixture.append(_boxes("boxes", some))
    mixture[0] = replace(mixture[0], weight=_CELLS * (len(mixture) - 1))
    return tuple(mixture)


def asked_tables(name: str, shape: tuple[int, ...], tables: Sequence[Axes]) -> Asked:
    """Cells of tables: those of one table are alike, so each table is one box, asked as often as it has cells."""
    low = np.zeros((len(tables), len(shape)), dtype=np.int64)
    high = np.array(
        [[1 if a in table else n for a, n in enumerate(shape)] for table in tables], dtype=np.int64
    )
    cells = np.array([math.prod(shape[a] for a in table) for table in tables], dtype=np.float64)
    return Asked(name, low, high.reshape(low.shape), cells / cells.sum())


def _boxes(name: str, ranges: Workload) -> Asked:
    return Asked(name, ranges.low, ranges.high, np.full(len(ranges.low), 1.0 / len(ranges.low)))


def in_words(workload: Workload) -> str:
    """A part of a mixture in plain words, with how many attributes its tables have."""
    if not workload.tables:
        return _KINDS.get(workload.kind, workload.kind)
    ways = sorted({len(axes) for axes in workload.tables})
    said = " and ".join(_WAYS.get(each, str(each)) for each in ways)
    return f"tables of {said} attribute{'s' * (ways != [1])}"


def long_axes(domain: Domain) -> tuple[int, ...]:
    """Which attributes are ordered and long: ranges are asked of them."""
    return tuple(k for k, a in enumerate(domain.attributes) if isinstance(a, Ordinal) and a.size >= _LONG)
