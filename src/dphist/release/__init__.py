"""The published thing: a file anyone may read, query and plot.

A release is put together from parts that know its `contents` alone: `cells/` holds its numbers, `asking` and `cube/`
answer, `writing` writes it, `reading` loads it. Everything above imports it; it knows no source, ledger or noise.
"""

from dphist.model.about import About
from dphist.release.answers import Answer, Answers, Projection
from dphist.release.cells import Cells, DenseCells, SparseCells, TableCells
from dphist.release.guarantee import Guarantee
from dphist.release.reading import load
from dphist.release.release import Release

__all__ = [
    "About",
    "Answer",
    "Answers",
    "Cells",
    "DenseCells",
    "Guarantee",
    "Projection",
    "Release",
    "SparseCells",
    "TableCells",
    "load",
]
