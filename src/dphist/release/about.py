"""What a custodian says of a release in plain words: who publishes it, under which terms, whom to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any

from dphist.arguments import explained
from dphist.errors import InputError

_LONGEST = 2_000


@explained
@dataclass(frozen=True, kw_only=True)
class About:
    """Facts that the custodian gives and a reader of the file sees; nothing in them comes from the records.

    Args:
        title: What the release is called.
        publisher: Who publishes it.
        licence: Under which terms, such as ``CC-BY-4.0``.
        contact: Whom to ask: an address or a page.
        purpose: What it is for.
        created: The day it was made, such as ``2024-01-31``.
        version: Which version of the publication this is.

    Example:
        >>> from dphist.release import About
        >>> About.of({"publisher": "City of Example", "licence": "CC-BY-4.0"}).given()
        {'publisher': 'City of Example', 'licence': 'CC-BY-4.0'}
    """

    title: str = ""
    publisher: str = ""
    licence: str = ""
    contact: str = ""
    purpose: str = ""
    created: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        for name, text in self.given().items():
            value: Any = text
            if not isinstance(value, str):
                raise InputError(f"about: {name} must be a text, not a {type(value).__name__}")
            if len(text) > _LONGEST or not all(each.isprintable() or each == "\n" for each in text):
                raise InputError(f"about: {name} must be readable text of at most {_LONGEST:,} characters")
        if self.created:
            try:
                date.fromisoformat(self.created)
            except ValueError:
                raise InputError("about: created must be a day such as 2024-01-31") from None

    @staticmethod
    def of(value: About | Mapping[str, Any] | None) -> About:
        """Read what a user wrote.

        Args:
            value: An `About`, a mapping with some of its fields, or nothing.

        Returns:
            The same, checked.

        Raises:
            InputError: if a field is unknown or no text.
        """
        if value is None:
            return About()
        if isinstance(value, About):
            return value
        known = [each.name for each in fields(About)]
        if not isinstance(value, Mapping) or not set(value) <= set(known):
            raise InputError(f"about takes {', '.join(known)}, each a text")
        written = {
            name: text.isoformat() if isinstance(text, date) else text
            for name, text in value.items()
            if text is not None
        }
        return About(**written)

    def given(self) -> dict[str, str]:
        """What was said.

        Returns:
            The fields that are not empty.
        """
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}

    def with_more(self, other: About | Mapping[str, Any] | None) -> About:
        """Add to what was said, or say it anew.

        Args:
            other: What is said now.

        Returns:
            Both; what is said now where both say something.
        """
        return replace(self, **About.of(other).given())
