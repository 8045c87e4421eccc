"""What a mechanism is: a frozen value that turns a right into an estimate."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from dphist.inference.estimate import Estimate
from dphist.private.gate import PrivateCounts


@runtime_checkable
class Mechanism(Protocol):
    """A public recipe. It sees counts only through the gate, so it spends exactly what it was given."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Use up the right and return estimated counts with their errors."""
        ...
