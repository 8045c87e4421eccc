"""What a release answers: a number, the interval it lies in, and how that interval was obtained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.extras import need
from dphist.inference.estimate import Words
from dphist.model.domain import Domain

if TYPE_CHECKING:
    import pandas

FloatArray = NDArray[np.float64]

NOT_MEASURED = "not measured"
PROVEN = Words(
    "guaranteed: holds with at least {percent} % probability, whatever the data",
    "a theorem for any data and a question fixed before the release was made (docs/trust/intervals.md)",
)


def together(words: Words) -> Words:
    """The same words for intervals that hold all at once."""
    return Words(f"{words.short}, all questions at once", words.details)


def spoken(words: Words, confidence: float) -> tuple[str, str]:
    """The plain sentence for this confidence, and the details."""
    return words.short.format(percent=f"{100 * float(confidence):g}"), words.details


@dataclass(frozen=True)
class Answer:
    """One answer with its interval.

    Args:
        value: The estimate.
        low: The interval's lower end.
        high: The interval's upper end.
        confidence: How sure the interval is to hold the true count.
        method: How the interval was obtained, in words.

    Example:
        >>> answer = Answer(12.0, 9.0, 15.0, 0.95, "noise of every cell")
        >>> print(answer)
        12.0  (95% interval 9.0 to 15.0)
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    """How the interval was obtained, in a plain sentence."""
    details: str = ""
    """What it stands on, and what it does not cover."""

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:,.1f}  (not measured)"
        return f"{self.value:,.1f}  ({self.confidence:.0%} interval {self.low:,.1f} to {self.high:,.1f})"


@dataclass(frozen=True, eq=False)
class Answers:
    """Many answers at once, as arrays.

    Args:
        value: The estimates.
        low: Lower ends.
        high: Upper ends.
        confidence: How sure each interval is to hold its true count.
        method: How the intervals were obtained, in words.
        details: More about that, where there is more to say.

    Example:
        >>> import numpy as np
        >>> value, low, high = np.array([[12.0, 3.0], [9.0, 0.0], [15.0, 6.0]])
        >>> answers = Answers(value, low, high, 0.95, "noise of every cell")
        >>> len(answers), answers[1].high
        (2, 6.0)
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    details: str = ""

    def __len__(self) -> int:
        return int(self.value.size)

    def __getitem__(self, index: int) -> Answer:
        return Answer(
            float(self.value[index]),
            float(self.low[index]),
            float(self.high[index]),
            self.confidence,
            NOT_MEASURED if math.isnan(self.low[index]) else self.method,
            self.details,
        )


@dataclass(frozen=True, eq=False)
class Projection:
    """A marginal of a release: counts and intervals over some of its attributes.

    Args:
        domain: The attributes that were kept.
        counts: The estimates, in the domain's shape.
        low: Lower ends.
        high: Upper ends.
        confidence: How sure each interval is.
        method: How the intervals were obtained.
        details: More about that, where there is more to say.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> release.project("sex").to_pandas().columns.tolist()
        ['sex', 'estimate', 'low', 'high']
    """

    domain: Domain
    counts: FloatArray
    low: FloatArray
    high: FloatArray
    confidence: float
    method: str
    details: str = ""

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row per cell with readable labels.

        Returns:
            Labels, ``estimate``, ``low`` and ``high``.
        """
        pd = need("pandas", "frames")

        columns: dict[str, Any] = label_columns(self.domain)
        numbers = {"estimate": self.counts, "low": self.low, "high": self.high}
        return pd.DataFrame({**columns, **{name: values.reshape(-1) for name, values in numbers.items()}})


def label_columns(domain: Domain) -> dict[str, NDArray[Any]]:
    """Give each attribute's label for every cell, in the order of the cells."""
    columns: dict[str, NDArray[Any]] = {}
    before, after = 1, domain.size
    for attribute in domain.attributes:
        after //= attribute.size
        labels = np.array(list(attribute.labels), dtype=object)
        columns[attribute.name] = np.tile(np.repeat(labels, after), before)
        before *= attribute.size
    return columns
