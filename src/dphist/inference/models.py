"""Models as plain data: how a file holds what answers and intervals are worked out of.

A mechanism ends in a model (`Estimate`, `TableEstimate`): a frozen value of plain numbers, texts and arrays. Here each
kind has a name and a list of fields, by which it is written as a JSON object, ``{"model": kind, field: value, …}``, and
read again; arrays stand apart, in a store that hands out a reference for each. So whoever reads a release needs neither
the mechanism nor the version that made it. Fields that a reader does not know are passed over.

What is read may come from anybody. Every number that becomes a place in an array is held against that array's size, so
that no kernel reads beyond what it was given; that the model is the one that was paid for is for `Release.verify`.
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
from dphist.inference.estimate import (
    Errors,
    IndependentNoise,
    NoisyCells,
    PieceNoise,
    laplace_if_bare,
)
from dphist.inference.linear.boxes import Cuts, LeafNoise, ProjectedNoise
from dphist.inference.linear.dense import DenseNoise
from dphist.inference.linear.groups import BucketNoise, CellBound
from dphist.inference.linear.prefixes import PrefixNoise
from dphist.inference.linear.runs import RunNoise
from dphist.inference.linear.wavelets import WaveletNoise
from dphist.inference.linear.waves import WaveNoise
from dphist.inference.measured import MeasuredTree
from dphist.inference.pieces import PartErrors, PartNoise
from dphist.inference.predictive.errors import MeasuredBlocks, MeasuredCells, PredictiveErrors
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.departures import Departures, Shrunk
from dphist.inference.tables.measured import Axes, MeasuredTables
from dphist.inference.tables.mixture import MixtureModel
from dphist.inference.tables.noise import TableNoise
from dphist.inference.tables.published import ResidualNoise, StagedNoise
from dphist.inference.tables.residuals import AxisNoise, Measured, TableResiduals
from dphist.inference.tables.synthesis import LaterModel, PublishedModel
from dphist.inference.trees import TreeNoise, UnprojectedNoise
from dphist.kernels.wavelets.axes import HaarAxis, NominalAxis, PlainAxis
from dphist.model.contrasts import Contrasts
from dphist.model.domain import Domain
from dphist.model.exact import fraction
from dphist.model.law import NoiseLaw
from dphist.model.pieces import ByValues, OneApart, Pieces

FloatArray = NDArray[np.float64]

_DEEPEST = 64
"""Models inside models: pieces of pieces."""
# What fields that somebody made up can raise; numbers that were packed by somebody else, an `OSError`.
_MISFITS = (
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
    tables: Mapping[Axes, FloatArray] | None = None
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


@dataclass(frozen=True)
class Kind:
    """One kind of model: what it is made of, and what must hold of that.

    Args:
        make: Makes it of its fields.
        fields: How each is written and read, in the order in which they are read.
        check: Whether what was read fits its place; None where there is nothing to hold.
    """

    make: Callable[..., Any]
    fields: Mapping[str, Field]
    check: Callable[[Any, Place], bool] | None = None


def write(model: Any, store: Sink, place: Place) -> dict[str, Any]:
    """Write a model down.

    Args:
        model: The model.
        store: Takes its arrays.
        place: What it is about.

    Returns:
        What goes into the description.

    Raises:
        MechanismError: It is of no kind that a file can hold.

    Example:
        >>> class OneNumber:
        ...     put = staticmethod(lambda values: 0)
        >>> noise = IndependentNoise(NoiseLaw("laplace", Fraction(3, 2)), "exact", exact=True)
        >>> write(noise, OneNumber(), Place((4,)))
        {'model': 'independent', 'law': {'kind': 'laplace', 'size': '3/2'}, 'method': 'exact', 'exact': True}
    """
    if isinstance(model, LaterModel):
        # Fitted when it is first read, and this is where.
        model = model.later.fitted
    name = _NAMES.get(type(model))
    if name is None:
        raise MechanismError(
            f"{type(model).__name__} is no model that a release can hold; end in one of those that dphist.mechanisms "
            "offers, such as IndependentNoise or TreeNoise"
        )
    written = {
        each: field.write(getattr(model, each), store, place, model)
        for each, field in KINDS[name].fields.items()
    }
    return {"model": name, **written}


def read(story: Any, store: Store, place: Place) -> Any:
    """Read a model that `write` wrote, or anybody.

    Args:
        story: What the description holds.
        store: Has its arrays.
        place: What it must be about.

    Returns:
        The model.

    Raises:
        ReleaseError: It is of a kind that is not known here, or does not fit.
    """
    name = story.get("model") if isinstance(story, dict) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ReleaseError("its model is of a kind that this dphist does not know")
    if place.depth > _DEEPEST:
        raise ReleaseError("its models lie too deep in each other")
    made: Made = {}
    try:
        for each, field in kind.fields.items():
            made[each] = field.read(story[each], store, place, made)
        model = kind.make(**made)
        fits = kind.check is None or kind.check(model, place)
    except ReleaseError:
        raise
    except _MISFITS:
        fits = False
    if not fits:
        raise ReleaseError(f"its model ({name}) does not fit its cells")
    return model


def read_cells(reference: Any, store: Store, shape: tuple[int, ...]) -> FloatArray:
    """Read a number for every cell.

    Args:
        reference: The array's.
        store: Has it.
        shape: Of the cells.

    Returns:
        The numbers in that shape.

    Raises:
        ReleaseError: There are not as many.
    """
    try:
        return np.asarray(store.get(reference), dtype=np.float64).reshape(shape)
    except _MISFITS:
        raise ReleaseError("its model has other counts than cells") from None


# ---- fields ---------------------------------------------------------------------------------------------


def _plain(*kinds: type) -> Field:
    """A text, a flag or a number as it is."""

    def read_plain(told: Any, store: Store, place: Place, made: Made) -> Any:
        if type(told) not in kinds or (isinstance(told, float) and not math.isfinite(told)):
            raise ValueError("not of this type")
        return told

    return Field(lambda value, store, place, model: kinds[0](value), read_plain)


def _array(kinds: str, axes: int | None = 1) -> Field:
    """An array of floats, whole numbers or flags, with this number of axes; None for any."""

    def read_array(told: Any, store: Store, place: Place, made: Made) -> NDArray[Any]:
        found = store.get(told)
        if kinds == "f" and found.dtype.kind == "i":
            found = found.astype(np.float64)
        if found.dtype.kind not in kinds or (axes is not None and found.ndim != axes):
            raise ValueError("not of this type")
        return found

    return Field(lambda value, store, place, model: store.put(np.asarray(value)), read_array)


def _inside(where: Callable[[Place, Made], Place]) -> Field:
    """A model inside, about what ``where`` says."""

    def write_inside(value: Any, store: Sink, place: Place, model: Any) -> Any:
        return write(value, store, place)

    return Field(write_inside, lambda told, store, place, made: read(told, store, where(place, made)))


def _optional(field: Field) -> Field:
    return Field(
        lambda value, store, place, model: None if value is None else field.write(value, store, place, model),
        lambda told, store, place, made: None if told is None else field.read(told, store, place, made),
    )


def _several(field: Field) -> Field:
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


def _write_counts(counts: FloatArray | None, store: Sink, place: Place, model: Any) -> Any:
    """Published cells are not written twice."""
    if counts is None:
        return None
    flat = np.asarray(counts, dtype=np.float64).reshape(-1)
    if place.counts is not None and np.array_equal(flat, place.counts.reshape(-1)):
        return "published"
    return store.put(flat)


def _read_counts(told: Any, store: Store, place: Place, made: Made) -> FloatArray | None:
    if told is None:
        return None
    counts = place.counts if told == "published" else _CELLS.read(told, store, place, made)
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
        or not _labels(cuts.labels, len(cuts.leaves), place.size)
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
        return {"tree": tree, "near": measured.near, "levels": measured.levels}
    return {
        "cells": store.put(measured.values.reshape(-1)),
        "law": _write_law(measured.law, store, place, model),
        "total": None if measured.total is None else list(measured.total),
    }


def _read_measured(told: Any, store: Store, place: Place, made: Made) -> MeasuredCells | MeasuredBlocks:
    if "tree" in told:
        tree = _read_tree(told["tree"], store, place, made)
        if tree.shape != place.shape or type(told["near"]) is not bool or type(told["levels"]) is not int:
            raise ValueError("not a tree of these cells")
        return MeasuredBlocks(tree, told["near"], told["levels"])
    total = None if told["total"] is None else tuple(map(float, told["total"]))
    if total is not None and (len(total) != 2 or not (math.isfinite(total[0]) and 0 < total[1] < math.inf)):
        raise ValueError("not a total with its variance")
    values = store.get(told["cells"]).reshape(place.shape)
    return MeasuredCells(values, _read_law(told["law"], store, place, made), total)


def _write_parts(errors: Sequence[Errors], store: Sink, place: Place, model: Any) -> list[Any]:
    return [write(each, store, at) for each, at in zip(errors, place.parts(model.pieces), strict=True)]


def _read_parts(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    return tuple(read(each, store, at) for each, at in zip(told, place.parts(made["pieces"]), strict=True))


def _write_part_counts(counts: Sequence[FloatArray], store: Sink, place: Place, model: Any) -> list[Any]:
    places = place.parts(model.pieces)
    return [_write_counts(each, store, at, None) for each, at in zip(counts, places, strict=True)]


def _read_part_counts(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    places = place.parts(made["pieces"])
    found = tuple(_read_counts(each, store, at, {}) for each, at in zip(told, places, strict=True))
    if any(each is None for each in found):
        raise ValueError("a piece without cells")
    return found


def _table(told: Any, store: Store, shape: Sequence[int]) -> FloatArray:
    values = np.asarray(store.get(told), dtype=np.float64)
    if values.shape != tuple(shape):
        raise ValueError("a table of another shape")
    return values


def _axes(told: Any, place: Place) -> Axes:
    axes = tuple(told)
    if not all(type(axis) is int and 0 <= axis < len(place.shape) for axis in axes):
        raise ValueError("attributes that it has not")
    if list(axes) != sorted(set(axes)):
        raise ValueError("attributes out of order")
    return axes


def _shape(axes: Axes, place: Place) -> list[int]:
    return [place.shape[axis] for axis in axes]


def _write_tables(tables: MeasuredTables, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    return {
        "axes": [list(axes) for axes in tables.axes],
        "values": [store.put(values) for values in tables.values],
        "scales": [float(scale) for scale in tables.scales],
        "kind": tables.kind,
    }


def _read_tables(told: Any, store: Store, place: Place, made: Made) -> MeasuredTables:
    axes = tuple(_axes(each, place) for each in told["axes"])
    values = tuple(
        _table(each, store, _shape(kept, place)) for each, kept in zip(told["values"], axes, strict=True)
    )
    scales = tuple(map(float, told["scales"]))
    if (
        not axes
        or len(set(axes)) < len(axes)
        or len(scales) != len(axes)
        or not all(0 < scale < math.inf for scale in scales)
        or told["kind"] not in ("laplace", "gaussian")
    ):
        raise ValueError("not tables of these cells")
    return MeasuredTables(place.shape, axes, values, scales, told["kind"])


def _write_shrunk(shrunk: Shrunk | None, store: Sink, place: Place, model: Any) -> Any:
    if shrunk is None:
        return None
    return {
        "order": shrunk.order,
        "ordered": None if shrunk.ordered is None else list(shrunk.ordered),
        "tables": [
            {
                "axes": list(axes),
                "sums": [store.put(each) for each in table.sums],
                "lengths": [list(each) for each in table.lengths],
            }
            for axes, table in shrunk.tables.items()
        ],
    }


def _read_shrunk(told: Any, store: Store, place: Place, made: Made) -> Shrunk | None:
    if told is None:
        return None
    found = {}
    for each in told["tables"]:
        axes = _axes(each["axes"], place)
        shape = _shape(axes, place)
        lengths = tuple(tuple(length) for length in each["lengths"])
        if not lengths or not all(type(n) is int and n > 0 for length in lengths for n in length):
            raise ValueError("not lengths of blocks")
        # Running sums have a row more than there are blocks.
        sums = tuple(
            _table(one, store, [-(-size // n) + 1 for size, n in zip(shape, length, strict=True)])
            for one, length in zip(each["sums"], lengths, strict=True)
        )
        found[axes] = Departures(tuple(shape), sums, lengths)
    ordered = None if told["ordered"] is None else tuple(told["ordered"])
    if type(told["order"]) is not int or (ordered is not None and len(ordered) != len(place.shape)):
        raise ValueError("not what was shrunk")
    if made["counts"] is None or tuple(range(len(place.shape))) not in found:
        raise ValueError("nothing was shrunk")
    return Shrunk(made["tables"], made["counts"], told["order"], found, ordered)


def _write_residuals(residuals: TableResiduals, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    return {
        "measured": [
            {
                "axes": list(each.axes),
                "values": store.put(each.values),
                "variance": float(each.variance),
                "scale": float(each.scale),
                "differences": list(each.differences),
                "residual": each.residual,
                "about": None if each.about is None else sorted(map(list, each.about)),
            }
            for each in residuals.measured
        ],
        "trees": [
            {
                "axis": axis,
                **{
                    name: store.put(getattr(along.tree, name))
                    for name in ("start", "middle", "stop", "depth")
                },
                "noise": store.put(along.noise),
                "scale": store.put(along.scale),
            }
            for axis, along in residuals.trees.items()
        ],
    }


def _read_residuals(told: Any, store: Store, place: Place, made: Made) -> TableResiduals:
    trees = {}
    for each in told["trees"]:
        (axis,) = _axes([each["axis"]], place)
        start, middle, stop, depth = (store.get(each[name]) for name in ("start", "middle", "stop", "depth"))
        noise, scale = (np.asarray(store.get(each[name]), dtype=np.float64) for name in ("noise", "scale"))
        size = place.shape[axis]
        if (
            any(
                values.dtype.kind != "i" or values.shape != (size - 1,)
                for values in (start, middle, stop, depth)
            )
            or not bool(((start >= 0) & (start < middle) & (middle < stop) & (stop <= size)).all())
            or not bool(((depth >= 0) & (depth < len(noise))).all())
            or noise.shape != scale.shape
        ):
            raise ValueError("not a tree of this attribute")
        trees[axis] = AxisNoise(Contrasts(size, start, middle, stop, depth), noise, scale)
    measured = []
    for each in told["measured"]:
        axes, differences = _axes(each["axes"], place), _axes(each["differences"], place)
        shape = [
            1
            if axis in differences
            else place.shape[axis] - (axis in trees)  # contrasts are one less than values
            for axis in axes
        ]
        variance, largest = float(each["variance"]), float(each["scale"])
        if (
            not set(differences) <= set(axes)
            or any(place.shape[axis] != 2 for axis in differences)
            or not (0 < variance < math.inf and 0 <= largest < math.inf)
            or type(each["residual"]) is not bool
        ):
            raise ValueError("not a measured table")
        about = None if each["about"] is None else frozenset(_axes(inner, place) for inner in each["about"])
        values = _table(each["values"], store, shape)
        measured.append(Measured(axes, values, variance, largest, differences, each["residual"], about))
    if not measured:
        raise ValueError("nothing was measured")
    return TableResiduals(place.shape, measured, trees)


def _write_near(tables: Mapping[Axes, FloatArray], store: Sink, place: Place, model: Any) -> Any:
    """The published tables are not written twice."""
    known = place.tables
    same = known is not None and set(known) == set(tables)
    if known is not None and same and all(np.array_equal(known[axes], tables[axes]) for axes in tables):
        return "published"
    return [[list(axes), store.put(np.asarray(table))] for axes, table in tables.items()]


def _read_near(told: Any, store: Store, place: Place, made: Made) -> Mapping[Axes, FloatArray]:
    if told == "published":
        if place.tables is None:
            raise ValueError("no tables were published")
        return place.tables
    return {(kept := _axes(axes, place)): _table(table, store, _shape(kept, place)) for axes, table in told}


def _check_mixture(model: MixtureModel, place: Place) -> bool:
    rows, classes = sum(place.shape), len(model.weights)
    return model.shape == place.shape and model.conditionals.shape == (rows, classes) and classes > 0


def _labels(labels: NDArray[Any], parts: int, cells: int) -> bool:
    return bool(labels.shape == (cells,) and ((labels >= 0) & (labels < parts)).all())


def _sizes(sizes: NDArray[Any], cells: int) -> bool:
    return bool(sizes.size and (sizes > 0).all() and int(sizes.sum()) == cells)


def _groups(place: Place, made: Made) -> Place:
    return place.inside((len(made["sizes"]),))


_TEXT, _FLAG, _WHOLE, _NUMBER = _plain(str), _plain(bool), _plain(int), _plain(float, int)
_FLOATS, _WHOLES = _array("f"), _array("i")
_CELLS = Field(
    lambda value, store, place, model: store.put(np.asarray(value).reshape(-1)),
    lambda told, store, place, made: np.asarray(store.get(told), dtype=np.float64).reshape(place.shape),
)
_COUNTS, _LAW = Field(_write_counts, _read_counts), Field(_write_law, _read_law)
_TREE = Field(_write_tree, _read_tree)
_AXES = Field(
    lambda value, store, place, model: list(value), lambda told, store, place, made: _axes(told, place)
)
_LENGTHS = _several(_WHOLE)
_PIECES = Field(_write_pieces, _read_pieces)
_PARTS = Field(_write_parts, _read_parts)
_RESIDUALS = Field(_write_residuals, _read_residuals)
_CUTS = {
    "cuts": Field(_write_cuts, _read_cuts), "pull": _FLOATS, "cell_scale": _NUMBER, "leaf_scale": _NUMBER,
    "gaussian": _FLAG, "method": _TEXT,
}  # fmt: skip


def _whole_row(place: Place, made: Made) -> Place:
    return place.inside((place.size,))


KINDS: dict[str, Kind] = {
    "independent": Kind(IndependentNoise, {"law": _LAW, "method": _TEXT, "exact": _FLAG}),
    "selected": Kind(
        SelectedNoise,
        {"law": _LAW, "method": _TEXT, "exact": _FLAG, "threshold": _WHOLE, "counts": _COUNTS},
        lambda model, place: model.threshold > 0 and model.counts is not None,
    ),
    "noisy cells": Kind(NoisyCells, {"centre": _CELLS, "law": _LAW, "exact": _FLAG, "method": _TEXT}),
    "pieces": Kind(
        PieceNoise,
        {"shape": _LENGTHS, "labels": _WHOLES, "scales": _FLOATS, "method": _TEXT},
        lambda model, place: (
            model.shape == place.shape and _labels(model.labels, len(model.scales), place.size)
        ),
    ),
    "tree": Kind(TreeNoise, {"tree": _TREE, "method": _TEXT, "fixed": _FLAG}),
    "unprojected tree": Kind(UnprojectedNoise, {"tree": _TREE, "method": _TEXT, "fixed": _FLAG}),
    "leaves": Kind(LeafNoise, _CUTS, lambda model, place: len(model.pull) == len(model.cuts.leaves)),
    "projected leaves": Kind(
        ProjectedNoise,
        {**_CUTS, "centre": _CELLS},
        lambda model, place: len(model.pull) == len(model.cuts.leaves),
    ),
    "dense": Kind(
        DenseNoise,
        {"covariance": _array("f", 2), "method": _TEXT},
        lambda model, place: model.covariance.shape == (place.size, place.size),
    ),
    "groups": Kind(
        BucketNoise,
        {"sizes": _WHOLES, "inner": _inside(_groups)},
        lambda model, place: len(place.shape) == 1 and _sizes(model.sizes, place.size),
    ),
    "group bound": Kind(
        CellBound,
        {"shape": _LENGTHS, "labels": _WHOLES, "sizes": _WHOLES, "inner": _inside(_groups)},
        lambda model, place: (
            model.shape == place.shape
            and _sizes(model.sizes, place.size)
            and _labels(model.labels, len(model.sizes), place.size)
        ),
    ),
    "prefix sums": Kind(
        PrefixNoise,
        {"weights": _FLOATS, "law": _LAW, "method": _TEXT},
        lambda model, place: place.shape == (model.size,),
    ),
    "runs": Kind(
        RunNoise,
        {
            "shape": _LENGTHS,
            "runs": _inside(_whole_row),
            "counts": _CELLS,
            "cell_variance": _CELLS,
            "averaged": _FLAG,
        },
        lambda model, place: model.shape == place.shape and isinstance(model.runs, TreeNoise),
    ),
    "wavelets": Kind(WaveletNoise, {"axes": Field(_write_axes, _read_axes), "law": _LAW, "method": _TEXT}),
    "waves": Kind(
        WaveNoise,
        {"shape": _LENGTHS, "keep": _LENGTHS, "basis": _TEXT, "scale": _NUMBER, "method": _TEXT},
        lambda model, place: (
            model.shape in (place.shape, (place.size,))
            and model.basis in ("fourier", "cosine")
            and len(model.keep) == len(model.shape)
            and all(0 < keep <= 2 * size for keep, size in zip(model.keep, model.shape, strict=True))
        ),
    ),
    "predictive": Kind(
        PredictiveErrors,
        {
            "measured": Field(_write_measured, _read_measured),
            "counts": _COUNTS,
            "pruned": _FLAG,
            "divided": _FLAG,
            "told": _optional(_named(_TEXT, _array("f", None))),
        },
    ),
    "parts": Kind(
        PartErrors,
        {"pieces": _PIECES, "errors": _PARTS, "counts": Field(_write_part_counts, _read_part_counts)},
    ),
    "noise of parts": Kind(PartNoise, {"pieces": _PIECES, "laws": _PARTS}),
    "tables": Kind(
        TableNoise,
        {
            "tables": Field(_write_tables, _read_tables),
            "counts": _COUNTS,
            "shrunk": Field(_write_shrunk, _read_shrunk),
        },
    ),
    "residuals": Kind(ResidualNoise, {"residuals": _RESIDUALS}),
    "stages": Kind(
        StagedNoise,
        {"residuals": _RESIDUALS, "stages": _several(_RESIDUALS)},
        lambda model, place: len(model.stages) > 1,
    ),
    "mixture": Kind(
        MixtureModel,
        {"shape": _LENGTHS, "weights": _FLOATS, "conditionals": _array("f", 2)},
        _check_mixture,
    ),
    "published": Kind(
        PublishedModel,
        {"mixture": _inside(lambda place, made: place), "tables": Field(_write_near, _read_near)},
    ),
}
"""Every kind of model by the name that files call it."""

_NAMES = {kind.make: name for name, kind in KINDS.items()}
