"""Who is protected: what the word "one" means in "one person more or less"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dphist.arguments import explained
from dphist.errors import InputError


@explained
@dataclass(frozen=True, slots=True)
class Unit:
    """The change in the records that a release must hide.

    A *step* is one cell changing by one. Hiding someone with up to ``rows`` rows takes that many steps, and
    twice as many when they are replaced rather than added or removed, because their rows may leave some cells
    and enter others.

    - ``Unit()``: one row, added or removed.
    - ``Unit(replace=True)``: one row changed into any other.
    - ``Unit(rows=5)``: five rows, and you vouch that nobody has more.
    - ``Unit(rows=5, id="user")``: rows with the same ``user`` are one person's; at most five are counted.
    - ``Unit(cells=5, per_cell=2, id="user")``: at most two rows in each of at most five cells, so ten rows. Under ρ
      that is far cheaper to hide than ten rows anywhere, which may all be in one cell.

    Args:
        rows: How many rows one protected unit may have; with ``cells`` it is their product with ``per_cell``.
        replace: Whether a unit is replaced by another rather than added or removed.
        id: The column whose equal values are one person's rows.
        cells: In how many cells one protected unit may have rows.
        per_cell: And how many in each; one by default.

    Example:
        >>> Unit(rows=5, id="user").steps, Unit(replace=True).steps
        (5, 2)
        >>> Unit(cells=5, per_cell=2).steps, Unit(cells=5, per_cell=2).squared, Unit(rows=10).squared
        (10, 20, 100)
    """

    rows: int = 1
    replace: bool = False
    id: str | None = None
    cells: int | None = None
    per_cell: int | None = None

    def __post_init__(self) -> None:
        _insist_whole("rows", self.rows)
        if not isinstance(self.replace, bool):
            raise InputError("unit: replace must be true or false")
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            raise InputError("unit: id must be the name of a column")
        if self.cells is None:
            if self.per_cell is not None:
                raise InputError("unit: per_cell needs cells, the number of cells that one unit may be in")
            return
        each = 1 if self.per_cell is None else self.per_cell
        _insist_whole("cells", self.cells)
        _insist_whole("per_cell", each)
        if self.rows not in (1, self.cells * each):
            raise InputError("unit: rows is cells times per_cell; leave it out")
        object.__setattr__(self, "per_cell", each)
        object.__setattr__(self, "rows", self.cells * each)

    @property
    def steps(self) -> int:
        """How many steps apart two data sets are that differ in one protected unit: the L1 norm of the change."""
        return self.rows * (2 if self.replace else 1)

    @property
    def squared(self) -> int:
        """The largest squared L2 norm of the change in the cells.

        At most c rows in each of k cells: kc². Without such a bound all rows may lie in one cell: their number,
        squared. Who is replaced leaves some cells (a) and enters others (b): ‖a − b‖² = ‖a‖² + ‖b‖² − 2a·b, and
        a·b ≥ 0 because rows are counted, not weighed; so twice that.
        """
        apart = self.rows**2 if self.cells is None else self.rows * (self.per_cell or 1)
        return apart * (2 if self.replace else 1)

    def describe(self) -> str:
        """The unit in plain words, for a release's guarantee.

        Returns:
            A phrase that follows “for”.
        """
        verb = "replaced by any other" if self.replace else "added or removed"
        where = "" if self.cells is None else f", at most {self.per_cell} in each of {self.cells} cells"
        if self.cells == 1:
            where = ", all of them in one cell"
        if self.id is not None:
            return (
                f"one person, who may be {verb}: all the rows that share a value of {self.id}, "
                f"of which at most {self.rows} {'is' if self.rows == 1 else 'are'} counted{where}"
            )
        if self.rows == 1:
            return f"one row, which may be {verb}"
        return f"a group of up to {self.rows} rows{where}, which may be {verb}"

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` turns back into an equal unit.

        Returns:
            A mapping of plain values.
        """
        written = {"rows": self.rows, "replace": self.replace, "id": self.id}
        return written if self.cells is None else written | {"cells": self.cells, "per_cell": self.per_cell}

    @classmethod
    def parse(cls, given: Unit | str | Mapping[str, Any] | None) -> Unit:
        """Read who is protected from what people write.

        Args:
            given: A `Unit`; a mapping such as ``{"rows": 5, "id": "user"}``; the same as text, ``"rows=5, id=user"``,
                where ``"replace"`` stands for ``replace=true`` and ``"row"`` for one row; or None for one row.

        Returns:
            The unit.

        Example:
            >>> Unit.parse("rows=5, id=user") == Unit.parse({"rows": 5, "id": "user"}) == Unit(rows=5, id="user")
            True
            >>> Unit.parse("row, replace") == Unit(replace=True)
            True
        """
        if given is None or isinstance(given, Unit):
            return given or cls()
        if isinstance(given, str | Mapping):
            return cls.from_json(_read(given) if isinstance(given, str) else given)
        raise InputError(
            f"unit: expected a dphist.Unit, text or a mapping, not a {type(given).__name__}; {_FORMS}"
        )

    @staticmethod
    def from_json(value: Any) -> Unit:
        """Read what `to_json` wrote.

        Args:
            value: What `to_json` gave.

        Returns:
            An equal unit.
        """
        if not isinstance(value, Mapping) or not set(value) <= set(Unit.__slots__):
            raise InputError("unit: must be a mapping with rows, replace, id, cells and per_cell")
        return Unit(**value)


def _insist_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"unit: {name} must be an integer of at least 1")


_FORMS = 'write for example "row", "rows=5", "rows=5, id=user" or "row, replace"'


def _read(text: str) -> dict[str, Any]:
    """What a text says of a unit: names, each with a whole number, a text or true."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = (each.strip() for each in part.partition("="))
        if name == "row" and not sign:
            continue
        if name in found or not name or bool(sign) != bool(value) or (not sign and name != "replace"):
            raise InputError(f"unit: {text[:60]!r} is not understood; {_FORMS}")
        if name == "id":
            found[name] = value
        elif name == "replace":
            found[name] = {"": True, "true": True, "false": False}.get(value.lower(), value)
        else:
            found[name] = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value
    return found
