"""Models as plain data: how a file holds what answers and intervals are worked out of.

A mechanism ends in a model (`Estimate`, `TableEstimate`): a frozen value of plain numbers, texts and arrays. Here each
kind has a name and a list of fields, by which it is written as a JSON object, ``{"model": kind, field: value, …}``, and
read again; arrays stand apart, in a store that hands out a reference for each. So whoever reads a release needs neither
the mechanism nor the version that made it. Fields that a reader does not know are passed over.

What is read may come from anybody. Every number that becomes a place in an array is held against that array's size, so
that no kernel reads beyond what it was given; that the model is the one that was paid for is for `Release.verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError, ReleaseError
from dphist.inference.estimate import (
    Errors,
    IndependentNoise,
    NoisyCells,
    PieceNoise,
)
from dphist.inference.fields import (
    CELLS,
    COUNTS,
    CUTS,
    FLAG,
    FLAGS,
    FLOATS,
    LAW,
    LENGTHS,
    MATRIX,
    MEASURED,
    MISFITS,
    NUMBER,
    PIECES,
    PREDICTIVE,
    TEXT,
    TREE,
    WAVELET_AXES,
    WHOLE,
    WHOLES,
    Field,
    Made,
    Place,
    Sink,
    Store,
    labels_fit,
    optional,
    read_counts,
    several,
    sizes_fit,
    write_counts,
)  # fmt: skip
from dphist.inference.linear.boxes import LeafNoise
from dphist.inference.linear.ranges import BucketNoise, CellBound, DenseNoise, PrefixNoise
from dphist.inference.linear.waves import WaveletNoise, WaveNoise
from dphist.inference.pieces import PartErrors, PartNoise
from dphist.inference.predictive.errors import PredictiveErrors
from dphist.inference.predictive.law import size_classes_of
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.errors import ResidualNoise, StagedNoise
from dphist.inference.tables.fields import NEAR, PUBLISHED, RESIDUALS, SHRUNK, TABLES, mixture_fits
from dphist.inference.tables.mixture import MixtureModel
from dphist.inference.tables.shrunk import TableNoise
from dphist.inference.tables.synthesis import LaterModel, PublishedModel, RakedModel
from dphist.inference.trees import RunNoise, TreeNoise

FloatArray = NDArray[np.float64]

_DEEPEST = 64
"""Models inside models: pieces of pieces."""


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


def settled(model: Any) -> Any:
    """The same with all that is fitted or learned when it is first asked."""
    if isinstance(model, LaterModel):
        return model.fitted
    return model.settled if isinstance(model, PredictiveErrors) else model


def write(model: Any, store: Sink, place: Place) -> dict[str, Any]:
    """Write a model down, its arrays into a store; a MechanismError if it is of no kind that a file can hold."""
    model = settled(model)
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
    """Read a model that `write` wrote, or anybody; a ReleaseError if it is of no known kind or does not fit."""
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
    except MISFITS:
        fits = False
    if not fits:
        raise ReleaseError(f"its model ({name}) does not fit its cells")
    return model


def _inside(where: Callable[[Place, Made], Place]) -> Field:
    """A model inside, about what ``where`` says."""

    def write_inside(value: Any, store: Sink, place: Place, model: Any) -> Any:
        return write(value, store, place)

    return Field(write_inside, lambda told, store, place, made: read(told, store, where(place, made)))


def _write_parts(errors: Sequence[Errors], store: Sink, place: Place, model: Any) -> list[Any]:
    return [write(each, store, at) for each, at in zip(errors, place.parts(model.pieces), strict=True)]


def _read_parts(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    return tuple(read(each, store, at) for each, at in zip(told, place.parts(made["pieces"]), strict=True))


def _write_part_counts(counts: Sequence[FloatArray], store: Sink, place: Place, model: Any) -> list[Any]:
    places = place.parts(model.pieces)
    return [write_counts(each, store, at, None) for each, at in zip(counts, places, strict=True)]


def _read_part_counts(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    places = place.parts(made["pieces"])
    found = tuple(read_counts(each, store, at, {}) for each, at in zip(told, places, strict=True))
    if any(each is None for each in found):
        raise ValueError("a piece without cells")
    return found


def _groups(place: Place, made: Made) -> Place:
    return place.inside((len(made["sizes"]),))


def _whole_row(place: Place, made: Made) -> Place:
    return place.inside((place.size,))


_PARTS = Field(_write_parts, _read_parts)

KINDS: dict[str, Kind] = {
    "independent": Kind(IndependentNoise, {"law": LAW, "method": TEXT, "exact": FLAG}),
    "selected": Kind(
        SelectedNoise,
        {"law": LAW, "method": TEXT, "exact": FLAG, "threshold": WHOLE, "counts": COUNTS},
        lambda model, place: model.threshold > 0 and model.counts is not None,
    ),
    "noisy cells": Kind(NoisyCells, {"centre": CELLS, "law": LAW, "exact": FLAG, "method": TEXT}),
    "pieces": Kind(
        PieceNoise,
        {"shape": LENGTHS, "labels": WHOLES, "scales": FLOATS, "method": TEXT},
        lambda model, place: (
            model.shape == place.shape and labels_fit(model.labels, len(model.scales), place.size)
        ),
    ),
    "tree": Kind(TreeNoise, {"tree": TREE, "method": TEXT, "fixed": FLAG, "projected": FLAG}),
    "leaves": Kind(
        LeafNoise,
        {
            "cuts": CUTS,
            "pull": FLOATS,
            "cell_scale": NUMBER,
            "leaf_scale": NUMBER,
            "gaussian": FLAG,
            "method": TEXT,
            "centre": optional(CELLS),
        },
        lambda model, place: len(model.pull) == len(model.cuts.leaves),
    ),
    "dense": Kind(
        DenseNoise,
        {"covariance": MATRIX, "method": TEXT},
        lambda model, place: model.covariance.shape == (place.size, place.size),
    ),
    "groups": Kind(
        BucketNoise,
        {"sizes": WHOLES, "inner": _inside(_groups)},
        lambda model, place: len(place.shape) == 1 and sizes_fit(model.sizes, place.size),
    ),
    "group bound": Kind(
        CellBound,
        {"shape": LENGTHS, "labels": WHOLES, "sizes": WHOLES, "inner": _inside(_groups)},
        lambda model, place: (
            model.shape == place.shape
            and sizes_fit(model.sizes, place.size)
            and labels_fit(model.labels, len(model.sizes), place.size)
        ),
    ),
    "prefix sums": Kind(
        PrefixNoise,
        {"weights": FLOATS, "law": LAW, "method": TEXT},
        lambda model, place: place.shape == (model.size,),
    ),
    "runs": Kind(
        RunNoise,
        {
            "shape": LENGTHS,
            "runs": _inside(_whole_row),
            "counts": CELLS,
            "cell_variance": CELLS,
            "averaged": FLAG,
        },
        lambda model, place: model.shape == place.shape and isinstance(model.runs, TreeNoise),
    ),
    "wavelets": Kind(WaveletNoise, {"axes": WAVELET_AXES, "law": LAW, "method": TEXT}),
    "waves": Kind(
        WaveNoise,
        {"shape": LENGTHS, "keep": LENGTHS, "basis": TEXT, "scale": NUMBER, "method": TEXT},
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
            "measured": MEASURED,
            "counts": COUNTS,
            "pruned": FLAG,
            "law": PREDICTIVE,
            "departures": optional(FLOATS),
        },
        lambda model, place: (
            (model.counts is None) == (model.departures is None)
            and (model.counts is None or model.departures.shape == model.law.caution.shape)
        ),
    ),
    "parts": Kind(
        PartErrors,
        {"pieces": PIECES, "errors": _PARTS, "counts": Field(_write_part_counts, _read_part_counts)},
    ),
    "noise of parts": Kind(PartNoise, {"pieces": PIECES, "laws": _PARTS}),
    "tables": Kind(
        lambda tables, **rest: TableNoise(tables, **rest),
        {
            "tables": TABLES,
            "counts": COUNTS,
            "shrunk": SHRUNK,
            "near": NEAR,
            "biased": FLAGS,
            "follows": FLAG,
        },
        lambda model, place: len(model.biased) == size_classes_of(place.shape),
    ),
    "residuals": Kind(ResidualNoise, {"residuals": RESIDUALS}),
    "stages": Kind(
        StagedNoise,
        {"residuals": RESIDUALS, "stages": several(RESIDUALS)},
        lambda model, place: len(model.stages) > 1,
    ),
    "mixture": Kind(
        MixtureModel,
        {"shape": LENGTHS, "weights": FLOATS, "conditionals": MATRIX},
        mixture_fits,
    ),
    "raked": Kind(
        RakedModel,
        {"shape": LENGTHS, "tables": PUBLISHED},
        lambda model, place: model.shape == place.shape and () in model.tables,
    ),
    "published": Kind(
        PublishedModel,
        {"mixture": _inside(lambda place, made: place), "tables": PUBLISHED},
    ),
}
"""Every kind of model by the name that files call it."""

_NAMES = {kind.make: name for name, kind in KINDS.items()} | {TableNoise: "tables"}
