"""The mechanism of a release in its file; and one that cannot be made here."""

from __future__ import annotations

from typing import Any

from dphist.errors import MechanismError, ReleaseError
from dphist.inference.estimate import Estimate
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import from_json, to_json
from dphist.private.gate import PrivateCounts

# What a description that was tampered with can raise.
_MISFITS = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError)


def write_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism by name and options."""
    return mechanism.described if isinstance(mechanism, ForeignMechanism) else to_json(mechanism)


def read_mechanism(described: Any) -> Mechanism:
    """What `write_mechanism` wrote; one that cannot be made here can still be named."""
    try:
        return from_json(described)
    except MechanismError as refused:
        return ForeignMechanism(described, str(refused))
    except _MISFITS:
        raise ReleaseError("its mechanism cannot be read") from None


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
            f"this release was made {self.words}; it can be read and asked, but verification needs the mechanism "
            "as it was"
        )
