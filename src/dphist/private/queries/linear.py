"""Any public integer matrix as a question."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.linear import column_squares, column_sums, rises, sparse_product
from dphist.private.questions import IntArray, Layout, Moves, proven, seal

# The gate keeps the sum of all counts below 2^62; a row may multiply that by its largest weight.
_LARGEST_SUM = 2**62


@proven
@dataclass(frozen=True, eq=False)
class Linear:
    """The product of a public sparse matrix of integers with the counts, times ``unit``.

    Row r has weights ``weights[rows[r]:rows[r + 1]]`` in the columns of the same places. One step in cell j
    changes answer r by |weight| of (r, j), so Σ_r |Δ_r| is at most the largest sum of absolute weights in a
    column. That number, computed in integers, is the scale of all answers: the promise holds exactly, and no
    rounding is involved. Real strategies are rounded to integers first, the matrix and not the answer. In the same way
    Σ_r Δ_r² is at most the largest sum of squared weights in a column, which is the variance of all answers.

    The column sums go once through all weights, the product goes through those that the row pointers name. Both
    see the same matrix only if every weight belongs to exactly one row: pointers rise from 0 to the number of
    weights. That is checked, on copies that nobody can change afterwards.
    """

    rows: IntArray
    columns: IntArray
    weights: IntArray
    unit: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        seal(self, "rows", "columns", "weights")
        one_dimension = self.rows.ndim == self.columns.ndim == self.weights.ndim == 1
        if not one_dimension or self.columns.size != self.weights.size:
            raise MechanismError(
                "linear: rows, columns and weights must be lists, with a column for each weight"
            )
        ends = self.rows.size and self.rows[0] == 0 and self.rows[-1] == self.weights.size
        if not ends or not rises(self.rows):
            # Else a weight could be read twice, and count once.
            raise MechanismError("linear: rows must rise from 0 to the number of weights")
        if self.columns.size and int(self.columns.min()) < 0:
            raise MechanismError("linear: columns must name cells")
        # In 64 bits |−2⁶³| is negative and long columns wrap: a sensitivity that overflows would promise too little.
        largest = max(abs(int(self.weights.max(initial=0))), abs(int(self.weights.min(initial=0))))
        if largest * self.weights.size >= _LARGEST_SUM:
            raise MechanismError("linear: the weights are too large to be added up in 64 bits")

    @classmethod
    def dense(cls, matrix: NDArray[np.int64], unit: Fraction = Fraction(1)) -> Linear:
        """Take a matrix of integers as it is, leaving out zeros."""
        kept = matrix != 0
        rows = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
        return cls(rows, np.nonzero(kept)[1].astype(np.int64), matrix[kept].astype(np.int64), unit)

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Multiply in integers; counts are cut at a public ceiling so that no product overflows."""
        largest = int(np.abs(self.weights).max(initial=1))
        ceiling = _LARGEST_SUM // (largest * max(1, layout.size))
        answers: IntArray = sparse_product(self.rows, self.columns, self.weights, np.minimum(counts, ceiling))
        return answers

    def scales(self, layout: Layout) -> Fraction:
        """The largest absolute column sum."""
        if self.columns.size and int(self.columns.max()) >= layout.size:
            raise MechanismError("linear: columns must name cells")
        return Fraction(max(1, self.sensitivity))

    def variances(self, layout: Layout) -> Fraction:
        """The largest sum of squares in a column.

        Weights of one row and column would have to be added before they are squared, and large ones would overflow:
        there the square of the column sum serves, which is never less.
        """
        whole = self.scales(layout)  # which also checks the columns
        largest = int(np.abs(self.weights).max(initial=0))
        if largest**2 * self.weights.size < _LARGEST_SUM:
            squares = column_squares(self.rows, self.columns, self.weights, max(1, layout.size))
            if squares[0] >= 0:
                return Fraction(max(1, int(squares.max())))
        return whole**2

    @property
    def moves(self) -> Moves:
        """Whether all weights are of one sign."""
        return "nonnegative" if int(self.weights.min(initial=0)) >= 0 else "any"

    @property
    def sensitivity(self) -> int:
        """The largest sum of absolute weights in a column."""
        if not self.columns.size:
            return 0
        return int(column_sums(self.columns, self.weights, int(self.columns.max()) + 1).max())
