"""Google's dp-accounting as an oracle: its recorded answers about conversions, compositions and what ledgers accepted.

`record_dp_accounting.py` says how they were made.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dphist.model.conversion import delta_of_rho, epsilon_of_rho, rho_for
from dphist.private.ledger.totals import Spend
from dphist_bench.measurements.trust import composition

RECORDED: dict[str, Any] = json.loads(
    Path(__file__).with_name("dp_accounting.json").read_text(encoding="utf-8")
)
TOTALS = dict(composition.TOTALS)


@pytest.mark.parametrize(("rho", "delta", "theirs"), RECORDED["conversions"])
def test_readings_of_rho_are_theirs(rho: str, delta: str, theirs: float) -> None:
    # Its orders are a grid, so it is never below the best order, and close to it.
    ours = epsilon_of_rho(Fraction(rho), Fraction(delta))
    assert theirs * (1 - 1e-5) - 1e-12 <= float(ours) <= theirs * (1 + 1e-12)
    # And back: what (ε, δ) buys is that ρ, never more.
    if theirs > 0:
        assert float(rho_for(ours, Fraction(delta))) == pytest.approx(float(Fraction(rho)), rel=1e-5)
        assert delta_of_rho(rho_for(ours, Fraction(delta)), ours) <= Fraction(delta)


@pytest.mark.parametrize(("pure", "rho", "epsilon", "theirs"), RECORDED["compositions"])
def test_our_oracle_agrees(pure: list[tuple[str, int]], rho: str, epsilon: float, theirs: float) -> None:
    spends = [Spend(epsilon=Fraction(text)) for text, count in pure for _ in range(count)]
    if Fraction(rho):
        spends.append(Spend(rho=Fraction(rho)))
    ours = composition.true_delta(spends, epsilon)
    # Theirs is rounded up, by a lattice of 10⁻³ for each Gaussian loss; both lose the last digits of a transform.
    assert ours <= theirs * (1 + 2e-3) + 1e-13
    assert ours == pytest.approx(theirs, rel=0.05, abs=1e-12)


def test_no_ledger_accepts_what_they_say_is_too_much() -> None:
    assert len(RECORDED["paths"]) >= 90
    nearest = 0.0
    for each in RECORDED["paths"]:
        total = TOTALS[each["total"]]
        if each["seed"] < 6:
            # They were accepted by these very rules.
            spends = composition.path(total, each["seed"])
            assert [str(s.epsilon) for s in spends if s.epsilon is not None] == each["pure"], "record again"
            assert [str(s.rho) for s in spends if s.rho is not None] == each["rho"], "record again"
        assert each["delta"] <= total.delta, each
        nearest = max(nearest, each["delta"] / float(total.delta))
    # Some come near, or this would show nothing.
    assert nearest > 0.05
