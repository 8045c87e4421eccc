"""Numbers with intervals, a row for each group or a square of two attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphist.extras import need
from dphist.release.answers import NOT_MEASURED, Answer
from dphist.release.columns import free

if TYPE_CHECKING:
    import pandas

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers with intervals, one for each group; ``labels`` names the groups, a column for each attribute.

    ``low`` and ``high`` are not a number (NaN, in a data frame too) where a group was not measured.
    """

    labels: dict[str, list[str]]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    details: str = ""

    def __post_init__(self) -> None:
        if self.value.size and bool(np.isnan(self.low).all()):
            object.__setattr__(self, "method", NOT_MEASURED)

    def __len__(self) -> int:
        return int(self.value.size)

    def only(self) -> Answer:
        """The only row of a table that tells nothing apart."""
        ends = float(self.value[0]), float(self.low[0]), float(self.high[0])
        return Answer(*ends, self.confidence, self.method, self.details)

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row for each group (needs pandas)."""
        pd = need("pandas", "frames")
        columns: dict[str, object] = dict(self.labels)
        for name, numbers in (("value", self.value), ("low", self.low), ("high", self.high)):
            columns[free(name, set(columns))] = numbers
        made: pandas.DataFrame = pd.DataFrame(columns)
        return made


@dataclass(frozen=True, eq=False)
class Pivot:
    """A table of two attributes: a row for each group of one, a column for each group of the other."""

    rows: list[str]
    columns: list[str]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    details: str = ""

    def to_pandas(self) -> pandas.DataFrame:
        """Give the values as a data frame (needs pandas)."""
        pd = need("pandas", "frames")
        made: pandas.DataFrame = pd.DataFrame(self.value, index=self.rows, columns=self.columns)
        return made
