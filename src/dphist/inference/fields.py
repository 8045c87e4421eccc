"""Fields of models: how numbers, texts, arrays, laws, trees and axes are written into a file and read from it.

What is read may come from anybody, so every number that becomes a place in an array is held against its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.errors import InputError, MechanismError, ReleaseError
from dphist.inference.estimate import laplace_if_bare
from dphist.inference.linear.boxes import Cuts
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.errors import MeasuredBlocks, MeasuredCells
from dphist.inference.predictive.law import Law, size_classes_of
from dphist.kernels.predictive.passes import size_classes
from dphist.kernels.wavelets.axes import HaarAxis, NominalAxis, PlainAxis
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


@dataclass(frozen=True)
class Field:
    """How one field is written, given the whole model, and read, given the fields before it."""

    write: Callable[[Any, Sink, Place, Any], Any]
    read: Callable[[Any, Store, Place, Made], Any]


def read_cells(reference: Any, store: Store, shape: tuple[int, ...]) -> FloatArray:
    """Read a number for every cell; a ReleaseError if there are not as many."""
    try:
        return np.asarray(store.get(reference), dtype=np.float64).reshape(shape)
    except MISFITS:
        raise ReleaseError("its model has other counts than cells") from None


def _plain(*kinds: type) -> Field:
    """A text, a flag or a number as it is."""

    def read_plain(told: Any, store: Store, place: Place, made: Made) -> Any:
        if type(told) not in kinds or (isinstance(told, float) and not math.isfinite(told)):
            raise ValueError("not of this type")
        return told

    return Field(lambda value, store, place, model: kinds[0](value), read_plain)


def array_of(kinds: str, axes: int | None = 1) -> Field:
    """An array of floats, whole numbers or flags, with this number of axes; None for any."""

    def read_array(told: Any, store: Store, place: Place, made: Made) -> NDArray[Any]:
        found = store.get(told)
        if kinds == "f" and found.dtype.kind == "i":
            found = found.astype(np.float64)
        if found.dtype.kind not in kinds or (axes is not None and found.ndim != axes):
            raise ValueError("not of this type")
        return found

    return Field(lambda value, store, place, model: store.put(np.asarray(value)), read_array)


def optional(field: Field) -> Field:
    """The same field, or none."""
    return Field(
        lambda value, store, place, model: None if value is None else field.write(value, store, place, model),
        lambda told, store, place, made: None if told is None else field.read(told, store, place, made),
    )


def several(field: Field) -> Field:
    """A list of the same field."""
    return Field(
        lambda value, store, place, model: [field.write(each, store, place, model) for each in value],
        lambda told, store, place, made: tuple(field.read(each, store, place, made) for each in told),
    )


def _named(key: Field, field: Field) -> Field:
    """A mapping, as a list of pairs."""

    def write_pairs(value: Mapping[Any, Any], store: Sink, place: Place, model: Any) -> list[Any]:
        return [
            [key.write(k, store, place, model), field.write(v, store, place, model)] for k, v in value.items()
        ]

    def read_pairs(told: Any, store: Store, place: Place, made: Made) -> dict[Any, Any]:
        return {
            key.read(k, store, place, made): field.read(v, store, place, made)
            for k, v in told  # a pair each
        }

    return Field(write_pairs, read_pairs)


def _write_law(law: NoiseLaw | Fraction | float, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    told = laplace_if_bare(law)
    return {
        "kind": told.kind,
        "size": str(told.size) if isinstance(told.size, Fraction) else float(told.size),
    }


def _read_law(told: Any, store: Store, place: Place, made: Made) -> NoiseLaw:
    size = told["size"] if type(told["size"]) is float else fraction(told["size"])
    if told["kind"] not in ("laplace", "gaussian") or not 0 < size < math.inf:
        raise ValueError("not a law of noise")
    return NoiseLaw(told["kind"], size)


def write_counts(counts: FloatArray | None, store: Sink, place: Place, model: Any) -> Any:
    """Published cells are not written twice."""
    if counts is None:
        return None
    flat = np.asarray(counts, dtype=np.float64).reshape(-1)
    if place.counts is not None and np.array_equal(flat, place.counts.reshape(-1)):
        return "published"
    return store.put(flat)


def read_counts(told: Any, store: Store, place: Place, made: Made) -> FloatArray | None:
    """What `write_counts` wrote."""
    if told is None:
        return None
    counts = place.counts if told == "published" else CELLS.read(told, store, place, made)
    return np.asarray(counts, dtype=np.float64).reshape(place.shape)


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
        if len(set(by)) != len(by) or not set(by) < set(domain.names):
            raise ValueError("not some of its attributes")
        return ByValues(domain, by)
    axis, value = told["axis"], told["value"]
    if type(axis) is not int or type(value) is not int:
        raise ValueError("not a value of an attribute")
    if not (0 <= axis < len(domain.shape) > 1 and 0 <= value < domain.shape[axis] > 1):
        raise ValueError("not a value of an attribute")
    return OneApart(domain, axis, value)


def _write_tree(tree: MeasuredTree, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    told = {name: store.put(getattr(tree, name)) for name in ("parent", "low", "high", "value", "variance")}
    for name in ("pool", "seen", "seen_variance"):
        values = getattr(tree, name)
        if values is not None and (name != "pool" or values.any()):
            told[name] = store.put(values)
    return {**told, "shape": list(tree.shape), "kind": tree.kind, "gradual": tree.gradual}


def _read_tree(told: Any, store: Store, place: Place, made: Made) -> MeasuredTree:
    shape = tuple(told["shape"])
    arrays = {name: store.get(told[name]) for name in ("parent", "low", "high", "value", "variance")}
    more = {name: store.get(told[name]) for name in ("pool", "seen", "seen_variance") if name in told}
    parent, low, high = arrays["parent"], arrays["low"], arrays["high"]
    nodes = len(parent)
    if (
        shape not in (place.shape, (place.size,))
        or any(arrays[name].dtype.kind != "i" for name in ("parent", "low", "high"))
        or not (low.shape == high.shape == (nodes, len(shape)))
        or any(each.shape != (nodes,) for each in (arrays["value"], arrays["variance"], *more.values()))
        or not nodes
        or not bool(((parent >= -1) & (parent < np.arange(nodes))).all())
        or int((parent < 0).sum()) != 1
        or not bool(((low >= 0) & (low < high) & (high <= np.array(shape))).all())
        or told["kind"] not in ("laplace", "gaussian")
        or type(told["gradual"]) is not bool
    ):
        raise ValueError("not a tree of these cells")
    return MeasuredTree.of(
        shape, *arrays.values(), pool=more.get("pool"), seen=more.get("seen"),
        seen_variance=more.get("seen_variance"), kind=told["kind"], gradual=told["gradual"],
    )  # fmt: skip


def _write_cuts(cuts: Cuts, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    return {name: store.put(getattr(cuts, name)) for name in ("left", "parent", "low", "high", "labels")}


def _read_cuts(told: Any, store: Store, place: Place, made: Made) -> Cuts:
    cuts = Cuts(**{name: store.get(told[name]) for name in ("left", "parent", "low", "high", "labels")})
    nodes = len(cuts.left)
    numbers = np.arange(nodes)
    if (
        any(values.dtype.kind != "i" for values in vars(cuts).values())
        or not cuts.low.shape == cuts.high.shape == (nodes, len(place.shape))
        or not cuts.parent.shape == cuts.left.shape == (nodes,) != (0,)
        or not bool(((cuts.left == -1) | ((cuts.left > numbers) & (cuts.left + 1 < nodes))).all())
        or not bool(((cuts.parent >= -1) & (cuts.parent < numbers)).all())
        or not bool(((cuts.low >= 0) & (cuts.low < cuts.high) & (cuts.high <= np.array(place.shape))).all())
        or not labels_fit(cuts.labels, len(cuts.leaves), place.size)
    ):
        raise ValueError("not cuts of these cells")
    return cuts


def _write_axes(axes: Sequence[Any], store: Sink, place: Place, model: Any) -> list[Any]:
    return [
        {"parent": store.put(each.parent), "leaves": store.put(each.leaves), "calibration": each.calibration}
        if isinstance(each, NominalAxis)
        else {"haar": isinstance(each, HaarAxis), "size": each.size}
        for each in axes
    ]


def _read_axes(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    axes: list[Any] = []
    for each, size in zip(told, place.shape, strict=True):
        if "haar" in each:
            axes.append((HaarAxis if each["haar"] is True else PlainAxis)(each["size"]))
        else:
            parent, leaves = store.get(each["parent"]), store.get(each["leaves"])
            if (
                not parent.dtype.kind == leaves.dtype.kind == "i"
                or each["calibration"] not in ("tight", "paper")
                or not bool(((parent >= -1) & (parent < np.arange(len(parent)))).all())
                or not bool(((leaves >= 0) & (leaves < len(parent))).all())
            ):
                raise ValueError("not a hierarchy")
            axes.append(NominalAxis(parent, leaves, each["calibration"]))
        if axes[-1].size != size:
            raise ValueError("an axis of another size")
    return tuple(axes)


def _write_measured(
    measured: MeasuredCells | MeasuredBlocks, store: Sink, place: Place, model: Any
) -> dict[str, Any]:
    if isinstance(measured, MeasuredBlocks):
        tree = _write_tree(measured.tree, store, place, model)
        return {"tree": tree, "near": False, "levels": measured.levels}
    return {
        "cells": store.put(measured.values.reshape(-1)),
        "law": _write_law(measured.law, store, place, model),
    }


def _read_measured(told: Any, store: Store, place: Place, made: Made) -> MeasuredCells | MeasuredBlocks:
    if "tree" in told:
        tree = _read_tree(told["tree"], store, place, made)
        if tree.shape != place.shape or type(told["levels"]) is not int:
            raise ValueError("not a tree of these cells")
        return MeasuredBlocks(tree, told["levels"])
    values = store.get(told["cells"]).reshape(place.shape)
    return MeasuredCells(values, _read_law(told["law"], store, place, made))


_OF_LAW = ("lean", "slope", "rest", "uneven", "caution")


def _write_predictive(law: Law, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    numbers = {name: float(getattr(law, name)) for name in ("alike", "doubt", "doubted_from", "overlap")}
    # The three of every split are rounded to fewer digits (`Law.of`), so that these bytes hold them.
    halves = {name: store.put(getattr(law, name).astype(np.float32)) for name in _OF_LAW[:3]}
    return {**halves, **{name: store.put(getattr(law, name)) for name in _OF_LAW[3:]}, **numbers}


def _read_predictive(told: Any, store: Store, place: Place, made: Made) -> Law:
    binary = made["measured"].binary
    arrays: dict[str, Any] = {name: np.asarray(store.get(told[name]), np.float64) for name in _OF_LAW}
    numbers: dict[str, Any] = {name: told[name] for name in ("alike", "doubt", "doubted_from", "overlap")}
    law = Law(binary, **arrays, **numbers)
    classes = int(size_classes(binary.size[:1])[0]) + 1
    if (
        not law.lean.shape == law.slope.shape == law.rest.shape == (binary.splits.size + 1,)
        or law.uneven.shape != (classes,)
        or law.caution.shape != (size_classes_of(binary.shape),)
        or not all(bool(np.isfinite(each).all()) for each in arrays.values())
        or not all(bool((arrays[name] >= 0.0).all()) for name in _OF_LAW[1:])
        or bool((law.slope > 1.0).any())
        or any(type(each) is not float or not 0.0 <= each < math.inf for each in numbers.values())
    ):
        raise ValueError("not a law of these cells")
    return law


def labels_fit(labels: NDArray[Any], parts: int, cells: int) -> bool:
    """Whether there is a part's number for every cell."""
    return bool(labels.shape == (cells,) and ((labels >= 0) & (labels < parts)).all())


def sizes_fit(sizes: NDArray[Any], cells: int) -> bool:
    """Whether groups of these sizes hold every cell."""
    return bool(sizes.size and (sizes > 0).all() and int(sizes.sum()) == cells)


TEXT, FLAG, WHOLE, NUMBER = _plain(str), _plain(bool), _plain(int), _plain(float, int)
FLOATS, WHOLES, MATRIX = array_of("f"), array_of("i"), array_of("f", 2)
FLAGS = array_of("b")
CELLS = Field(
    lambda value, store, place, model: store.put(np.asarray(value).reshape(-1)),
    lambda told, store, place, made: np.asarray(store.get(told), dtype=np.float64).reshape(place.shape),
)
COUNTS, LAW = Field(write_counts, read_counts), Field(_write_law, _read_law)
PIECES, TREE = Field(_write_pieces, _read_pieces), Field(_write_tree, _read_tree)
CUTS, WAVELET_AXES = Field(_write_cuts, _read_cuts), Field(_write_axes, _read_axes)
MEASURED, LENGTHS = Field(_write_measured, _read_measured), several(WHOLE)
PREDICTIVE = Field(_write_predictive, _read_predictive)
