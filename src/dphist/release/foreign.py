"""A mechanism that a release names and that cannot be made here."""

from __future__ import annotations

from typing import Any

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.private.gate import PrivateCounts


class ForeignMechanism:
    """Stands for a mechanism that cannot be made here: the release can be read, not replayed.

    It, or what it holds, is not in the list of mechanisms, or was told options that are not there; ``refusal`` says
    which.
    """

    def __init__(self, described: dict[str, Any], refusal: str) -> None:
        self.described = described
        self.refusal = refusal

    @property
    def words(self) -> str:
        """What is wrong with it."""
        return f"by {self.described['name']!r}, which cannot be made here: {self.refusal}"

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
