"""What everybody may know of a right to ask: its cells and parts, what they mean, and the noise that it would buy.

None of it depends on a count: a right's layout and budget are made from the domain, public labels and the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.law import NoiseLaw
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.pricing import UnitBudget
from dphist.private.questions import IntArray, Layout, Moves


@dataclass(frozen=True, eq=False)
class Noisy:
    """A private answer: integers on a public lattice, and the law of the noise in them."""

    values: NDArray[Any]
    law: NoiseLaw
    unit: Fraction = Fraction(1)

    @property
    def scale(self) -> Any:
        """The scale of Laplace noise of this variance: an exact `Fraction` if it is such noise, or an array."""
        return self.law.scale

    @property
    def variance(self) -> Any:
        """The variance of the noise, at most: a float, or one per answer."""
        return self.law.variance


class Facts:
    """The public side of a right."""

    __slots__ = ("_budget", "_layout")

    _layout: Layout
    _budget: UnitBudget

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the cells; flat once they have been rearranged."""
        return self._layout.shape

    @property
    def size(self) -> int:
        """How many cells this right covers."""
        return self._layout.size

    @property
    def domain(self) -> Domain | None:
        """What the axes mean, while the cells are still the domain's."""
        return self._layout.domain

    @property
    def whole(self) -> Domain:
        """The domain of all of these cells: tables are asked before cells are regrouped."""
        if self.domain is None or self.labels is not None:
            raise MechanismError("tables are asked of a whole domain, before its cells are regrouped")
        return self.domain

    @property
    def workload(self) -> Workload | None:
        """What the user intends to ask, if they said so."""
        return self._layout.workload

    @property
    def parts(self) -> int:
        """How many disjoint parts the cells are grouped into."""
        return self._layout.parts

    @property
    def labels(self) -> IntArray | None:
        """The part of every cell, or None while there is one part."""
        # A copy: of a view whoever wants to write finds the array behind it, and a flag can be switched back.
        return None if self._layout.labels is None else self._layout.labels.copy()

    @property
    def cells(self) -> IntArray:
        """The place of each of these cells among those of the right that `select` or `arrange` was called on."""
        known = self._layout.cells
        return np.arange(self.size, dtype=np.int64) if known is None else known.copy()

    @property
    def unit_scale(self) -> Fraction:
        """The scale of Laplace noise that a question of sensitivity one would get for this whole right."""
        return 1 / self._budget.pure

    def law(self, share: Fraction | int = 1, moves: Moves = "nonnegative") -> NoiseLaw:
        """The noise of a query of sensitivity one for a share; ``moves`` says how cells of one person meet."""
        return self._budget.share(Fraction(share)).law(moves)


def facts_of(domain: Domain, budget: Budget, unit: Unit, workload: Workload | None) -> Facts:
    """What everybody would know of the right of a release, before anything is counted or paid."""
    facts = Facts()
    facts._layout, facts._budget = (
        Layout(domain.shape, None, 1, domain, workload),
        UnitBudget.of(budget, unit),
    )
    return facts


def part_workload(workload: Workload | None, inner: Domain, kept: Sequence[int]) -> Workload | None:
    """What a workload over a domain asks of one part, which has the ``kept`` axes only."""
    if workload is None:
        return None
    if workload.kind in ("cells", "prefixes", "all_ranges"):
        return Workload.from_json(inner, {"kind": workload.kind})
    boxes = np.unique(np.concatenate([workload.low[:, kept], workload.high[:, kept]], axis=1), axis=0)
    return Workload(inner, boxes[:, : len(kept)], boxes[:, len(kept) :])
