"""A domain: the attributes that span a histogram."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dphist.arguments import explained
from dphist.errors import DomainError
from dphist.model.domain import written
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.ordinal import Ordinal
from dphist.model.domain.written import Attribute


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
        return {"attributes": [written.attribute_to_json(attribute) for attribute in self.attributes]}

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
        return Domain(map(written.attribute_from_json, value["attributes"]))

    def to_toml(self) -> str:
        """A schema file that `from_toml` turns back into an equal domain.

        Returns:
            The text of a schema file.
        """
        return written.to_toml(self.attributes)

    @staticmethod
    def from_toml(source: str | Path) -> Domain:
        """Read a schema: TOML text, or the path of a file.

        Args:
            source: TOML text, or the path of a file.

        Returns:
            The domain it declares.
        """
        return Domain(map(written.attribute_from_json, written.parsed(source)["attribute"]))

    def __repr__(self) -> str:
        inside = ", ".join(repr(attribute) for attribute in self.attributes)
        return f"Domain([{inside}])"
