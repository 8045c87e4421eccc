"""Fields of models of tables: what was measured of them, what was shrunk, and what is published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.fields import (
    KINDS_OF_NOISE,
    Field,
    Made,
    Place,
    Sink,
    Store,
    insist,
    optional,
    plain,
    several,
    told_of,
    whole_arrays,
)
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.mixture import MixtureModel
from dphist.inference.tables.residuals import Axes, AxisNoise, Measured, TableResiduals
from dphist.inference.tables.shrunk import Departures, Shrunk
from dphist.model.contrasts import Contrasts

FloatArray = NDArray[np.float64]


def _table(told: Any, store: Store, shape: Sequence[int]) -> FloatArray:
    values = np.asarray(store.get(told), dtype=np.float64)
    insist(values.shape == tuple(shape))
    return values


def _axes(told: Any, place: Place) -> Axes:
    axes = tuple(told)
    insist(all(type(axis) is int and 0 <= axis < len(place.shape) for axis in axes))
    insist(list(axes) == sorted(set(axes)))
    return axes


def _shape(axes: Axes, place: Place) -> list[int]:
    return [place.shape[axis] for axis in axes]


def _write_tables(tables: MeasuredTables, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    scales = [float(scale) for scale in tables.scales]
    values = [store.put(np.asarray(each)) for each in tables.values]
    return {"axes": plain(tables.axes, store), "values": values, "scales": scales, "kind": tables.kind}


def _read_tables(told: Any, store: Store, place: Place, made: Made) -> MeasuredTables:
    axes = tuple(_axes(each, place) for each in told["axes"])
    values = tuple(
        _table(each, store, _shape(kept, place)) for each, kept in zip(told["values"], axes, strict=True)
    )
    scales = tuple(map(float, told["scales"]))
    insist(
        0 < len(set(axes)) == len(axes) == len(scales),
        all(0 < scale < math.inf for scale in scales),
        told["kind"] in KINDS_OF_NOISE,
    )
    return MeasuredTables(place.shape, axes, values, scales, told["kind"])


def _write_shrunk(shrunk: Shrunk, store: Sink, place: Place, model: Any) -> Any:
    return {
        "order": shrunk.order,
        # Nobody reads it any more but versions before, which insist on it.
        "ordered": None,
        "tables": [
            {"axes": list(axes), **told_of(table, store, "sums", "lengths"), "times": shrunk.times.get(axes)}
            for axes, table in shrunk.tables.items()
        ],
    }


def _read_shrunk(told: Any, store: Store, place: Place, made: Made) -> Shrunk:
    found, times = {}, {}
    for each in told["tables"]:
        axes = _axes(each["axes"], place)
        shape = _shape(axes, place)
        lengths = tuple(tuple(length) for length in each["lengths"])
        insist(lengths, all(type(n) is int and n > 0 for length in lengths for n in length))
        # Running sums have a row more than there are blocks.
        sums = tuple(
            _table(one, store, [-(-size // n) + 1 for size, n in zip(shape, length, strict=True)])
            for one, length in zip(each["sums"], lengths, strict=True)
        )
        found[axes] = Departures(tuple(shape), sums, lengths)
        if each["times"] is not None:
            times[axes] = float(each["times"])
    alone = {axes for axes in found if axes not in made["residuals"].residuals}
    insist(
        type(told["order"]) is int,
        made["counts"] is not None,
        tuple(range(len(place.shape))) in found,
        set(times) == alone,
        all(0.0 < each < math.inf for each in times.values()),
    )
    return Shrunk(made["residuals"], made["counts"], told["order"], found, times)


def _write_residuals(residuals: TableResiduals, store: Sink, place: Place, model: Any) -> dict[str, Any]:
    return {
        "measured": [
            {
                "axes": list(each.axes),
                # A total is an array without axes, or a number.
                "values": store.put(np.asarray(each.values)),
                **told_of(each, store, "variance", "scale", "differences", "residual"),
                "about": None if each.about is None else sorted(map(list, each.about)),
            }
            for each in residuals.measured
        ],
        "trees": [
            {
                "axis": axis,
                **told_of(along.tree, store, "start", "middle", "stop", "depth"),
                **told_of(along, store, "noise", "scale"),
            }
            for axis, along in residuals.trees.items()
        ],
    }


def _read_residuals(told: Any, store: Store, place: Place, made: Made) -> TableResiduals:
    trees = {}
    for each in told["trees"]:
        (axis,) = _axes([each["axis"]], place)
        start, middle, stop, depth = whole_arrays(each, store, "start", "middle", "stop", "depth")
        noise, scale = (np.asarray(store.get(each[name]), dtype=np.float64) for name in ("noise", "scale"))
        size = place.shape[axis]
        insist(
            start.shape == middle.shape == stop.shape == depth.shape == (size - 1,),
            noise.shape == scale.shape,
            ((start >= 0) & (start < middle) & (middle < stop) & (stop <= size)).all(),
            ((depth >= 0) & (depth < len(noise))).all(),
        )
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
        insist(
            set(differences) <= set(axes),
            all(place.shape[axis] == 2 for axis in differences),
            0 < variance < math.inf,
            0 <= largest < math.inf,
            type(each["residual"]) is bool,
        )
        about = None if each["about"] is None else frozenset(_axes(inner, place) for inner in each["about"])
        values = _table(each["values"], store, shape)
        measured.append(Measured(axes, values, variance, largest, differences, each["residual"], about))
    insist(measured)
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


TABLES, _RESIDUALS = Field(_read_tables, _write_tables), Field(_read_residuals, _write_residuals)
_PUBLISHED = Field(_read_near, _write_near)
OF_TABLES: dict[str, Field] = {
    "residuals": _RESIDUALS,
    "stages": several(_RESIDUALS),
    "tables": _PUBLISHED,
    "near": optional(_PUBLISHED),
    "shrunk": optional(Field(_read_shrunk, _write_shrunk)),
}
"""By the names of the fields."""
