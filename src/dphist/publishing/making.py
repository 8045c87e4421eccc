"""Records that are at hand into a release: a gate is opened, a mechanism asks, and its estimate is published."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dphist.mechanisms.protocol import made_by, with_reason
from dphist.model.budget import Budget
from dphist.model.coded import Countable
from dphist.model.histogram import Histogram
from dphist.model.measure import Sums
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Noise
from dphist.release.cells import cells_of
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release


def release_of(
    data: Histogram | Sums | Countable,
    budget: Budget | Fraction,
    mechanism: Any,
    unit: Unit,
    workload: Workload | None = None,
    noise: Noise | None = None,
    pay: Callable[[], None] | None = None,
) -> Release:
    """Let a mechanism use the one right to ask: about cells, or about records, whose domain is never written out."""
    right, transcript = open_gate(data, budget, unit, workload=workload, noise=noise, pay=pay)
    estimate = (mechanism.estimate if isinstance(data, Histogram | Sums) else mechanism.estimate_tables)(
        right
    )
    return Release(
        data.domain,
        cells_of(data.domain, estimate),
        Guarantee(budget, unit),
        with_reason(made_by(mechanism, estimate), estimate.note),
        transcript,
        note=estimate.note,
        workload=workload,
        test=noise is not None and noise.keystream.test,
        # Kept rather than replayed for the first interval.
        known=estimate,
    )
