"""Attributes without an order: sex, diagnosis, place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from dphist.arguments import explained
from dphist.errors import DomainError, QueryError
from dphist.model.domain.hierarchy import (
    Category,
    Hierarchy,
    Node,
    category_text,
    flatten,
    read_tree,
    write_tree,
)
from dphist.model.domain.ordinal import OTHER, Labels, check_name
from dphist.model.domain.scales import IntArray, _some
from dphist.reminding import remind_of_data


@explained
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Nominal:
    """An attribute of categories without an order, plain or grouped in a hierarchy of any depth.

    ::

        Nominal("sex", ["F", "M"])
        Nominal("place", {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}})

        Nominal("page", discover=True)

    Categories are texts, integers or truth values, all of one type. A group may be asked for by its name as
    if it were one category. ``other=True`` adds a last cell, a child of the root, for everything that is not
    listed and for NULL. With ``discover=True`` the categories are not known: `publish` finds those that many
    people have, for a δ, and the attribute of the release lists them.

    Args:
        name: What it is called, and the column it is read from.
        categories: A list, or a mapping from group to what it holds; nothing where they are to be discovered.
        other: Whether everything that is not listed is counted in a cell of its own.
        discover: Whether categories are found among the records, privately, when a release is published.

    Example:
        >>> place = Nominal("place", {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}})
        >>> place.size, place.span("south", "south")
        (5, (2, 5))
    """

    name: str
    other: bool
    discover: bool
    categories: tuple[Category, ...]
    hierarchy: Hierarchy
    tree: Node = field(compare=False)
    _places: dict[Category, int] = field(compare=False)
    _spans: dict[str, tuple[int, int]] = field(compare=False)
    kind: ClassVar[Literal["nominal"]] = "nominal"

    def __init__(
        self,
        name: str,
        categories: Mapping[str, Any] | Iterable[Any] | None = None,
        *,
        other: bool = False,
        discover: bool = False,
    ) -> None:
        check_name(name)
        if discover and (categories is not None or other):
            raise DomainError(f"{name}: discover finds the categories; list none, and leave other out")
        if categories is None and not discover:
            raise DomainError(f"{name}: list its categories, or say discover=True and publish with a delta")
        a_set = isinstance(categories, set | frozenset)
        if a_set or hasattr(categories, "dtype"):
            remind_of_data(name, f"{'a set' if a_set else 'an array'} of categories", depth=3)
        try:
            # A set has another order in every process; cells must not.
            tree = read_tree(name, sorted(categories or (), key=str) if a_set else categories)
            values = _checked(tree)
            last = (Node(OTHER, None, ()),) if other else ()
            hierarchy = flatten(Node(name, None, (*tree.children, *last)))
            spans = _spans(hierarchy)
        except DomainError as error:
            raise DomainError(f"{name}: {error}") from None
        places = {value: place for place, value in enumerate(values)}
        told = (name, bool(other), bool(discover), values, hierarchy, tree, places, spans)
        for part, value in zip(fields(self), told, strict=True):
            object.__setattr__(self, part.name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        written = None if self.discover else write_tree(self.tree, ordered=True)
        return partial(Nominal, other=self.other, discover=self.discover), (self.name, written)

    @property
    def size(self) -> int:
        """How many cells, the other cell included; refused while they are not known."""
        if self.discover:
            raise DomainError(
                f"{self.name}: its categories are not known yet; publish(…, rho=, delta=) or publish(…, epsilon=, "
                "delta=) discovers them, and the release's domain lists them"
            )
        return len(self.categories) + self.other

    @property
    def other_cell(self) -> int | None:
        """The cell of everything that is not a listed category, if declared."""
        return len(self.categories) if self.other else None

    @property
    def labels(self) -> Labels:
        """A readable text per cell."""
        return Labels(self._label, range(self.size))

    def _label(self, cell: int) -> str:
        return OTHER if cell == len(self.categories) else category_text(self.categories[cell])

    def _find(self, value: Any) -> int:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and value.is_integer() and type(self.categories[0]) is int:
            # One missing value makes floats of a frame's whole numbers, everybody's.
            value = int(value)
        # True equals 1 in Python, but a truth value is not a number here.
        if type(value) is not type(self.categories[0]):
            return -1
        return self._places.get(value, -1)

    def index(self, value: Any) -> int:
        """The cell of one category.

        Args:
            value: A category.

        Returns:
            The number of its cell.
        """
        cell = self._find(value)
        if cell < 0 and isinstance(value, str):
            start, stop = self._spans.get(value, (0, 0))
            cell = start if stop - start == 1 else -1
        if cell < 0:
            raise QueryError(f"{self.name}: no such category; there are {_some(self.labels)}")
        return cell

    def span(self, low: Any = None, high: Any = None) -> tuple[int, int]:
        """The cells of a category, or of a whole group, by its name.

        With two names, the cells from the first to the second as they are listed; with none, all of them.

        Args:
            low: A category or a group.
            high: The same, for one that spans both.

        Returns:
            The half-open range of its cells.
        """
        start = 0 if low is None else self._span(low)[0]
        high = low if high is None else high
        stop = len(self.categories) if high is None else self._span(high)[1]
        if stop <= start:
            raise QueryError(
                f"{self.name}: the range runs backwards: give the category that is listed first, first"
            )
        return start, stop

    def _span(self, value: Any) -> tuple[int, int]:
        cell = self._find(value)
        if cell >= 0:
            return cell, cell + 1
        if isinstance(value, str) and value in self._spans:
            return self._spans[value]
        raise QueryError(
            f"{self.name}: no such category or group; there are {_some(self.hierarchy.names[1:])}"
        )

    def cells(self, values: Iterable[Any]) -> IntArray:
        """The cell of every value; the other cell, or -1, for those that have none.

        Args:
            values: Categories.

        Returns:
            The number of each category's cell.
        """
        listed = list(values)
        found = np.fromiter((self._find(value) for value in listed), np.int64, len(listed))
        return np.where(found < 0, len(self.categories), found) if self.other else found

    def __repr__(self) -> str:
        if self.discover:
            return f"Nominal({self.name!r}, discover=True)"
        groups = "" if self.hierarchy.levels == 2 else f", {self.hierarchy.levels} levels"
        listed = _some([repr(c) for c in self.categories])
        return f"Nominal({self.name!r}, [{listed}]{groups}{', other=True' if self.other else ''})"


def _checked(tree: Node) -> tuple[Category, ...]:
    values = tuple(tree.categories())
    if len({type(value) for value in values}) > 1:
        raise DomainError("categories must be all texts, all integers or all truth values")
    if len(set(values)) != len(values):
        raise DomainError("a category is listed twice")
    return values


def _spans(hierarchy: Hierarchy) -> dict[str, tuple[int, int]]:
    """The cells under each name below the root; a name may come twice only if it means the same cells."""
    spans: dict[str, tuple[int, int]] = {}
    for place in range(1, hierarchy.size):
        name = hierarchy.names[place]
        cells = int(hierarchy.start[place]), int(hierarchy.stop[place])
        if spans.setdefault(name, cells) != cells:
            hint = "; what counts everything else is called other, so call yours differently"
            said = "a name is used twice in the hierarchy, for different categories"
            raise DomainError(said + hint * (name == OTHER))
    return spans
