"""A payment that fails stays owed: no question is answered before it has been made."""

import contextlib
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.errors import BudgetExhausted, DphistError, LedgerError
from dphist.mechanisms import Laplace
from dphist.mechanisms.bypart import ByPart
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.queries import Identity
from dphist.private.transcript import Payment
from dphist.publishing.account import Account
from dphist.publishing.parts import run_parts

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(5))])
HISTOGRAM = dphist.Histogram(DOMAIN, np.array([3, 0, 9, 1, 1]))


@dataclass(frozen=True, kw_only=True)
class Stubborn:
    """Asks again when it is refused, as a mechanism with a fallback would."""

    def estimate(self, data):
        first, second = data.split(Fraction(1, 2), Fraction(1, 2))
        with contextlib.suppress(DphistError):
            first.measure(Identity())
        noisy = second.measure(Identity())
        return dphist.inference.estimate.Estimate(
            noisy.values.astype(float), dphist.inference.estimate.IndependentNoise(noisy.scale)
        )


def test_a_mechanism_that_swallows_the_refusal_gets_no_answer(tmp_path):
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        book.reserve("people", "9/10", purpose="before")
        # `check` would refuse at the door; the budget may also run out between it and the first question.
        book.check = lambda *_, **__: Fraction(1, 2)  # type: ignore[method-assign]
        with pytest.raises(BudgetExhausted):
            dphist.publish(HISTOGRAM, epsilon="1/2", mechanism=Stubborn(), ledger=book, dataset="people")
        assert book.spent("people") == Fraction(9, 10)


def test_threads_that_ask_at_once_wait_for_one_payment():
    paid = []

    def pay():
        time.sleep(0.05)
        paid.append(True)

    data, transcript = open_gate(HISTOGRAM, 1, Unit(), pay=pay)
    early = []

    def ask(right):
        right.measure(Identity())
        early.append(not paid)

    threads = [threading.Thread(target=ask, args=(right,)) for right in data.split(*[Fraction(1, 8)] * 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(transcript) == 8
    assert paid == [True]
    assert not any(early)


def test_a_ledger_that_fails_stays_owed():
    calls = []

    def pay():
        calls.append(1)
        raise LedgerError("the disk is full")

    data, transcript = open_gate(HISTOGRAM, 1, Unit(), pay=pay)
    for right in data.split("1/2", "1/2"):
        with pytest.raises(LedgerError):
            right.measure(Identity())
    assert len(calls) == 2
    assert len(transcript) == 0


@dataclass(frozen=True, kw_only=True)
class LateAsker:
    """Asks nothing the first time, as a mechanism with a memory could."""

    calls: ClassVar[list] = []  # type: ignore[type-arg]

    def estimate(self, data):
        self.calls.append(1)
        counts, noise = np.zeros(data.size), dphist.inference.estimate.IndependentNoise(Fraction(1))
        if len(self.calls) > 1:
            counts = data.measure(Identity()).values.astype(float)
        return dphist.inference.estimate.Estimate(counts, noise)


@dataclass(frozen=True, kw_only=True)
class Silent:
    """Asks nothing."""

    def estimate(self, data):
        return dphist.inference.estimate.Estimate(
            np.zeros(data.size), dphist.inference.estimate.IndependentNoise(Fraction(1))
        )


def test_sums_are_paid_for_where_the_counts_ask_nothing(tmp_path):
    domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 3)
        release = dphist.publish(
            pa.table({"sex": ["F", "M", "F"], "cost": [3, 5, 7]}),
            domain,
            1,
            Silent(),
            measures=[dphist.Measure("cost", 0, 10)],
            ledger=book,
            dataset="people",
        )
        assert (len(release.transcript), len(release.sums[0].release.transcript)) == (0, 1)
        assert book.spent("people") == 1
        assert release.receipt is not None


@pytest.fixture
def answered(monkeypatch):
    """Whether the payment had been made, for every answer that was drawn; and the payment."""
    paid: list[bool] = []
    seen: list[bool] = []
    answer = Identity.answer
    monkeypatch.setattr(Identity, "answer", lambda *words: seen.append(bool(paid)) or answer(*words))  # type: ignore[func-returns-value]
    return seen, lambda *_, **__: paid.append(True)


def test_neither_counts_nor_sums_are_answered_before_the_payment(answered, monkeypatch):
    seen, paid = answered
    monkeypatch.setattr(Account, "_pay", paid)
    domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
    table = pa.table({"sex": ["F", "M", "F"], "cost": [3, 5, 7]})
    dphist.publish(table, domain, 1, "laplace", measures=[dphist.Measure("cost", 0, 10)])
    assert seen == [True, True]


@pytest.mark.parametrize("inner", [Laplace(), LateAsker()], ids=["all ask", "the first asks nothing"])
def test_no_part_is_answered_before_the_payment(answered, inner):
    seen, paid = answered
    LateAsker.calls.clear()
    domain = dphist.Domain([dphist.Nominal("place", ["a", "b"]), dphist.Ordinal("x", range(3))])
    histogram = dphist.Histogram(domain, np.ones((2, 3), dtype=np.int64))
    recipe = ByPart(by=("place",), inner=inner)
    run_parts(histogram, recipe, Fraction(1), Unit(), None, pay=Payment(paid), workers=1)
    assert seen == [True] * (1 + (inner == Laplace()))
