"""What holds a release's numbers: every cell, the cells that passed a threshold, or tables of few attributes."""

from dphist.release.cells.cells import Cells, DenseCells
from dphist.release.cells.sparse import SparseCells
from dphist.release.cells.tables import TableCells, cells_of

__all__ = ["Cells", "DenseCells", "SparseCells", "TableCells", "cells_of"]
