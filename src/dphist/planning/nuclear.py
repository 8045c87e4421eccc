"""How accurate any unbiased linear answer can be: the limit that forecasts are held against.

A linear mechanism measures Ax with noise of variance s² (Gaussian, or Laplace where the promise is pure ε) and answers
a workload Wx by B(Ax + noise) with W = BA. Its promise is that whatever one person changes moves Ax by at most 1: in
L2 for Gaussian noise with s² = 1/2ρ, in L1, which is at least as much, for Laplace noise with s² = 2/ε². The theorem
(Li and Miklau, 2013: the *nuclear norm* or *SVD bound*; here with weights, for every unit):

    Let v be any random change that one person can make, and E[vvᵀ] ⪰ QQᵀ. Then tr(AQQᵀAᵀ) ≤ E‖Av‖² ≤ 1, so
    ‖WQ‖_* = ‖B·AQ‖_* ≤ ‖B‖_F ‖AQ‖_F ≤ ‖B‖_F, and the mean squared error of m answers, s²‖B‖²_F ÷ m, is at least
    s²‖WQ‖²_* ÷ m, where ‖·‖_* is the sum of the singular values.

Any law of v gives a limit, so a bad one makes the limit low, never wrong:

* one cell i of probability dᵢ moves by c, the rows that somebody may have in a cell: Q = c·diag(d)^½. For single cells
  and for marginals even d are best (they have all symmetries that the questions have), and the limit is reached;
* k cells at once, drawn evenly: E[vvᵀ] ⪰ c²k(n − k)/(n(n − 1)) · I;
* people who are replaced: two different cells i and j, E[vvᵀ] = 2c²(diag d − ddᵀ) ÷ (1 − Σdᵢ²); even d and k rows
  that go for k that come make it 2kc²/(n − 1) times a projection that leaves one direction out.

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

# A matrix of questions by cells is written out up to 8,388,608 entries, and up to 1,024 on its smaller side.
_MOST_ENTRIES = 1 << 23
_MOST_SIDE = 1024
# How often the weights of the cells are improved; each time costs one decomposition of the smaller side.
_ROUNDS = ((128, 30), (256, 6), (_MOST_SIDE, 1))
# Where a rule knows the limit for even weights, better ones gain little: only small matrices are worth it.
_SMALL_SIDE = 128
# Singular values this far below the largest may be rounding; without them the limit is only lower.
_NEGLIGIBLE = 1e-7
# Tables whose subsets are looked through.
_MOST_SUBSETS = 1 << 18


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
        The limit, in records; None where the questions have no structure that we know and are too many to compute it.

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
    found = None if workload.size == 0 else _spread(workload, who)
    if found is None:
        return None
    amount = float(budget.amount)
    deviation = math.sqrt(2.0) / amount if budget.pure else 1.0 / math.sqrt(2.0 * amount)
    if not budget.pure and budget.epsilon is not None:
        deviation = min(deviation, math.sqrt(2.0) / float(budget.epsilon))
    return deviation * found / math.sqrt(workload.size)


@lru_cache(maxsize=64)
def _spread(workload: Workload, unit: Unit) -> float | None:
    """‖WQ‖_*, the highest that is known: it does not depend on the budget."""
    found = (_by_rule(workload, unit), _written_out(workload, unit))
    return max((bound for bound in found if bound is not None), default=None)


def _by_rule(workload: Workload, unit: Unit) -> float | None:
    """‖WQ‖_* for even weights, where the singular values of W are known; divided by √n, which may be astronomical."""
    sizes = workload.domain.shape
    if workload.kind in ("cells", "prefixes", "all_ranges"):
        if max(sizes) > _MOST_ENTRIES:
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
    if sum(2 ** len(table) for table in tables) > _MOST_SUBSETS:
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


def _written_out(workload: Workload, unit: Unit) -> float | None:
    """‖WQ‖_* for the best weights found, where W can be written out.

    dᵢ ← (diag((D^½WᵀWD^½)^½))ᵢ, made to sum to one, has the best weights for its fixed point (Denisov and others,
    2022); on the way every d gives a limit, and the highest counts.
    """
    m, n = workload.size, workload.domain.size
    side = min(m, n)
    most = _MOST_SIDE if workload.kind == "ranges" else _SMALL_SIDE
    if m * n > _MOST_ENTRIES or side > most or (unit.replace and n < 2):
        return None
    if workload.kind == "cells" or (workload.tables is not None and not unit.replace):
        return None  # known by rule, and no weights are better
    matrix = _matrix(workload)
    weights = np.full(n, 1.0 / n)
    best = 0.0
    for _ in range(next(rounds for largest, rounds in _ROUNDS if side <= largest)):
        root = np.sqrt(weights)
        scaled = matrix * root
        factor = 1.0
        if unit.replace:
            scaled = scaled - np.outer(scaled @ root, root)
            factor = math.sqrt(2.0 / (1.0 - min(float((weights**2).sum()), 1.0 - 1e-12)))
        value, pull = _nuclear(scaled)
        gained, best = value * factor > best * 1.0005, max(best, value * factor)
        if not gained or value <= 0:
            break
        weights = pull / pull.sum()
    return best * ((unit.per_cell or unit.rows) if unit.cells else unit.rows)


def _nuclear(matrix: FloatArray) -> tuple[float, FloatArray]:
    """The sum of the singular values, and the diagonal of the root of the Gram matrix."""
    m, n = matrix.shape
    squares, vectors = np.linalg.eigh(matrix @ matrix.T if m <= n else matrix.T @ matrix)
    values = np.sqrt(np.maximum(squares, 0.0))
    kept = values > _NEGLIGIBLE * values.max(initial=0.0)
    values, vectors = values[kept], vectors[:, kept]
    if m <= n:
        vectors = matrix.T @ (vectors / values)
    return float(values.sum()), np.asarray((vectors**2) @ values, dtype=np.float64)


def _matrix(workload: Workload) -> FloatArray:
    """The questions as rows over cells."""
    matrix = np.zeros((workload.size, *workload.domain.shape))
    owner = np.arange(workload.size) if workload.query is None else workload.query
    for question, low, high in zip(owner, workload.low, workload.high, strict=True):
        matrix[(question, *map(slice, low, high))] += 1.0
    return matrix.reshape(workload.size, -1)
