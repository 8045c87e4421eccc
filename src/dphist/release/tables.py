"""A release as tables that other tools read: data frames, labelled arrays, synthetic records."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import MechanismError, QueryError, TooLargeError
from dphist.extras import need
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.intervals import read_confidence
from dphist.inference.tables.published import systematic
from dphist.inference.tables.residuals import Axes
from dphist.memory import available_memory
from dphist.model.domain import Domain
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.release.cells import DenseCells, SparseCells, TableCells
from dphist.release.columns import (
    as_arrow,
    free,
    label_columns,
    label_rows,
    number_names,
    to_frame,
    written_out,
)
from dphist.release.contents import Contents, sum_columns

if TYPE_CHECKING:
    import pandas
    import pyarrow
    import xarray

# Beyond, the frame of labels would not fit in memory.
_MOST_RECORDS = 10**9
# Cells of a table that are asked at a time.
_BLOCK = 1 << 16
# More columns than this no tool opens.
_MOST_REPLICATES = 1000


def were_measured(release: Contents, tables: Sequence[Axes]) -> list[Axes]:
    """Those tables of which a cell was measured, the one in the middle."""
    if not tables:
        return []
    shape = release.domain.shape
    bounded = np.array([[axis in axes for axis in range(len(shape))] for axes in tables])
    low = np.where(bounded, np.array(shape) // 2, 0)
    asked = Workload(release.domain, low, np.where(bounded, low + 1, shape))
    measured = release.cells.answers(release, asked, 0.95).measured
    return [axes for axes, so in zip(tables, measured, strict=True) if so]


def in_tables(release: Contents) -> bool:
    """Whether less was measured than all attributes together, or tables are all that is published."""
    if isinstance(release.cells, TableCells):
        return True
    every = tuple(range(len(release.domain.shape)))
    try:
        return were_measured(release, [(), every]) == [()]
    except MechanismError:
        # It is not here, so its errors are not known.
        return False


def measured_tables(release: Contents, most: int | None = None) -> Iterator[list[Axes]]:
    """Say which tables were measured: the total, those of one attribute, of two and so on, as long as there are any.

    Of as many attributes at most ``most`` tables are tried.
    """
    found = were_measured(release, [()])
    while found:
        yield found
        found = were_measured(release, list(islice(_wider(release, found), most)))


def largest_tables(release: Contents) -> list[Axes]:
    """Say which tables were measured that lie in no larger one."""
    if not in_tables(release):
        return [tuple(range(len(release.domain.shape)))]
    tables = [axes for found in measured_tables(release) for axes in found]
    inside = {axes[:place] + axes[place + 1 :] for axes in tables for place in range(len(axes))}
    return [axes for axes in tables if axes not in inside]


def with_totals(tables: Sequence[Axes]) -> list[Axes]:
    """Tables and all smaller ones inside them, the total first."""
    found = {
        axes for table in tables for order in range(len(table) + 1) for axes in combinations(table, order)
    }
    return sorted(found, key=lambda axes: (len(axes), axes))


def below_each_other(domain: Domain, tables: Sequence[Axes]) -> TableCells:
    """Tables whose cells are not known yet, in the order of their rows."""
    shapes = {axes: [domain.shape[axis] for axis in axes] for axes in tables}
    return TableCells(domain, {axes: np.broadcast_to(np.nan, shape) for axes, shape in shapes.items()})


def table_columns(release: Contents, cells: TableCells, confidence: float) -> dict[str, pyarrow.Array]:
    """Ask for tables, one below the other: which one a row is of, labels, numbers, and whether they were measured."""
    import pyarrow as pa

    size, parts = int(cells.starts[-1]), []
    for begin in range(0, size, _BLOCK):
        asked = cells.as_questions(release.domain, begin, min(begin + _BLOCK, size))
        parts.append(release.cells.answers(release, asked, confidence))
    value, low, high, measured = (
        np.concatenate([getattr(part, side) for part in parts])
        for side in ("value", "low", "high", "measured")
    )
    columns = cells.label_rows(label_columns(release.domain), np.arange(size))
    names = number_names(release.domain)
    for name, numbers in (("estimate", value), ("low", low), ("high", high)):
        columns[names[name]] = as_arrow(numbers + 0.0, missing=np.isnan(numbers))
    bits = pa.py_buffer(np.packbits(measured, bitorder="little"))
    columns[free("measured", set(columns))] = pa.Array.from_buffers(pa.bool_(), measured.size, [None, bits])
    for name, totals in sum_columns(release, set(columns), (cells, value)).items():
        columns[name] = as_arrow(totals)
    return columns


def _wider(release: Contents, tables: Sequence[Axes]) -> Iterator[Axes]:
    """Tables of one attribute more that may have been measured: all that lies inside them was."""
    known, attributes = set(tables), len(release.domain.shape)
    published = release.cells.tables if isinstance(release.cells, TableCells) else None
    for axes in tables:
        for more in range(axes[-1] + 1 if axes else 0, attributes):
            wider = (*axes, more)
            if (published is None or wider in published) and all(
                wider[:place] + wider[place + 1 :] in known for place in range(len(axes))
            ):
                yield wider


def measured_rows(release: Tables, confidence: float = 0.95) -> pyarrow.Table:
    """Give what was measured: a row per cell where that is all attributes together, else tables with their totals."""
    import pyarrow as pa

    if not in_tables(release):
        return release.to_arrow(confidence=confidence)
    cells = below_each_other(release.domain, with_totals(largest_tables(release)))
    return pa.table(table_columns(release, cells, confidence))


def public_seed(release: Contents) -> bytes:
    """What a release's replicates are drawn by: a hash of its estimates, which everybody who has it can work out."""
    return blake2b((release.cells.numbers.astype("<f8") + 0.0).tobytes(), digest_size=16).digest()


