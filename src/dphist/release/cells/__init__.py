"""What holds a release's numbers: every cell, the cells that passed a threshold, or tables of few attributes.

One `Release` stands over any of these; each answers in its own way, and says its ``form`` for the file.
"""

from dphist.release.cells.cells import DenseCells, TableCells, cells_of
from dphist.release.cells.sparse import SparseCells

Cells = DenseCells | SparseCells | TableCells

__all__ = ["Cells", "DenseCells", "SparseCells", "TableCells", "cells_of"]
