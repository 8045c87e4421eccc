"""How accurate the answers of a release are: how wide intervals are, for questions of several kinds and sizes.

Of several attributes few questions bound them all: tables of one and of two are what people read, and whoever announced
tables may have measured nothing else. So a line is said of questions about one attribute, about two, and about all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import Axes
from dphist.model.phrases import counted
from dphist.model.workload import Workload
from dphist.release import Release
from dphist.release.tables import measured_tables, were_measured

IntArray = NDArray[np.int64]

# A line stands on 25 places; at most 1,000 tables of each number of attributes are tried for having been measured.
_PLACES, _MOST_TABLES = 25, 1000
# Parts of a table that answers add up; 0 is a single cell.
_PARTS = (0.0, 0.01, 0.1, 0.5)
_PARTS_OF_ALL = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0)


def accuracy(release: Release, *, confidence: float = 0.95) -> list[dict[str, Any]]:
    """Say how wide intervals are: for answers about one attribute, two and all, from one cell to everything.

    Each line is the median over up to 25 boxes of that kind, spread evenly over the domain and over the tables that
    were measured.

    A line says ``about``, the attributes in words; ``cells`` of their table that are added up, and the ``share`` of it
    that is; ``half_width``, None where that was not measured; and ``part``, the half-width as a part of the answer,
    None where that is not above zero.
    """
    every = tuple(range(len(release.domain.shape)))
    whole = bool(were_measured(release, [every]))
    # Questions bound at most two attributes, or all; more only where all were not measured together.
    last = min(2, len(every) - 1) if whole else len(every) - 1
    rows: list[dict[str, Any]] = []
    order = 0
    for order, inside in enumerate(islice(measured_tables(release, _MOST_TABLES), 1, last + 1), 1):
        about = _about(len(inside), math.comb(len(every), order), order, len(every))
        rows += _lines(release, inside, about, confidence)
    if whole or len(every) == 1:
        return rows + _lines(release, [every], "all attributes", confidence)
    unknown = (
        f"{order + 1} or more of {len(every)} attributes" if order < len(every) - 1 else "all attributes"
    )
    rows.append({"about": unknown, "cells": 1, "share": 0.0, "half_width": None, "part": None})
    # A table of no attribute has one cell.
    return rows + _lines(release, [()], "all records", confidence)


def relative(part: float | None) -> str:
    """A half-width as a part of the answer, in words."""
    if part is None:
        return "–"
    if part > 1.0:
        return "over 100%"
    return f"{100.0 * part:.0f}%" if part >= 0.1 else f"{100.0 * part:.2g}%"


def _about(measured: int, tables: int, order: int, attributes: int) -> str:
    """Which attributes questions bound, in words; and of how many tables that was measured, if not of all."""
    some = "" if measured in (tables, _MOST_TABLES) else f" ({counted(measured, 'table')} of {tables:,})"
    return f"{order} of {attributes} attributes{some}"


def _lines(release: Release, tables: Sequence[Axes], about: str, confidence: float) -> list[dict[str, Any]]:
    """Lines about these tables, from one cell of each to about half of it; of all attributes to everything."""
    shape = release.domain.shape
    spread = _spread(tables)
    size = int(np.median([math.prod(shape[a] for a in axes) for axes in spread]))
    rows: dict[int, dict[str, Any]] = {}
    for share in _PARTS_OF_ALL if len(tables[0]) == len(shape) else _PARTS:
        if 0 < share * size < 2:
            continue
        boxes = [(axes, _lengths(shape, axes, share)) for axes in spread]
        cells = int(np.median([math.prod(lengths[a] for a in axes) for axes, lengths in boxes]))
        if cells in rows:
            continue
        places = _places(shape, np.array([lengths for _, lengths in boxes], dtype=np.int64))
        answers = release.answer(Workload(release.domain, *places), confidence=confidence)
        # Nothing is narrower than what was measured: the others come last, and the median may be one of them.
        width = float(np.median(np.where(answers.measured, answers.high - answers.low, np.inf))) / 2.0
        typical = float(np.median(answers.value))
        known = math.isfinite(width)
        rows[cells] = {
            "about": about,
            "cells": cells,
            "share": cells / size,
            "half_width": width if known else None,
            "part": width / typical if known and typical > 0.0 else None,
        }
    return list(rows.values())


def _spread(tables: Sequence[Axes]) -> list[Axes]:
    """One table for each of 25 places: all in turn, or an even choice of more than 25."""
    return [
        tables[number * len(tables) // _PLACES if len(tables) > _PLACES else number % len(tables)]
        for number in range(_PLACES)
    ]


def _lengths(shape: tuple[int, ...], axes: Axes, share: float) -> list[int]:
    """The sides of a box that holds such a part of a table, about; every other attribute is whole."""
    root = share ** (1.0 / max(len(axes), 1))
    return [min(n, max(1, math.ceil(n * root - 1e-9))) if a in axes else n for a, n in enumerate(shape)]


def _places(shape: tuple[int, ...], lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Where boxes with these sides begin and end, each once: multiples of irrational steps, one per axis."""
    steps = np.resize(np.sqrt([2, 3, 5, 7, 11, 13, 17, 19, 23, 29]), len(shape))
    ends = np.array(shape, dtype=np.int64) - lengths
    low = (np.outer(np.arange(len(lengths)), steps) % 1.0 * (ends + 1)).astype(np.int64)
    boxes = np.unique(np.hstack([low, low + lengths]), axis=0)
    return boxes[:, : len(shape)], boxes[:, len(shape) :]
