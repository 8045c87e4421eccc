"""A domain: the attributes that span a histogram, as plain values, and conditions on them as ranges of cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dphist.arguments import explained
from dphist.errors import DomainError, QueryError
from dphist.model.domain.hierarchy import write_tree
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.ordinal import Ordinal, Stretch, whole_cells
from dphist.model.domain.scales import MOST, Bins, Dates, Integers, Place, Steps
from dphist.model.domain.toml import parsed, toml_tables
from dphist.model.domain.zones import UTC

Attribute = Ordinal | Nominal
Span = tuple[int, int]
End = TypeVar("End", int, Place)
# Cells, and which share of each is meant.
Piece = tuple[int, int, float]

# Equally spaced edges beyond this many are written as from, to, width: a schema is read by people.
_LISTED_EDGES = 32


_FORMS = ("range", "edges", "categories", "dates")


@explained
@dataclass(frozen=True, repr=False)
class Domain:
    """The attributes that span a histogram, one axis each; public, and declared before any record is read.

    Args:
        attributes: `Ordinal` and `Nominal` attributes, each with a name of its own.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> domain.shape, domain.size, domain.names
        ((100, 2), 200, ('age', 'sex'))
    """

    attributes: tuple[Attribute, ...]

    def __init__(self, attributes: Iterable[Attribute]) -> None:
        if isinstance(attributes, Ordinal | Nominal):
            raise DomainError("attributes: give a list of them, also of one: Domain([Ordinal(…)])")
        listed = tuple(attributes)
        if not listed:
            raise DomainError("a domain needs at least one attribute")
        for attribute in listed:
            if not isinstance(attribute, Ordinal | Nominal):
                raise DomainError(f"attributes must be Ordinal or Nominal, not {type(attribute).__name__}")
        names = [attribute.name for attribute in listed]
        if len(set(names)) < len(names):
            raise DomainError(f"the attribute {max(names, key=names.count)} is declared twice")
        object.__setattr__(self, "attributes", listed)

    # Loops over attributes look these up again and again; there may be thousands.
    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many cells along each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def size(self) -> int:
        """How many cells in all; a plain integer, however large."""
        return math.prod(self.shape)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def undeclared(self) -> Nominal | None:
        """The attribute whose keys are to be discovered among the records, if there is one."""
        hidden = [each for each in self.attributes if isinstance(each, Nominal) and each.discover]
        if len(hidden) > 1:
            raise DomainError(
                "domain: one attribute can be discovered at a time; list the categories of the others"
            )
        return hidden[0] if hidden else None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def axis(self, name: str) -> int:
        """The position of an attribute.

        Args:
            name: The attribute's name.

        Returns:
            Which axis of the counts it is.
        """
        if name not in self._places:
            raise DomainError(f"there is no attribute {name}; there are {', '.join(self.names)}")
        return self._places[name]

    def attribute(self, name: str) -> Attribute:
        """An attribute by its name.

        Args:
            name: The attribute's name.

        Returns:
            The attribute.
        """
        return self.attributes[self.axis(name)]

    def project(self, names: Sequence[str]) -> Domain:
        """The domain of some attributes, in the order given.

        Args:
            names: The attributes to keep.

        Returns:
            The smaller domain.
        """
        if isinstance(names, str):
            names = (names,)
        return Domain(self.attribute(name) for name in names)

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` turns back into an equal domain.

        Returns:
            A mapping of plain values.
        """
        return {"attributes": [attribute_to_json(attribute) for attribute in self.attributes]}

    @staticmethod
    def from_json(value: Any) -> Domain:
        """Read what `to_json` wrote.

        Args:
            value: What `to_json` gave.

        Returns:
            An equal domain.
        """
        if not isinstance(value, Mapping) or not isinstance(value.get("attributes"), list):
            raise DomainError("a domain must be a mapping with a list of attributes")
        return Domain(map(attribute_from_json, value["attributes"]))

    def to_toml(self) -> str:
        """A schema file that `from_toml` turns back into an equal domain.

        Returns:
            The text of a schema file.
        """
        return toml_tables("attribute", (attribute_to_json(each, ordered=False) for each in self.attributes))

    @staticmethod
    def from_toml(source: str | Path) -> Domain:
        """Read a schema: TOML text, or the path of a file.

        Args:
            source: TOML text, or the path of a file.

        Returns:
            The domain it declares.
        """
        return Domain(map(attribute_from_json, parsed(source)["attribute"]))

    def __repr__(self) -> str:
        inside = ", ".join(repr(attribute) for attribute in self.attributes)
        return f"Domain([{inside}])"


