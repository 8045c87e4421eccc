"""The budget that an error needs is found in few steps, wherever the search begins."""

import math
from fractions import Fraction

import pytest

from dphist.planning.searching import NARROWEST, WIDEST, least_amount


def _found(law, wanted, start, power=1.0):
    asked = []

    def error(amount):
        asked.append(amount)
        return law(float(amount))

    return least_amount(error, wanted, (Fraction(start), law(start)), power, 0.02), len(asked)


@pytest.mark.parametrize("start", [0.001, 1.0, 500.0])
@pytest.mark.parametrize(
    ("law", "power"),
    [
        (lambda amount: 7.0 / amount, 1.0),
        (lambda amount: 7.0 / math.sqrt(amount), 0.5),
        (lambda amount: 5.0 / amount**0.3 if amount < 2.0 else 4.0 / amount**2, 1.0),
        (lambda amount: 0.0 if amount > 0.7 else 9.0, 1.0),
        (lambda amount: min(40.0, 3.0 / amount), 1.0),
    ],
)
def test_the_amount_is_the_least_that_is_enough(law, power, start):
    found, steps = _found(law, 3.1, start, power)
    assert law(found) <= 3.1 * (1.0 + 1e-6)
    assert law(found * math.exp(-0.035)) > 3.1
    assert steps <= 25


def test_a_power_of_the_budget_takes_few_simulations():
    assert _found(lambda amount: 8.0 / amount, 50.0, 1.0)[1] == 1


def test_what_is_out_of_reach_is_nothing_and_what_costs_nothing_is_the_narrowest():
    assert _found(lambda amount: 5.0, 3.0, 1.0)[0] is None
    assert _found(lambda amount: 1.0 / amount, 1e-9, float(WIDEST))[0] is None
    assert _found(lambda amount: 1e-3, 3.0, 1.0)[0] == float(NARROWEST)
