"""How many rows were not counted, told to everybody: noised, and paid for like any other answer.

A reader who only sees the cells cannot know that a tenth of the records had none. The true number is as private as any
count, so it is published as a release of its own, of one cell, through the gate and from the same ledger.

**Why it is private.** Let x be the number of records that have no cell in a domain, or lack a value of some measure
that the release adds up and are not counted for that. A record is one of them or is none, by itself
(`dphist.sources.engine`: a row, a line of a text file or an object, whatever the others hold). So one row more or less
moves x by at most one: one step, as for any cell, and a unit of L rows by at most L. The gate's noise for a cell then
makes the answer as private as it says, and beside the release of the other cells it composes sequentially: the ledger
adds both up. With an id, or a bound on the rows in each cell, rows are bounded among those that have a cell, and
nothing bounds how many of a person's rows have none: such units are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.errors import InputError, SourceError
from dphist.model.domain import Domain, Nominal
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, Quantity, check_measures
from dphist.model.unit import Unit
from dphist.publishing.door import publish
from dphist.release.release import Release
from dphist.sources.count import count, count_and_sum
from dphist.sources.engine import Tallied
from dphist.tracebacks import closed

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger

ROWS = Domain([Nominal("rows", ["not counted"])])


@closed
def publish_uncounted(
    source: Any,
    domain: Domain,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    unit: Unit | str | Mapping[str, Any] | None = None,
    measures: Sequence[Measure] = (),
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    unattended: bool = False,
) -> Release:
    """Publish a noised number of the rows that have no cell in a domain.

    Args:
        source: What `publish` reads; a `Tallied` source that was counted already is not read again.
        domain: What the cells are.
        epsilon: What this number may cost, beside the release of the cells.
        rho: The same in the other currency.
        delta: The δ that goes with ``epsilon``.
        unit: Who is protected; rows alone, neither an id nor cells.
        measures: What the release of the cells adds up: rows without a value are not counted there either.
        ledger: A `Ledger`, or the path or URL of one, to spend from.
        dataset: Which budget of the ledger.
        unattended: For pipelines: no reminders.

    Returns:
        A release of one cell; ``release.answer()`` is the number, with its interval.

    Example:
        >>> import dphist, pyarrow
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> release = publish_uncounted(pyarrow.table({"sex": ["F", "f", "m", "M"]}), domain, 1)
        >>> release.domain.names, release.epsilon
        (('rows',), Fraction(1, 1))
    """
    protected = Unit.parse(unit)
    if protected.id is not None or protected.cells is not None:
        raise InputError(
            "unit: with an id, or with cells and per_cell, a person may have any number of rows that are not counted, "
            "so that number cannot be published; give rows alone"
        )
    if isinstance(source, Histogram):
        raise InputError("source: a histogram does not say what was not counted in it; give the records")
    seen = source if isinstance(source, Tallied) else Tallied(source)
    added = check_measures(measures, protected, domain)
    if seen.tally.rows is None and added:
        count_and_sum(seen, domain, protected, [Quantity(measure) for measure in added])
    elif seen.tally.rows is None:
        count(seen, domain, protected)
    if seen.tally.dropped is None:
        raise SourceError(
            "source: this engine does not tell how many rows it holds; give a file, a data frame or a database table"
        )
    dropped = Histogram(ROWS, np.array([seen.tally.dropped], dtype=np.int64))
    return publish(
        dropped, epsilon=epsilon, rho=rho, delta=delta, mechanism="laplace" if rho is delta is None else "gaussian",
        unit=protected, ledger=ledger, dataset=dataset, unattended=unattended,
        about={"purpose": "rows that have no cell in the release beside it"},
    )  # fmt: skip
