"""Fields of models: how numbers, texts, arrays, laws, trees and axes are written into a file and read from it.

What is read may come from anybody, so every number that becomes a place in an array is held against its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.errors import InputError, MechanismError, ReleaseError
from dphist.inference.estimate import laplace_if_bare
from dphist.inference.linear import Cuts
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.errors import MeasuredBlocks, MeasuredCells
from dphist.inference.predictive.law import Law, size_classes_of
from dphist.kernels.predictive.halving import size_classes
from dphist.kernels.wavelets.axes import PlainAxis
from dphist.kernels.wavelets.haar import HaarAxis
from dphist.kernels.wavelets.nominal import NominalAxis
from dphist.model.domain import Domain
from dphist.model.exact import fraction
from dphist.model.law import NoiseLaw
from dphist.model.pieces import ByValues, OneApart, Pieces

FloatArray = NDArray[np.float64]

# What fields that somebody made up can raise; numbers that were packed by somebody else, an `OSError`.
MISFITS = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    ArithmeticError,
    OSError,
    InputError,
)


class Sink(Protocol):
    """Takes arrays."""

    def put(self, values: NDArray[Any]) -> int:
        """Keep an array; gives its reference."""
        ...


class Store(Protocol):
    """Has arrays. Floats that are whole may come back as whole numbers."""

    def get(self, reference: Any) -> NDArray[Any]:
        """Give an array that was kept."""
        ...


@dataclass(frozen=True, eq=False)
class Place:
    """What a model is about.

    Args:
        shape: Of its cells.
        domain: Whose cells they are; None for groups of cells.
        counts: The published cells before they were polished, where there are any.
        tables: The published tables, where there are any.
        depth: How many models it lies in.
    """

    shape: tuple[int, ...]
    domain: Domain | None = None
    counts: FloatArray | None = None
    tables: Mapping[tuple[int, ...], FloatArray] | None = None
    depth: int = 0

    @property
    def size(self) -> int:
        """How many cells."""
        return math.prod(self.shape)

    def inside(self, shape: Sequence[int]) -> Place:
        """That of a model inside, over other cells."""
        return Place(tuple(shape), depth=self.depth + 1)

    def parts(self, pieces: Pieces) -> list[Place]:
        """Those of the pieces' models."""
        counts = [None] * len(pieces.domains) if self.counts is None else pieces.apart(self.counts)
        return [
            Place(each.shape, each, own, depth=self.depth + 1)
            for each, own in zip(pieces.domains, counts, strict=True)
        ]


Made = dict[str, Any]
"""The fields of a model that were read so far."""


def plain(value: Any, store: Sink) -> Any:
    """What JSON holds of a value: arrays by reference, fractions as texts, values of ours field by field."""
    if isinstance(value, np.ndarray):
        return store.put(value)
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return [plain(each, store) for each in value]
    if is_dataclass(value):
        return told_of(value, store, *(each.name for each in fields(value)))
    return value


def told_of(value: Any, store: Sink, *names: str) -> dict[str, Any]:
    """Some fields of a value, in this order."""
    return {name: plain(getattr(value, name), store) for name in names}


@dataclass(frozen=True)
class Field:
    """How one field is read, given the fields before it, and written, given the whole model."""

    read: Callable[[Any, Store, Place, Made], Any]
    write: Callable[[Any, Sink, Place, Any], Any] = lambda value, store, place, model: plain(value, store)


def insist(*conditions: object) -> None:
    """Refuse what is no model of these cells."""
    if not all(conditions):
        raise ValueError("not a model of these cells")


def whole_arrays(told: Any, store: Store, *names: str) -> list[NDArray[Any]]:
    """Arrays of whole numbers by their names."""
    found = [store.get(told[name]) for name in names]
    insist(all(values.dtype.kind == "i" for values in found))
    return found


def read_cells(reference: Any, store: Store, shape: tuple[int, ...]) -> FloatArray:
    """Read a number for every cell; a ReleaseError if there are not as many."""
    try:
        return np.asarray(store.get(reference), dtype=np.float64).reshape(shape)
    except MISFITS:
        raise ReleaseError("its model has other counts than cells") from None


def _one_of(*kinds: type) -> Field:
    """A text, a flag or a number as it is."""

    def read_plain(told: Any, store: Store, place: Place, made: Made) -> Any:
        insist(type(told) in kinds, not isinstance(told, float) or math.isfinite(told))
        return told

    return Field(read_plain)


def array_of(kinds: str, axes: int = 1) -> Field:
    """An array of floats, whole numbers or flags, with this number of axes."""

    def read_array(told: Any, store: Store, place: Place, made: Made) -> NDArray[Any]:
        found = store.get(told)
        if kinds == "f" and found.dtype.kind == "i":
            found = found.astype(np.float64)
        insist(found.dtype.kind in kinds, found.ndim == axes)
        return found

    return Field(read_array)


