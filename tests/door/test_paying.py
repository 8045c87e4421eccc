"""When the ledger is charged: right before the first noise, once, and never refunded."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dphist
from dphist.errors import BudgetExhausted, InputError, MechanismError, NotPrivate, SourceError, UnknownDataset
from dphist.mechanisms.baseline import Laplace
from dphist.private.queries import Identity

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(5))])
HISTOGRAM = dphist.Histogram(DOMAIN, np.array([3, 0, 9, 1, 1]))


@pytest.fixture
def ledger(tmp_path):
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        yield book


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Fails, before or after it has asked."""

    asks: bool

    def estimate(self, data):
        if self.asks:
            data.measure(Identity())
        raise MechanismError("cannot go on")


def test_what_is_no_ledger_is_refused_by_name():
    class Almost:
        def reserve(self) -> None: ...

    wrong: list[Any] = [Almost(), 3]
    for ledger in wrong:
        with pytest.raises(InputError, match="ledger"):
            dphist.publish(HISTOGRAM, epsilon=1, ledger=ledger, dataset="people")


def test_a_release_is_charged_once_and_says_where(ledger):
    release = dphist.publish(HISTOGRAM, epsilon="1/3", ledger=ledger, dataset="people")
    assert ledger.spent("people") == Fraction(1, 3)
    entry = ledger.entries("people")[0]
    assert (release.receipt, entry.status) == (("people", entry.id, entry.hash), "opened")
    release.verify()


def test_what_is_refused_before_any_noise_spends_nothing(ledger, tmp_path):
    refused = [
        (Broken(asks=False), HISTOGRAM, MechanismError),
        ("spa", HISTOGRAM, NotPrivate),
        ("nonsense", HISTOGRAM, MechanismError),
        ("laplace", tmp_path / "missing.csv", SourceError),
    ]
    for mechanism, source, error in refused:
        with pytest.raises(error):
            dphist.publish(source, DOMAIN, 1, mechanism, ledger=ledger, dataset="people")  # type: ignore[arg-type]
    with pytest.raises(UnknownDataset):
        dphist.publish(HISTOGRAM, epsilon=1, ledger=ledger, dataset="others")
    with pytest.raises(BudgetExhausted):
        dphist.publish(HISTOGRAM, epsilon=2, ledger=ledger, dataset="people")
    with pytest.raises(InputError, match="belong together"):
        dphist.publish(HISTOGRAM, epsilon=1, ledger=ledger)
    with pytest.raises(InputError, match="belong together"):
        dphist.publish(HISTOGRAM, epsilon=1, dataset="people")
    assert ledger.spent("people") == 0
    assert ledger.entries("people") == []


def test_a_failure_after_the_first_noise_leaves_it_spent(ledger):
    with pytest.raises(MechanismError):
        dphist.publish(HISTOGRAM, epsilon="1/2", mechanism=Broken(asks=True), ledger=ledger, dataset="people")
    assert ledger.spent("people") == Fraction(1, 2)


def test_a_ledger_that_refuses_at_the_last_moment_lets_no_noise_out(ledger, monkeypatch):
    def race(*_, **__):
        ledger.reserve("people", 1, "somebody else was faster")
        return Fraction(1)

    monkeypatch.setattr(type(ledger), "check", race)
    drawn = []
    answer = Identity.answer
    monkeypatch.setattr(Identity, "answer", lambda *words: drawn.append(1) or answer(*words))  # type: ignore[func-returns-value]
    with pytest.raises(BudgetExhausted):
        dphist.publish(HISTOGRAM, epsilon=1, mechanism=Laplace(), ledger=ledger, dataset="people")
    assert drawn == []
    assert ledger.spent("people") == 1