def attribute_to_json(attribute: Attribute, *, ordered: bool = True) -> dict[str, Any]:
    """One attribute as plain values."""
    written: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    if isinstance(attribute, Nominal) and attribute.discover:
        written["discover"] = True
    elif isinstance(attribute, Nominal):
        written["categories"] = write_tree(attribute.tree, ordered=ordered)
    else:
        match attribute.scale:
            case Integers(values=values):
                written["range"] = [values.start, values.stop] + ([values.step] if values.step > 1 else [])
            case Bins(edges=range() as even) if len(even) > _LISTED_EDGES:
                written["edges"] = {"from": even[0], "to": even[-1], "width": even.step}
            case Bins(edges=edges):
                written["edges"] = list(edges)
            case Steps(categories=categories):
                written["categories"] = list(categories)
            case Dates(start=start, stop=stop, step=step, zone=zone):
                written["dates"] = [start.isoformat(), stop.isoformat(), step]
                if zone != UTC:
                    written["zone"] = zone
    if attribute.other:
        written["other"] = True
    return written


def attribute_from_json(value: Any) -> Attribute:
    """Read one attribute."""
    if not isinstance(value, Mapping):
        raise DomainError("each attribute must be a table with a name, a kind and its values")
    name = value.get("name")
    if not isinstance(name, str):
        raise DomainError('an attribute has no name: add name = "the column it stands for"')
    unknown = set(value) - {"name", "kind", "other", "discover", "zone", *_FORMS}
    if unknown:
        known = ", ".join(("name", "kind", *_FORMS, "zone", "other", "discover"))
        key = sorted(map(str, unknown))[0]
        if key in ("workload", "unit"):
            raise DomainError(
                f"{name}: {key} does not belong to an attribute; write it before the first [[attribute]]"
            )
        raise DomainError(f"{name}: unknown setting {key}; an attribute has {known}")
    kind, other = value.get("kind"), value.get("other", False)
    if not isinstance(other, bool):
        raise DomainError(f"{name}: other must be true or false")
    given = [form for form in _FORMS if form in value]
    if "zone" in value and given != ["dates"]:
        raise DomainError(f"{name}: zone says whose calendar dates are of; leave it out")
    if (discover := value.get("discover", False)) is not False:
        if discover is not True or kind != "nominal" or given:
            raise DomainError(f"{name}: discover = true stands for the categories of a nominal attribute")
        return Nominal(name, other=other, discover=True)
    if len(given) != 1:
        raise DomainError(f"{name}: give exactly one of {', '.join(_FORMS)}")
    form, values = given[0], value[given[0]]
    if kind == "nominal":
        if form != "categories":
            raise DomainError(f"{name}: a nominal attribute takes categories, not {form}")
        return Nominal(name, values, other=other)
    if kind != "ordinal":
        raise DomainError(f'{name}: kind must be "ordinal" (the values have an order) or "nominal"')
    if form == "range":
        return Ordinal(name, _range(name, values), other=other)
    if form == "edges":
        return Ordinal(name, edges=_edges(name, values), other=other)
    if not isinstance(values, list | tuple):
        raise DomainError(f"{name}: {form} must be a list")
    if form == "dates":
        return Ordinal(name, dates=tuple(values), zone=value.get("zone", UTC), other=other)
    return Ordinal(name, values, other=other)


def _range(name: str, values: Any) -> range:
    listed = isinstance(values, list | tuple) and 2 <= len(values) <= 3
    if not listed or any(type(v) is not int for v in values) or (len(values) == 3 and values[2] < 1):
        raise DomainError(
            f"{name}: range must be [first, past the last] or [first, past the last, step], integers"
        )
    return range(*values)


