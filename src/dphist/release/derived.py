"""What people ask of a release beyond counts, reachable on the release itself; what answers is loaded when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from dphist.arguments import explained
from dphist.errors import QueryError
from dphist.extras import brought
from dphist.release.answers import Answer, Table
from dphist.release.asking import Asking, BinsKind, IntervalKind, read_request
from dphist.release.tables import Tables

if TYPE_CHECKING:
    from dphist.release.cube import Cube
    from dphist.release.sql import Rows

Where = Mapping[str, Any]


@explained
class Derived(Tables, Asking):
    """The part of a `Release` that is more than counts. Each asks released numbers only and spends nothing."""

    def _cube(self, where: Where | None) -> Cube:
        from dphist.release.cube import Cube

        if where is not None and not (
            isinstance(where, Mapping) and all(isinstance(name, str) for name in where)
        ):
            raise QueryError("where must map attributes to what is asked of them")
        return Cube(self).dice(where)

    def query(
        self,
        question: str = "",
        *,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        bins: BinsKind = "whole",
    ) -> Answer:
        """Count the records that a question selects, written as on the command line; or ask for a measure of them.

        Args:
            question: For example ``"age between 30 and 40 and sex = 'F'"``; everything if empty. With measures also
                ``"mean cost where age < 30"``, ``"sum cost"``, ``"ratio cost to hours where sex = 'F'"``.
            confidence: How sure the interval is to hold the true count.
            interval: "calibrated" or "guaranteed", as for `answer`.
            bins: "whole" or "spread", as for `answer`.

        Returns:
            The count with its interval.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 50)), epsilon=1, mechanism="laplace")
            >>> answer = release.query("age between 30 and 40")
            >>> answer.low <= answer.value <= answer.high
            True
        """
        request = read_request(question) if isinstance(question, str) else None
        if request is not None:
            if interval != "calibrated":
                raise QueryError("guaranteed intervals are known for counts alone, not for measures")
            if bins != "whole":
                raise QueryError("bins: a bin that is cut is spread for counts alone, not for measures")
            from dphist.release.cube.measures import ask

            return ask(self, request, confidence)
        return self.answer(question, confidence=confidence, interval=interval, bins=bins)

    def by(self, /, *names: str, **levels: int) -> Cube:
        """Tell attributes apart, and ask each group: ``release.by("sex").mean("age")``.

        Args:
            names: Attributes to tell apart at their cells.
            levels: Attributes to tell apart at a depth of their hierarchy: ``by(place=1)``.

        Returns:
            A view of the release as a cube: ``count``, ``sum`` and ``mean`` give a row for each group.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full((9, 2), 50)), epsilon=1, mechanism="laplace")
            >>> release.by("sex").mean("age").labels
            {'sex': ['F', 'M']}
        """
        return self._cube(None).by(*names, **levels)

    def sum(self, name: str, *, where: Where | None = None, confidence: float = 0.95) -> Answer:
        """Add a measure up over the records, or an attribute's values, where bins count as their middles.

        Args:
            name: A measure, or an ordered attribute whose cells are numbers.
            where: Which records, as for `answer`.
            confidence: How sure the interval is to hold the true sum.

        Returns:
            The sum with its interval.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 50)), epsilon=1, mechanism="laplace")
            >>> release.sum("age", where={"age": (0, 49)}).value < release.sum("age").value
            True
        """
        return self._cube(where).sum(name, confidence=confidence).only()

    def mean(self, name: str, *, where: Where | None = None, confidence: float = 0.95) -> Answer:
        """Average a measure over the records, or an attribute, where bins count as their middles.

        Args:
            name: A measure, or an ordered attribute whose cells are numbers.
            where: Which records, as for `answer`.
            confidence: How sure the interval is to hold the true mean.

        Returns:
            The mean with its interval.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> histogram = dphist.Histogram(domain, np.full((100, 2), 500))
            >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
            >>> 45 < release.mean("age", where={"sex": "F"}).value < 54
            True
        """
        return self._cube(where).mean(name, confidence=confidence).only()

    def variance(self, name: str, *, where: Where | None = None, confidence: float = 0.95) -> Answer:
        """Give the variance of a measure over the records; it must have been published with ``squares=True``.

        Args:
            name: The measure.
            where: Which records, as for `answer`.
            confidence: How sure the interval is to hold the true variance, at least.

        Returns:
            The variance with its interval.

        Example:
            >>> import dphist, pandas as pd
            >>> frame = pd.DataFrame({"sex": ["F", "M"] * 5000, "hours": [40, 38, 20, 60] * 2500})
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> hours = dphist.Measure("hours", 0, 80, squares=True)
            >>> release = dphist.publish(frame, domain, 1, measures=[hours])
            >>> release.variance("hours").value > release.std("hours").value
            True
        """
        return self._cube(where).variance(name, confidence=confidence).only()

    def std(self, name: str, *, where: Where | None = None, confidence: float = 0.95) -> Answer:
        """Give the standard deviation of a measure over the records: the root of its variance.

        Args:
            name: The measure.
            where: Which records, as for `answer`.
            confidence: How sure the interval is to hold the true deviation, at least.

        Returns:
            The deviation with its interval.

        Example:
            >>> import dphist, pandas as pd
            >>> frame = pd.DataFrame({"sex": ["F", "M"] * 5000, "hours": [40, 38, 20, 60] * 2500})
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> hours = dphist.Measure("hours", 0, 80, squares=True)
            >>> 5 < dphist.publish(frame, domain, 1, measures=[hours]).std("hours").value < 25
            True
        """
        return self._cube(where).std(name, confidence=confidence).only()

    def ratio(
        self, above: str, below: str, *, where: Where | None = None, confidence: float = 0.95
    ) -> Answer:
        """Divide the sum of one measure by that of another.

        Args:
            above: The measure of the numerator.
            below: The measure of the denominator.
            where: Which records, as for `answer`.
            confidence: How sure the interval is to hold the true ratio.

        Returns:
            The ratio with its interval; without an end (infinite) where the denominator may be zero.

        Example:
            >>> import dphist, pandas as pd
            >>> frame = pd.DataFrame({"sex": ["F", "M"] * 5000, "pay": [400, 380] * 5000, "hours": [40, 38] * 5000})
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> both = [dphist.Measure("pay", 0, 1000), dphist.Measure("hours", 0, 80)]
            >>> 9 < dphist.publish(frame, domain, 1, measures=both).ratio("pay", "hours").value < 11
            True
        """
        return self._cube(where).ratio(above, below, confidence=confidence).only()

    def quantiles(
        self,
        name: str,
        levels: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        where: Where | None = None,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> Table:
        """Give quantiles of an ordered attribute, as cells; they never cross.

        Args:
            name: The ordered attribute.
            levels: Shares between 0 and 1; the quartiles by default.
            where: Which records, as for `answer`.
            confidence: How sure each interval is.
            simultaneous: Whether all hold together.

        Returns:
            A cell for every level, with the first and the last it could be.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 500)), epsilon=1, mechanism="laplace")
            >>> str(*release.quantiles("age", [0.5]).labels["level"])
            '0.5'
        """
        cube = self._cube(where)
        return cube.quantiles(name, levels, confidence=confidence, simultaneous=simultaneous)

    def cdf(self, name: str, *, where: Where | None = None, confidence: float = 0.95) -> Table:
        """Give the share of records up to each cell of an ordered attribute; it never falls, and ends at 1.

        Args:
            name: The ordered attribute.
            where: Which records, as for `answer`.
            confidence: How sure each interval is.

        Returns:
            A share for every cell.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 50)), epsilon=1, mechanism="laplace")
            >>> float(release.cdf("age").value[-1])
            1.0
        """
        return self._cube(where).cdf(name, confidence=confidence)

    def sql(self, query: str, *, rows: int | None = None, parameters: Sequence[Any] = ()) -> Rows:
        """Run one SELECT over the table ``release``, which has the columns of the saved file.

        Args:
            query: One SELECT.
            rows: How many rows at most; all by default.
            parameters: Values for the query's ``?``.

        Returns:
            The rows and the names of their columns.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full((9, 2), 50)), epsilon=1, mechanism="laplace")
            >>> release.sql("select sex, count(*) as cells from release where age < 5 group by sex order by sex").rows
            [('F', 5), ('M', 5)]
        """
        from dphist.release.sql import select

        return select(self.to_arrow(), query, rows, parameters)

    def report(self, output: str | PathLike[str] | None = None, *, title: str | None = None) -> str:
        """Write one page about the release: figures, promise, price, accuracy (needs ``dphist[report]``).

        Args:
            output: Where the page goes, a name in .html; what was there is replaced. Not written by default.
            title: The page's heading.

        Returns:
            The page, as HTML that works offline.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([50, 90])), epsilon=1, mechanism="laplace")
            >>> release.report(title="people").startswith("<!doctype html>")
            True
        """
        page: str = brought("drawing").page(self, output, title=title)
        return page
