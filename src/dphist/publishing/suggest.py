"""A schema's missing numbers, learned privately: bounds, bins, a step and rows per person, each with its price.

Nothing of the data is in a suggestion but what noisy histograms said, and these were paid for: the ledger is charged
for all of it before the first noise. Categories are not suggested: a list of the values that occur cannot be purely
ε-private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.errors import InputError, SourceError
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.domain.toml import quote, toml_tables
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import LARGEST_REACH, Measure
from dphist.model.phrases import counted
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Noise
from dphist.private.queries import Identity
from dphist.publishing.account import account, within
from dphist.publishing.bounds import Bounds, IntArray, Range, Unseen
from dphist.release.guarantee import Receipt
from dphist.sources.count import columns_of, count, rows_of_people
from dphist.sources.open import lasting
from dphist.tracebacks import closed

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger


@dataclass(frozen=True)
class Suggested:
    """One learned number or pair, what it cost and why it is as it is.

    Args:
        name: The column.
        epsilon: What it cost.
        reason: Why.
        measure: The measure that it would be; None for rows per person.
        bins: A width for bins of about that range; None for rows per person.
        rows: Rows per person; None for a column of values.

    Where nothing stood out of the noise there is neither, and ``reason`` says so.
    """

    name: str
    epsilon: Fraction
    reason: str
    measure: Measure | None = None
    bins: Fraction | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Suggestion:
    """What was learned, for you to look at and to put into a schema.

    Args:
        parts: One for each column, and one for rows per person if an id was given.
        unit: Who was protected.
        receipt: Which line of which budget paid.
    """

    parts: tuple[Suggested, ...]
    unit: Unit
    receipt: Receipt | None = None

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The columns as measures."""
        return tuple(part.measure for part in self.parts if part.measure is not None)

    @property
    def rows(self) -> int | None:
        """Rows per person, where they were learned."""
        return next((part.rows for part in self.parts if part.rows is not None), None)

    def to_toml(self) -> str:
        """The suggestion as blocks of a schema, each under the price and the reason.

        Returns:
            Text to be read, edited and put into a schema: an attribute in bins and a measure for every column.
        """
        blocks = [
            f"# Learned from the data with differential privacy, for {self.unit.describe()}.",
            "# Look at every number: you know what a column means, and this draft does not.",
            "",
        ]
        for part in self.parts:
            said = f"# {' '.join(part.name.split())}: ε = {part.epsilon}. {part.reason}"
            if part.rows is not None:
                blocks += [said, f"# unit = {{rows = {part.rows}, id = {quote(part.name)}}}", ""]
                continue
            if part.measure is None:
                blocks += [said, ""]
                continue
            blocks += [said, _attribute(part), toml_tables("measure", [part.measure.to_json()])]
        return "\n".join(blocks)


@closed
def suggest(
    source: Any,
    columns: Sequence[str],
    epsilon: Number,
    *,
    unit: Unit | str | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    noise: Noise | None = None,
) -> Suggestion:
    """Learn bounds, bins and a step for numeric columns, and rows per person, privately.

    The budget is shared evenly by the columns, and by the id if the unit has one. Bounds hold nearly all records and
    are a few times as wide as the middle 98 % of them: narrower ones clip, wider ones add noise.

    Args:
        source: A path or glob, a data frame or an Ibis table.
        columns: Numeric columns to learn the bounds of.
        epsilon: What all of it may cost; there is no default. A budget that protects others, of which this takes more
            than it spends, is charged that amount and no more: less is then spent.
        unit: Who is protected; with an id rows per person are learned, too, and at most ``rows`` rows of each person
            (one by default) are looked at for the bounds.
        ledger: A `Ledger`, or the path or URL of one, to spend from.
        dataset: Which budget of the ledger.
        noise: For tests.

    Returns:
        What was learned, each part with its price and reason.

    Raises:
        SourceError: if there are too few records for this budget to learn anything.

    Example:
        >>> import numpy as np, pandas as pd
        >>> from dphist.publishing.suggest import suggest
        >>> frame = pd.DataFrame({"hours": np.tile(np.arange(20, 60), 500)})
        >>> found = suggest(frame, ["hours"], epsilon="1/2")
        >>> bool(found.measures[0].low <= 22 and 57 <= found.measures[0].high <= 400)
        True
    """
    if isinstance(columns, str) or not columns or len(set(columns)) != len(columns):
        raise InputError("columns: name the numeric columns to learn bounds of, each once")
    protected = Unit.parse(unit)
    budget = within(ledger, dataset, Budget.of(epsilon), protected)
    whole = [*columns, *([protected.id] if protected.id else [])]
    share = budget.amount / len(whole)
    source = lasting(source)
    known = columns_of(source, columns, protected)
    for column in known:
        if column.family not in ("integer", "real", "undeclared"):
            raise SourceError(f"the column {column.name} holds {column.type}; bounds are learned for numbers")
    purpose = f"bounds of {', '.join(columns)}"
    with account(ledger, dataset, budget=budget, unit=protected, purpose=purpose) as payer:
        parts: list[Suggested] = []
        unseen: list[Unseen] = []
        if protected.id is not None:
            try:
                parts.append(_rows(source, protected, share, payer.pay, noise))
            except Unseen as error:
                unseen.append(error)
                parts.append(Suggested(protected.id, share, _nothing(error)))
        for column in known:

            def tally(edges: Sequence[float], name: str = column.name) -> IntArray:
                counted = count(source, Domain([Ordinal(name, edges=list(edges))]), protected)
                return counted.counts.reshape(-1)

            try:
                found = Bounds(tally, share, protected, payer.pay, noise).learn()
                # The type of a frame's column would tell whether anybody's value is missing or a fraction.
                whole_numbers = column.family == "integer" and not column.inferred
                parts.append(_suggested(column.name, found, share, whole=whole_numbers))
            except Unseen as error:
                # What was learned of other columns is paid for, and not thrown away for this one.
                unseen.append(error)
                parts.append(Suggested(column.name, share, _nothing(error)))
        if len(unseen) == len(parts):
            raise unseen[0]
        return Suggestion(tuple(parts), protected, payer.receipt)


