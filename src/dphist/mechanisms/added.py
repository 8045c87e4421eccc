"""Tables that were measured later on the same records, fitted together with what was measured before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.tables.errors import ResidualNoise, noise_after
from dphist.inference.tables.fitting import agreeing
from dphist.inference.tables.published import PublishedModel, TableEstimate, with_cube
from dphist.inference.tables.residuals import Axes, TableResiduals, subsets
from dphist.mechanisms.mixture import Mixture
from dphist.mechanisms.options import Large, Share, checked
from dphist.mechanisms.protocol import Mechanism, TableMechanism, made_by
from dphist.mechanisms.residuals import Residuals, announced, asked_ranges, measure_residuals
from dphist.mechanisms.wide.plan import wanted_tables
from dphist.model.domain import Domain
from dphist.model.phrases import UNPAIRED
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts

_ROUNDS = 30


@checked
@dataclass(frozen=True, kw_only=True)
class Added:
    """Publish with one mechanism first, measure further tables afterwards, and fit everything together.

    What `dphist.publishing.adding.add_tables` makes of a release: the first part of the budget was spent before, by
    ``first``; the rest measures the residuals of further tables with the best shares (as `Residuals` does). Least
    squares takes both at once, so a table that was measured twice is better known, and one that overlaps an older one
    agrees with it. Where the first fitted a model, it is fitted anew to all tables that were measured.

    Private by sequential composition: two questions about the same records, whose shares sum to one, each private
    by its own proof. That the second was chosen after seeing the answer to the first changes nothing (adaptive
    composition holds for ε and for ρ), since its price was fixed before it was asked.

    Args:
        first: What published before.
        tables: The further tables, each by its axes; all pairs by default.
        share: Of the whole budget, what the further tables cost.
        paid: The ledger's number of the payment for the first, if one paid.

    Example:
        >>> from dphist.mechanisms import Added
        >>> from dphist.testing import run
        >>> run(Added(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    first: Mechanism = field(default_factory=Residuals)
    tables: tuple[Axes, ...] | None = None
    share: Share = Fraction(1, 2)
    paid: Large | None = None

    def __post_init__(self) -> None:
        _tabular(self.first)

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables are published rather than a cube: as the first would."""
        return _tabular(self.first).goes_wide(domain, workload)

    def estimate_tables(self, data: PrivateCounts) -> TableEstimate:
        """Measure both, and publish what they say together."""
        shape = data.shape
        before, more = data.split(1 - self.share, self.share)
        # What cannot be asked is refused before anything is: the first noise is what gets paid.
        wanted = wanted_tables(shape, announced(more, self.tables, 2))
        if any(axis >= len(shape) for axes in wanted for axis in axes):
            raise MechanismError("tables: every axis must be one of the domain's")
        known = _tabular(self.first).estimate_tables(before)
        further = self.measure(more, wanted)
        found = self._fitted(shape, known, further, wanted)
        named = None if known.made_by is None else replace(self, first=made_by(self.first, known))
        return replace(found, made_by=named)

    def measure(self, more: PrivateCounts, wanted: tuple[Axes, ...]) -> TableResiduals:
        """Ask about the further tables: what is asked when they are added, and what a replay asks again."""
        return measure_residuals(more, wanted, _ranges(self.first, more))

    def _fitted(
        self,
        shape: tuple[int, ...],
        known: TableEstimate,
        further: TableResiduals,
        wanted: Sequence[Axes],
    ) -> TableEstimate:
        """Publish what was measured before and what was measured later, together."""
        old = known.errors
        if not isinstance(old, ResidualNoise):
            raise MechanismError("first must publish tables with the noise of least squares")
        # Whoever asked for more had seen the first, so it is a stage of its own.
        errors = noise_after(old, further)
        residuals = errors.residuals
        asked = sorted({*known.tables, *(inner for axes in wanted for inner in subsets(axes))})
        before = known.note.removeprefix(f"{UNPAIRED} ")
        note = f"{before}; {len(wanted)} further {'table was' if len(wanted) == 1 else 'tables were'} added later"
        if not isinstance(known.model, PublishedModel):
            settled = agreeing(shape, asked, residuals.table)
            return TableEstimate(settled, errors, note)
        return self._mixture.together(errors, asked, note)

    @property
    def _mixture(self) -> Mixture:
        """Who fits: the first, if it says how."""
        first: object = self.first
        while isinstance(first, Added):
            first = first.first
        return first if isinstance(first, Mixture) else Mixture()

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Publish tables that have a guess beside them: the cube that has them, nothing else assumed."""
        return with_cube(self.estimate_tables(data), data.shape)


def _tabular(first: Mechanism) -> TableMechanism:
    if not isinstance(first, TableMechanism):
        raise MechanismError("first must be a mechanism that publishes tables, such as residuals or mixture")
    return first


def _ranges(first: object, data: PrivateCounts) -> tuple[int, ...]:
    """The axes that the first asked by contrasts: what is added must ask them in the same way to be one with it."""
    while isinstance(first, Added):
        first = first.first
    return asked_ranges(data, first.ranges) if isinstance(first, Residuals) else ()