def _edges(name: str, values: Any) -> Iterable[Any]:
    if not isinstance(values, Mapping):
        if not isinstance(values, list | tuple):
            raise DomainError(f"{name}: edges must be a list of numbers, or {{from, to, width}}")
        return values
    if set(values) != {"from", "to", "width"} or any(type(v) is not int for v in values.values()):
        raise DomainError(f"{name}: evenly spaced edges are {{from = …, to = …, width = …}}, integers")
    low, high, width = values["from"], values["to"], values["width"]
    if width < 1 or high <= low or (high - low) % width:
        raise DomainError(f"{name}: the width must divide the distance between from and to")
    return range(low, high + 1, width)


def spans(attribute: Attribute, condition: Any) -> list[Span]:
    """The cells a condition allows, as disjoint half-open ranges in order; one that cuts a bin is refused."""
    return whole_cells(attribute, stretches(attribute, condition))


def stretches(attribute: Attribute, condition: Any) -> list[Stretch]:
    """The stretches of values a condition allows, disjoint and in order: they may begin and end inside of bins."""
    if isinstance(condition, range):
        raise QueryError(f"{attribute.name}: give a pair of bounds (low, high), both included, not a range")
    if isinstance(condition, np.ndarray) and condition.ndim == 0:
        # One value that NumPy has wrapped.
        condition = condition.item()
    listed = isinstance(condition, list | set | frozenset | np.ndarray)
    found = union([_stretch(attribute, item) for item in (condition if listed else [condition])])
    if not found:
        raise QueryError(f"{attribute.name}: the list is empty, and asks for nobody")
    return found


def _stretch(attribute: Attribute, condition: Any) -> Stretch:
    if condition is None:
        raise QueryError(
            f"{attribute.name}: None is no condition; leave the attribute out to allow all of it"
        )
    if not isinstance(condition, tuple):
        return equal(attribute, condition)
    if isinstance(attribute, Nominal):
        raise QueryError(
            f"{attribute.name}: a pair bounds a range, and these categories have no order; give a list of categories, "
            "or one"
        )
    if len(condition) != 2:
        raise QueryError(f"{attribute.name}: a range is a pair (low, high)")
    return attribute.places(*condition)


def equal(attribute: Attribute, value: Any) -> Stretch:
    """The stretch of one value, of a cell by its name, or of a group by its."""
    if isinstance(attribute, Nominal):
        start, stop = attribute.span(value, value)
        return (start, 0.0), (stop, 0.0)
    if isinstance(value, str) and isinstance(attribute.scale, Bins | Dates):
        start, stop = attribute.scale.named(value)
        if start < stop:
            return (start, 0.0), (stop, 0.0)
    cell = attribute.index(value)
    if cell == attribute.other_cell:
        return (cell, 0.0), (cell + 1, 0.0)
    return attribute.places(value, value)


def union(found: Iterable[tuple[End, End]]) -> list[tuple[End, End]]:
    """All of these ranges of cells or stretches, disjoint and in order."""
    merged: list[tuple[End, End]] = []
    for start, stop in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def both(one: Sequence[Stretch], other: Sequence[Stretch]) -> list[Stretch]:
    """What lies in one of these and in one of those."""
    met = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(start, stop) for start, stop in met if start < stop]


def pieces(allowed: Iterable[Stretch]) -> list[Piece]:
    """Cells that stretches hold whole, with the share 1, and those that they cut, each with its share below 1."""
    whole: list[Piece] = []
    cut: dict[int, float] = {}
    for (start, before), (stop, until) in allowed:
        if start == stop:
            cut[start] = cut.get(start, 0.0) + until - before
            continue
        if before:
            cut[start] = cut.get(start, 0.0) + 1.0 - before
        if until:
            cut[stop] = cut.get(stop, 0.0) + until
        if start + bool(before) < stop:
            whole.append((start + bool(before), stop, 1.0))
    return whole + [(cell, cell + 1, min(share, MOST)) for cell, share in sorted(cut.items())]
