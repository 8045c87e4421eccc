"""Releases over domains too large to visit: the cells whose noisy count passes a public threshold, and only those.

The dense mechanism would add discrete Laplace noise Z of scale b to each of M cells and publish those that reach
the threshold τ ≥ 1. That is ε-private (each cell pays ε, one step touches one cell, and dropping small answers
is post-processing), but it visits every cell. `Above` gives the same answers with the same probabilities, and
visits only the cells that hold records or pass by chance.

*Proof of equality.* With α = exp(−1/b), Pr[Z = z] = (1 − α)/(1 + α) · α^|z|, so for z ≥ τ ≥ 1

    Pr[Z ≥ τ] = α^τ/(1 + α) =: p    and    Pr[Z = τ + g | Z ≥ τ] = (1 − α) α^g, a geometric law.

Toss, for *every* one of the M cells, an independent coin of probability p (the hits), and give each hit a
geometric excess. Restricted to the empty cells, "a hit, with value τ + excess" has exactly the law of "noisy count
Z ≥ τ, with value Z", independently over cells. Hits on occupied cells are thrown away; being independent of the
rest they change nothing. Occupied cells get fresh noise and stay if they reach τ, as in the dense mechanism. So the
published set of (cell, value) pairs, sorted by cell, has the dense mechanism's law.

*The coins without the cells* are tossed in `dphist.private.noise.hits`, every probability exact.

*What must not leave:* how many cells were occupied, how many hits were thrown away, where a cell came from. The
answer is one sorted array of (cell, value) in one type. The time taken depends on how many cells are occupied.

Which cells exist must be declared: over an unknown domain no purely ε-private release can show a cell that only
one person's record brought into being.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from dphist.errors import MechanismError
from dphist.model.domain import Domain
from dphist.private.noise.hits import probability
from dphist.private.questions import IntArray, Layout, proven

__all__ = ["LARGEST_DOMAIN", "Above", "Occupied", "probability"]

# Cells are numbered by int64.
LARGEST_DOMAIN = 2**62


@dataclass(frozen=True, eq=False)
class Occupied:
    """The cells that hold records, ascending, and their counts: what a right holds where a dense array will not fit."""

    domain: Domain
    cells: IntArray
    counts: IntArray

    def __post_init__(self) -> None:
        if self.domain.size >= LARGEST_DOMAIN:
            raise MechanismError(
                "the domain has 2^62 combinations or more, which cannot be numbered; use wider bins"
            )

    @staticmethod
    def of(domain: Domain, cells: IntArray, counts: IntArray) -> Occupied:
        """Add up cells that are named several times, and keep those that hold something."""
        distinct, place = np.unique(cells.astype(np.int64), return_inverse=True)
        sums = np.zeros(distinct.size, dtype=np.int64)
        np.add.at(sums, place, counts)
        kept = sums > 0
        # Values stay far below the ends of int64, whatever the data: min(x, c) moves by at most one when x does.
        return Occupied(domain, distinct[kept], np.minimum(sums[kept], 2**52))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise MechanismError(
            "this mechanism counts every combination, and the domain has too many for that: use sparselaplace"
        )

    __array__ = __getitem__ = __len__ = __iter__ = reshape = sum = _refuse


@proven
@dataclass(frozen=True)
class Above:
    """Every cell whose noisy count reaches a threshold: pairs (cell, value), ascending, nothing else.

    One step moves one cell by one, and the noise has scale 1 at ε = 1, so what the dense mechanism would show is
    ε-private; the answer has the law of a function of it. See the module for the proof.
    """

    threshold: int

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Give the pairs without noise (for tests; the gate asks `perturb`)."""
        cells = np.flatnonzero(counts >= self.threshold)
        return np.stack([cells, counts[cells]], axis=1).astype(np.int64)

    def scales(self, layout: Layout) -> Fraction:
        """Noise of scale one at ε = 1."""
        if not 1 <= self.threshold <= LARGEST_DOMAIN:
            raise MechanismError("threshold must be at least 1, and at most 2^62")
        return Fraction(1)

    def perturb(self, counts: Any, layout: Layout, noise: Any) -> IntArray:
        """Draw the pairs; the gate's noise can also toss the coins of cells that are not visited."""
        cells = counts.cells if isinstance(counts, Occupied) else np.flatnonzero(counts)
        there = counts.counts if isinstance(counts, Occupied) else counts[cells]
        one = self.scales(layout)
        noisy = noise.add_laplace(there, one)
        stay = noisy >= self.threshold
        hits = noise.hits(layout.size, one, self.threshold)
        empty = np.setdiff1d(hits, cells, assume_unique=True)
        drawn = noise.laplace(one, empty.size)
        # A discrete Laplace draw is G or −1 − G with G geometric (`noise.laplace`), so this is G.
        excess = np.where(drawn >= 0, drawn, ~drawn)
        cells = np.concatenate([cells[stay], empty])
        values = np.concatenate([noisy[stay], self.threshold + excess])
        order = np.argsort(cells, kind="stable")
        return np.ascontiguousarray(np.stack([cells[order], values[order]], axis=1), dtype=np.int64)
