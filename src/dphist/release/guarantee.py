"""What a release promises, and to whom."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dphist.model.unit import Unit


@dataclass(frozen=True)
class Guarantee:
    """What was promised: ε-differential privacy for one unit, and against whom a mistake would count.

    Args:
        epsilon: The privacy loss, an exact fraction.
        unit: Who is protected.

    Example:
        >>> import dphist
        >>> Guarantee(Fraction(1, 2), dphist.Unit()).describe()
        '0.5-differential privacy for one row, which may be added or removed'
    """

    epsilon: Fraction
    unit: Unit

    def describe(self) -> str:
        """Say it in words.

        Returns:
            A phrase such as ``1-differential privacy for one row, which may be added or removed``.
        """
        return f"{float(self.epsilon):g}-differential privacy for {self.unit.describe()}"
