"""Cells that were believed and tables that were settled before them: whose sums are right, and which cells give way.

Tables of few attributes are settled first, and the cube's cells are then found beside what these tables suggest
(`dphist.inference.tables.believing`). Two things say how many records a row of a table has: the table, and the sum of
the cells. A sum of cells from which noise was taken out may be the better one, where cells are mostly empty or mostly
measured; or it may be biased, as what is lost in single cells adds up.

**Whose sums.** With l least squares' table, of noise that nothing else depends on, any estimate x of it is off by

    |x − l|² − |noise|² + 2 Σ cov(x, l)

on average (Stein 1981), and the covariances are posterior variances. So of a table t and of sums of cells p it is known
which is off by less, and by how much, without knowing the noise: with errors e_t² and e_p² the best mixture of both has

    w = 1/2 + (e_p² − e_t²) ÷ (2 |t − p|²)

of the table, cut to 0 … 1. Only what a table of two attributes says beyond its margins is mixed: tables of one have few
cells, and were settled with what all others say of them.

**Which cells.** Cells then have the tables by least squares, each moved in proportion to what is left to doubt of it: a
tall cell that was measured well stays, though it holds most of its row. Raking scales every cell of a row alike, which
is what one would do if nothing but the table had been measured.

Arithmetic on released numbers throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.fitting import nearest
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.residuals import Axes, centred

FloatArray = NDArray[np.float64]

# With fewer degrees of freedom a mean of squares tells nothing.
_FREE = 3


def lean(
    measured: MeasuredTables,
    settled: Mapping[Axes, FloatArray],
    wanted: tuple[Axes, ...],
    cells: FloatArray,
    follows: Mapping[Axes, float],
) -> dict[Axes, FloatArray]:
    """Move settled tables towards sums of the cube's cells, as far as these seem to be off by less.

    Args:
        measured: What was measured, the cube among it.
        settled: The tables and all smaller ones, by their attributes.
        wanted: Which of them to move: all of as many attributes.
        cells: The cube as its cells were believed.
        follows: How far every table, and the cube, vary with what was measured: covariances, summed over cells.

    Returns:
        The tables, without negative cells, with the margins that were settled.

    Example:
        >>> import numpy as np
        >>> truth = np.zeros((4, 4, 4))
        >>> truth[0, 0, 0], truth[1, 2, 3] = 500.0, 300.0
        >>> noisy = truth + 14.0 * np.sin(np.arange(64.0) ** 2).reshape(truth.shape)  # as far off as noise would be
        >>> measured = MeasuredTables((4, 4, 4), ((0, 1, 2),), (noisy,), (50.0**0.5,), "gaussian")
        >>> pair = noisy.sum(axis=2)
        >>> settled = {(0, 1): pair, (0,): pair.sum(axis=1), (1,): pair.sum(axis=0), (): pair.sum()}
        >>> moved = lean(measured, settled, ((0, 1),), truth, {(0, 1): 6400.0, (0, 1, 2): 300.0})[(0, 1)]
        >>> bool(np.abs(moved - truth.sum(axis=2)).sum() < 0.8 * np.abs(pair - truth.sum(axis=2)).sum())
        True
    """
    found: dict[Axes, FloatArray] = {}
    for axes in wanted:
        table = settled[axes]
        freedom = math.prod(size - 1 for size in table.shape)
        found[axes] = table
        if len(axes) < 2 or freedom < _FREE:
            continue
        others = tuple(axis for axis in measured.everything if axis not in axes)
        summed = cells.sum(axis=others)
        plain = measured.table(axes)
        between = centred(summed - table)
        apart = float((between * between).sum())
        # Margins are the table's own: of what follows the noise, this part is beyond them.
        part = freedom / table.size
        worse = _squares(plain - summed) - _squares(plain - table)
        worse += 2.0 * part * (follows[measured.everything] - follows.get(axes, 0.0))
        keep = 0.5 + worse / (2.0 * apart) if apart > 0.0 else 1.0
        if keep < 1.0:
            mixed = table + (1.0 - max(keep, 0.0)) * between
            found[axes] = nearest(mixed, axes, settled, measured.shape)
    return found


def _squares(values: FloatArray) -> float:
    """What a table holds beyond its margins, squared."""
    left = centred(values)
    return float((left * left).sum())


def give_way(
    cells: FloatArray, doubt: FloatArray, tables: Mapping[Axes, FloatArray], rounds: int, enough: float
) -> FloatArray:
    """Move cells until their sums are the tables, each in proportion to its doubt, none below zero.

    Args:
        cells: A cube without negative cells.
        doubt: What is left to doubt of each: a variance.
        tables: What sums should be, by the attributes that tables keep.
        rounds: How often to go over all tables, at most.
        enough: Stop once no cell of a table is missed by more.

    Returns:
        The cube.

    Example:
        >>> import numpy as np
        >>> tall, doubt = np.array([[90.0, 0.0], [6.0, 4.0]]), np.array([[1.0, 9.0], [5.0, 5.0]])
        >>> give_way(tall, doubt, {(0,): np.array([100.0, 10.0])}, 9, 1e-9).tolist()
        [[91.0, 9.0], [6.0, 4.0]]
    """
    cube = np.array(cells, dtype=np.float64)
    for _ in range(rounds):
        furthest = 0.0
        for axes, table in tables.items():
            others = tuple(axis for axis in range(cube.ndim) if axis not in axes)
            missing = (table - cube.sum(axis=others)).reshape(
                [n if axis in axes else 1 for axis, n in enumerate(cube.shape)]
            )
            furthest = max(furthest, float(np.abs(missing).max(initial=0.0)))
            # An empty cell has nothing to give.
            free = np.where((missing > 0.0) | (cube > 0.0), doubt, 0.0)
            whole = free.sum(axis=others, keepdims=True)
            cube += free * np.divide(missing, whole, out=np.zeros(whole.shape), where=whole > 0.0)
            np.maximum(cube, 0.0, out=cube)
        if furthest <= enough:
            break
    return cube
