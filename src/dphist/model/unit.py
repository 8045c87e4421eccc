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
            >>> Unit.parse("row, replace")
            Unit(rows=1, replace=True, id=None)
        """
        if given is None or isinstance(given, Unit):
            return given or cls()
        if isinstance(given, str):
            return cls.from_json(_read(given))
        if isinstance(given, Mapping):
            return cls.from_json(given)
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
        if not isinstance(value, Mapping) or not set(value) <= {"rows", "replace", "id"}:
            raise InputError("unit: must be a mapping with rows, replace and id")
        return Unit(**value)


_FORMS = 'write for example "row", "rows=5", "rows=5, id=user" or "row, replace"'


def _read(text: str) -> dict[str, Any]:
    """What a text says of a unit: names, each with a whole number, a text or true."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, sign, value = (each.strip() for each in part.partition("="))
        if name in found or not name or bool(sign) != bool(value):
            raise InputError(f"unit: {text[:60]!r} is not understood; {_FORMS}")
        if name == "row" and not sign:
            continue
        if not sign and name != "replace":
            raise InputError(f"unit: {text[:60]!r} is not understood; {_FORMS}")
        if name == "id":
            found[name] = value
        elif name == "replace":
            found[name] = {"": True, "true": True, "false": False}.get(value.lower(), value)
        else:
            found[name] = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value
    return found