def _rows(
    source: Any, unit: Unit, epsilon: Fraction, pay: Callable[[], None] | None, noise: Noise | None
) -> Suggested:
    """Rows per person: the number of people by octaves of their rows, in which one person is one step."""
    person = str(unit.id)
    rows, people = rows_of_people(source, person)
    # Rows per person are told apart by powers of two up to this one.
    edges = 2 ** np.arange(21)
    counts = np.zeros(edges.size, dtype=np.int64)
    # Up to 1, 2, 4, … rows; whoever has more than the last is counted there.
    np.add.at(counts, np.minimum(np.searchsorted(edges, rows), edges.size - 1), people)
    domain = Domain([Ordinal("rows", range(edges.size))])
    one = Unit(replace=unit.replace)
    right, _ = open_gate(Histogram(domain, counts), epsilon, one, pay=pay, noise=noise)
    noisy = right.measure(Identity())
    # Noise alone passes for people with that probability.
    bar = float(noisy.scale) * math.log(edges.size / (2 * 0.01))
    seen = np.flatnonzero(noisy.values.reshape(-1) > bar)
    if not seen.size:
        raise Unseen(
            "no number of rows a person stands out of the noise, and the epsilon is spent: there are too few people "
            "for it; give a larger epsilon, or state rows yourself"
        )
    most = int(edges[seen[-1]])
    reason = (
        f"Nobody who stands out of the noise has more than {counted(most, 'row')}; whoever has keeps that many. Fewer "
        "rows make less noise, and drop more."
    )
    return Suggested(person, epsilon, reason, rows=most)


def _nothing(error: Unseen) -> str:
    return f"Not learned: {error}."


def _suggested(name: str, found: Range, epsilon: Fraction, *, whole: bool) -> Suggested:
    """Bounds as a measure: a step that is short beside the noise, and bins of a twentieth or so."""
    low, high, step = found.low, found.high, found.grain / 100
    if whole:
        # A column of whole numbers has no use for parts of them.
        low, high = Fraction(math.floor(low)), Fraction(math.ceil(high))
        step = Fraction(max(1, math.floor(step)))
        low, high = (low // step) * step, -((-high) // step) * step
    # Bounds far from zero in short steps would not fit: what is 10^12 steps long is told apart well enough.
    while max(abs(low), abs(high)) / step > LARGEST_REACH:
        step *= 10
        low, high = (low // step) * step, -((-high) // step) * step
    reason = (
        f"Bounds found by noisy doubling (1, 2, 4, …), {found.how}, and rounded outwards. Values beyond are clipped; "
        "half of the width is what one record adds to the noise."
    )
    bins = found.grain if not whole else Fraction(max(1, math.ceil(found.grain)))
    return Suggested(name, epsilon, reason, Measure(name, low, high, step), bins)


def _attribute(part: Suggested) -> str:
    """The column as an ordered attribute in even bins."""
    measure, width = part.measure, part.bins
    if measure is None or width is None:
        return ""
    low, high = Fraction(measure.low) // width * width, -((-Fraction(measure.high)) // width) * width
    lines = ["[[attribute]]", f"name = {quote(part.name)}", 'kind = "ordinal"']
    if all(each.denominator == 1 for each in (low, high, width)):
        lines.append(f"edges = {{from = {low}, to = {high}, width = {width}}}")
    else:
        edges = [float(low + width * place) for place in range(int((high - low) / width) + 1)]
        lines.append(f"edges = [{', '.join(map(repr, edges))}]")
    return "\n".join([*lines, ""])
