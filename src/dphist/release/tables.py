"""A release as tables that other tools read: data frames, labelled arrays, synthetic records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dphist.errors import QueryError
from dphist.extras import need
from dphist.model.domain import Domain
from dphist.release.cells import Cells, labels_at

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray


class Tables:
    """The part of a `Release` that hands its cells to other tools; it needs a domain and its cells alone."""

    domain: Domain
    cells: Cells

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row per published cell with readable labels (needs pandas).

        Returns:
            A data frame with a column per attribute, and ``estimate``.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
            >>> list(release.to_pandas().columns)
            ['sex', 'estimate']
        """
        pd = need("pandas", "frames")

        return pd.DataFrame({**self.cells.labels(self.domain), "estimate": self.cells.numbers})

    def to_polars(self) -> polars.DataFrame:
        """Give a row per published cell with readable labels (needs polars).

        Returns:
            A data frame with a column of text per attribute, and ``estimate``.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
            >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
            >>> release.to_polars().columns
            ['age', 'sex', 'estimate']
        """
        pl = need("polars", "frames")

        columns = {
            name: [str(label) for label in labels] for name, labels in self.cells.labels(self.domain).items()
        }
        return pl.DataFrame({**columns, "estimate": self.cells.numbers})

    def to_xarray(self) -> xarray.DataArray:
        """Give a labelled array, an axis per attribute (needs xarray).

        Returns:
            The counts with each attribute's labels as coordinates.

        Raises:
            TooLargeError: if the release is sparse and its domain has more cells than an array can.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
            >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
            >>> release.to_xarray().dims
            ('age', 'sex')
        """
        xr = need("xarray", "frames")

        counts = self.cells.dense(self.domain)
        labels = {attribute.name: list(attribute.labels) for attribute in self.domain.attributes}
        return xr.DataArray(counts, coords=labels, dims=list(self.domain.names), name="estimate")

    def records(self, count: int | None = None, *, seed: int = 0) -> pandas.DataFrame:
        """Make synthetic records that follow the release: each cell within one record of its share.

        Made from the published counts alone, so as private as they are; the seed is public and only decides roundings.

        Args:
            count: How many; the released total unless told.
            seed: A public number: another one gives other roundings.

        Returns:
            A data frame with a row per record and a column of labels per attribute.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([50, 90])), epsilon=1, mechanism="laplace")
            >>> len(release.records(10))
            10
        """
        pd = need("pandas", "frames")

        flat = np.maximum(self.cells.numbers.astype(np.float64, copy=False), 0.0)
        total = float(flat.sum())
        wanted = max(0, round(total)) if count is None else count
        if wanted < 0:
            raise QueryError("count must not be negative")
        if total == 0:
            # Nothing is known of where records are. A sparse release without cells has nowhere to put them.
            flat, total = np.ones_like(flat), float(flat.size)
            wanted = wanted if flat.size else 0
        # Systematic sampling: evenly spaced points along the cumulated counts, from one public starting point.
        start = ((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64) / 2**64
        points = (np.arange(wanted) + start) * (total / max(1, wanted))
        rows = np.minimum(np.searchsorted(np.cumsum(flat), points, side="right"), flat.size - 1)
        return pd.DataFrame(labels_at(self.domain, self.cells.positions(rows)))
