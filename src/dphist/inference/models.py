"""Models as plain data: how a file holds what answers and intervals are worked out of.

A mechanism ends in a model (`Estimate`, `TableEstimate`): a frozen value of plain numbers, texts and arrays. Here each
kind has a name; by the fields of its class it is written as a JSON object, ``{"model": kind, field: value, …}``, and
read again; arrays stand apart, in a store that hands out a reference for each. So whoever reads a release needs neither
the mechanism nor the version that made it. Fields that a reader does not know are passed over.

What is read may come from anybody. Every number that becomes a place in an array is held against that array's size, so
that no kernel reads beyond what it was given; that the model is the one that was paid for is for `Release.verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError, ReleaseError
from dphist.inference.estimate import Errors, IndependentNoise, NoisyCells, PieceNoise
from dphist.inference.fields import (
    BY_NAME,
    CELLS,
    MISFITS,
    PREDICTIVE,
    Field,
    Made,
    Place,
    Sink,
    Store,
    labels_fit,
    optional,
    read_counts,
    sizes_fit,
    write_counts,
)
from dphist.inference.linear import (
    BucketNoise,
    CellBound,
    DenseNoise,
    LeafNoise,
    PrefixNoise,
    WaveletNoise,
    WaveNoise,
)
from dphist.inference.pieces import PartErrors, PartNoise
from dphist.inference.predictive.errors import PredictiveErrors
from dphist.inference.predictive.law import size_classes_of
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.errors import ResidualNoise, StagedNoise
from dphist.inference.tables.fields import OF_TABLES, TABLES, mixture_fits
from dphist.inference.tables.mixture import MixtureModel
from dphist.inference.tables.published import LaterModel, PublishedModel, RakedModel
from dphist.inference.tables.shrunk import TableNoise
from dphist.inference.trees import RunNoise, TreeNoise

FloatArray = NDArray[np.float64]

_DEEPEST = 64
"""Models inside models: pieces of pieces."""


@dataclass(frozen=True)
class Kind:
    """One kind of model, written and read by the fields of its class, in their order.

    Args:
        make: The class.
        check: Whether what was read fits its place; None where there is nothing to hold.
        special: Fields that are written otherwise than others of their name.
        called: What files call a field, where that is not its name.
    """

    make: type[Any]
    check: Callable[[Any, Place], bool] | None = None
    special: Mapping[str, Field] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fields(self) -> dict[str, tuple[str, Field]]:
        """Of every field, as files call it, its name and how it is written and read."""
        names = [each.name for each in fields(self.make)]
        return {self.called.get(name, name): (name, self.special.get(name) or FIELDS[name]) for name in names}


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
            f"{type(model).__name__} is no model that a release can hold; end in one of those that dphist.inference "
            "offers, such as IndependentNoise or TreeNoise"
        )
    written = {
        told: each.write(getattr(model, attribute), store, place, model)
        for told, (attribute, each) in KINDS[name].fields.items()
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
        for told, (attribute, each) in kind.fields.items():
            made[attribute] = each.read(story[told], store, place, made)
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
    return Field(
        lambda told, store, place, made: read(told, store, where(place, made)),
        lambda value, store, place, model: write(value, store, place),
    )


def _write_parts(errors: Sequence[Errors], store: Sink, place: Place, model: Any) -> list[Any]:
    return [write(each, store, at) for each, at in zip(errors, place.parts(model.pieces), strict=True)]


def _read_parts(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    return tuple(read(each, store, at) for each, at in zip(told, place.parts(made["pieces"]), strict=True))


def _write_part_counts(counts: Sequence[FloatArray], store: Sink, place: Place, model: Any) -> list[Any]:
    places = place.parts(model.pieces)
    return [write_counts(each, store, at, None) for each, at in zip(counts, places, strict=True)]


def _read_part_counts(told: Any, store: Store, place: Place, made: Made) -> tuple[Any, ...]:
    places = place.parts(made["pieces"])
    return tuple(read_counts(each, store, at, {}) for each, at in zip(told, places, strict=True))


_PARTS = Field(_read_parts, _write_parts)

FIELDS: dict[str, Field] = {
    **BY_NAME,
    **OF_TABLES,
    "errors": _PARTS,
    "laws": _PARTS,
    "inner": _inside(lambda place, made: place.inside((len(made["sizes"]),))),
    "runs": _inside(lambda place, made: place.inside((place.size,))),
    "mixture": _inside(lambda place, made: place),
}
"""How fields are written and read, by their names."""


def _leaves_fit(model: LeafNoise, place: Place) -> bool:
    return len(model.pull) == len(model.cuts.leaves)


def _waves_fit(model: WaveNoise, place: Place) -> bool:
    return (
        model.shape in (place.shape, (place.size,))
        and model.basis in ("fourier", "cosine")
        and len(model.keep) == len(model.shape)
        and all(0 < keep <= 2 * size for keep, size in zip(model.keep, model.shape, strict=True))
    )


def _labels_fit(model: PieceNoise | CellBound, place: Place) -> bool:
    parts = model.scales if isinstance(model, PieceNoise) else model.sizes
    return model.shape == place.shape and labels_fit(model.labels, len(parts), place.size)


def _departures_fit(model: PredictiveErrors, place: Place) -> bool:
    if model.counts is None or model.departures is None or model.law is None:
        return model.counts is None and model.departures is None
    return model.departures.shape == model.law.caution.shape


KINDS: dict[str, Kind] = {
    "independent": Kind(IndependentNoise),
    "selected": Kind(SelectedNoise, lambda model, place: model.threshold > 0 and model.counts is not None),
    "noisy cells": Kind(NoisyCells),
    "pieces": Kind(PieceNoise, _labels_fit),
    "tree": Kind(TreeNoise),
    "leaves": Kind(LeafNoise, _leaves_fit, {"centre": optional(CELLS)}),
    "dense": Kind(DenseNoise, lambda model, place: model.covariance.shape == (place.size, place.size)),
    "groups": Kind(
        BucketNoise, lambda model, place: len(place.shape) == 1 and sizes_fit(model.sizes, place.size)
    ),
    "group bound": Kind(
        CellBound, lambda model, place: sizes_fit(model.sizes, place.size) and _labels_fit(model, place)
    ),
    "prefix sums": Kind(PrefixNoise, lambda model, place: place.shape == (model.size,)),
    "runs": Kind(
        RunNoise,
        lambda model, place: model.shape == place.shape and isinstance(model.runs, TreeNoise),
        {"counts": CELLS},
    ),
    "wavelets": Kind(WaveletNoise),
    "waves": Kind(WaveNoise, _waves_fit),
    "predictive": Kind(PredictiveErrors, _departures_fit, {"law": PREDICTIVE}),
    "parts": Kind(PartErrors, special={"counts": Field(_read_part_counts, _write_part_counts)}),
    "noise of parts": Kind(PartNoise),
    "tables": Kind(
        TableNoise,
        lambda model, place: len(model.biased) == size_classes_of(place.shape),
        {"residuals": TABLES},
        {"residuals": "tables"},
    ),
    "residuals": Kind(ResidualNoise),
    "stages": Kind(StagedNoise, lambda model, place: len(model.stages) > 1),
    "mixture": Kind(MixtureModel, mixture_fits),
    "raked": Kind(RakedModel, lambda model, place: model.shape == place.shape and () in model.tables),
    "published": Kind(PublishedModel),
}
"""Every kind of model by the name that files call it."""

_NAMES = {kind.make: name for name, kind in KINDS.items()}
