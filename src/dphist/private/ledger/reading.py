"""What a ledger says of itself: sums, entries, and what is left in each way of counting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from dphist.arguments import explained
from dphist.model.conversion import epsilon_of_rho
from dphist.model.unit import Unit
from dphist.private.ledger.journal import Journal
from dphist.private.ledger.lines import Entry, Fund, Head, Line
from dphist.private.ledger.totals import ZERO, most_epsilon
from dphist.private.ledger.wording import one_line

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Account:
    """What one population may lose, has lost, and may still lose, in each way of counting.

    Args:
        dataset: The population.
        total: What may be lost in all, in words.
        currency: In what ``spent`` and ``remaining`` count.
        spent: What is spent, in that currency.
        remaining: What is left of it.
        epsilon_left: The largest pure ε that one more release may have.
        rho_left: The largest ρ that one more release may have; 0 where the total is pure.
        epsilon_spent: Σε, where every release was pure, else None.
        rho_spent: Σρ over all releases, the pure ones at ε·tanh(ε/2).
        delta: The δ of the readings, with what discovered keys took.
        epsilon_at_delta: The ε that goes with that δ, for what is spent: never quoted without ``rho_spent``.
        delta_spent: What discovered keys took of δ.
        delta_left: What they may still take.
    """

    dataset: str
    total: str
    currency: str
    spent: Fraction
    remaining: Fraction
    epsilon_left: Fraction
    rho_left: Fraction
    epsilon_spent: Fraction | None
    rho_spent: Fraction
    delta: Fraction
    epsilon_at_delta: Fraction
    delta_spent: Fraction = ZERO
    delta_left: Fraction = ZERO


# What an (ε, δ) reading quotes when its total names no δ.
USUAL_DELTA = Fraction(1, 10**9)


def account(dataset: str, fund: Fund) -> Account:
    """Read a budget in each way of counting."""
    total, sums = fund.total, fund.sums
    rho = sum((spend.rho_cost() for spend in fund.spends), ZERO)
    delta = total.delta - total.discover if total.order is not None else USUAL_DELTA
    # Two readings are true of the same releases where all were pure; the smaller is quoted.
    composed = epsilon_of_rho(rho, delta) if rho else ZERO
    return Account(
        dataset=dataset,
        total=total.describe(),
        currency=total.currency,
        spent=sums.price,
        remaining=fund.remaining(),
        epsilon_left=most_epsilon(total, sums),
        rho_left=ZERO if total.pure else fund.remaining(),
        epsilon_spent=sums.epsilon if sums.pure else None,
        rho_spent=rho,
        # What discovered keys took comes on top, whichever way the rest is read.
        delta=delta + sums.delta,
        epsilon_at_delta=min(composed, sums.epsilon) if sums.pure else composed,
        delta_spent=sums.delta,
        delta_left=total.discover - sums.delta,
    )


@explained
class Readings:
    """The part of a `Ledger` that only reads."""

    _journal: Journal

    def spent(self, dataset: str) -> Fraction:
        """Return what has been spent, in the currency of the total: ε, or ρ (also under (ε, δ)).

        Args:
            dataset: Which budget.

        Returns:
            An exact fraction.
        """
        return self._read(dataset, lambda fund: fund.sums.price)

    def total(self, dataset: str) -> Fraction:
        """Return what may be spent in all, in the currency of the total: ε, or ρ (also under (ε, δ)).

        Args:
            dataset: Which budget.

        Returns:
            An exact fraction.
        """
        return self._read(dataset, lambda fund: fund.total.capacity)

    def unit(self, dataset: str) -> Unit | str | None:
        """Return whom the budget protects: as created, or as its first spend said; None while nobody has said.

        Args:
            dataset: Which budget.

        Returns:
            The unit, the words that were given for it, or None.
        """
        return self._read(dataset, lambda fund: fund.unit)

    def remaining(self, dataset: str) -> Fraction:
        """Return what may still be spent, in the currency of the total; `account` gives every reading.

        Args:
            dataset: Which budget.

        Returns:
            An exact fraction.
        """
        return self._read(dataset, Fund.remaining)

    def account(self, dataset: str) -> Account:
        """Return what was lost and what is left, in each way of counting.

        Args:
            dataset: Which budget.

        Returns:
            Its readings: pure ε, ρ, and (ε, δ) with the ρ beside it.
        """
        return self._read(dataset, lambda fund: account(dataset, fund))

    def entries(self, dataset: str) -> list[Entry]:
        """List every spend, in the order they were made; the sum of their costs is `spent`.

        Args:
            dataset: Which budget.

        Returns:
            What was spent, for what, when and whether it was published.
        """
        return self._read(dataset, lambda fund: [self._journal.books.entries[n] for n in fund.entries])

    def datasets(self) -> list[str]:
        """List the populations that have a budget, sorted.

        Returns:
            Their names.
        """
        return self._journal.look(lambda: sorted(self._journal.books.budgets))

    def head(self) -> Head:
        """Return number and hash of the last line: note it elsewhere and `verify` can be held to it.

        Returns:
            The last line's number and hash.
        """
        return self._journal.look(lambda: self._journal.books.head)

    def history(self) -> list[Line]:
        """List every line ever written: budgets created and raised, reservations, openings, publications.

        Returns:
            Every line, first to last.
        """
        return self._journal.lines()

    def _read(self, dataset: str, read: Callable[[Fund], T]) -> T:
        return self._journal.look(lambda: read(self._journal.fund(one_line(dataset, "dataset"))))
