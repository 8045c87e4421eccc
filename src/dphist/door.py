"""The front door: where histogram, ledger, mechanism and release meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from dphist.domain import Domain
from dphist.errors import InputError, MechanismError
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse, show
from dphist.private.exact import Number, positive
from dphist.private.gate import open_gate
from dphist.private.noise import Noise
from dphist.release.release import Guarantee, Release
from dphist.sources import count
from dphist.unit import Unit
from dphist.workload import Workload

if TYPE_CHECKING:
    from dphist.histogram import Histogram
    from dphist.private.ledger import Ledger

DEFAULT_MECHANISM = "laplace"


def publish(
    source: Histogram | Any,
    domain: Domain | None = None,
    epsilon: Number = 1,
    mechanism: Mechanism | str = DEFAULT_MECHANISM,
    *,
    unit: Unit | None = None,
    workload: Workload | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
) -> Release:
    """Turn records into one private release.

    ``source`` is a path or glob, a data frame, an Ibis table or a `Histogram`. The budget is reserved in the ledger,
    durably, right before the first noise is drawn: a crash after that leaves it spent, never the other way round, and
    what is refused before (a wrong column, a mechanism that does not fit) spends nothing.
    """
    spend = positive(epsilon, "epsilon")
    recipe = parse(mechanism) if isinstance(mechanism, str) else mechanism
    if not isinstance(recipe, Mechanism):
        raise MechanismError("mechanism must be a mechanism or its name; `dphist mechanisms` lists them")
    protected = unit or Unit()
    if (ledger is None) != (dataset is None):
        raise InputError("ledger and dataset belong together: give both or neither")
    if ledger is None or dataset is None:
        return _publish(source, domain, spend, recipe, protected, workload)
    from dphist.private.ledger import Ledger

    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    try:
        book.check(dataset, spend)
        return _publish(source, domain, spend, recipe, protected, workload, (book, dataset))
    finally:
        if book is not ledger:
            book.close()


def _publish(
    source: Any,
    domain: Domain | None,
    epsilon: Fraction,
    mechanism: Mechanism,
    unit: Unit,
    workload: Workload | None,
    account: tuple[Ledger, str] | None = None,
) -> Release:
    histogram = count(source, domain, unit)
    if workload is not None and workload.domain != histogram.domain:
        raise InputError("workload is over another domain than the records; build it from the same domain")
    if account is None:
        return _release(histogram, epsilon, mechanism, unit, workload)
    book, dataset = account
    paid: list[int] = []

    def pay() -> None:
        reservation = book.reserve(dataset, epsilon, purpose=show(mechanism), unit=unit.describe())
        reservation.open()
        paid.append(reservation.id)

    release = _release(histogram, epsilon, mechanism, unit, workload, pay=pay)
    receipt = replace(release, receipt=(dataset, paid[0])) if paid else release
    receipt.__dict__["_estimate"] = release.__dict__["_estimate"]
    return receipt


def _release(
    histogram: Histogram,
    epsilon: Fraction,
    mechanism: Mechanism,
    unit: Unit,
    workload: Workload | None,
    noise: Noise | None = None,
    pay: Callable[[], None] | None = None,
) -> Release:
    right, transcript = open_gate(histogram, epsilon, unit, workload=workload, noise=noise, pay=pay)
    estimate = mechanism.estimate(right)
    counts = estimate.counts.reshape(histogram.domain.shape)
    counts.setflags(write=False)
    release = Release(
        histogram.domain,
        counts,
        Guarantee(epsilon, unit),
        _explained(mechanism, estimate.note),
        transcript,
        note=estimate.note,
        workload=workload,
        test=noise is not None and noise.keystream.test,
    )
    # The estimate is a function of the transcript; keep it rather than replay it for the first interval.
    release.__dict__["_estimate"] = estimate
    return release


def _explained(mechanism: Mechanism, note: str) -> Mechanism:
    """Let a mechanism that chooses by itself carry its reason into the release."""
    if getattr(mechanism, "why", None) != "":
        return mechanism
    value: Any = mechanism
    explained: Mechanism = replace(value, why=note)
    return explained
