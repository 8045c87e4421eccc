"""Adding to a release: further tables of the same records, paid for and fitted together with what was published."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.inference.tables.published import with_cube
from dphist.mechanisms.added import Added
from dphist.mechanisms.protocol import TableMechanism, goes_wide
from dphist.mechanisms.wide.plan import wanted_tables
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, Countable
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.transcript import Transcript
from dphist.model.workload import Workload
from dphist.private.gate import open_gate, open_replay
from dphist.private.noise import Keystream, Noise
from dphist.publishing.account import account, allowed_share, paid_by, remind_of, watched
from dphist.publishing.making import preflight
from dphist.release.cells import TableCells, cells_of
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.sources.coded import coded
from dphist.sources.engine import ALLOWED
from dphist.tracebacks import closed

if TYPE_CHECKING:
    from dphist.inference.tables.residuals import Axes
    from dphist.private.ledger import Ledger


@closed
@explained
def add_tables(
    release: Release,
    source: Any,
    workload: Workload | str,
    epsilon: Number | None = None,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    allow_dropped: float = ALLOWED,
    unattended: bool = False,
    noise: Noise | None = None,
) -> Release:
    """Measure further tables of the records that a release is about, and publish all of them together.

    The new release holds the tables of the old one and the further ones, by least squares over all that was ever
    measured: what is asked again is known better. Its guarantee is what both cost together, its transcript holds both,
    and `Release.verify` replays both. Publish it instead of the old one.

    Private by composition: both questions are about the same people, so their costs add up; the records must be those
    of the same population, and the unit is the old release's. The ledger pays for the further tables alone.

    Args:
        release: What was published before, as tables of few attributes.
        source: The same records, as `publish` reads them; a `Histogram` of them, too.
        workload: The further tables: ``"marginals:age,region;sex,income"``, ``"marginals:2"``, or a `Workload` of them.
        epsilon: What they may cost; in the currency of the release.
        rho: The cost in the other currency: where the release was paid for in ρ, or by ε with δ.
        delta: The δ that goes with ``epsilon``; the pair buys the largest ρ that implies it.
        ledger: Where the budget is kept that paid for the release, if one did.
        dataset: Which budget; the one that paid before, of the same ledger.
        allow_dropped: Which share of the rows may be left out, as in `publish`.
        unattended: No reminders, as in `publish`.
        noise: For tests: leave it out.

    Returns:
        A release of the old and the new tables.

    Example:
        >>> import dphist, pandas as pd
        >>> from dphist.publishing.adding import add_tables
        >>> names = [f"q{i}" for i in range(20)]
        >>> domain = dphist.Domain([dphist.Nominal(name, ["no", "yes"]) for name in names])
        >>> rows = pd.DataFrame({name: ["yes", "no"] * 500 for name in names})
        >>> release = dphist.publish(rows, domain, epsilon=1, mechanism="residuals", workload="marginals:q0,q1")
        >>> more = add_tables(release, rows, "marginals:q1,q2", epsilon="1/2")
        >>> more.epsilon, len(more.cells.tables)
        (Fraction(3, 2), 6)
        >>> more.verify()
    """
    if not isinstance(release, Release) or not isinstance(release.cells, TableCells):
        raise InputError("release: tables can be added to a release of tables of few attributes only")
    chosen = getattr(release.mechanism, "chosen", None) or release.mechanism
    if not isinstance(chosen, TableMechanism):
        raise InputError(
            "release: its tables were measured one by one (marginals), and none can be added; publish with the "
            "mechanism residuals or mixture"
        )
    budget = Budget.of(epsilon, rho=rho, delta=delta)
    if budget.currency != release.budget.currency:
        wanted = "epsilon alone" if release.budget.currency == "epsilon" else "rho, or epsilon with delta"
        raise InputError(f"this release was paid for in another currency: give {wanted}")
    if release.receipt is not None and dataset != release.receipt.dataset:
        raise InputError(
            f"dataset: this release was paid from the budget {release.receipt.dataset!r}, and so must be what is added"
        )
    unit = release.guarantee.unit
    tables = wanted_tables(release.domain.shape, _tables(Workload.parse(release.domain, workload)))
    share = allowed_share(allow_dropped)
    if not unattended:
        remind_of(budget, kept=ledger is not None or isinstance(source, Histogram))
    with account(ledger, dataset, budget=budget, unit=unit, purpose="further tables") as payer:
        source = watched(source, payer, share, release.domain, unit)
        if release.receipt is not None and payer.ledger is not None:
            paid_by(payer.ledger, release.receipt)
        nobody = CodedColumns.nobody(release.domain)
        rehearsed = partial(added_release, release, nobody, tables, budget)
        preflight(budget, unit, rehearsed)
        # What measuring, joining or replaying refuses, it refuses on nobody, before anything is read or paid.
        rehearsed(Noise(Keystream.for_tests(0)))
        records = coded(source, release.domain, unit)
        return payer.receipted(added_release(release, records, tables, budget, pay=payer.pay, noise=noise))


def added_release(
    release: Release,
    records: Countable,
    tables: tuple[Axes, ...],
    budget: Budget,
    noise: Noise | None = None,
    pay: Any = None,
) -> Release:
    """Measure, join both transcripts, and let a replay of the joined one make the release."""
    unit = release.guarantee.unit
    whole = Budget(release.budget.amount + budget.amount, budget.currency)
    mechanism = Added(
        first=release.mechanism,
        tables=tables,
        share=budget.amount / whole.amount,
        paid=None if release.receipt is None else release.receipt.payment,
    )
    right, asked = open_gate(records, budget, unit, workload=release.workload, noise=noise, pay=pay)
    mechanism.measure(right, tables)
    # As if one right had been split in two: the same questions at the same prices, one branch for each.
    transcript = Transcript(
        [
            replace(entry, path=entry.path.replace("root", f"root/s{branch}", 1))
            for branch, part in enumerate((release.transcript, asked))
            for entry in part
        ]
    )
    both, replay = open_replay(release.domain, whole, unit, transcript, workload=release.workload)
    found = mechanism.estimate_tables(both)
    replay.finish()
    wide = goes_wide(mechanism, release.domain, release.workload)
    estimate = found if wide else with_cube(found, release.domain.shape)
    return Release(
        release.domain,
        cells_of(release.domain, estimate),
        Guarantee(whole, unit),
        mechanism,
        transcript,
        note=estimate.note,
        workload=release.workload,
        about=release.about,
        test=release.test or (noise is not None and noise.keystream.test),
        known=estimate,
    )


def _tables(workload: Workload) -> tuple[Axes, ...]:
    if workload.kind != "marginals" or workload.tables is None:
        raise InputError("workload: name the tables to add, such as 'marginals:age,sex;sex,region'")
    return workload.tables
