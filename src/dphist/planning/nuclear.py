"""How accurate any unbiased linear answer can be: the limit that forecasts are held against.

A linear mechanism measures Ax with noise of variance s² (Gaussian, or Laplace where the promise is pure ε) and answers
a workload Wx by B(Ax + noise) with W = BA. Its promise is that whatever one person changes moves Ax by at most 1: in
L2 for Gaussian noise with s² = 1/2ρ, in L1, which is at least as much, for Laplace noise with s² = 2/ε². The theorem
(Li and Miklau, 2013: the *nuclear norm* or *SVD bound*; here with weights, for every unit):

    Let v be any random change that one person can make, and E[vvᵀ] ⪰ QQᵀ. Then tr(AQQᵀAᵀ) ≤ E‖Av‖² ≤ 1, so
    ‖WQ‖_* = ‖B·AQ‖_* ≤ ‖B‖_F ‖AQ‖_F ≤ ‖B‖_F, and the mean squared error of m answers, s²‖B‖²_F ÷ m, is at least
    s²‖WQ‖²_* ÷ m, where ‖·‖_* is the sum of the singular values.

Any law of v gives a limit, so a bad one makes the limit low, never wrong. Here cells are drawn evenly:

* one cell moves by c, the rows that somebody may have in a cell: Q = c·n^−½·I. For single cells and for marginals this
  law has all symmetries that the questions have, and the limit is reached;
* k cells at once: E[vvᵀ] ⪰ c²k(n − k)/(n(n − 1)) · I;
* people who are replaced, k rows that go for k that come: 2kc²/(n − 1) times a projection that leaves one direction
  out.

Mechanisms that adapt to the data, cut at zero or shrink are not linear: they may go below, on data that suit them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.unit import Unit
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]


@explained
def limit(
    workload: Workload,
    epsilon: Number | Budget | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    unit: Unit | None = None,
) -> float | None:
    """Give the least root mean squared error that unbiased linear answers to a workload can have.

    Args:
        workload: What would be asked, all of it alike.
        epsilon: What would be spent: pure ε, or with ``delta`` the ε of (ε, δ), or a `Budget`.
        rho: The ρ that would be spent instead.
        delta: The δ that goes with ``epsilon``. The promise is kept by the ρ they buy and by the pure ε as well
            (`dphist.mechanisms.choosing.currency`), so the limit is the less of both.
        unit: Who is protected.

    Returns:
        The limit, in records; None for questions that follow no rule: boxes one by one, mixtures.

    Example:
        >>> import dphist
        >>> line = dphist.Domain([dphist.Ordinal("x", range(4096))])
        >>> round(dphist.planning.limit(dphist.Workload.prefixes(line), rho="1/2"), 2)
        3.35
        >>> dphist.planning.limit(dphist.Workload.cells(line), rho="1/2")
        1.0
    """
    budget = Budget.of(epsilon, rho=rho, delta=delta)
    who = unit or Unit()
    found = None if workload.size == 0 else _by_rule(workload, who)
    if found is None:
        return None
    amount = float(budget.amount)
    deviation = math.sqrt(2.0) / amount if budget.pure else 1.0 / math.sqrt(2.0 * amount)
    if not budget.pure and budget.epsilon is not None:
        deviation = min(deviation, math.sqrt(2.0) / float(budget.epsilon))
    return deviation * found / math.sqrt(workload.size)


@lru_cache(maxsize=64)
def _by_rule(workload: Workload, unit: Unit) -> float | None:
    """‖WQ‖_* where the singular values of W are known; divided by √n, which may be astronomical."""
    sizes = workload.domain.shape
    if workload.kind in ("cells", "prefixes", "all_ranges"):
        # Singular values of longer lines are not written out.
        if max(sizes) > 1 << 23:
            return None
        axes = [_line(workload.kind, n) / math.sqrt(n) for n in sizes]
        whole, largest = (math.prod(float(f(each)) for each in axes) for f in (np.sum, np.max))
    elif workload.tables is not None:
        found = _tables(workload.tables, sizes)
        if found is None:
            return None
        whole, largest = found
    else:
        return None
    n, most = workload.domain.size, unit.cells or 1
    each = (unit.per_cell or unit.rows) if unit.cells else unit.rows
    if unit.replace:
        if n < 2:
            return 0.0
        # One direction is lost, at worst the largest (Cauchy: the singular values interlace).
        return (whole - largest) * each * math.sqrt(2 * min(most, n // 2) / (1 - 1 / n))
    k = min(most, max(1, n // 2))
    # n − k over n − 1, for n that no float holds.
    return whole * each * math.sqrt(k * (1 - (k - 1) / max(1, n - 1)))


def _line(kind: str, n: int) -> FloatArray:
    """The singular values of the questions about a line.

    The triangle of ones is the inverse of first differences. All ranges have the Gram matrix min(i, j)·(n + 1 − max(i,
    j)), which is n + 1 times the inverse of second differences. Both have known sines for eigenvalues.
    """
    k = np.arange(1, n + 1, dtype=np.float64)
    if kind == "cells":
        return np.ones(n)
    if kind == "prefixes":
        return 0.5 / np.sin((2 * k - 1) * np.pi / (4 * n + 2))
    return math.sqrt(n + 1) * 0.5 / np.sin(k * np.pi / (2 * n + 2))


def _tables(tables: tuple[tuple[int, ...], ...], sizes: tuple[int, ...]) -> tuple[float, float] | None:
    """The sum and the largest of the singular values of all cells of some tables, over √n.

    The Gram matrix is a sum over tables T of products of I (axes in T) and all-ones matrices (the others): on the
    functions of exactly the axes S, of which there are Π(nᵢ − 1), it is Σ over T ⊇ S of the product of the other sizes.
    """
    # Tables whose subsets are looked through.
    if sum(2 ** len(table) for table in tables) > 1 << 18:
        return None
    # One over the size of each table is that product over n.
    squares: dict[tuple[int, ...], float] = {}
    for table in tables:
        kept = tuple(sorted(table))
        weight = 1.0 / math.prod(sizes[axis] for axis in kept)
        for ways in range(len(kept) + 1):
            for axes in combinations(kept, ways):
                squares[axes] = squares.get(axes, 0.0) + weight
    whole = sum(
        math.sqrt(square) * math.prod(sizes[axis] - 1 for axis in axes) for axes, square in squares.items()
    )
    return whole, math.sqrt(squares.get((), 0.0))
