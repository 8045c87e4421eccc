"""Any sequence of uses agrees with a model that is a dictionary of lists."""

from __future__ import annotations

import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dphist import errors
from dphist.private.ledger import Ledger

NAMES = st.sampled_from(["adults", "children", "a'b", "été"])
AMOUNTS = st.fractions(min_value=Fraction(1, 50), max_value=2, max_denominator=50)


class Model(RuleBasedStateMachine):
    """Two ledger objects on one file, used in turn, beside the model."""

    @initialize()
    def start(self):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "budget.db"
        self.ledgers = [Ledger.open(self.path), Ledger.open(self.path)]
        self.totals: dict[str, Fraction] = {}
        self.spends: dict[str, list[list[object]]] = {}
        self.held = []

    @rule(which=st.integers(0, 1), name=NAMES, total=AMOUNTS)
    def create(self, which, name, total):
        if name in self.totals:
            with pytest.raises(errors.InputError):
                self.ledgers[which].create(name, total)
        else:
            self.ledgers[which].create(name, total)
            self.totals[name], self.spends[name] = total, []

    @rule(which=st.integers(0, 1), name=NAMES, epsilon=AMOUNTS)
    def reserve(self, which, name, epsilon):
        ledger = self.ledgers[which]
        if name not in self.totals:
            with pytest.raises(errors.UnknownDataset):
                ledger.reserve(name, epsilon, "test")
        elif sum((spend[0] for spend in self.spends[name]), epsilon) > self.totals[name]:  # type: ignore[misc]
            with pytest.raises(errors.BudgetExhausted):
                ledger.reserve(name, epsilon, "test")
        else:
            spend = [epsilon, "reserved"]
            self.held.append((ledger.reserve(name, epsilon, "test"), spend))
            self.spends[name].append(spend)

    @rule(which=st.integers(0, 1), name=NAMES, total=AMOUNTS)
    def raise_total(self, which, name, total):
        if name in self.totals and total > self.totals[name]:
            self.ledgers[which].raise_total(name, total, "test")
            self.totals[name] = total
        else:
            with pytest.raises((errors.InputError, errors.UnknownDataset)):
                self.ledgers[which].raise_total(name, total, "test")

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def open_gate(self, data):
        reservation, spend = data.draw(st.sampled_from(self.held))
        if spend[1] == "reserved":
            reservation.open()
            spend[1] = "opened"
        else:
            with pytest.raises(errors.RightUsed):
                reservation.open()

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 1), data=st.data())
    def complete(self, which, data):
        reservation, spend = data.draw(st.sampled_from(self.held))
        if spend[1] == "reserved":
            with pytest.raises(errors.InputError):
                self.ledgers[which].complete(reservation, "sha256:aa")
        else:
            self.ledgers[which].complete(reservation, "sha256:aa")
            spend[1] = "published"

    @rule(which=st.integers(0, 1))
    def reopen(self, which):
        held = [pair for pair in self.held if pair[0]._ledger is not self.ledgers[which]]
        self.ledgers[which].close()
        self.ledgers[which] = Ledger.open(self.path)
        self.held = held

    @invariant()
    def agrees(self):
        for ledger in self.ledgers:
            assert ledger.datasets() == sorted(self.totals)
            for name, total in self.totals.items():
                spent = sum((spend[0] for spend in self.spends[name]), Fraction(0))  # type: ignore[type-var]
                assert (ledger.total(name), ledger.spent(name)) == (total, spent)
                assert ledger.remaining(name) == total - spent >= 0  # type: ignore[operator]
                assert [[e.epsilon, e.status] for e in ledger.entries(name)] == self.spends[name]

    def teardown(self):
        for ledger in self.ledgers:
            ledger.verify()
            ledger.close()
        shutil.rmtree(self.folder)


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
