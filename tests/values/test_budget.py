"""Budgets in two currencies: read as a person means them, converted to the side that promises less."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dphist import Unit
from dphist.errors import EpsilonError, InputError
from dphist.model.budget import Budget
from dphist.model.conversion import delta_of_rho, rho_for


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
