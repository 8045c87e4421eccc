"""The front door: where histogram, ledger, mechanism and release meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from dphist.arguments import explained
from dphist.errors import InputError, MechanismError
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.options import fitted, parse, show
from dphist.mechanisms.protocol import Mechanism, bare, goes_wide
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.model.about import About
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, check_measures
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Noise
from dphist.private.sparse import Occupied
from dphist.publishing.account import (
    account,
    allowed_share,
    counts_rho,
    remind_of,
    remind_of_bounds,
    remind_of_edges,
    watched,
)
from dphist.publishing.making import begin_pieces, check_room, empty, preflight, release_of
from dphist.release.cells import DenseCells, SparseCells
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.sources import count
from dphist.sources.count import occupied_cells
from dphist.sources.engine import ALLOWED
from dphist.tracebacks import closed

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger

DEFAULT_MECHANISM = "auto"


@closed
@explained
def publish(
    source: Histogram | Any,
    domain: Domain | None = None,
    epsilon: Number | None = None,
    mechanism: Mechanism | str = DEFAULT_MECHANISM,
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    unit: Unit | str | Mapping[str, Any] | None = None,
    workload: Workload | str | Mapping[str, Any] | None = None,
    partition_by: str | Sequence[str] | None = None,
    measures: Sequence[Measure] = (),
    shares: Mapping[str, Number] | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    about: About | Mapping[str, Any] | None = None,
    workers: int | None = None,
    allow_dropped: float = ALLOWED,
    unattended: bool = False,
) -> Release:
    """Turn records into one private release.

    ``source`` is a path or glob, a data frame, an Ibis table or a `Histogram`. The budget is reserved in the ledger,
    durably, right before the first noise is drawn: a crash after that leaves it spent, never the other way round, and
    what is refused before (a wrong column, a mechanism that does not fit) spends nothing.

    ``partition_by`` names public attributes: the mechanism runs once for each of their values, each time with the
    whole budget, on all cores (``workers``).

    Args:
        source: A path or glob, a data frame, an Ibis table or a `Histogram`.
        domain: What is counted: public, declared before any record is read. A `Histogram` brings its own.
        epsilon: The privacy loss to spend: a number, a text such as ``"1/3"`` or a `Fraction`. There is no default.
            With ``delta`` it is the ε of (ε, δ)-differential privacy.
        mechanism: A mechanism or its name, with options if you like: ``"tree(fanout=4)"``.
        rho: The loss in the other currency, the ρ of zero-concentrated differential privacy: instead of ``epsilon``.
        delta: The δ that goes with ``epsilon``; the pair buys the largest ρ that implies it. Where no ledger counts ρ,
            ``auto`` keeps it by pure ε instead if that has the smaller forecast; the guarantee says which.
        unit: Who is protected; one row, added or removed by default. A `Unit`, or what `Unit.parse` reads:
            ``"rows=5, id=user"``.
        workload: What will be asked, where that is known: the mechanism serves it best. A `Workload`, or what
            `Workload.parse` reads: ``"cells"``, ``"prefixes"``, ``"ranges"``, ``"marginals:2"`` and the like.
        partition_by: Public attributes; the mechanism runs for each of their values.
        measures: Numeric columns to be added up in every cell beside the counts, each between public bounds.
        shares: What the counts (``count``) and each measure get of the budget; two fifths and three by default.
        ledger: A `Ledger`, or the path or URL of one, to spend from.
        dataset: Which budget of the ledger.
        about: What readers of the file should know, in your words: texts by name, as `dphist.release.About` has them,
            such as ``licence``. The ledger keeps ``purpose``, too; ``created`` is today by default.
        workers: How many processes run parts; every core by default.
        allow_dropped: Which share of the rows may be left out, for want of a cell or as more than the unit keeps of a
            person, or lie in a cell for everything else. Where there are more, or no rows at all, `DroppedRows` stops
            before anything is paid: a fact about the records that only their holder may see.
            Where others see whether a pipeline succeeds, allow all of them: 1.
        unattended: No reminders, where something else keeps the account.

    Returns:
        The release: counts, answers with intervals, a transcript that verifies.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon="1/2", mechanism="laplace")
        >>> release.counts.shape, release.epsilon
        ((100, 2), Fraction(1, 2))
        >>> dphist.publish(histogram, rho="1/100", mechanism="gaussian").guarantee.describe()
        '0.01-zCDP (zero-concentrated differential privacy) for one row, which may be added or removed'
    """
    unknown = domain.undeclared if isinstance(domain, Domain) and not isinstance(source, Histogram) else None
    share = allowed_share(allow_dropped)
    said = About(created=datetime.now(UTC).date().isoformat()).with_more(about)
    if domain is not None and unknown is not None:
        if workload is not None or partition_by is not None or measures or shares is not None:
            raise InputError("discover: no workload, measures or partitions while the names are not known")
        if not unattended:
            remind_of(Budget.of(epsilon, rho=rho), kept=ledger is not None, delta=delta)
        # Loaded here, as tables and parts are below: few releases need it, and all would wait.
        from dphist.publishing.discovering import publish_discovered

        return publish_discovered(
            source,
            domain,
            unknown,
            epsilon=epsilon,
            rho=rho,
            delta=delta,
            mechanism=mechanism,
            unit=unit,
            ledger=ledger,
            dataset=dataset,
            about=said,
            allowed=share,
        )
    budget = Budget.of(epsilon, rho=rho, delta=delta)
    # Whoever hands over the mechanism of an older release wants the same recipe, not what was chosen then.
    recipe = bare(fitted(parse(mechanism) if isinstance(mechanism, str) else mechanism))
    if domain is not None and not isinstance(domain, Domain):
        raise InputError(f"domain: expected a dphist.Domain, not a {type(domain).__name__}")
    protected = Unit.parse(unit)
    cells = source.domain if isinstance(source, Histogram) else domain
    asked = None if workload is None or cells is None else Workload.parse(cells, workload)
    if partition_by is not None:
        from dphist.publishing.parts import names

        by = names(partition_by)
    else:
        by = ()
    if by:
        if isinstance(recipe, SparseLaplace):
            raise MechanismError("partition_by: sparselaplace needs no partitions; leave partition_by out")
        recipe = ByPart(by=by, inner=recipe)
    added = check_measures(measures, protected, domain)
    if shares is not None and not added:
        raise InputError("shares: they divide the budget between counts and measures; name measures too")
    if budget.epsilon is not None and cells is not None and not counts_rho(ledger, dataset):
        # Loaded here, and sums below: it knows all mechanisms that there are, and most releases need one.
        from dphist.mechanisms.choosing.currency import settle

        # The ledger is charged what is spent, so the choice is made before it is asked.
        budget = settle(recipe, budget, cells, protected, asked, Fraction(1, 1 + len(added)))
    purpose = " ".join(said.purpose.split()) or show(recipe)
    if not unattended:
        remind_of(budget, kept=ledger is not None or isinstance(source, Histogram))
        remind_of_bounds(source, domain)
        if domain is not None:
            remind_of_edges(domain)
    with account(ledger, dataset, budget=budget, unit=protected, purpose=purpose) as payer:
        source = watched(source, payer, share, domain, protected, [each.source for each in added])
        if added:
            from dphist.publishing.measures import publish_measured

            release = publish_measured(
                source, domain, budget, recipe, protected, asked, added, shares, payer.pay
            )
        else:
            release = _publish(source, domain, budget, recipe, protected, asked, workers, payer.pay)
        return payer.receipted(release).with_about(said)


def _publish(
    source: Any,
    domain: Domain | None,
    budget: Budget,
    mechanism: Mechanism,
    unit: Unit,
    workload: Workload | None,
    workers: int | None,
    pay: Callable[[], None],
) -> Release:
    if isinstance(mechanism, SparseLaplace):
        return _sparse(source, domain, budget, mechanism, unit, pay)
    if goes_wide(mechanism, cells := source.domain if isinstance(source, Histogram) else domain, workload):
        # Loaded here: records are read as codes, and few releases need that.
        from dphist.sources.coded import coded

        records = coded(source, domain, unit)
        nobody = CodedColumns.nobody(records.domain)
        preflight(budget, unit, partial(release_of, nobody, budget, mechanism, unit, workload))
        return release_of(records, budget, mechanism, unit, workload, pay=pay)
    if cells is not None:
        check_room(mechanism, cells)
    histogram = count(source, domain, unit)
    nothing = empty(histogram.domain)
    preflight(budget, unit, partial(release_of, nothing, budget, mechanism, unit, workload))
    begin_pieces(mechanism, nothing, budget, unit, workload)
    if not isinstance(mechanism, ByPart) or not mechanism.by:
        return release_of(histogram, budget, mechanism, unit, workload, pay=pay)
    from dphist.publishing.parts import run_parts

    counts, transcript, mechanism = run_parts(
        histogram, mechanism, budget, unit, workload, pay=pay, workers=workers
    )
    counts.setflags(write=False)
    return Release(
        histogram.domain,
        DenseCells(counts),
        Guarantee(budget, unit),
        mechanism,
        transcript,
        workload=workload,
    )


def _sparse(
    source: Any,
    domain: Domain | None,
    budget: Budget | Fraction,
    mechanism: SparseLaplace,
    unit: Unit,
    pay: Callable[[], None],
    noise: Noise | None = None,
) -> Release:
    """Publish the cells above a threshold; the domain is never enumerated."""
    domain, cells, counts = occupied_cells(source, domain, unit)
    nobody = Occupied.of(domain, cells[:0], counts[:0])
    preflight(
        budget,
        unit,
        lambda dry: mechanism.measure(open_gate(nobody, budget, unit, noise=dry)[0]),
    )
    right, transcript = open_gate(Occupied.of(domain, cells, counts), budget, unit, noise=noise, pay=pay)
    pairs = mechanism.measure(right).values
    guarantee = Guarantee(budget, unit)
    return Release(
        domain,
        SparseCells.of(domain, pairs, guarantee, mechanism),
        guarantee,
        mechanism,
        transcript,
        test=noise is not None and noise.keystream.test,
    )
