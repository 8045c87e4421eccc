"""What a release answers: numbers, the intervals they lie in, and how these were obtained."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphist.extras import need
from dphist.inference.estimate import How, Interval, Words
from dphist.inference.tables.frechet import BOUNDS
from dphist.model.domain import Domain
from dphist.release.columns import as_arrow, free, label_columns, label_rows, to_frame, written_out

if TYPE_CHECKING:
    import pandas

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

NOT_MEASURED = "not measured"
PROVEN = Words(
    "guaranteed: holds with at least {percent} % probability, whatever the data",
    "a theorem for any data and a question fixed before the release was made (docs/trust/intervals.md)",
)

_PROVEN_BOUNDS = Words(
    f"{BOUNDS.short}; guaranteed, whatever the data", f"{BOUNDS.details}; {PROVEN.details}"
)


def together(words: Words) -> Words:
    """The same words for intervals that hold all at once."""
    return Words(f"{words.short}, all questions at once", words.details)


def bound(value: float) -> float | None:
    """An interval's end as JSON and pages have it: None, never "not a number", where there is none."""
    return None if math.isnan(value) else float(value)


def interval_words(low: float | None, high: float | None, *, guess: bool = False) -> str:
    """An interval as a person reads it: ``9 to 15``, or ``not measured``, with its bounds if it has any."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return NOT_MEASURED
    if math.isinf(low) and math.isinf(high):
        return "not known"
    # Of counts the ends are mostly whole.
    places = 0 if low == round(low) and high == round(high) else decimals(low, high)
    ends = f"{low:,.{places}f} to {high:,.{places}f}"
    return f"{NOT_MEASURED}; bounds {ends}" if guess else ends


def decimals(low: float, high: float) -> int:
    """How many decimals tell the ends of an interval apart: one for counts, more for means in narrow ones."""
    width = high - low
    return min(12, 1 - math.floor(math.log10(width))) if 0 < width < 1 else 1


def spoken(words: Words, confidence: float) -> tuple[str, str]:
    """The plain sentence for this confidence, and the details."""
    return words.short.format(percent=percent(confidence)), words.details


def percent(confidence: float) -> str:
    """A confidence in percent, with all the digits it was asked with: 99.5, not 100."""
    return f"{100 * float(confidence):.12g}"


@dataclass(frozen=True)
class Answer:
    """One answer with its interval.

    Args:
        value: The estimate.
        low: The interval's lower end; not a number where nothing can be said.
        high: The interval's upper end; likewise.
        confidence: How sure the interval is to hold the true count.
        method: How the interval was obtained, in a plain sentence: ``"exact: …"``, ``"calibrated: …"``,
            ``"guaranteed: …"``, ``"noise only: …"``, ``"bounds: …"`` or ``"not measured"``.
        details: What it stands on, and what it does not cover.
        guess: Whether the question was not measured, so that the estimate is a guess and the interval is what the
            measured tables allow.

    Example:
        >>> answer = Answer(12.0, 9.0, 15.0, 0.95, "exact: the noise in the range has a known distribution")
        >>> print(answer)
        12.0  (95% interval 9 to 15)
        >>> print(Answer(12.0, 0.0, 40.0, 0.95, "bounds: what the measured tables allow", guess=True))
        12.0  (not measured; 95% bounds 0 to 40)
        >>> print(Answer(12.0, float("nan"), float("nan"), 0.95, "not measured"))
        12.0  (not measured)
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    """How the interval was obtained, in a plain sentence."""
    details: str = ""
    """What it stands on, and what it does not cover."""
    guess: bool = False
    """Whether the question was not measured, but bounded by what was."""

    @property
    def measured(self) -> bool:
        """Whether the question was measured: if not, the estimate is a guess, between bounds if there are any."""
        return not self.guess and not math.isnan(self.low)

    def __str__(self) -> str:
        if math.isnan(self.value):
            return NOT_MEASURED
        if math.isnan(self.low):
            return f"{self.value:,.1f}  ({NOT_MEASURED})"
        value = f"{self.value:,.{decimals(self.low, self.high)}f}"
        sure = percent(self.confidence)
        kind = f"{NOT_MEASURED}; {sure}% bounds" if self.guess else f"{sure}% interval"
        return f"{value}  ({kind} {interval_words(self.low, self.high)})"


