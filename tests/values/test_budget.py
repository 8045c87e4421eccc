"""Budgets in two currencies: read as a person means them, converted to the side that promises less."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphist import Unit
from dphist.errors import EpsilonError, InputError
from dphist.model.budget import Budget
from dphist.model.conversion import choice_epsilon, delta_of_rho, epsilon_for_rho, rho_for, rho_of_epsilon

RHOS = [
    Fraction(1, 10**9),
    Fraction(1, 200),
    Fraction(1, 7),
    Fraction(1, 2),
    Fraction(3),
    Fraction(40),
    Fraction(10**7),
]


def best_delta(rho: float, epsilon: float) -> float:
    """The bound itself on a fine grid of orders, in floats."""
    steps = (1.0 + 10.0 ** (k / 400.0) for k in range(-3600, 4800))
    logs = (
        (a - 1) * (a * rho - epsilon) - math.log(a - 1) + a * math.log1p(-1 / a)
        for a in steps
        if a > 1 + 1e-12
    )
    return math.exp(min(0.0, *logs))


@pytest.mark.parametrize(
    ("rho", "epsilon"), [("1/100", 1), ("1/2", 3), ("1/2", 8), (3, 12), ("1/10000", "1/10")]
)
def test_delta_is_the_best_bound_rounded_up(rho, epsilon):
    delta = delta_of_rho(Fraction(rho), Fraction(epsilon))
    expected = best_delta(float(Fraction(rho)), float(Fraction(epsilon)))
    assert expected * (1 - 1e-3) <= float(delta) <= expected * (1 + 1e-9)
    # And far below the textbook's ε = ρ + 2√(ρ ln 1/δ).
    textbook = math.exp(
        -((float(Fraction(epsilon)) - float(Fraction(rho))) ** 2) / (4 * float(Fraction(rho)))
    )
    assert float(delta) < textbook


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1, "1e-9"), (1, "1e-6"), (10, "1e-9"), (3, "1e-9"), ("1/10", "1e-12"), (100, "1e-5")],
)
def test_a_pair_buys_the_largest_rho(epsilon, delta):
    asked = Fraction(epsilon), Fraction(delta)
    rho = rho_for(*asked)
    assert delta_of_rho(rho, asked[0]) <= asked[1] < delta_of_rho(rho * Fraction(10**9 + 1, 10**9), asked[0])
    bought = Budget.of(epsilon, delta=delta)
    assert (bought.amount, bought.currency, bought.epsilon, bought.delta) == (rho, "rho", *asked)
    assert Budget.from_json(bought.to_json()) == bought
    assert f"({float(asked[0]):g}, {float(asked[1]):g})" in bought.describe()
    assert f"{float(rho):g}-zCDP" in bought.describe()


@pytest.mark.parametrize("rho", RHOS)
def test_what_rho_pays_for_costs_no_more_and_hardly_less(rho):
    pure = epsilon_for_rho(rho)
    assert rho_of_epsilon(pure) <= rho < rho_of_epsilon(pure * Fraction(10**9 + 1, 10**9))
    assert float(rho_of_epsilon(pure)) == pytest.approx(float(pure) * math.tanh(float(pure) / 2), rel=1e-12)
    choice = choice_epsilon(rho)
    assert choice**2 <= 8 * rho < (choice * Fraction(10**9 + 1, 10**9)) ** 2


def test_pure_costs_less_than_half_its_square():
    for epsilon in (Fraction(1, 10**8), Fraction(1, 10), Fraction(1), Fraction(9)):
        assert rho_of_epsilon(epsilon) <= epsilon**2 / 2 * Fraction(10**14 + 1, 10**14)
        assert rho_of_epsilon(epsilon) <= epsilon


def test_what_users_write():
    assert Budget.of("0.1") == Budget(Fraction(1, 10))
    assert Budget.of(rho="1/100") == Budget(Fraction(1, 100), "rho")
    assert Budget.of(Budget.of(2)) == Budget.of(epsilon=2)
    for wrong in (
        {},
        {"epsilon": 0},
        {"rho": -1},
        {"epsilon": 1, "rho": 1},
        {"rho": 1, "delta": "1e-9"},
        {"delta": "1e-9"},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": Budget.of(1), "delta": "1e-9"},
        {"epsilon": "many"},
    ):
        with pytest.raises(EpsilonError):
            Budget.of(**wrong)
    with pytest.raises(EpsilonError, match="imply"):
        Budget(Fraction(1), "rho", Fraction(1), Fraction(1, 10**9))


def test_what_budgets_say():
    assert Budget.of(1).describe() == "1-differential privacy"
    assert Budget.of(rho="1/2").describe() == "0.5-zCDP (zero-concentrated differential privacy)"
    assert Budget.of(1).delta_at(1) == 0
    assert Budget.of(2).delta_at(1) == 1
    assert Budget.of(rho="1/2").delta_at(3) == delta_of_rho(Fraction(1, 2), Fraction(3))


def test_units_of_few_rows_in_many_cells():
    unit = Unit(cells=5, per_cell=2, id="user")
    assert (unit.rows, unit.steps, unit.squared) == (10, 10, 20)
    assert unit == Unit(rows=10, cells=5, per_cell=2, id="user") == Unit.from_json(unit.to_json())
    assert "at most 2 in each of 5 cells" in unit.describe()
    assert Unit(cells=3).per_cell == 1
    assert Unit(cells=3, replace=True).squared == 6
    assert (Unit(rows=4).squared, Unit(rows=4, replace=True).squared, Unit(replace=True).squared) == (
        16,
        32,
        2,
    )
    assert "cells" not in Unit(rows=4).to_json()
    for wrong in (
        {"per_cell": 2},
        {"cells": 0},
        {"cells": 2, "per_cell": 0},
        {"cells": 2, "rows": 3},
        {"cells": True},
    ):
        with pytest.raises(InputError, match="unit"):
            Unit(**wrong)