def each_replicate(
    release: Contents, count: int, tables: Sequence[Axes] | None = None
) -> Iterator[NDArray[np.float64]]:
    """Draw the whole table from a release's model, again and again."""
    # Loaded here: it knows every kind of model.
    from dphist.inference.replicates import replicate
    from dphist.kernels.hashing import Normals

    wanted = operator.index(count) if hasattr(count, "__index__") and not isinstance(count, bool) else 0
    if not 1 <= wanted <= _MOST_REPLICATES:
        raise QueryError(f"replicates: a whole number from 1 to {_MOST_REPLICATES:,}; 80 are enough for most")
    if isinstance(release.cells, TableCells):
        tables = tables or release.cells.order
    if isinstance(release.cells, SparseCells):
        noise = IndependentNoise(NoiseLaw("laplace", release.cells.scale))
        estimate = Estimate(release.cells.values.astype(np.float64), noise)
    else:
        estimate = release._estimate
    draw, seed = replicate(estimate, tables, release.domain.shape), public_seed(release)
    for number in range(wanted):
        yield draw(Normals(seed, number))


@explained
class Tables(Contents):
    """The part of a `Release` that hands its cells to other tools."""

    def bounds(self, *, confidence: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the interval of every published cell by itself: what the file's columns ``low`` and ``high`` hold.

        Args:
            confidence: How sure each interval is to hold the true count.

        Returns:
            Lower and upper ends, in the order of the cells; what the measured tables allow where a cell was not
            measured, NaN where nothing can be said.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
            >>> low, high = release.bounds()
            >>> bool((low <= high).all())
            True
        """
        confidence, kept = read_confidence(confidence), self._bounds
        # A release is asked again and again, and never changes.
        if confidence not in kept:
            kept.clear()
            kept[confidence] = self._cell_bounds(0, int(self.cells.numbers.size), confidence)
            for ends in kept[confidence]:
                # Whoever gets them shares them with whoever asks next.
                ends.setflags(write=False)
        return kept[confidence]

    def replicates(self, count: int = 80) -> NDArray[np.float64]:
        """Draw the whole table from the release's model, by a public seed: everybody gets the same draws.

        The expected squared error of any statistic of the published cells is the mean of its squared distance: from
        its value for a draw to its value for what is published. So a share, a median or a slope has an interval, too.

        Args:
            count: How many draws.

        Returns:
            A draw each: in the shape of the cells, or in the order of the file's rows where it does not hold all cells.
            Cells that were not measured together are guesses in it; only sums of them that were measured have errors.

        Raises:
            QueryError: if that is no number of draws.
            TooLargeError: if they do not fit in memory.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 500)), epsilon=1, mechanism="laplace")
            >>> share = release.counts[:18].sum() / release.counts.sum()
            >>> off = [draw[:18].sum() / draw.sum() - share for draw in release.replicates(80)]
            >>> 0 < float(np.sqrt(np.mean(np.square(off)))) < 0.01
            True
        """
        rows = int(self.cells.numbers.size)
        if isinstance(count, int) and count * rows * 8 > available_memory() // 2:
            raise TooLargeError(
                f"replicates: {count:,} draws of {rows:,} rows need {count * rows * 8 / 1e9:.1f} GB of memory; ask for "
                "fewer, or write them to a Parquet file: dphist export --replicates keeps one at a time"
            )
        draws = np.stack(list(each_replicate(self, count)))
        return draws.reshape(-1, *self.domain.shape) if self.cells.form == DenseCells.form else draws

    def to_arrow(self, *, confidence: float | None = 0.95) -> pyarrow.Table:
        """Give the columns of the saved file: typed labels, ``estimate``, ``low`` and ``high``.

        Args:
            confidence: How sure each interval is to hold the true count; None leaves the intervals out.

        Returns:
            A row per published cell.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("income", edges=[0, 10_000, 25_000])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
            >>> release.to_arrow().column_names
            ['income', 'income_low', 'income_high', 'estimate', 'low', 'high']
        """
        import pyarrow as pa

        return pa.table(self._columns(confidence))

    def _columns(self, confidence: float | None) -> dict[str, pyarrow.Array]:
        numbers, names = self.cells.numbers, number_names(self.domain)
        columns = self.cells.label_rows(label_columns(self.domain), np.arange(numbers.size))
        if not isinstance(self.cells, TableCells):
            columns = written_out(columns)
        columns[names["estimate"]] = as_arrow(numbers)
        if confidence is not None:
            for name, ends in zip(("low", "high"), self.bounds(confidence=confidence), strict=True):
                columns[names[name]] = as_arrow(ends, missing=np.isnan(ends))
        for name, totals in sum_columns(self, {*columns, *names.values()}).items():
            columns[name] = as_arrow(totals)
        return columns

    def to_pandas(self, *, confidence: float | None = 0.95) -> pandas.DataFrame:
        """Give a row per published cell, with the columns of the saved file (needs pandas).

        Args:
            confidence: How sure each interval is to hold the true count; None leaves the intervals out.

        Returns:
            Labels as numbers, days or texts, ``estimate``, and ``low`` and ``high``, which are NaN where nothing
            can be said.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(18, 20))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
            >>> list(release.to_pandas().columns), release.to_pandas()["age"].tolist()
            (['age', 'estimate', 'low', 'high'], [18, 19])
        """
        return to_frame(self._columns(confidence))

    def to_xarray(self, *, confidence: float | None = 0.95) -> xarray.DataArray:
        """Give a labelled array, an axis per attribute (needs xarray).

        Args:
            confidence: How sure each interval is to hold the true count; None leaves the intervals out.

        Returns:
            The counts with each attribute's labels as coordinates, numbers and days as such; what more is known of the
            labels (bounds of bins, levels) and the intervals' ends ``low`` and ``high`` are coordinates, too.

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

        counts, names = self.counts, self.domain.names
        coordinates: dict[str, Any] = {}
        for column in label_columns(self.domain):
            values = to_frame({column.name: column.every()})[column.name].to_numpy()
            # An axis of texts is one of objects: numpy would pad them all to the longest.
            coordinates[column.name] = (names[column.axis], values)
        if confidence is not None and self.cells.form == "dense":
            for name, ends in zip(("low", "high"), self.bounds(confidence=confidence), strict=True):
                coordinates[free(name, set(coordinates))] = (names, ends.reshape(counts.shape))
        return xr.DataArray(counts, coords=coordinates, dims=list(names), name="estimate")

    def records(self, count: int | None = None, *, seed: int = 0) -> pandas.DataFrame:
        """Make synthetic records that follow the release: each cell within one record of its share.

        Made from the published counts alone, so as private as they are; the seed is public and only decides roundings.

        Args:
            count: How many; the released total by default.
            seed: A public number: another one gives other roundings.

        Returns:
            A data frame with a row per record and the label columns of the saved file: numbers, days, texts.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([50, 90])), epsilon=1, mechanism="laplace")
            >>> len(release.records(10))
            10
        """
        need("pandas", "frames")

        if isinstance(self.cells, TableCells):
            places = self.cells.codes(self, count, seed)
        else:
            flat = np.maximum(self.cells.numbers.astype(np.float64, copy=False), 0.0)
            seed = operator.index(seed)
            wanted = max(0, round(float(flat.sum()))) if count is None else operator.index(count)
            if not 0 <= wanted <= _MOST_RECORDS:
                raise QueryError(f"count must lie between 0 and {_MOST_RECORDS:,}; make more in several goes")
            places = self.cells.places(systematic(flat, wanted, seed))
        return to_frame(written_out(label_rows(label_columns(self.domain), places)))