@dataclass(frozen=True, eq=False)
class Answers:
    """Many answers at once, as arrays.

    Args:
        value: The estimates.
        low: Lower ends; not a number where nothing can be said.
        high: Upper ends; likewise.
        confidence: How sure each interval is to hold its true count.
        method: How the intervals were obtained, in a plain sentence; if none was measured it says ``"bounds: …"``, or
            ``"not measured"`` where there are none.
        details: What they stand on, and what they do not cover.
        guessed: Which questions were not measured and have bounds; None if none has.
        guess: The method and the details of these.

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
    guessed: BoolArray | None = None
    guess: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        if np.size(self.value) and not bool(self.measured.any()):
            method, details = self._guess if self.guessed is not None else (NOT_MEASURED, self.details)
            object.__setattr__(self, "method", method)
            object.__setattr__(self, "details", details)

    @property
    def _guess(self) -> tuple[str, str]:
        return self.guess if any(self.guess) else (self.method, self.details)

    def __len__(self) -> int:
        return int(self.value.size)

    @property
    def measured(self) -> BoolArray:
        """Which of them were measured: all others are guesses, between bounds if there are any."""
        known = ~np.isnan(np.asarray(self.low, dtype=np.float64))
        return known if self.guessed is None else known & ~self.guessed

    def __getitem__(self, index: int) -> Answer:
        guess = self.guessed is not None and bool(self.guessed[index])
        method, details = self._guess if guess else (self.method, self.details)
        if math.isnan(self.low[index]):
            method = NOT_MEASURED
        return Answer(
            float(self.value[index]),
            float(self.low[index]),
            float(self.high[index]),
            self.confidence,
            method,
            details,
            guess,
        )


@dataclass(frozen=True, eq=False)
class Projection:
    """A marginal of a release: counts and intervals over some of its attributes.

    Args:
        domain: The attributes that were kept.
        counts: The estimates, in the domain's shape.
        low: Lower ends; not a number where nothing can be said.
        high: Upper ends; likewise.
        confidence: How sure each interval is.
        method: How the intervals were obtained, in a plain sentence.
        details: What they stand on, and what they do not cover.
        guessed: Which cells were not measured and have bounds; None if none has.

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
    guessed: BoolArray | None = None

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row per cell with labels that are numbers, days or texts.

        Returns:
            Labels, ``estimate``, ``low`` and ``high``; the last two are NaN where nothing can be said of a cell.
        """
        places = np.unravel_index(np.arange(self.domain.size), self.domain.shape)
        columns = written_out(label_rows(label_columns(self.domain), places))
        for name, values in (("estimate", self.counts), ("low", self.low), ("high", self.high)):
            columns[free(name, set(columns))] = as_arrow(values.reshape(-1))
        return to_frame(columns)


@dataclass(frozen=True, eq=False)
class Table(Answers):
    """Numbers with intervals, one for each group; ``labels`` names the groups, a column for each attribute."""

    labels: dict[str, list[str]] = field(default_factory=dict, kw_only=True)

    def only(self) -> Answer:
        """The only row of a table that tells nothing apart."""
        return self[0]

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row for each group (needs pandas)."""
        pd = need("pandas", "frames")
        columns: dict[str, object] = dict(self.labels)
        numbers = {"value": self.value, "low": self.low, "high": self.high, "measured": self.measured}
        for name, values in numbers.items():
            columns[free(name, set(columns))] = values
        made: pandas.DataFrame = pd.DataFrame(columns)
        return made


def answers_with(
    value: FloatArray,
    found: Interval,
    confidence: float,
    words: Words,
    how: How,
) -> Answers:
    """Answers with the intervals that were found for them, and the words for intervals of that kind."""
    said, guess = (PROVEN, _PROVEN_BOUNDS) if how.get("guaranteed") else (words, BOUNDS)
    if how.get("simultaneous"):
        said, guess = together(said), together(guess)
    method, details = spoken(said, confidence)
    of_guesses = spoken(guess, confidence)
    return Answers(value, found.low, found.high, confidence, method, details, found.guessed, of_guesses)
