"""A mixture of products: what few numbers a column say of every table of many columns.

A table of many columns has far more cells than records, so nothing that visits its cells can describe it. A *mixture
of products* (latent class model: Lazarsfeld 1950) does it with a few numbers a column: every record belongs to one of
K hidden classes, and inside a class its columns go together by chance alone,

    P(x) = Σ_k w_k Π_j θ_j(x_j | k).

Any table of it, and any box, is one short sum over classes. `dphist.inference.tables.descent` fits one to noisy tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """A distribution over records of many columns, as a mixture of products.

    Args:
        shape: How many values every column has.
        weights: The share of each hidden class.
        conditionals: A row for each value of each column, a column for each class: the value's chance in that class.

    Example:
        >>> import numpy as np
        >>> both = MixtureModel((2, 2), np.array([0.5, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0]] * 2))
        >>> both.table((0, 1)).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """

    shape: tuple[int, ...]
    weights: FloatArray
    conditionals: FloatArray

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of every column, and one past the last."""
        return tuple(int(place) for place in np.concatenate([[0], np.cumsum(self.shape)]))

    def column(self, axis: int) -> FloatArray:
        """The chances of one column's values, class by class."""
        return self.conditionals[self.starts[axis] : self.starts[axis + 1]]

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Give the probability of every cell of a table, its axes in the order they are named.

        Args:
            axes: The attributes that the table keeps.

        Returns:
            An array with one axis for each; it sums to one.
        """
        joint = self.weights[None, :]
        for axis in axes[:-1]:
            joint = (joint[:, None, :] * self.column(axis)[None, :, :]).reshape(-1, self.weights.size)
        cells = joint @ self.column(axes[-1]).T if len(axes) else joint.sum(axis=1)
        return np.asarray(cells, dtype=np.float64).reshape([self.shape[axis] for axis in axes])

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """Give the probability of many boxes: a product of interval sums in every class.

        Args:
            low: Where each box begins on every axis, a row for each box.
            high: One past where it ends.

        Returns:
            A probability for each box.
        """
        chances = np.tile(self.weights, (len(low), 1))
        for axis, size in enumerate(self.shape):
            bounded = np.flatnonzero((low[:, axis] > 0) | (high[:, axis] < size))
            if bounded.size:
                up = np.concatenate([np.zeros((1, self.weights.size)), np.cumsum(self.column(axis), axis=0)])
                ends = np.maximum(high[bounded, axis], low[bounded, axis])
                chances[bounded] *= up[ends] - up[low[bounded, axis]]
        return np.asarray(np.maximum(chances, 0.0).sum(axis=1), dtype=np.float64)

    def spread(self, groups: Sequence[IntArray], shares: Sequence[FloatArray]) -> MixtureModel:
        """Give the same model over finer values: each merged value hands its chance to the values it was made of.

        Args:
            groups: For every column, the merged value of each of its values.
            shares: For every column, each value's part of its merged value.

        Returns:
            A model whose columns have as many values as ``groups`` has entries.
        """
        rows = [
            self.column(axis)[group] * share[:, None]
            for axis, (group, share) in enumerate(zip(groups, shares, strict=True))
        ]
        return MixtureModel(tuple(len(group) for group in groups), self.weights, np.concatenate(rows))
