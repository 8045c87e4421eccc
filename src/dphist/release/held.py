"""The model of a release in its file: what answers and intervals are worked out of, without the mechanism.

The description holds the model as JSON (`dphist.inference.models`) with its arrays in a list: each as packed numbers
or, where a column of the file has the same ones, by that column's name. `check_model` shows, for `Release.verify`, that
it is the model which a replay of the transcript gives, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.inference import models
from dphist.inference.estimate import Estimate
from dphist.inference.fields import Place, Sink, read_cells
from dphist.inference.tables.published import TableEstimate
from dphist.model.domain import Domain
from dphist.release.cells import Cells, DenseCells, TableCells
from dphist.release.packed import pack, unpack

# Of fewer numbers a column takes more room than they do.
_LONG = 1 << 12
# Whole numbers that a float holds exactly.
_WHOLE = 2.0**53


class Arrays:
    """The arrays of a model, each of them once.

    Args:
        columns: Columns of the file, by name: an array of the same numbers is not written again.
        name: What columns of the model's own are called, without their number; None if it has none.
        rows: An array with a number for every row of the file becomes a column.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], name: str | None = None, rows: int = 0) -> None:
        self.columns = columns
        self.name, self.rows = name, rows
        self.own: dict[str, NDArray[Any]] = {}
        self.entries: list[dict[str, Any]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def put(self, values: NDArray[Any]) -> int:
        """Keep an array; gives its place."""
        plain = _narrow(np.asarray(values, order="C"))
        key = plain.dtype.str, plain.shape, blake2b(plain.tobytes(), digest_size=16).digest()
        if key not in self._known:
            self._known[key] = len(self.entries)
            self.entries.append({"shape": list(plain.shape), **self._numbers(plain)})
        return self._known[key]

    def _numbers(self, values: NDArray[Any]) -> dict[str, Any]:
        flat = values.reshape(-1)
        for name, column in self.columns.items():
            if column.size == flat.size > 1 and np.array_equal(column, flat):
                return {"dtype": values.dtype.str, "column": name}
        if self.name is not None and values.dtype.kind == "f" and flat.size == self.rows > _LONG:
            self.own[f"{self.name}_{len(self.own)}"] = flat
            return {"dtype": values.dtype.str, "column": f"{self.name}_{len(self.own) - 1}"}
        if values.dtype.kind == "i" and values.ndim and len(values) > 1:
            # Nodes stand in order, so that bounds and parents grow by little from one to the next.
            steps = _narrow(np.diff(values.astype(np.int64), axis=0, prepend=0))
            plain, less = pack(flat), pack(steps.reshape(-1))
            if len(less) < len(plain):
                return {"dtype": steps.dtype.str, "steps": True, "data": less}
            return {"dtype": values.dtype.str, "data": plain}
        return {"dtype": values.dtype.str, "data": pack(flat)}


@dataclass(frozen=True, eq=False)
class Story:
    """A model as a file tells it.

    Args:
        model: Its JSON.
        columns: The columns that arrays may point to.
    """

    model: dict[str, Any]
    columns: Mapping[str, NDArray[Any]]

    def get(self, reference: Any) -> NDArray[Any]:
        """Give an array of flags, 64-bit whole numbers or floats; whoever asks for it again gets the same one."""
        entries = self.model["arrays"]
        if type(reference) is not int or not 0 <= reference < len(entries):
            raise ValueError("no such array")
        if reference not in self._read:
            self._read[reference] = self._array(entries[reference])
        return self._read[reference]

    @cached_property
    def _read(self) -> dict[int, NDArray[Any]]:
        return {}

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        dtype, shape = np.dtype(str(entry["dtype"])), tuple(entry["shape"])
        if dtype.kind not in "iufb" or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError("not an array of numbers")
        if "column" in entry:
            flat = self.columns[entry["column"]].astype(dtype)
        else:
            flat = np.frombuffer(unpack(entry["data"], prod(shape) * dtype.itemsize), dtype=dtype)
        array: NDArray[Any] = flat.reshape(shape).astype(
            {"b": np.bool_, "f": np.float64}.get(dtype.kind, np.int64)
        )
        array = np.cumsum(array, axis=0) if entry.get("steps") is True else array
        array.setflags(write=False)
        return array


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in as few bytes as hold them: noise on a lattice, and most numbers of nodes, are whole."""
    if values.dtype.kind == "f" and values.size and bool((np.abs(values) < _WHOLE).all()):
        whole = values.astype(np.int64)
        values = whole if np.array_equal(whole, values) else values
    if values.dtype.kind == "i" and values.size:
        least, most = int(values.min()), int(values.max())
        for kind in (np.int8, np.int16, np.int32):
            if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
                return values.astype(kind)
    return values


def written(
    estimate: Estimate | TableEstimate, domain: Domain, polished: bool, store: Sink
) -> dict[str, Any]:
    """Write an estimate down; its arrays go into the store."""
    tables = estimate.tables if isinstance(estimate, TableEstimate) else None
    place = Place(domain.shape, domain, None if tables is not None else estimate.counts, tables)
    story: dict[str, Any] = {"errors": models.write(estimate.errors, store, place)}
    if isinstance(estimate, TableEstimate):
        if estimate.model is not None:
            story["guess"] = models.write(estimate.model, store, place)
    elif polished:
        story["counts"] = store.put(estimate.counts.reshape(-1))
    return story


def read(story: Story, domain: Domain, cells: Cells, note: str) -> Estimate | TableEstimate:
    """Read the estimate of a release from its file."""
    model = story.model
    if isinstance(cells, TableCells):
        place = Place(domain.shape, domain, tables=cells.tables)
        guess = models.read(model["guess"], story, place) if "guess" in model else None
        return TableEstimate(cells.tables, models.read(model.get("errors"), story, place), note, guess)
    if not isinstance(cells, DenseCells):
        raise ReleaseError("these cells have no model")
    counts = cells.counts
    if "counts" in model:
        counts = read_cells(model["counts"], story, domain.shape)
    place = Place(domain.shape, domain, counts)
    return Estimate(counts, models.read(model.get("errors"), story, place), note)