def optional(field: Field) -> Field:
    """The same field, or none."""
    return Field(
        lambda told, store, place, made: None if told is None else field.read(told, store, place, made),
        lambda value, store, place, model: None if value is None else field.write(value, store, place, model),
    )


def several(field: Field) -> Field:
    """A list of the same field."""
    return Field(
        lambda told, store, place, made: tuple(field.read(each, store, place, made) for each in told),
        lambda value, store, place, model: [field.write(each, store, place, model) for each in value],
    )


def _read_law(told: Any, store: Store, place: Place, made: Made) -> NoiseLaw:
    size = told["size"] if type(told["size"]) is float else fraction(told["size"])
    insist(told["kind"] in KINDS_OF_NOISE, 0 < size < math.inf)
    return NoiseLaw(told["kind"], size)


def write_counts(counts: FloatArray, store: Sink, place: Place, model: Any) -> Any:
    """Published cells are not written twice."""
    flat = np.asarray(counts, dtype=np.float64).reshape(-1)
    if place.counts is not None and np.array_equal(flat, place.counts.reshape(-1)):
        return "published"
    return store.put(flat)


def read_counts(told: Any, store: Store, place: Place, made: Made) -> FloatArray:
    """What `write_counts` wrote."""
    if told != "published":
        return read_cells(told, store, place.shape)
    return np.asarray(place.counts, dtype=np.float64).reshape(place.shape)


