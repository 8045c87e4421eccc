"""A mechanism that a release names and that cannot be made here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.mechanisms.registry import BUILDABLE
from dphist.private.gate import PrivateCounts


class ForeignMechanism:
    """Stands for a mechanism that cannot be made here: the release can be read, not replayed.

    It is not in the list of mechanisms, or was told options that this version does not have; ``refusal`` says which.
    """

    def __init__(self, described: dict[str, Any], refusal: str = "") -> None:
        self.described = described
        self.refusal = refusal

    @property
    def words(self) -> str:
        """What is wrong with it."""
        missing = next(_missing(self.described), None)
        if missing is None:
            return f"with options that this version of dphist does not take: {self.refusal}"
        return f"by {missing!r}, which is not among the mechanisms of this dphist"

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Refuse, and say what is missing."""
        raise self.refused

    @property
    def refused(self) -> MechanismError:
        """Why it cannot be replayed."""
        return MechanismError(
            f"this release was made {self.words}; its counts can be read, but intervals and verification need the "
            "mechanism as it was"
        )


def _missing(described: dict[str, Any]) -> Iterator[str]:
    """The names in a description, of a mechanism or of what it chose or holds, that nothing here goes by."""
    within: list[Any] = [described]
    while within:
        each = within.pop()
        if isinstance(each, dict):
            if isinstance(name := each.get("name"), str) and name not in BUILDABLE:
                yield name
            within += each.values()
        elif isinstance(each, list):
            within += each
