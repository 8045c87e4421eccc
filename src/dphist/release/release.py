"""A release: estimated counts with everything needed to trust, query and verify them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from dphist.arguments import explained
from dphist.errors import NotPrivate, QueryError
from dphist.extras import brought
from dphist.inference.estimate import Estimate
from dphist.inference.intervals import read_confidence
from dphist.model.about import About
from dphist.model.phrases import UNPAIRED
from dphist.release.cells import DenseCells
from dphist.release.derived import Derived
from dphist.release.guarantee import Receipt
from dphist.release.writing import save

if TYPE_CHECKING:
    from dphist.mechanisms.protocol import Mechanism

# Attributes that a release is introduced with.
_SHOWN = 6


@explained
@dataclass(frozen=True, eq=False)
class Release(Derived):
    """A private histogram or cube. Everything in it has been paid for, so everything in it may be published.

    `publish` and `load` make releases, whatever the mechanism; nobody else needs to.

    Args:
        domain: What is counted.
        cells: The numbers: `DenseCells` for every cell, `SparseCells` for those of a very large domain that passed a
            threshold, or `TableCells` for tables of few attributes out of very many.
        guarantee: What was promised, and for whom.
        mechanism: How it was made: a public value.
        transcript: Every question that was asked of the data and its noisy answer.
        note: Why a mechanism that chooses chose as it did.
        polish: The steps that made the counts nicer to read.
        workload: What the mechanism was told would be asked.
        receipt: The budget it was paid from, the reservation's number and the hash of its line in the ledger.
        about: What the custodian says of it.
        test: Whether the noise came from a test seed; such a release is never saved.
        sums: The sums of measures that were published beside the counts, each a release over the same cells.
        known: The estimate behind the counts, if it is at hand; otherwise the file's, or what a replay gives.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> release = dphist.publish(dphist.Histogram(domain, np.full((100, 2), 50)), epsilon=1, mechanism="laplace")
        >>> release
        <Release age 100 × sex 2; 1-differential privacy for one row, which may be added or removed; laplace>
        >>> answer = release.answer("age between 30 and 40 and sex = 'F'")
        >>> answer.low <= answer.value <= answer.high
        True
        >>> release.verify()
    """

    @property
    def epsilon(self) -> Fraction | None:
        """The pure ε that was paid for; None where the release was paid for in ρ."""
        return self.guarantee.epsilon

    # ---- handing on -------------------------------------------------------------------------------------

    def polished(
        self, *, nonnegative: bool = False, integer: bool = False, total: float | None = None
    ) -> Release:
        """Give a release that is nicer to read: nowhere negative, whole numbers, a public total.

        Costs no privacy and biases the counts; intervals keep standing on the estimate before it, and hold what is
        published. The table is divided from the top down, and its parts keep adding up, so sums stay about as good as
        they were. What comes first is kept best: the total, then attributes without groups (ordered ones by halves),
        then hierarchies from their top level; several take turns, in the order of the domain.

        Args:
            nonnegative: At each step the nearest counts that are nowhere negative and add up to what was divided.
            integer: Round to whole numbers; the number of every part is its sum, rounded down or up.
            total: Move to this total. It must be public knowledge: a true total that is not would be a leak.

        Returns:
            The polished release; a sparse one is whole and positive as it is.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(9))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.zeros(9, int)), epsilon=1, mechanism="laplace")
            >>> float(release.polished(nonnegative=True, integer=True).counts.min()) >= 0
            True
        """
        cells, steps = self.cells, list(self.polish)
        for wanted, step in (
            (nonnegative or total is not None, _nonnegative_step(total)),
            (integer, "integer"),
        ):
            polished = cells.polish(step, self) if wanted else cells
            if polished is not cells:
                cells, steps = polished, [*steps, step]
        return self._with(cells=cells, polish=tuple(steps))

    def with_receipt(self, dataset: str, reservation: int, line_hash: str) -> Release:
        """Give the same release with what it was paid from.

        Args:
            dataset: The budget's name in the ledger.
            reservation: The reservation's number.
            line_hash: Of the line that reserved it.

        Returns:
            The release, its receipt filled in.
        """
        return self._with(receipt=Receipt(dataset, reservation, line_hash))

    def with_about(self, about: About | Mapping[str, Any]) -> Release:
        """Give the same release with what the custodian says of it.

        Args:
            about: Texts by name, as `About` has them; they are added to what was said before.

        Returns:
            The release, described.
        """
        return self._with(about=self.about.with_more(about))

    def _with(self, **changes: Any) -> Release:
        """The same answers behind it, so the same estimate, if that is at hand."""
        return replace(self, **changes, known=self.__dict__.get("_estimate"))

    def remade(self, mechanism: Mechanism, estimate: Estimate) -> Release:
        """Give the release that another mechanism makes of the same paid-for answers, at no cost.

        Args:
            mechanism: A mechanism that would have asked the very same questions.
            estimate: What it makes of their answers; `verify` checks that.

        Returns:
            The other release; what was polished must be polished again.
        """
        if not isinstance(estimate, Estimate) or estimate.counts.size != self.domain.size:
            raise QueryError(
                "estimate: what a mechanism made of these cells, an Estimate with a count for each"
            )
        counts = estimate.counts.reshape(self.domain.shape)
        counts.setflags(write=False)
        return replace(
            self,
            cells=DenseCells(counts),
            mechanism=mechanism,
            note=estimate.note,
            polish=(),
            known=estimate,
        )

    def save(
        self,
        path: str | PathLike[str],
        *,
        confidence: float = 0.95,
        about: About | Mapping[str, Any] | None = None,
    ) -> None:
        """Write one Parquet file that any tool opens; whole or not at all.

        It has a row per cell: labels as numbers, days or texts, ``estimate``, and ``low`` and ``high``, the ends of the
        cell's interval. What it is, in words, is in the file's metadata.

        Args:
            path: Where; what was there is replaced.
            confidence: How sure each cell's interval is to hold the true count.
            about: What to say of it besides what `publish` was told, as for `with_about`.

        Raises:
            NotPrivate: if the noise came from a test seed.
            InputError: if the name promises another kind of file, such as a CSV.
            OutputError: if the file cannot be written.

        Example:
            >>> import dphist, numpy as np, pathlib, tempfile
            >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     release.save(pathlib.Path(folder) / "sex.parquet")
            ...     again = dphist.load(pathlib.Path(folder) / "sex.parquet")
            >>> bool((again.counts == release.counts).all())
            True
        """
        if self.test:
            raise NotPrivate(
                "this release was made with a test seed and must not be saved; publish without a seed"
            )
        save(self if about is None else self.with_about(about), path, read_confidence(confidence))

    # ---- trusting ---------------------------------------------------------------------------------------

    def verify(self, *, choice: bool = False, exact: bool = False) -> None:
        """Replay the mechanism with no data behind the gate, and insist that it gives this release.

        That shows three things: the counts are what the named mechanism makes of paid-for answers alone, the answers
        were paid for by no more than the budget, and nothing was altered since. Where `auto` chose, the mechanism that
        it named is replayed, so that no later rule of choosing can spoil an old release; that the rule would have
        chosen it, and gave that reason, is shown with ``choice``.

        Args:
            choice: Let the mechanism choose again, too, and insist on the same choice for the same reason. It shows
                that nobody chose by hand, and holds in the version that made the release.
            exact: Insist on every bit of counts and bounds. Another kind of processor rounds the last digits of fitted
                tables otherwise, which is let pass without.

        Raises:
            VerificationError: if the replay gives anything else.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
            >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
            >>> release.verify()
        """
        # Loaded here: only this replays the mechanism.
        from dphist.release.verifying import verify

        verify(self, choice=choice, exact=exact)

    # ---- showing ----------------------------------------------------------------------------------------

    def plot(self, *names: str, confidence: float = 0.95) -> Any:
        """Draw one attribute as bars with intervals, or two as a heat map (needs ``dphist[report]``).

        Args:
            names: What to draw; without names the first attribute, or the first two.
            confidence: How sure each interval is to hold the true count.

        Returns:
            An Altair chart.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
            >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
            >>> chart = release.plot("sex")
        """
        return brought("drawing").figure(self, names or None, confidence=confidence)

    def _repr_html_(self) -> str:
        """Show the release as a card in a notebook."""
        card: str = brought("drawing").card(self)
        return card

    def __repr__(self) -> str:
        return f"<Release {self.describe()}>"

    def describe(self) -> str:
        """Say in a line what is released, what is promised, and who made it.

        Returns:
            Attributes with their sizes, the guarantee and the mechanism; and, if so, that no pair was measured though
            pairs were asked for.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(9))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(9, 50)), epsilon=1, mechanism="laplace")
            >>> release.describe()
            'age 9; 1-differential privacy for one row, which may be added or removed; laplace'
        """
        shown = self.domain.attributes[:_SHOWN]
        cells = " × ".join(f"{attribute.name} {attribute.size}" for attribute in shown)
        if len(self.domain.attributes) > _SHOWN:
            cells += f" × … ({len(self.domain.attributes)} attributes)"
        more = self.cells.describe()
        if self.sums:
            names = ", ".join(dict.fromkeys(sums.measure.name for sums in self.sums))
            more = f"{more}, sums of {names}" if more else f"sums of {names}"
        held = f"{cells}, {more}" if more else cells
        said = f"{held}; {self.guarantee.describe()}; {self.maker.name}"
        return f"{said}. {UNPAIRED}" if self.note.startswith(UNPAIRED) else said


def _nonnegative_step(total: float | None) -> str:
    if total is None:
        return "nonnegative"
    try:
        wanted = float(total)
    except (TypeError, ValueError, OverflowError):
        wanted = math.nan
    if not 0 <= wanted < math.inf:
        raise QueryError("total: a number of records that is public knowledge, finite and not below zero")
    return f"nonnegative total {wanted!r}"