def _write_pieces(pieces: Pieces, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    if isinstance(pieces, OneApart):
        return {"axis": pieces.axis, "value": pieces.value}
    if isinstance(pieces, ByValues):
        return {"by": list(pieces.by)}
    raise MechanismError(f"a release cannot hold pieces of the kind {type(pieces).__name__}")


def _read_pieces(told: Any, store: Store, place: Place, made: Made) -> Pieces:
    domain = place.domain
    if domain is None:
        raise ValueError("groups of cells have no attributes")
    if "by" in told:
        by = tuple(told["by"])
        insist(len(set(by)) == len(by), set(by) < set(domain.names))
        return ByValues(domain, by)
    axis, value = told["axis"], told["value"]
    insist(type(axis) is int, type(value) is int, len(domain.shape) > 1)
    insist(0 <= axis < len(domain.shape), 0 <= value < domain.shape[axis], domain.shape[axis] > 1)
    return OneApart(domain, axis, value)


def _write_tree(tree: MeasuredTree, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    more = [name for name in ("pool", "seen", "seen_variance") if np.any(getattr(tree, name))]
    measured = told_of(tree, store, "parent", "low", "high", "value", "variance", *more)
    return {**measured, **told_of(tree, store, "shape", "kind", "gradual")}


def _read_tree(told: Any, store: Store, place: Place, made: Made) -> MeasuredTree:
    shape = tuple(told["shape"])
    parent, low, high = whole_arrays(told, store, "parent", "low", "high")
    value, variance = store.get(told["value"]), store.get(told["variance"])
    more: dict[str, Any] = {
        name: store.get(told[name]) for name in ("pool", "seen", "seen_variance") if name in told
    }
    nodes = len(parent)
    insist(
        nodes,
        shape in (place.shape, (place.size,)),
        low.shape == high.shape == (nodes, len(shape)),
        all(each.shape == (nodes,) for each in (value, variance, *more.values())),
    )
    insist(
        ((parent >= -1) & (parent < np.arange(nodes))).all(),
        (parent < 0).sum() == 1,
        ((low >= 0) & (low < high) & (high <= np.array(shape))).all(),
        told["kind"] in KINDS_OF_NOISE,
        type(told["gradual"]) is bool,
    )
    return MeasuredTree.of(
        shape, parent, low, high, value, variance, **more, kind=told["kind"], gradual=told["gradual"]
    )


def _read_cuts(told: Any, store: Store, place: Place, made: Made) -> Cuts:
    cuts = Cuts(*whole_arrays(told, store, "left", "parent", "low", "high", "labels"))
    nodes = len(cuts.left)
    numbers = np.arange(nodes)
    insist(
        cuts.low.shape == cuts.high.shape == (nodes, len(place.shape)),
        cuts.parent.shape == cuts.left.shape == (nodes,) != (0,),
    )
    insist(
        ((cuts.left == -1) | ((cuts.left > numbers) & (cuts.left + 1 < nodes))).all(),
        ((cuts.parent >= -1) & (cuts.parent < numbers)).all(),
        ((cuts.low >= 0) & (cuts.low < cuts.high) & (cuts.high <= np.array(place.shape))).all(),
        labels_fit(cuts.labels, len(cuts.leaves), place.size),
    )
    return cuts


def _write_axis(axis: Any, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    if isinstance(axis, NominalAxis):
        return told_of(axis, store, "parent", "leaves", "calibration")
    return {"haar": isinstance(axis, HaarAxis), "size": axis.size}


def _read_axis(told: Any, store: Store, place: Place, made: Made) -> Any:
    if "haar" in told:
        return (HaarAxis if told["haar"] is True else PlainAxis)(told["size"])
    parent, leaves = whole_arrays(told, store, "parent", "leaves")
    insist(
        told["calibration"] in ("tight", "paper"),
        ((parent >= -1) & (parent < np.arange(len(parent)))).all(),
        ((leaves >= 0) & (leaves < len(parent))).all(),
    )
    return NominalAxis(parent, leaves, told["calibration"])


def _write_measured(
    measured: MeasuredCells | MeasuredBlocks, store: Sink, place: Place, model: Any
) -> dict[str, Any]:
    if isinstance(measured, MeasuredBlocks):
        tree = _write_tree(measured.tree, store, place, model)
        return {"tree": tree, "near": False, "levels": measured.levels}
    return {"cells": store.put(measured.values.reshape(-1)), "law": plain(measured.law, store)}


def _read_measured(told: Any, store: Store, place: Place, made: Made) -> MeasuredCells | MeasuredBlocks:
    if "tree" in told:
        tree = _read_tree(told["tree"], store, place, made)
        insist(tree.shape == place.shape, type(told["levels"]) is int)
        return MeasuredBlocks(tree, told["levels"])
    values = store.get(told["cells"]).reshape(place.shape)
    return MeasuredCells(values, _read_law(told["law"], store, place, made))


_OF_SPLITS, _OF_SIZES = ("lean", "slope", "rest"), ("uneven", "caution")
_OF_LAW = ("alike", "doubt", "doubted_from", "overlap")


def _write_predictive(law: Law, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    # Those of every split are rounded to fewer digits (`Law.of`), so that these bytes hold them.
    halves = {name: store.put(getattr(law, name).astype(np.float32)) for name in _OF_SPLITS}
    numbers = {name: float(getattr(law, name)) for name in _OF_LAW}
    return {**halves, **told_of(law, store, *_OF_SIZES), **numbers}


def _read_predictive(told: Any, store: Store, place: Place, made: Made) -> Law:
    binary = made["measured"].binary
    arrays: dict[str, Any] = {
        name: np.asarray(store.get(told[name]), np.float64) for name in (*_OF_SPLITS, *_OF_SIZES)
    }
    numbers: dict[str, Any] = {name: told[name] for name in _OF_LAW}
    law = Law(binary, **arrays, **numbers)
    insist(
        law.lean.shape == law.slope.shape == law.rest.shape == (binary.splits.size + 1,),
        law.uneven.shape == (int(size_classes(binary.size[:1])[0]) + 1,),
        law.caution.shape == (size_classes_of(binary.shape),),
        all(np.isfinite(each).all() for each in arrays.values()),
        all((arrays[name] >= 0.0).all() for name in arrays if name != "lean"),
        (law.slope <= 1.0).all(),
        all(type(each) is float and 0.0 <= each < math.inf for each in numbers.values()),
    )
    return law


def labels_fit(labels: NDArray[Any], parts: int, cells: int) -> bool:
    """Whether there is a part's number for every cell."""
    return bool(labels.shape == (cells,) and ((labels >= 0) & (labels < parts)).all())


def sizes_fit(sizes: NDArray[Any], cells: int) -> bool:
    """Whether groups of these sizes hold every cell."""
    return bool(sizes.size and (sizes > 0).all() and int(sizes.sum()) == cells)


KINDS_OF_NOISE = ("laplace", "gaussian")
FLAG, WHOLE, WHOLES, FLOATS = _one_of(bool), _one_of(int), array_of("i"), array_of("f")
CELLS = Field(
    lambda told, store, place, made: read_cells(told, store, place.shape),
    lambda value, store, place, model: store.put(np.asarray(value).reshape(-1)),
)
PREDICTIVE = Field(_read_predictive, _write_predictive)
BY_NAME: dict[str, Field] = {
    "law": Field(_read_law, lambda law, store, place, model: plain(laplace_if_bare(law), store)),
    **dict.fromkeys(("method", "basis"), _one_of(str)),
    **dict.fromkeys(("exact", "fixed", "projected", "gaussian", "averaged", "pruned", "follows"), FLAG),
    "threshold": WHOLE,
    **dict.fromkeys(("shape", "keep"), several(WHOLE)),
    **dict.fromkeys(("cell_scale", "leaf_scale", "scale"), _one_of(float, int)),
    **dict.fromkeys(("labels", "sizes"), WHOLES),
    **dict.fromkeys(("scales", "pull", "weights"), FLOATS),
    **dict.fromkeys(("covariance", "conditionals"), array_of("f", 2)),
    "biased": array_of("b"),
    "departures": optional(FLOATS),
    "counts": optional(Field(read_counts, write_counts)),
    **dict.fromkeys(("centre", "cell_variance"), CELLS),
    "pieces": Field(_read_pieces, _write_pieces),
    "tree": Field(_read_tree, _write_tree),
    "cuts": Field(_read_cuts),
    "axes": several(Field(_read_axis, _write_axis)),
    "measured": Field(_read_measured, _write_measured),
}
"""How fields are written and read that several kinds have, or that have no tables in them."""
