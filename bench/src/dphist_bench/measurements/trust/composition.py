"""How much a ledger holds that composes, and whether any way of spending gets past its total.

*fits*: how many releases of one ε a total holds, beside adding up. *paths*: random adaptive spending, of pure ε and ρ
mixed, each next amount chosen by what was accepted before and aimed at what is left, until nothing more fits. What
was accepted on a path is then run through an oracle that knows nothing of Rényi orders: the exact loss of the worst
mechanisms of that price, randomised response for a pure ε and Gaussian noise for a ρ. Its δ at the total's ε must be
at most the total's δ.

The oracle: amounts lie on a lattice, so the sum of randomised responses' losses has a law on that lattice, a product
of characteristic functions away; Gaussian losses add up to one Gaussian, and the two together have δ = Σ_l P(l)·E[(1
− e^{ε−l−G})⁺], with normal tails in it.
"""

from __future__ import annotations

import random  # noqa: TID251 -- which spends to try, not noise
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated

import numpy as np
from scipy.special import log_ndtr, ndtr

from dphist import errors
from dphist.private.ledger.book import affordable
from dphist.private.ledger.lines import Fund
from dphist.private.ledger.totals import Spend, Total
from dphist_bench.measuring import Failure, Line

STEP = Fraction(1, 100)
_TINY = Fraction(1, 10**9)
TOTALS = (
    ("ε = 3", Total.of(epsilon=Fraction(3))),
    ("ρ = 1/2", Total.of(rho=Fraction(1, 2))),
    ("(1, 1e-6)", Total.of(epsilon=Fraction(1), delta=Fraction(1, 10**6))),
    ("(3, 1e-9)", Total.of(epsilon=Fraction(3), delta=_TINY)),
    ("(10, 1e-9)", Total.of(epsilon=Fraction(10), delta=_TINY)),
)


def true_delta(spends: Sequence[Spend], epsilon: float, step: Fraction = STEP) -> float:
    """What the worst mechanisms of these prices lose beyond ε; pure amounts must be multiples of ``step``."""
    counts = Counter(int(spend.epsilon / step) for spend in spends if spend.epsilon is not None)
    rho = float(sum(spend.rho for spend in spends if spend.rho is not None))
    reach = sum(size * count for size, count in counts.items())
    points = 1 << (2 * reach + 1).bit_length()
    angle = 2 * np.pi * np.arange(points // 2 + 1) / points
    law = np.ones(len(angle), dtype=complex)
    for size, count in counts.items():
        likely = 1 / (1 + np.exp(-float(size * step)))
        law *= (likely * np.exp(-1j * angle * size) + (1 - likely) * np.exp(1j * angle * size)) ** count
    weights = np.maximum(np.fft.irfft(law, points), 0)
    losses = (np.arange(points) + reach) % points - reach
    gap = epsilon - losses * float(step)
    if not rho:
        return float(weights @ np.maximum(0, -np.expm1(np.minimum(gap, 0))))
    spread = np.sqrt(2 * rho)
    tails = ndtr((rho - gap) / spread) - np.exp(gap + log_ndtr((-rho - gap) / spread))
    return float(weights @ np.maximum(0, tails))


def path(total: Total, seed: int) -> list[Spend]:
    """Spend at random, each amount chosen by what was accepted before, until little fits; give what was accepted."""
    chance = random.Random(seed)  # noqa: S311 -- which spends to try
    fund = Fund(total)
    mixed = not total.pure and chance.random() < 0.7
    size = chance.choice((8, 40, 200)) * (float(total.epsilon or 2))
    refused = 0
    while refused < 6:
        if mixed and chance.random() < 0.5:
            asked = Spend(rho=Fraction(chance.randint(1, 1 + int(5 * size)), 10_000))
        else:
            asked = Spend(epsilon=STEP * chance.randint(1, 1 + int(size / 4)))
        try:
            spend, fund.sums = affordable("people", fund, asked, None, "ledger")
        except errors.BudgetExhausted:
            # What was refused tells how much is left: come closer to the edge.
            size, refused = max(size / 3, 4), refused + 1
            continue
        fund.spends.append(spend)
    return fund.spends


def over(total: Total, spends: Sequence[Spend]) -> bool:
    """Whether the oracle says that more was lost than the total allows."""
    pure = float(sum(spend.epsilon or 0 for spend in spends))
    if total.pure:
        return any(spend.rho is not None for spend in spends) or pure > float(total.capacity) * (1 + 1e-12)
    if total.rho is not None:
        rho = sum(float(s.rho) if s.rho is not None else _zcdp(float(s.epsilon or 0)) for s in spends)
        return rho > float(total.rho) * (1 + 1e-12)
    # Below 10⁻¹³ the transform's own rounding is what is seen.
    return true_delta(spends, float(total.epsilon or 0)) > float(total.delta) + 1e-13


def _zcdp(epsilon: float) -> float:
    return float(epsilon * np.tanh(epsilon / 2))


def fitting(total: Total, epsilon: Fraction) -> int:
    """How many pure releases of one ε a total holds."""
    fund, spend, count = Fund(total), Spend(epsilon=epsilon), 0
    while True:
        fund.sums = fund.sums.with_(spend, total)
        if not fund.sums.fits(total):
            return count
        count += 1


def measure(
    *,
    quick: bool,
    paths: Annotated[int, "how many ways of spending to try"] = 10_000,
    seed: int = 1,
) -> Iterator[Line]:
    """Count what fits, try ways of spending, and hold each against the oracle."""
    for name, total in TOTALS:
        for epsilon in (Fraction(1), Fraction(1, 10)) if quick else (Fraction(1), Fraction(1, 10), STEP):
            adding = int(total.epsilon / epsilon) if total.epsilon is not None else None
            yield {"total": name, "each ε": str(epsilon), "fit": fitting(total, epsilon), "adding up": adding}
    found = {name: [0, 0, 0.0, 0] for name, _ in TOTALS}
    for number in range(60 if quick else paths):
        name, total = TOTALS[number % len(TOTALS)]
        spends = path(total, seed * 10_000_000 + number)
        row = found[name]
        row[0] += 1
        row[1] += len(spends)
        if total.order is not None:
            row[2] = max(row[2], true_delta(spends, float(total.epsilon or 0)) / float(total.delta))
        row[3] += over(total, spends)
    for name, (tried, accepted, worst, beyond) in found.items():
        yield {
            "total": name,
            "paths": tried,
            "spends accepted": accepted,
            "largest δ / total δ": f"{worst:.3g}" if worst else "",
            "above the total": beyond,
        }
        if beyond:
            yield Failure(f"{beyond:.0f} ways of spending got past {name}")
