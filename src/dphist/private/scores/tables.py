"""Which tables a public model gets most wrong."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphist.errors import MechanismError
from dphist.model.coded import Axes
from dphist.private.held import ceiling, check_axes, count_tables, table_shapes
from dphist.private.questions import Candidates, IntArray, Layout, proven, seal

# Distances of tables that do not count alike: times a weight, which is 2¹⁰ at most, they fit 64 bits.
_FURTHEST = 2**50


@proven
@dataclass(frozen=True, eq=False)
class TableErrors:
    """Choose tables by their L1 distance to a public model's; none is chosen twice.

    One step moves one cell of each table by one (`dphist.private.queries.tables`), so each distance by at most one, up
    or down: the changes of two candidates differ by at most 2, which is the range. After a choice the chosen table is
    left out, which depends on the choices before alone.

    With public whole weights w a score is w times that, distances cut at 2⁵⁰ before (which moves no further than they
    do): one step moves it by at most w, up or down, so the changes of two candidates differ by at most the sum of the
    two largest weights.

    Args:
        tables: The axes that each table keeps, ascending.
        model: What the model says of each cell, rounded, one table after the other in C order.
        picks: How many tables are chosen; each pays an equal share.
        weights: How much each table counts, whole numbers from 1 to 1,024; all alike by default.
    """

    tables: tuple[Axes, ...]
    model: IntArray
    picks: int = 1
    weights: IntArray | None = None

    def __post_init__(self) -> None:
        seal(self, "model", *(["weights"] if self.weights is not None else []))
        check_axes(self.tables)
        if not 1 <= self.picks <= len(self.tables):
            raise MechanismError("picks: choose at least one table, and none twice")
        if self.weights is not None and (
            self.weights.shape != (len(self.tables),)
            or not ((self.weights >= 1) & (self.weights <= 1024)).all()
        ):
            raise MechanismError("weights: give each table a whole number from 1 to 1,024")

    def draws(self, layout: Layout) -> int:
        """One choice after the other."""
        _check_model(layout, self.tables, self.model)
        return self.picks

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every table once, and offer those that are left."""
        scores, most = np.array(_distances(counts, layout, self.tables, self.model)), 2
        if self.weights is not None:
            scores = self.weights * np.minimum(scores, _FURTHEST)
            most = int(np.sort(self.weights)[-2:].sum())
        left = np.arange(len(self.tables))
        while True:
            chosen = yield Candidates(scores[left], np.array([0, left.size]), most)
            left = np.delete(left, int(chosen[0]))


def chosen_tables(picks: IntArray, tables: int) -> list[int]:
    """Which of some tables an answer to `TableErrors` stands for: each pick counts among those that were left.

    Example:
        >>> import numpy as np
        >>> chosen_tables(np.array([[1], [1], [0]]), 4)
        [1, 2, 0]
    """
    left = list(range(tables))
    return [left.pop(int(pick)) for pick in picks.reshape(-1)]


def _distances(counts: Any, layout: Layout, tables: Sequence[Axes], model: IntArray) -> list[int]:
    """How far each table is from a model that says each cell, one table after the other in C order: Σ |x − model|."""
    found, begin = [], 0
    for table in count_tables(counts, layout, tables):
        # The model is cut where counts are: a public number stays one, and no sum overflows.
        said = np.clip(model[begin : begin + table.size], 0, ceiling(table.shape))
        begin += table.size
        found.append(int(np.abs(table.reshape(-1) - said).sum()))
    return found


def _check_model(layout: Layout, tables: Sequence[Axes], model: IntArray) -> None:
    """Insist on a number for each cell of each table."""
    if model.shape != (sum(map(math.prod, table_shapes(layout, tables))),):
        raise MechanismError("model: give one number for each cell of each table")
