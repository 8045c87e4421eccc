"""Exchange rates between ε, ρ and (ε, δ): on the safe side, sharp, and the same as other people's."""

from __future__ import annotations

import math
from decimal import localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist.errors import EpsilonError
from dphist.model import conversion
from dphist.model.conversion import (
    choice_epsilon,
    delta_of_rho,
    epsilon_for_rho,
    epsilon_of_rho,
    rho_for,
    rho_of_epsilon,
)
from dphist.private.noise.certified import exp_neg_interval

amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**6)
deltas = st.integers(1, 40).map(lambda k: Fraction(1, 10**k)) | st.just(Fraction(1, 3 * 10**9))
BIT = 200


def log_delta(t: float, rho: float, epsilon: float) -> float:
    return t * ((t + 1) * rho - epsilon) - math.log(t) - (t + 1) * math.log1p(1 / t)


def gaussian_delta(rho: float, epsilon: float) -> float:
    """What the Gaussian mechanism of ρ really loses at ε (Balle, Wang 2018): every bound must be above it."""
    moved = math.sqrt(2 * rho)

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(moved / 2 - epsilon / moved) - math.exp(epsilon) * below(-moved / 2 - epsilon / moved)


def tanh_half(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose tanh(ε/2) by the integers that the sampler's coins are made of."""
    low, high = exp_neg_interval(epsilon, BIT)
    one = 1 << BIT
    return Fraction(one - high, one + high), Fraction(one - low, one + low)


@settings(max_examples=25, deadline=None)
@given(rho=amounts, epsilon=amounts)
def test_delta_is_above_the_truth_and_at_the_best_order(rho: Fraction, epsilon: Fraction) -> None:
    delta = float(delta_of_rho(rho, epsilon))
    assert delta >= gaussian_delta(float(rho), float(epsilon)) * (1 - 1e-9)
    if 0 < delta < 1:
        best = min(log_delta(10 ** (k / 50), float(rho), float(epsilon)) for k in range(-400, 400))
        assert math.log(delta) <= best + 1e-9 * max(1, abs(best))


@settings(max_examples=25, deadline=None)
@given(epsilon=amounts, delta=deltas)
def test_the_bought_rho_keeps_what_bought_it_and_a_little_more_would_not(
    epsilon: Fraction, delta: Fraction
) -> None:
    rho = rho_for(epsilon, delta)
    assert delta_of_rho(rho, epsilon) <= delta
    assert delta_of_rho(rho * (1 + Fraction(1, 10**9)), epsilon) > delta
    assert epsilon_of_rho(rho, delta) <= epsilon * (1 + Fraction(1, 10**14))
    assert epsilon_of_rho(rho, delta) >= epsilon * (1 - Fraction(1, 10**5))


@settings(max_examples=25, deadline=None)
@given(rho=amounts, delta=deltas)
def test_the_quoted_epsilon_holds_and_a_little_less_would_not(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    assert delta_of_rho(rho, epsilon) <= delta
    if epsilon:
        assert delta_of_rho(rho, epsilon * (1 - Fraction(1, 10**9))) > delta


@settings(max_examples=25, deadline=None)
@given(epsilon=amounts)
def test_a_pure_epsilon_costs_epsilon_tanh_rounded_up(epsilon: Fraction) -> None:
    low, high = tanh_half(epsilon)
    cost = rho_of_epsilon(epsilon)
    assert epsilon * low <= cost <= epsilon * high * (1 + Fraction(1, 10**14))
    back = epsilon_for_rho(cost)
    assert back * tanh_half(back)[1] <= cost
    assert abs(back - epsilon) <= epsilon / 10**13


@settings(max_examples=25, deadline=None)
@given(rho=amounts)
def test_what_a_rho_pays_costs_no_more_than_it(rho: Fraction) -> None:
    epsilon = epsilon_for_rho(rho)
    assert epsilon * tanh_half(epsilon)[1] <= rho
    more = epsilon * (1 + Fraction(1, 10**13))
    assert more * tanh_half(more)[0] > rho
    chosen = choice_epsilon(rho)
    assert chosen**2 <= 8 * rho < (chosen * (1 + Fraction(1, 10**13))) ** 2


@settings(max_examples=25, deadline=None)
@given(epsilon=st.floats(0.01, 20), alpha=st.floats(1.0001, 200))
def test_randomised_response_stays_below_its_price_at_every_order(epsilon: float, alpha: float) -> None:
    def log_cosh(x: float) -> float:
        return abs(x) + math.log1p(math.exp(-2 * abs(x))) - math.log(2)

    divergence = (log_cosh((alpha - 0.5) * epsilon) - log_cosh(epsilon / 2)) / (alpha - 1)
    assert divergence <= alpha * float(rho_of_epsilon(Fraction(epsilon))) * (1 + 1e-9)


def test_numbers_at_the_edge_of_use() -> None:
    tiny = Fraction(1, 10**40)
    assert delta_of_rho(tiny, Fraction(1)) > 0
    assert delta_of_rho(Fraction(10**30), Fraction(0)) == 1
    assert rho_for(tiny, Fraction(1, 10)) > 0
    assert rho_for(tiny, tiny) > 0
    assert epsilon_of_rho(tiny, Fraction(1, 2)) == 0
    assert rho_of_epsilon(tiny) == tiny**2 / 2
    assert rho_of_epsilon(Fraction(10**6)) == 10**6
    assert epsilon_for_rho(Fraction(10**6)) == 10**6
    assert choice_epsilon(Fraction(1, 2)) == 2


@pytest.mark.parametrize("wrong", [0, -1, True, 0.5, "1", 10**61])
def test_amounts_that_are_none_are_refused(wrong: object) -> None:
    for rate in (rho_of_epsilon, epsilon_for_rho, choice_epsilon):
        with pytest.raises(EpsilonError):
            rate(wrong)  # type: ignore[arg-type]
    with pytest.raises(EpsilonError):
        rho_for(Fraction(1), wrong)
    with pytest.raises(EpsilonError):
        epsilon_of_rho(Fraction(1), Fraction(1))


def test_the_callers_decimal_context_changes_nothing() -> None:
    asked = Fraction(7, 3), Fraction(1, 10**9)
    before = rho_for(*asked), epsilon_of_rho(*asked), rho_of_epsilon(asked[0]), epsilon_for_rho(asked[0])
    for cached in (rho_for, epsilon_of_rho, rho_of_epsilon, epsilon_for_rho, conversion._delta):
        cached.cache_clear()
    with localcontext() as context:
        context.prec = 3
        after = rho_for(*asked), epsilon_of_rho(*asked), rho_of_epsilon(asked[0]), epsilon_for_rho(asked[0])
    assert before == after
