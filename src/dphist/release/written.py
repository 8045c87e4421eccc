"""The bounds of single cells that a file holds: read when somebody wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.release.columns import plain_numbers

if TYPE_CHECKING:
    import pyarrow.parquet

FloatArray = NDArray[np.float64]
Pair = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class WrittenBounds:
    """The bounds that a file holds; they are read when somebody wants them."""

    file: pyarrow.parquet.ParquetFile
    low: str
    high: str
    confidence: float
    software: str
    raw: Any
    """The same file, byte for byte."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy goes to another process, and an open file cannot: there bounds are worked out again.
        return type(None), ()

    def rows(self, begin: int, end: int) -> Pair:
        """Some rows of both columns."""
        import pyarrow as pa

        try:
            return self._rows(begin, end)
        except (pa.ArrowException, OSError, ValueError):
            raise ReleaseError("the file is damaged: its bounds cannot be read") from None

    def _rows(self, begin: int, end: int) -> Pair:
        first, parts = 0, []
        for group in range(self.file.num_row_groups):
            size = self.file.metadata.row_group(group).num_rows
            start, stop = max(begin - first, 0), min(end - first, size)
            if start < stop:
                table = self.file.read_row_group(group, columns=[self.low, self.high])
                parts.append(
                    [
                        plain_numbers(table.column(name))[start:stop].astype(np.float64)
                        for name in (self.low, self.high)
                    ]
                )
            first += size
        low, high = (np.concatenate([part[side] for part in parts] or [np.zeros(0)]) for side in (0, 1))
        return low, high
