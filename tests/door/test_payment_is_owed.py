"""A payment that fails stays owed: no question is answered before it has been made."""

import contextlib
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

import dphist
from dphist.errors import BudgetExhausted, DphistError, LedgerError
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.queries import Identity

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
        book.check = lambda *_, **__: None  # type: ignore[method-assign]
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


def test_no_part_is_answered_before_the_payment():
    from dphist.mechanisms.bypart import ByPart
    from dphist.publishing.parts import run_parts

    domain = dphist.Domain([dphist.Nominal("place", ["a", "b"]), dphist.Ordinal("x", range(3))])
    paid = []
    histogram = dphist.Histogram(domain, np.ones((2, 3), dtype=np.int64))
    recipe = ByPart(by=("place",), inner=LateAsker())
    run_parts(histogram, recipe, Fraction(1), Unit(), None, pay=lambda: paid.append(1), workers=1)
    assert paid == [1]
