"""Records that are at hand into a release, and dry runs of that: what public facts refuse is refused unpaid.

*A tiny ε.* The gate looks at a scale before it pays for the first question. A mechanism that splits its budget may ask
for more noise later, when the budget is gone. So where ε is tiny the mechanism is run once on empty counts with a
public seed: that touches no record, and asks for the same scales except where a mechanism lets answers decide its
shares.

*Pieces.* A mechanism refuses a domain that it cannot do before its first question. Of several pieces the first would
have paid by then, so every kind of piece is begun on no records, up to what would be its first payment.

*Memory.* What a mechanism takes for every cell is known (`dphist.mechanisms.registry`), so a domain that does not fit
is refused before its records are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from dphist.errors import EpsilonError, InputError, TooLargeError
from dphist.mechanisms.bypart import InPieces
from dphist.mechanisms.protocol import Mechanism, made_by, with_reason
from dphist.mechanisms.registry import memory_of
from dphist.memory import available_memory
from dphist.model.budget import Budget
from dphist.model.coded import Countable
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import Sums
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.pricing import UnitBudget
from dphist.release.cells import cells_of
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release

# No mechanism asks for noise of more than 2^53 · this, in units of its budget (tests measure them all).
_TINY = Fraction(1, 10**6)


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


def preflight(budget: Budget | Number, unit: Unit, run: Callable[[Noise], object]) -> None:
    """Refuse a budget whose noise cannot be drawn; ``run`` is the release on no records, given a noise source."""
    if UnitBudget.of(budget, unit).pure >= _TINY:
        return
    try:
        run(Noise(Keystream.for_tests(0)))
    except InputError as error:
        raise EpsilonError(
            f"{Budget.of(budget).currency}: too small to make a release that protects this unit ({error}). "
            "Nothing was spent; give more, or protect fewer rows"
        ) from None


def check_room(mechanism: Mechanism, domain: Domain, releases: int = 1) -> None:
    """Refuse what does not fit in memory before anything is counted or paid; sums are releases beside the counts."""
    inner = [(mechanism, domain)]
    if isinstance(mechanism, InPieces):
        inner = [(run, part) for run, part, _ in mechanism.kinds(domain, None)]
    # Forty bytes for every cell of a release that is made already; loading and compiling take 128 MiB.
    needed = max(part.size * memory_of(run) for run, part in inner) + releases * 40 * domain.size
    if needed > (free := available_memory() - (1 << 27)):
        axes = " × ".join(f"{a.name} {a.size:,}" for a in domain.attributes)
        raise TooLargeError(
            f"the domain has {domain.size:,} counts ({axes}); publishing them takes up to {needed:,} bytes, and "
            f"{max(free, 0):,} are free. Nothing was spent: use wider bins, fewer attributes, the mechanism laplace, "
            "which takes least, or sparselaplace, which skips empty counts"
        )


class _Begun(Exception):  # noqa: N818 -- never leaves this module
    """A mechanism has come to its first question."""


def begin_pieces(
    mechanism: Mechanism,
    nobody: Histogram | Sums,
    budget: Budget | Fraction,
    unit: Unit,
    workload: Workload | None,
) -> None:
    """Let every kind of piece of a mechanism refuse what it cannot do; no noise is drawn, and there are no records."""
    if not isinstance(mechanism, InPieces):
        return
    for inner, domain, asked in mechanism.kinds(nobody.domain, workload):
        there = Sums(domain, empty(domain).counts) if isinstance(nobody, Sums) else empty(domain)
        if isinstance(inner, InPieces):
            begin_pieces(inner, there, budget, unit, asked)
            continue
        right, _ = open_gate(there, budget, unit, workload=asked, pay=_begun)
        try:
            inner.estimate(right)
        except _Begun:
            continue


def _begun() -> NoReturn:
    raise _Begun


def empty(domain: Domain) -> Histogram:
    """No records at all."""
    return Histogram(domain, np.zeros(domain.shape, dtype=np.int64))
