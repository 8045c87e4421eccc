"""What a release's transcript gives when its mechanism asks it again: the estimate behind the counts, with no data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dphist.errors import TooLargeError, VerificationError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.published import TableEstimate
from dphist.inference.selected import SelectedNoise
from dphist.kernels.compile import expect_much
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts, open_replay
from dphist.private.questions import Published
from dphist.private.transcript import Transcript
from dphist.release.cells import Cells, DenseCells
from dphist.release.guarantee import Guarantee
from dphist.release.learned import FEWEST, learned
from dphist.release.replaying import fitting
from dphist.release.sums import MeasuredSums

if TYPE_CHECKING:
    from dphist.release.release import Release

Made = TypeVar("Made")

# Cells that an array is made for when somebody asks for one.
LARGEST_ARRAY = 1 << 27


class Replayed:
    """The part of a `Release` that its transcript gives: at hand after publishing, replayed after loading."""

    domain: Domain
    cells: Cells
    guarantee: Guarantee
    mechanism: Mechanism
    transcript: Transcript
    polish: tuple[str, ...]
    workload: Workload | None
    sums: tuple[MeasuredSums, ...]

    @property
    def _own_budget(self) -> Budget:
        """What the counts may cost: all that the sums did not."""
        budget = self.guarantee.budget
        if not self.sums:
            return budget
        own = budget.amount - sum((sums.release.budget.amount for sums in self.sums), Fraction(0))
        if own <= 0:
            raise VerificationError("the sums spend all that the guarantee allows")
        return Budget(own, budget.currency)

    @cached_property
    def _estimate(self) -> Estimate:
        """The estimate, for its errors: counts that the release holds are not worked out again, unless polished."""
        # A mechanism of somebody else's may change what another made of its right: it is asked from the beginning.
        known = getattr(type(self.mechanism), "reuses_counts", False) is True
        known = known and isinstance(self.cells, DenseCells) and not self.polish
        if len(self.domain.shape) > 1:
            # Boxes of many cells are halved again for every answer.
            self._expect_much()
        whole = cast("Release", self)
        return self._replay(Published(whole.counts, learned(whole)) if known else None)

    def _expect_much(self) -> None:
        if self.cells.form == "dense" and self.cells.numbers.size >= FEWEST:
            expect_much()

    @cached_property
    def _unpolished(self) -> DenseCells:
        return DenseCells(self._estimate.counts)

    def _replay(self, published: Published | None = None) -> Estimate:
        replay_tables = getattr(self.cells, "replay_estimate", None)
        if replay_tables is not None:
            # Tables of few attributes have errors and a note of their own, and no cells of the whole product.
            tables: Estimate = replay_tables(self)
            return tables
        if self.domain.size > LARGEST_ARRAY and self.cells.form != DenseCells.form:
            raise TooLargeError(
                f"the domain has {self.domain.size:,} cells, too many for an estimate of every one: ask answer(), or "
                "project() on fewer attributes"
            )
        shaped: Estimate = self._shaped(self._replayed(self.mechanism.estimate, published))
        return shaped

    def _replayed(self, ask: Callable[[PrivateCounts], Made], published: Published | None = None) -> Made:
        """Ask the transcript what the mechanism asked the data."""
        right, replay = open_replay(
            self.domain,
            self._own_budget,
            self.guarantee.unit,
            self.transcript,
            workload=self.workload,
            published=published,
        )
        with fitting():
            made = ask(right)
            replay.finish()
            return made

    def _shaped(self, estimate: Estimate | TableEstimate) -> Any:
        if isinstance(estimate, TableEstimate):
            return estimate
        shaped = replace(estimate, counts=estimate.counts.reshape(self.domain.shape))
        if self.guarantee.threshold and isinstance(shaped.errors, IndependentNoise):
            # Keys that were discovered are shown because their noise was kind to them.
            errors = SelectedNoise(
                shaped.errors.law, threshold=self.guarantee.threshold, counts=shaped.counts
            )
            return replace(shaped, errors=errors)
        return shaped
