"""Fields of models of tables: what was measured of them, what was shrunk, and what is published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.fields import Field, Made, Place, Sink, Store, optional
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.mixture import MixtureModel
from dphist.inference.tables.residuals import Axes, AxisNoise, Measured, TableResiduals
from dphist.inference.tables.shrunk import Departures, Shrunk
from dphist.model.contrasts import Contrasts

FloatArray = NDArray[np.float64]


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
                "times": shrunk.times.get(axes),
            }
            for axes, table in shrunk.tables.items()
        ],
    }


def _read_shrunk(told: Any, store: Store, place: Place, made: Made) -> Shrunk | None:
    if told is None:
        return None
    found, times = {}, {}
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
        if each["times"] is not None:
            times[axes] = float(each["times"])
    ordered = None if told["ordered"] is None else tuple(told["ordered"])
    if type(told["order"]) is not int or (ordered is not None and len(ordered) != len(place.shape)):
        raise ValueError("not what was shrunk")
    if made["counts"] is None or tuple(range(len(place.shape))) not in found:
        raise ValueError("nothing was shrunk")
    alone = {axes for axes in found if axes not in made["tables"].residuals}
    if set(times) != alone or not all(0.0 < each < math.inf for each in times.values()):
        raise ValueError("not how far shrunk tables are off")
    return Shrunk(made["tables"], made["counts"], told["order"], found, ordered, times)


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


def mixture_fits(model: MixtureModel, place: Place) -> bool:
    """Whether a mixture has a row for every value of every column."""
    rows, classes = sum(place.shape), len(model.weights)
    return model.shape == place.shape and model.conditionals.shape == (rows, classes) and classes > 0


TABLES, SHRUNK = Field(_write_tables, _read_tables), Field(_write_shrunk, _read_shrunk)
RESIDUALS, PUBLISHED = Field(_write_residuals, _read_residuals), Field(_write_near, _read_near)
NEAR = optional(PUBLISHED)
