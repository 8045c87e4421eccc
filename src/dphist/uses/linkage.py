"""Blocking for record linkage: two parties publish releases, and only records in the same block are ever compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.mechanisms.dpcube import box_tree
from dphist.model.domain import Domain
from dphist.release import Release
from dphist.release.cells import TableCells
from dphist.uses.classify import column

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Releases are measured in records; a block is cut on a finer lattice so that spread-out totals still count.
_LATTICE = 64


@explained
@dataclass(frozen=True, eq=False)
class Blocking:
    """Blocks of a domain that two parties share, and how many records each is thought to hold on either side.

    ``labels`` gives every cell its block; ``first`` and ``second`` are the released counts of the blocks; ``kept`` says
    which blocks are worth comparing: those that may hold records of both parties.

    Args:
        domain: What both parties describe records by.
        labels: Every cell's block.
        first: Released counts of one party's blocks.
        second: Those of the other's.
        kept: Which blocks are worth comparing.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> from dphist.uses import Blocking
        >>> blocks = Blocking.from_releases(release, release)
        >>> blocks.assign({"age": [30], "sex": ["F"]}).shape
        (1,)
    """

    domain: Domain
    labels: IntArray
    first: FloatArray
    second: FloatArray
    kept: BoolArray

    @classmethod
    def from_releases(
        cls, first: Release, second: Release, *, least: float = 0.0, attributes: Sequence[str] | None = None
    ) -> Blocking:
        """Cut the domain where either release says the density of records changes, and drop blocks that look empty.

        Blocks are what both releases' own boxes have in common (the leaves of DPCube, of trees and grids); a release
        without boxes is cut by Algorithm 3 on its estimate. Records that agree on all attributes always share a
        block. A block is kept if both sides are estimated at more than ``least`` records: a higher bar drops more
        pairs, and may drop true ones. Only released numbers are read, so this costs no budget on either side.

        Of releases of tables out of very many columns, one table that both published is cut: the one of most cells,
        unless ``attributes`` names another.

        Args:
            first: One party's release.
            second: The other's, over the same domain.
            least: How many records both sides of a block must be thought to hold.
            attributes: The attributes to block on; all of them, or those of the largest table, by default.

        Returns:
            The blocks.
        """
        if first.domain != second.domain:
            raise InputError(
                "both releases must have the same domain; project them to the attributes they share"
            )
        sides = first, second
        if attributes is not None or any(isinstance(side.cells, TableCells) for side in sides):
            names = _largest_table(first, second) if attributes is None else tuple(attributes)
            domain, counts = first.domain.project(names), [side.project(*names).counts for side in sides]
            one, other = map(_even, counts)
        else:
            domain, counts = first.domain, [side.counts for side in sides]
            one, other = map(_boxes, sides)
        labels = np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1].reshape(-1)
        held, beside = (np.bincount(labels, each.reshape(-1)).astype(np.float64) for each in counts)
        return cls(domain, labels.astype(np.int64), held, beside, (held > least) & (beside > least))

    def __len__(self) -> int:
        return int(self.kept.sum())

    def assign(self, records: Any) -> IntArray:
        """Give every record its block; -1 for a block that was dropped, or a value out of the domain.

        Args:
            records: A data frame or a mapping of columns.

        Returns:
            A block for each record.
        """
        columns = [attribute.cells(column(records, attribute.name)) for attribute in self.domain.attributes]
        if len({len(cells) for cells in columns}) > 1:
            raise InputError("records must have columns of one length")
        inside = np.all([column >= 0 for column in columns], axis=0)
        cells = np.ravel_multi_index([np.where(inside, column, 0) for column in columns], self.domain.shape)
        blocks = self.labels[cells]
        return np.where(inside & self.kept[blocks], blocks, -1).astype(np.int64)

    def estimated_reduction(self) -> float:
        """Guess from the releases alone which share of all pairs need not be compared (Equation 10).

        Returns:
            A share between 0 and 1.
        """
        first, second = np.maximum(self.first, 0.0), np.maximum(self.second, 0.0)
        pairs = float((first * second)[self.kept].sum())
        every = float(first.sum() * second.sum())
        return 1.0 - pairs / every if every > 0 else 0.0

    def reduction_ratio(self, first: Any, second: Any) -> float:
        """Measure that share on records (Equation 10), 1 − Σ nᵢ·mᵢ ÷ (n·m). It reads records: do not publish it.

        Args:
            first: One party's records.
            second: The other's.

        Returns:
            A share between 0 and 1.
        """
        return reduction_ratio(self.assign(first), self.assign(second))

    def pair_completeness(self, first: Any, second: Any, matches: Iterable[tuple[int, int]]) -> float:
        """Measure which share of true matches, given as places of rows, still meets in a block.

        Args:
            first: One party's records.
            second: The other's.
            matches: Pairs of places of rows that are the same person.

        Returns:
            A share between 0 and 1.
        """
        one, other = self.assign(first), self.assign(second)
        pairs = np.array(list(matches), dtype=np.int64).reshape(-1, 2)
        if len(pairs) == 0:
            return 1.0
        if pairs.min() < 0 or (pairs >= (len(one), len(other))).any():
            raise InputError("matches: each must name the place of a row on either side, from 0 on")
        left, right = one[pairs[:, 0]], other[pairs[:, 1]]
        return float(np.mean((left == right) & (left >= 0)))

    def splink(self, column: str = "dphist_block") -> dict[str, Any]:
        """Give Splink settings that compare records of the same block only.

        Put ``assign(records)`` into the column first. Records in dropped blocks have -1 there and meet nobody.

        Args:
            column: The column that holds the blocks.

        Returns:
            Settings to hand to Splink.
        """
        rule = f'l."{column}" = r."{column}" and l."{column}" >= 0'
        return {"link_type": "link_only", "blocking_rules_to_generate_predictions": [rule]}


def reduction_ratio(first: ArrayLike, second: ArrayLike) -> float:
    """Equation 10 on two columns of blocks (-1 is compared with nobody): the share of pairs that is spared."""
    one, other = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    if one.size == 0 or other.size == 0:
        return 0.0
    count = int(max(one.max(), other.max(), 0)) + 1
    held, beside = (np.bincount(each[each >= 0], minlength=count).astype(np.float64) for each in (one, other))
    return 1.0 - float(held @ beside) / (float(one.size) * float(other.size))


def _boxes(release: Release) -> IntArray:
    """The block of every cell: the boxes the release's mechanism counted, else boxes in which its estimate is even."""
    leaves = getattr(release.model.errors, "leaves", None)
    if leaves is None:
        return _even(release.counts)
    labels = np.empty(release.domain.shape, dtype=np.int64)
    for number, (low, high) in enumerate(zip(*leaves(), strict=True)):
        labels[tuple(map(slice, low, high))] = number
    return labels.reshape(-1)


def _even(counts: FloatArray) -> IntArray:
    """Boxes in which an estimate is even: its cells differ by about a record."""
    cells = np.rint(np.maximum(counts, 0.0) * _LATTICE).astype(np.int64)
    return box_tree(cells, variance=float(_LATTICE**2)).labels


def _largest_table(first: Release, second: Release) -> tuple[str, ...]:
    """The attributes of the table of most cells that both published."""
    tables = [
        set(release.cells.tables) for release in (first, second) if isinstance(release.cells, TableCells)
    ]
    common, shape = set.intersection(*tables) - {()}, first.domain.shape
    if not common:
        raise InputError("both releases must have published a table of the same attributes")
    largest = max(sorted(common), key=lambda axes: prod(shape[axis] for axis in axes))
    return tuple(first.domain.names[axis] for axis in largest)
