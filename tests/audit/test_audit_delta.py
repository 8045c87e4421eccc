"""The audit of (ε, δ): sound releases stand, and planted mistakes fall."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist import Domain, Histogram, Ordinal, Unit
from dphist.audit.neighbours import Pair
from dphist.mechanisms import Gaussian
from dphist.model.budget import Budget
from dphist.private import discovery
from dphist_bench.attacks import approximate
from dphist_bench.attacks.approximate import audit_delta, audit_discovery
from dphist_bench.attacks.betting import Contest
from dphist_bench.zoo.mutants import Quieter

# A sound release is refuted by bad luck once in a million runs of a test.
SURE = 1 - 1e-6
LINE = Domain([Ordinal("x", range(2))])
ONE_MORE = Pair("one record more", Histogram(LINE, np.array([20, 4])), Histogram(LINE, np.array([21, 4])))


# The sharpest claim about noise of deviation 4/5 at ε = 1/2: its exact δ, Σ max(0, P(k) − e^½ P(k − 1)), is 0.336.
SHARP: dict[str, Any] = {
    "epsilon": "1/2",
    "delta": "0.345",
    "budget": Budget.of(rho=Fraction(25, 32)),
    "pairs": [ONE_MORE],
}


def test_sound_noise_stands() -> None:
    report = audit_delta(Gaussian(), epsilon=1, delta="1/20", runs=300, pairs=[ONE_MORE], confidence=SURE)
    assert report.passed
    assert report.to_json()["passed"]
    assert audit_delta(Gaussian(), **SHARP, runs=600, confidence=SURE).passed


def test_noise_of_a_smaller_deviation_falls() -> None:
    report = audit_delta(Quieter(inner=Gaussian(), factor=Fraction(4, 5)), **SHARP, runs=6000)
    assert not report.passed, report


@pytest.mark.parametrize("unit", [Unit(), Unit(cells=3)], ids=["one row", "three keys"])
def test_sound_discovery_stands(unit: Unit) -> None:
    assert audit_discovery(epsilon=2, delta="1/20", unit=unit, runs=4000, confidence=SURE).passed
    bought = Budget.of(2, delta="1/40")
    found = audit_discovery(
        epsilon=2, delta="1/20", budget=bought, hidden="1/40", unit=unit, runs=4000, confidence=SURE
    )
    assert found.passed


def test_a_threshold_that_is_too_low_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    right = discovery.threshold
    monkeypatch.setattr(discovery, "threshold", lambda *given: right(*given) - 1)
    report = audit_discovery(epsilon=1, delta="1/20", runs=20_000)
    assert not report.passed, report
    assert "their own" in report.pair


def test_a_delta_that_is_not_shared_among_keys_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    right = discovery.threshold
    monkeypatch.setattr(
        discovery, "threshold", lambda kind, size, unit, delta, cells: right(kind, size, Unit(), delta, cells)
    )
    report = audit_discovery(epsilon=1, delta="1/20", unit=Unit(cells=6), runs=6000)
    assert not report.passed, report


def test_a_delta_that_is_forgotten_falls() -> None:
    # Keys are found with a δ of 1/20 for the threshold, and pure ε is claimed.
    report = audit_discovery(epsilon=1, delta=0, hidden="1/20", runs=6000)
    assert not report.passed, report


def test_a_bound_that_can_err_in_two_ways_has_half_of_the_doubt_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ladder can be wrong, and the claim that falls before its rungs: together 1 − confidence at most."""
    doubts = []

    class Lucky(Contest):
        """One bet against the claim alone has grown by the factor of a thousand and a half."""

        def fell(self, alpha: float) -> bool:
            doubts.append(alpha)
            return 1.0 / alpha <= 1500.0

        def bound(self, alpha: float) -> float:
            doubts.append(alpha)
            return 0.0

    monkeypatch.setattr(approximate, "Contest", Lucky)
    report = audit_delta(Gaussian(), epsilon=1, delta="1/20", runs=300, pairs=[ONE_MORE], confidence=0.999)
    assert report.passed
    assert report.epsilon_lower == 0.0
    assert doubts
    assert max(doubts) <= 0.0005 * (1 + 1e-9)
