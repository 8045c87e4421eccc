"""Totals in ε, (ε, δ) and ρ: what fits, what is refused, what is quoted, and files from before."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dphist import errors
from dphist.model.budget import Budget
from dphist.model.conversion import epsilon_of_rho, pure_at_order, rho_at_order, rho_for, rho_of_epsilon
from dphist.model.unit import Unit
from dphist.private.ledger import Ledger
from dphist.private.ledger.lines import Fund
from dphist.private.ledger.totals import Spend, Sums, Total, most_epsilon
from dphist.private.ledger.units import changes, charged
from dphist_bench.measurements.trust import composition

TINY = Fraction(1, 10**9)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        yield ledger


def Rho(amount: Fraction) -> Budget:  # noqa: N802 -- read as a value
    return Budget(amount, "rho")


def filled(total: Total, *spends: Spend) -> Fund:
    return Fund(total, Sums.under(total, list(spends)), spends=list(spends))


# ---- what fits ------------------------------------------------------------------------------------------


def test_a_total_of_ten_holds_more_than_adding_up():
    total = Total.of(epsilon=Fraction(10), delta=TINY)
    assert composition.fitting(total, Fraction(1, 10)) == 226
    # 21,000 spends by their sum, not one by one.
    assert total.order is not None
    assert 21_000 * pure_at_order(Fraction(1, 100), total.order) <= total.capacity


@pytest.mark.parametrize("epsilon", ["3", "1", "1/3", "1/10", "3/100"])
def test_a_total_of_three_never_holds_fewer_than_adding_up(epsilon):
    total = Total.of(epsilon=Fraction(3), delta=TINY)
    assert composition.fitting(total, Fraction(epsilon)) >= int(3 / Fraction(epsilon))


def test_no_way_of_spending_gets_past_its_total():
    for number in range(20):
        name, total = composition.TOTALS[number % len(composition.TOTALS)]
        spends = composition.path(total, number)
        assert spends, name
        assert not composition.over(total, spends), (name, number)


def test_the_oracle_can_say_no():
    for _, total in composition.TOTALS:
        most = composition.path(total, 3)
        # Half as much again is too much by anybody's count; δ grows faster than what is spent.
        assert composition.over(total, [*most, *most, *most])


def test_the_oracle_agrees_with_dp_accounting():
    # dp-accounting 0.6.0: `from_privacy_parameters(DifferentialPrivacyParameters(0.1, 0)).self_compose(226)`, at 10,
    # and `from_gaussian_mechanism(1 / sqrt(2 * 0.5))` at 6, each with `value_discretization_interval=1e-4`.
    theirs = {"pure": 1.4478205092015827e-10, "gaussian": 2.7878597637639267e-09}
    pure = composition.true_delta([Spend(epsilon=Fraction(1, 10))] * 226, 10.0)
    assert pure == pytest.approx(theirs["pure"], rel=2e-2)
    gaussian = composition.true_delta([Spend(rho=Fraction(1, 4))] * 2, 6.0)
    assert gaussian == pytest.approx(theirs["gaussian"], rel=2e-2)


def test_the_whole_of_an_epsilon_delta_total_can_be_spent_at_once(ledger):
    ledger.create("adults", epsilon=1, delta="1e-9")
    rho = rho_for(Fraction(1), TINY)
    assert ledger.total("adults") == rho
    ledger.reserve("adults", Rho(rho), "everything")
    assert ledger.remaining("adults") == 0
    with pytest.raises(errors.BudgetExhausted, match="answer from the releases you have"):
        ledger.reserve("adults", Rho(Fraction(1, 10**30)), "a crumb")


def test_pure_spends_of_an_epsilon_delta_total_add_up_or_compose(ledger):
    ledger.create("adults", epsilon=3, delta="1e-9")
    ledger.reserve("adults", 3, "all of it, purely")
    with pytest.raises(errors.BudgetExhausted):
        ledger.reserve("adults", "0.01", "more")
    ledger.create("children", epsilon=3, delta="1e-9")
    ledger.reserve("children", "2.9", "far beyond what composing allows")
    with pytest.raises(errors.BudgetExhausted, match=r"rho 0 or a pure epsilon of 0.1 more fits"):
        ledger.reserve("children", Rho(Fraction(1, 10**6)), "rho beside it")
    ledger.reserve("children", "0.1", "the rest")


def test_a_rho_total_takes_rho_and_pure_epsilon(ledger):
    ledger.create("adults", rho="1/100")
    ledger.reserve("adults", Rho(Fraction(1, 200)), "rho")
    spend = ledger.reserve("adults", "1/20", "pure")
    assert spend.cost == rho_of_epsilon(Fraction(1, 20))
    assert (
        ledger.spent("adults")
        == Fraction(1, 200) + spend.cost
        == sum(e.cost for e in ledger.entries("adults"))
    )
    assert [(e.epsilon, e.rho) for e in ledger.entries("adults")] == [
        (None, Fraction(1, 200)),
        (Fraction(1, 20), None),
    ]
    with pytest.raises(errors.BudgetExhausted, match="at most rho"):
        ledger.reserve("adults", Rho(Fraction(1, 200)), "too much")


def test_a_pure_total_refuses_rho_and_says_which_command_helps(ledger):
    ledger.create("adults", 3)
    with pytest.raises(
        errors.BudgetExhausted, match=r"dphist ledger raise .* --epsilon 3 --delta 1e-9"
    ) as refusal:
        ledger.reserve("adults", Rho(Fraction(1, 100)), "rho")
    assert "cannot pay for rho" in str(refusal.value)
    ledger.reserve("adults", 1, "pure")
    ledger.raise_total("adults", purpose="the board allows a delta", delta="1e-9")
    ledger.reserve("adults", "1/100", "still by adding up")
    assert ledger.account("adults").epsilon_spent == Fraction(101, 100)
    ledger.raise_total("adults", purpose="the board allows more", epsilon=20)
    ledger.reserve("adults", Rho(Fraction(1, 100)), "now by composing")
    assert ledger.account("adults").epsilon_spent is None
    ledger.verify()


def test_delta_of_discovered_keys_comes_from_what_was_set_aside(ledger):
    ledger.create("plain", epsilon=1, delta="1e-6")
    with pytest.raises(errors.BudgetExhausted, match=r"delta 0 remains for discovered names.*--discover"):
        ledger.reserve("plain", Rho(Fraction(1, 1000)), "keys", delta="1e-9")
    ledger.create("keys", epsilon=1, delta="1e-6", discover="2e-9")
    assert ledger.total("keys") == rho_at_order(
        Fraction(1), Fraction(998, 10**9), Total.read(ledger.history()[-1].amount).order or Fraction(2)
    )
    for _ in range(2):
        ledger.reserve("keys", Rho(Fraction(1, 1000)), "keys", delta="1e-9")
    account = ledger.account("keys")
    # What is quoted holds for the composed releases and for the keys together.
    assert (account.delta_spent, account.delta_left, account.delta) == (
        Fraction(2, 10**9),
        0,
        Fraction(1, 10**6),
    )
    with pytest.raises(errors.BudgetExhausted, match="delta 0 remains"):
        ledger.reserve("keys", "1/1000", "keys", delta="1e-9")
    ledger.create("wiki", rho="1/50", delta="1e-9")
    ledger.reserve("wiki", Rho(Fraction(1, 100)), "keys", delta="1e-9")
    with pytest.raises(errors.BudgetExhausted, match="--delta"):
        ledger.reserve("wiki", Rho(Fraction(1, 100)), "keys", delta="1e-9")
    ledger.create("pure", 1)
    with pytest.raises(errors.BudgetExhausted, match="cannot pay for delta"):
        ledger.reserve("pure", "1/10", "keys", delta="1e-9")


def test_totals_that_make_no_sense_are_refused(ledger):
    for wrong in (
        {},
        {"total": 1, "epsilon": 1},
        {"epsilon": 1, "rho": 1},
        {"delta": "1e-9"},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "discover": "1e-9"},
        {"epsilon": 1, "delta": "1e-9", "discover": "1e-9"},
        {"rho": 1, "delta": "1e-9", "discover": "1e-10"},
        {"rho": -1},
    ):
        with pytest.raises(errors.EpsilonError):
            ledger.create("adults", **wrong)
    ledger.create("adults", rho=1)
    for lower in ({"rho": 1}, {"rho": "1/2"}, {"epsilon": 5}, {"epsilon": 5, "delta": "1e-9"}):
        with pytest.raises(errors.InputError, match="must be larger than"):
            ledger.raise_total("adults", purpose="why not", **lower)


# ---- what is quoted -------------------------------------------------------------------------------------


def test_what_is_left_is_quoted_in_each_reading_and_fits(ledger):
    ledger.create("adults", epsilon=10, delta="1e-9")
    for _ in range(30):
        ledger.reserve("adults", "1/10", "small")
    ledger.reserve("adults", Rho(Fraction(1, 10)), "rho")
    account = ledger.account("adults")
    spent = 30 * rho_of_epsilon(Fraction(1, 10)) + Fraction(1, 10)
    assert account.rho_spent == spent
    assert (account.delta, account.epsilon_at_delta) == (TINY, epsilon_of_rho(spent, TINY))
    assert account.rho_left == account.remaining == ledger.remaining("adults")
    ledger.check("adults", account.epsilon_left)
    ledger.check("adults", Rho(account.rho_left))
    with pytest.raises(errors.BudgetExhausted):
        ledger.check("adults", account.epsilon_left * (1 + Fraction(1, 10**6)))
    with pytest.raises(errors.BudgetExhausted):
        ledger.check("adults", Rho(account.rho_left * (1 + Fraction(1, 10**12))))


@pytest.mark.parametrize("spent", [0, 1, 40, 225])
def test_the_largest_pure_epsilon_that_is_left_is_the_largest(spent):
    total = Total.of(epsilon=Fraction(10), delta=TINY)
    spends = [Spend(epsilon=Fraction(1, 10))] * spent
    sums = filled(total, *spends).sums
    most = most_epsilon(total, sums)
    assert sums.with_(Spend(epsilon=most), total).fits(total)
    assert not sums.with_(Spend(epsilon=most * (1 + Fraction(1, 10**6))), total).fits(total)


# ---- other units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "spend", "expected"),
    [
        (Unit(), Unit(), 1),
        (Unit(rows=10), Unit(), 10),
        (Unit(rows=10), Unit(rows=4), 3),
        (Unit(), Unit(rows=10), 1),
        (Unit(replace=True), Unit(), 2),
        (Unit(), Unit(replace=True), 1),
        (Unit(rows=3), Unit(rows=5, id="user"), 6),
        (Unit(rows=3, replace=True), Unit(rows=5, id="user", replace=True), 6),
        (Unit(rows=2, id="user"), Unit(rows=9, id="user"), 1),
        (Unit(id="user", replace=True), Unit(id="user"), 2),
        (Unit(id="user"), Unit(), None),
        (Unit(id="user"), Unit(id="house"), None),
    ],
)
def test_under_rho_another_unit_costs_the_square_of_the_changes_it_takes(budget, spend, expected):
    assert changes(budget, spend) == expected
    asked = Spend(rho=Fraction(1, 100))
    cost = charged(budget, spend, asked)
    assert cost == (None if expected is None else Spend(rho=Fraction(expected**2, 100)))
    with_delta = charged(budget, spend, Spend(rho=Fraction(1, 100), delta=TINY))
    assert (with_delta is None) == (expected != 1)


def test_a_spend_for_another_unit_is_converted_and_replayed(ledger):
    ledger.create("adults", rho=1, unit=Unit(rows=5))
    spend = ledger.reserve("adults", Rho(Fraction(1, 100)), "for one row", unit=Unit())
    assert (spend.rho, spend.cost) == (Fraction(1, 100), Fraction(25, 100))
    assert ledger.entries("adults")[0].rho == Fraction(1, 100)
    ledger.verify()


# ---- files ----------------------------------------------------------------------------------------------


def test_pure_budgets_are_written_as_plain_numbers(ledger):
    ledger.create("adults", epsilon="3/2")
    ledger.reserve("adults", "1/2", "x", unit=Unit(rows=10))
    amounts = [line.amount for line in ledger.history()]
    assert amounts == ["", "3/2", "1/2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "1/0",
        "2/4",
        "rho",
        "rho 0",
        "rho 1 rho 1",
        "epsilon 1 rho 1",
        "delta 1/2",
        "epsilon 1 delta 1/2",
        "epsilon 1 order 2",
        "epsilon 1 delta 1/2 order 1",
        "epsilon 1 delta 1/2 order 4/3",
        "epsilon 1 delta 2 order 2",
        "epsilon 1 delta 1/1000000000 order 2 discover 1/2",
        "delta 1/2 rho 1",
        "rho 1 discover 1/2",
        "epsilon 1/1000000 delta 1/1000000000 order 2",
    ],
)
def test_damaged_totals_are_noticed(text):
    with pytest.raises(ValueError):  # noqa: PT011 -- the ledger says what it means
        Total.read(text)


def test_totals_and_spends_are_read_as_they_were_written():
    for total in [total for _, total in composition.TOTALS] + [
        Total.of(epsilon=Fraction(1), delta=TINY, discover=TINY / 10),
        Total.of(rho=Fraction(1, 3), delta=TINY),
    ]:
        assert Total.read(total.text) == total
    for spend in (
        Spend(epsilon=TINY),
        Spend(rho=TINY),
        Spend(rho=TINY, delta=TINY),
        Spend(epsilon=TINY, delta=TINY),
    ):
        assert Spend.read(spend.text) == spend
