"""Publishing tables of few attributes out of very many: the product of the domain is never written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dphist.mechanisms.protocol import TableMechanism, made_by, with_reason
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, Countable
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Noise
from dphist.private.records import open_records_gate
from dphist.publishing.preflight import preflight
from dphist.release.cells import cells_of
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.sources.coded import coded


def publish_wide(
    source: Any,
    domain: Domain | None,
    budget: Budget,
    mechanism: TableMechanism,
    unit: Unit,
    workload: Workload | None,
    *,
    pay: Callable[[], None] | None = None,
) -> Release:
    """Read the records as codes, and let the mechanism use the one right to ask about them."""
    records = coded(source, domain, unit)
    nobody = CodedColumns.nobody(records.domain)
    preflight(budget, unit, lambda dry: tables_release(nobody, budget, mechanism, unit, workload, noise=dry))
    return tables_release(records, budget, mechanism, unit, workload, pay=pay)


def tables_release(
    records: Countable,
    budget: Budget,
    mechanism: TableMechanism,
    unit: Unit,
    workload: Workload | None,
    *,
    pay: Callable[[], None] | None = None,
    noise: Noise | None = None,
) -> Release:
    """Make the release of records that are at hand."""
    right, transcript = open_records_gate(records, budget, unit, workload=workload, noise=noise, pay=pay)
    estimate = mechanism.estimate_tables(right)
    return Release(
        records.domain,
        cells_of(records.domain, estimate),
        Guarantee(budget, unit),
        with_reason(made_by(mechanism, estimate), estimate.note),
        transcript,
        note=estimate.note,
        workload=workload,
        test=noise is not None and noise.keystream.test,
        known=estimate,
    )
