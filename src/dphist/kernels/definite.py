"""Triangular roots of positive definite matrices, tile by tile: nearly all of the work is products of small matrices.

A library of linear algebra shares a large product out among threads. Of matrices of some hundred rows these wait for
each other longer than they work, and waiting takes processor time, too: a root of 1,024 rows took twice to eight times
as much with two threads as with one. Products of tiles are so small that OpenBLAS does not, and they are the same sums
in the same order however many threads there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Rows and columns of a tile: OpenBLAS takes a second thread for products of more than 2¹⁸ pairs of numbers, this
# number's third power. With fewer more goes into calling.
_TILE = 64
# Rows of a strip: of a matrix by a vector it takes one for 9,216 numbers; up to 1,024 columns these have less.
_STRIP = 8


class CurvedRoot:
    """The lower triangular root of diag(d)·precise·diag(d) + prior, to solve by it often.

    Only lower triangles are read. A library's root of 1,024 rows takes longer on one thread, too, for it copies the
    matrix to and fro, and so does solving by it: inverses of the tiles on the diagonal are kept.

    Args:
        precise: A positive semidefinite matrix.
        prior: A positive definite one.
        scale: d, a number for each row; ones if there is none.

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

    def __init__(self, precise: FloatArray, prior: FloatArray, scale: FloatArray | None = None) -> None:
        self.rows = len(prior)
        number = -(-self.rows // _TILE)
        self._tiles = tiles = np.zeros((number, number, _TILE, _TILE))
        self._inverses = np.empty((number, _TILE, _TILE))
        self.log_determinant = 0.0
        """The sum of the logarithms of its diagonal: half the logarithm of the matrix's determinant."""
        for k in range(number):
            begin, end = k * _TILE, min((k + 1) * _TILE, self.rows)
            strip = np.zeros((_TILE, (k + 1) * _TILE))
            part = strip[: end - begin, :end]
            if scale is None:
                part += precise[begin:end, :end]
            else:
                np.multiply(precise[begin:end, :end], scale[:end], out=part)
                part *= scale[begin:end, None]
            part += prior[begin:end, :end]
            tiles[k, : k + 1] = strip.reshape(_TILE, k + 1, _TILE).transpose(1, 0, 2)
        # What is beyond the last row does not go together with anything.
        beyond = np.arange(self.rows - (number - 1) * _TILE, _TILE)
        tiles[-1, -1, beyond, beyond] = 1.0
        for k in range(number):
            for j in range(k):
                tiles[k:, k] -= tiles[k:, j] @ tiles[k, j].T
            corner = np.linalg.cholesky(tiles[k, k])
            self._inverses[k] = np.linalg.inv(corner)
            tiles[k + 1 :, k] = tiles[k + 1 :, k] @ self._inverses[k].T
            self.log_determinant += float(np.log(np.diagonal(corner)).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve by the matrix whose root this is: forwards, and back again."""
        tiles, inverses = self._tiles, self._inverses
        found = np.zeros((len(tiles), _TILE))
        found.reshape(-1)[: self.rows] = right
        for k, inverse in enumerate(inverses):
            found[k] = inverse @ found[k]
            found[k + 1 :] -= tiles[k + 1 :, k] @ found[k]
        for k in reversed(range(len(tiles))):
            found[k] = found[k] @ inverses[k]
            found[:k] -= found[k] @ tiles[k, :k]
        return found.reshape(-1)[: self.rows]

    def inverse(self) -> FloatArray:
        """The inverse of the matrix whose root this is."""
        tiles, inverses = self._tiles, self._inverses
        number = len(tiles)
        lower = np.zeros_like(tiles)
        # The inverse of the root, row of tiles by row of tiles, and its square.
        for k in range(number):
            lower[k, k] = inverses[k]
            for j in range(k):
                lower[k, :k] -= tiles[k, j] @ lower[j, :k]
            lower[k, :k] = inverses[k] @ lower[k, :k]
        found = np.zeros_like(tiles)
        for k in range(number):
            for j in range(k + 1):
                found[j, : k + 1] += lower[k, j].T @ lower[k, : k + 1]
        whole = found.transpose(0, 2, 1, 3).reshape(number * _TILE, -1)
        return whole[: self.rows, : self.rows]


def times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """A matrix of up to a thousand columns by a vector, strip by strip for the same reason.

    Args:
        matrix: Any matrix whose rows lie one behind the other.
        vector: A number for each column.

    Returns:
        A number for each row.

    Example:
        >>> import numpy as np
        >>> times(np.eye(9), np.arange(9.0))
        array([0., 1., 2., 3., 4., 5., 6., 7., 8.])
    """
    whole = len(matrix) - len(matrix) % _STRIP
    strips = (matrix[:whole].reshape(-1, _STRIP, matrix.shape[1]) @ vector).reshape(-1)
    return np.concatenate([strips, matrix[whole:] @ vector]) if whole < len(matrix) else strips
