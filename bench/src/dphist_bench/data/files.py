"""Readers of the real files, for users who have them: the one home of their names and forms.

Nothing here is fetched, and nothing of it is shipped: experiments use makers of the same shape where a file is missing.

- `xu2013`: ``adult-records.csv`` (people by age), ``SEARCHLOGS4096.csv`` and ``NETTRACE4096.csv`` (how often each
  count occurs), ``SOCIALNETWORK.csv`` (the histogram itself).
- `dpcube`: the Adult census, under one of the names in `ADULT`.
- `kellaris`: ``ROME.csv``, ``LOG.csv``, ``CITATIONS.csv``, ``PUMS.csv``, the histograms themselves.

A histogram has a line of names and then a line a cell, ``bin,count``.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The Adult census: with a line of names, or as the UCI repository has it (adult.data), without.
ADULT = ("adult-records.csv", "adult.data")
_ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "salary",
)  # fmt: skip
_ADULT_NUMBERS = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}


def adult_records(folder: Path) -> dict[str, NDArray[Any]] | None:
    """Read the Adult census as columns, without the records that lack a value; None if the folder has no such file."""
    path = next((folder / name for name in ADULT if (folder / name).is_file()), None)
    if path is None:
        return None
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(_ADULT_COLUMNS)]
    rows = [row for row in rows if row[0] != "age" and "?" not in row]
    return {
        name: np.array([int(value) for value in column], dtype=np.int64)
        if name in _ADULT_NUMBERS
        else np.array(column, dtype=object)
        for name, column in zip(_ADULT_COLUMNS, zip(*rows, strict=True), strict=True)
    }


def ages(path: Path) -> NDArray[np.int64]:
    """Count the people of the Adult census by year of age, 0 to 100."""
    records = adult_records(path.parent)
    known = np.zeros(0, dtype=np.int64) if records is None else records["age"]
    return np.bincount(np.clip(known, 0, 100), minlength=101).astype(np.int64)


def counts(path: Path) -> NDArray[np.int64]:
    """Read one count a line, after a line of names: ``bin,count`` in the order of the file, or ``row,col,count``.

    A plane lists its cells that are not empty; its sides are the power of two that holds them.
    """
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64, ndmin=2)
    if table.shape[1] < 3:
        return table[:, -1]
    side = 1 << int(table[:, :2].max()).bit_length()
    plane = np.zeros((side, side), dtype=np.int64)
    plane[table[:, 0], table[:, 1]] = table[:, 2]
    return plane


def occurrences(path: Path, cells: int) -> NDArray[np.int64]:
    """Count how many lines of a file of counts hold the value 1, 2, 3 …: a histogram of frequencies."""
    values = counts(path)
    return np.bincount(values[(values >= 1) & (values <= cells)], minlength=cells + 1)[1:].astype(np.int64)
