"""Fixed queries: measure a strategy that suits the questions, then solve for the cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.errors import MechanismError
from dphist.extras import missing, need
from dphist.inference.estimate import Estimate, nonnegative
from dphist.inference.linear.ranges import DenseNoise
from dphist.mechanisms.options import checked
from dphist.mechanisms.tree import Tree, usable
from dphist.mechanisms.trees.shares import Kind, searched
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.linear import Linear

# Optimising writes out n × n matrices; beyond this a hierarchy is within a tenth of the best known anyway.
_LARGEST_DENSE = 128
# Weights of a strategy are whole multiples of 1/4096.
_GRAIN = 4096


@checked
@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Measure a strategy chosen for the workload and answer everything from its least squares solution.

    "hierarchy" takes nested blocks whose lengths and weights make the workload's mean variance least among such trees:
    a search over a closed form, n log n in all, and never a matrix. "optimised" is for up to 128 cells, and needs SciPy
    (``dphist[matrix]``): it starts at that tree and improves a strategy of all cells plus weighted combinations of them
    (p-identity) by gradient descent on the exact mean variance. The strategy depends on public sizes and the workload
    alone; it is rounded to integers and its noise is the exact largest column sum, so privacy does not rest on the
    optimiser.

    With workload "prefixes" this is PMM, with "all_ranges" MM; None takes the hint that came with the data.

    Args:
        workload: What will be asked, where it is not handed over as a workload.
        strategy: "hierarchy" searches weighted trees; "optimised" any strategy, on few cells.
        nonnegative: Whether to raise negative estimates to zero.

    Example:
        >>> from dphist.mechanisms import Matrix
        >>> from dphist.testing import run
        >>> run(Matrix(workload="prefixes"), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    workload: Kind | None = None
    strategy: Literal["hierarchy", "optimised"] = "hierarchy"
    nonnegative: bool = True

    def __post_init__(self) -> None:
        # Said before anything is paid.
        if self.strategy == "optimised" and (told := missing("scipy", "matrix")):
            raise MechanismError(told)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Measure the strategy and solve."""
        kind = self._kind(data.workload, data.shape)
        small = len(data.shape) == 1 and 2 <= data.size <= _LARGEST_DENSE
        if self.strategy == "hierarchy" or not small or kind is None:
            tree = Tree(fanout="auto", workload=self.workload, nonnegative=self.nonnegative)
            return tree.estimate(data)
        strategy = integer_strategy(data.size, kind)
        noisy = data.measure(Linear.dense(strategy))
        information = (strategy.T @ strategy).astype(np.float64)
        solved = np.linalg.solve(information, strategy.T @ noisy.values.astype(np.float64))
        counts = np.asarray(solved, dtype=np.float64)
        covariance = np.linalg.inv(information) * float(noisy.variance)
        errors = DenseNoise((covariance + covariance.T) / 2)
        return Estimate(nonnegative(counts) if self.nonnegative else counts, errors)

    def _kind(self, hint: Workload | None, shape: tuple[int, ...]) -> Kind | None:
        if self.workload is not None:
            return self.workload
        found = usable(hint, shape) or "all_ranges"
        kind = found if isinstance(found, str) else found.kind
        return kind if kind in ("cells", "prefixes", "all_ranges") else None


def mean_gram(n: int, kind: Kind) -> FloatArray:
    """Mean of q qᵀ over the workload: the share of questions that hold both cells."""
    i = np.arange(n)
    low, high = np.minimum.outer(i, i), np.maximum.outer(i, i)
    if kind == "cells":
        return np.eye(n) / n
    both = (n - high) / float(n) if kind == "prefixes" else (low + 1) * (n - high) / (n * (n + 1) / 2.0)
    return np.asarray(both, dtype=np.float64)


@lru_cache(maxsize=64)
def integer_strategy(n: int, kind: Kind) -> IntArray:
    """The optimised strategy in whole numbers; read-only, since it is kept."""
    theta = _improve(_tree_rows(n, kind), mean_gram(n, kind))
    weights = np.vstack([np.ones(n), theta]) / (1 + theta.sum(axis=0))
    scaled = np.rint(weights * _GRAIN).astype(np.int64)
    rows: IntArray = np.vstack([np.diag(scaled[0]), scaled[1:]])
    rows = rows[np.abs(rows).sum(axis=1) > 0]
    rows.setflags(write=False)
    return rows


def _tree_rows(n: int, kind: Kind) -> FloatArray:
    """Rows above the cells of the best tree, relative to the weight of a cell."""
    sides, shares = searched(n, kind)
    cell = float(shares[-1])
    rows = []
    for (length,), share in zip(sides[:-1], shares[:-1], strict=True):
        block = np.arange(n) // length
        rows += [np.where(block == b, float(share) / cell, 0.0) for b in range(-(-n // length))]
    if not rows:
        return np.zeros((1, n))
    # A little unevenness, by rule, lets the descent leave the tree's symmetry.
    tilt = 0.02 * np.cos(np.outer(np.arange(len(rows)) + 1.0, np.arange(n) + 0.5))
    return np.asarray(np.array(rows) + np.abs(tilt), dtype=np.float64)


def _improve(theta: FloatArray, gram: FloatArray) -> FloatArray:
    """Descend on f(Θ) = tr[(I + ΘᵀΘ)⁻¹ (u uᵀ ∘ G)], u = 1 + column sums of Θ, over Θ ≥ 0.

    f is half the mean variance at ε = 1 of the strategy [I; Θ] with its columns scaled to sum 1 (HDMM's
    p-identity). With M = (I + ΘᵀΘ)⁻¹ its gradient is −2 ΘM(uuᵀ∘G)M, plus 2 (M∘G)u in every row.
    """
    optimize = need("scipy.optimize", "matrix")
    shape = theta.shape

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        rows = flat.reshape(shape)
        u = 1 + rows.sum(axis=0)
        inner = np.linalg.solve(np.eye(shape[0]) + rows @ rows.T, rows)
        M = np.eye(shape[1]) - rows.T @ inner
        lifted = gram * np.outer(u, u)
        slope = -2 * (rows @ M) @ lifted @ M + 2 * ((M * gram) @ u)[None, :]
        return float((M * lifted).sum()), slope.reshape(-1)

    found = optimize.minimize(
        value,
        theta.reshape(-1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * theta.size,
        options={"maxiter": 250},
    )
    improved: FloatArray = found.x.reshape(shape)
    return improved
