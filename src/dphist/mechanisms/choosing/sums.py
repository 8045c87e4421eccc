"""Who could measure sums of values, as others measure counts, and which tables of a cube.

For the gate a cell of sums is a cell: every proof there is about one step, and steps of either sign are steps. What
assumes counts is what comes after: cutting at zero, handing down without going below zero, models of counts. Mechanisms
that are linear without it take sums by leaving it out; their errors are then noise of a known law, whatever the data.

Where nobody said what will be asked of a cube, tables of one, two and three attributes and the cube itself are a
candidate. Under weighted least squares (`dphist.inference.tables.measured`) the error of every table is a smooth
function of the shares, known before anything is measured; these have the least product of the errors of the four kinds,
that of cells counted a little more: no kind is bought at the price of another. The plan reads the shape of the domain
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.matrix import Matrix
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.tree import Tree
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]

# Tables of more attributes than this are read off the cube: on made-up cubes they won nothing.
_HIGHEST = 3
# Steps of the search; the error is flat near its least, and so many come within a thousandth of it.
_STEPS = 150
# Shares are multiples of one over this: what a platform rounds otherwise must not change a share.
_GRID = 1000


def signed(mechanism: Mechanism) -> Mechanism | None:
    """The form of a mechanism that takes sums; None if its model is one of counts.

    Args:
        mechanism: Any mechanism.

    Returns:
        The same without its non-negative steps, or None.

    Example:
        >>> from dphist.mechanisms import Posterior, Tree
        >>> from dphist.mechanisms.spec import show
        >>> show(signed(Tree(fanout=4))), signed(Posterior())
        ('tree(fanout=4, nonnegative=False)', None)
    """
    match mechanism:
        case Laplace() | Gaussian():
            return mechanism
        case Tree() | Matrix() | Marginals():
            return replace(mechanism, nonnegative=False)
        case Privelet() if not mechanism.threshold:
            return mechanism
        case ByPart():
            inner = signed(mechanism.inner)
            return None if inner is None else replace(mechanism, inner=inner)
    return None


def candidates(shape: tuple[int, ...], workload: Workload | None) -> Iterator[Mechanism]:
    """Who could measure sums over this shape: what a forecast chooses among."""
    yield Laplace()
    yield Tree(fanout="auto", nonnegative=False)
    if len(shape) > 1:
        yield Privelet()
        if workload is not None and workload.kind == "marginals":
            yield Marginals(nonnegative=False)
        elif workload is None and len(shape) > 2:
            plan = plan_tables(shape)
            yield Marginals(tables=plan.tables, shares=plan.shares, nonnegative=False)


@dataclass(frozen=True)
class TablePlan:
    """Tables by the attributes they keep, and the share of the budget of each; shares sum to 1."""

    tables: tuple[Axes, ...]
    shares: tuple[Fraction, ...]


@lru_cache(maxsize=64)
def plan_tables(shape: tuple[int, ...]) -> TablePlan:
    """Plan for a cube of this shape.

    Args:
        shape: How many values each attribute has.

    Returns:
        The plan: tables and shares.

    Example:
        >>> plan = plan_tables((20, 5, 4))
        >>> (0, 1, 2) in plan.tables, sum(plan.shares)
        (True, Fraction(1, 1))
    """
    every = tuple(range(len(shape)))
    orders = [order for order in range(1, _HIGHEST + 1) if order < len(shape)]
    tables = [axes for order in orders for axes in combinations(every, order)] + [every]
    # The cube takes what rounding leaves; a share below one step of the grid is not worth a table.
    counts = np.floor(_best(shape, tables) * _GRID).astype(np.int64)
    kept = [
        (axes, Fraction(int(n), _GRID)) for axes, n in zip(tables[:-1], counts[:-1], strict=True) if n > 0
    ]
    kept.append((every, 1 - sum((share for _, share in kept), Fraction(0))))
    return TablePlan(tuple(axes for axes, _ in kept), tuple(share for _, share in kept))


def _best(shape: tuple[int, ...], tables: list[Axes]) -> FloatArray:
    """The shares with the least product of the mean squared errors of tables of each order.

    At the best every table's marginal gain is the same, so shares are scaled by a power of their gain until they are. A
    fixed number of such steps, of sums and products alone: all platforms come to the same shares but for rounding.
    """
    sizes = np.array(shape, dtype=np.float64)
    subsets = [s for n in range(_HIGHEST + 1) for s in combinations(range(len(shape)), n) if n < len(shape)]
    cells_of = np.array([float(np.prod(sizes[list(t)])) for t in tables])
    ratio = (
        np.array([[np.prod(sizes[list(s)]) if set(s) <= set(t) else 0.0 for t in tables] for s in subsets])
        / cells_of
    )
    # What is left of one cell's square when the means over S are out.
    left = np.array([float(np.prod(1.0 - 1.0 / sizes[list(s)])) for s in subsets])
    order = np.array([len(t) for t in tables])
    kinds = np.unique(order)
    # Row k: how the variances of the residuals add up to the mean squared error of tables of kind k.
    adds = np.stack([(left[:, None] * ratio[:, order == kind] ** 2).mean(axis=1) for kind in kinds])
    # Residuals of more attributes are known from the cube alone: they add up to what the others leave of one cell.
    rest = max(0.0, 1.0 - float((left * ratio[:, -1]).sum()))
    share = np.where(order == len(shape), 1.0, 0.5 / len(tables))
    share /= share.sum()
    # Cells count a little more: on made-up cubes of few cells plain noise is hard to beat, and this stays near it.
    counted = np.where(kinds == len(shape), 1.3, 1.0)
    for _ in range(_STEPS):
        precision = (ratio * share**2).sum(axis=1) / 2.0
        error = (adds / precision).sum(axis=1)
        error[-1] += 2.0 * rest / share[-1] ** 2
        gain = (
            (adds * (counted / error)[:, None]).sum(axis=0)[:, None] / precision[:, None] ** 2 * ratio
        ).sum(axis=0) * share
        gain[-1] += counted[-1] * 4.0 * rest / share[-1] ** 3 / error[-1]
        share = share * np.sqrt(gain)
        share /= share.sum()
    return share
