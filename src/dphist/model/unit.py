"""Who is protected: what the word "one" means in "one person more or less"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dphist.errors import InputError


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

    Args:
        rows: How many rows one protected unit may have.
        replace: Whether a unit is replaced by another rather than added or removed.
        id: The column whose equal values are one person's rows.

    Example:
        >>> Unit(rows=5, id="user").steps, Unit(replace=True).steps
        (5, 2)
    """

    rows: int = 1
    replace: bool = False
    id: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InputError("unit: rows must be an integer of at least 1")
        if not isinstance(self.replace, bool):
            raise InputError("unit: replace must be true or false")
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            raise InputError("unit: id must be the name of a column")

    @property
    def steps(self) -> int:
        """How many steps apart two data sets are that differ in one protected unit."""
        return self.rows * (2 if self.replace else 1)

    def describe(self) -> str:
        """The unit in plain words, for a release's guarantee.

        Returns:
            A phrase that follows “for”.
        """
        verb = "replaced by any other" if self.replace else "added or removed"
        if self.id is not None:
            return (
                f"one person, who may be {verb}: all the rows that share a value of {self.id}, "
                f"of which at most {self.rows} {'is' if self.rows == 1 else 'are'} counted"
            )
        if self.rows == 1:
            return f"one row, which may be {verb}"
        return f"a group of up to {self.rows} rows, which may be {verb}"

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` turns back into an equal unit.

        Returns:
            A mapping of plain values.
        """
        return {"rows": self.rows, "replace": self.replace, "id": self.id}

    @staticmethod
    def from_json(value: Any) -> Unit:
        """Read what `to_json` wrote.

        Args:
            value: What `to_json` gave.

        Returns:
            An equal unit.
        """
        if not isinstance(value, Mapping) or not set(value) <= {"rows", "replace", "id"}:
            raise InputError("unit: must be a mapping with rows, replace and id")
        return Unit(**value)
