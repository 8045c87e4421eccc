"""The same questions under pure ε, (ε, δ) and ρ, side by side: no data are read here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dphist.arguments import explained
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.conversion import rho_of_epsilon
from dphist.model.domain import Domain
from dphist.model.exact import Number, positive
from dphist.model.measure import Measure
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.forecast import MECHANISMS, Forecast, plan

# Those that pure ε refuses or that only ρ makes good.
OF_RHO = ("gaussian", "prefixsums")


@dataclass(frozen=True)
class Quote:
    """What one budget buys: a forecast for each mechanism, and the limit of unbiased linear answers beside them.

    Args:
        budget: What would be spent.
        limit: The least error that unbiased linear answers can have; None where it was not computed.
        forecasts: A forecast for each mechanism, best first.

    Example:
        >>> Quote(Budget.of(1, delta="1e-9"), None, ()).label
        '(1, 1e-09)'
    """

    budget: Budget
    limit: float | None
    forecasts: tuple[Forecast, ...]

    @property
    def label(self) -> str:
        """The budget in a few signs."""
        if self.budget.epsilon is not None and self.budget.delta is not None:
            return f"({float(self.budget.epsilon):g}, {float(self.budget.delta):g})"
        return f"{self.budget.symbol} = {float(self.budget.amount):.3g}"


@explained
def currencies(
    domain: Domain,
    epsilon: Number = 1,
    workload: str | Workload = "ranges",
    *,
    delta: Number = "1e-9",
    rho: Number | None = None,
    mechanisms: Sequence[str | Mechanism] = (*MECHANISMS, *OF_RHO),
    records: int = 100_000,
    unit: Unit | None = None,
    measures: Sequence[Measure] = (),
    runs: int | None = None,
) -> list[Quote]:
    """Forecast each mechanism under pure ε, under (ε, δ) and under ρ.

    These are three promises, not one: pure ε is the strongest. By default the ρ is what a pure ε costs in a ledger
    that counts ρ, ε·tanh(ε/2); (ε, δ) buys a much smaller one.

    Args:
        domain: What would be counted.
        epsilon: The ε of the first two.
        workload: What would be asked.
        delta: The δ of the second.
        rho: The ρ of the third.
        mechanisms: Whom to forecast.
        records: A public guess at how many records there are.
        unit: Who is protected.
        measures: What will be added up beside the counts, which then have a share of the budget alone.
        runs: How often a mechanism is run on each made-up population; by the number of cells by default.

    Returns:
        A quote for each of the three budgets.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> for quote in dphist.planning.currencies(domain, 1, "prefixes", mechanisms=["prefixsums"]):
        ...     print(quote.label, round(quote.limit, 1), round(quote.forecasts[0].error, 1))
        ε = 1 2.9 18.4
        (1, 1e-09) 2.9 12.9
        ρ = 0.462 2.1 2.3
    """
    asked = positive(epsilon, "epsilon")
    budgets = (
        Budget.of(asked),
        Budget.of(asked, delta=delta),
        Budget.of(rho=rho_of_epsilon(asked) if rho is None else rho),
    )
    quotes = []
    for budget in budgets:
        found = plan(
            domain,
            budget,
            workload,
            mechanisms=mechanisms,
            records=records,
            unit=unit,
            measures=measures,
            runs=runs,
        )
        quotes.append(Quote(budget, found[0].limit if found else None, tuple(found)))
    return quotes
