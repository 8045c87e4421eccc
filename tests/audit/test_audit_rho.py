"""The audit of ρ: sound mechanisms stand, and each planted mistake falls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dphist import Domain, Histogram, Ordinal, Unit
from dphist.audit.neighbours import Pair
from dphist.errors import InputError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.mechanisms import Gaussian, Laplace, Mixture, Residuals
from dphist.private.queries.counting import Identity
from dphist_bench.attacks.claim import audit_claim
from dphist_bench.attacks.concentrated import Contest, audit_rho
from dphist_bench.zoo.mutants import Quieter

LINE = Domain([Ordinal("x", range(2))])
ONE_MORE = Pair("one record more", Histogram(LINE, np.array([20, 4])), Histogram(LINE, np.array([21, 4])))
# Further apart than a pair of the audit may be: the neighbours of a unit of three rows.
THREE_MORE: Any = SimpleNamespace(
    name="three rows more", one=ONE_MORE.one, other=Histogram(LINE, np.array([23, 4]))
)


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """A Gaussian mechanism with one mistake behind the gate."""

    mistake: str

    def estimate(self, data: Any) -> Estimate:
        if self.mistake == "the scale of Laplace noise taken for a deviation":
            # Two equal answers: L1 sensitivity 2, L2 √2; noise of deviation ½ · scale would be too little.
            noisy = data.measure(_Twice())
        elif self.mistake == "a split that forgets to share":
            first, second = data.split("1/2", "1/2")
            first._budget = second._budget = data._budget
            first.measure(Identity())
            noisy = second.measure(Identity())
        else:
            change = data._budget.change
            data._budget = replace(
                data._budget, change=replace(change, disjoint=change.steps, nonnegative=change.steps)
            )
            noisy = data.measure(Identity())
        return Estimate(np.zeros(data.shape), IndependentNoise(noisy.law))


class _Twice:
    def answer(self, counts: Any, layout: Any) -> Any:
        return np.array([counts[0], counts[0]])

    def scales(self, layout: Any) -> Fraction:
        return Fraction(2)

    def variances(self, layout: Any) -> Fraction:
        return Fraction(1)


def test_a_sound_mechanism_stands_and_is_nearly_reached() -> None:
    report = audit_rho(Gaussian(), rho="1/2", runs=2500, pairs=[ONE_MORE])
    assert report.passed
    assert report.rho_lower >= 0.2
    assert report.to_json()["passed"]
    assert audit_rho(Gaussian(), rho="1/2", runs=500, pairs=[THREE_MORE], unit=Unit(rows=3)).passed


@pytest.mark.parametrize(
    ("mistake", "pair", "unit"),
    [
        ("the scale of Laplace noise taken for a deviation", ONE_MORE, Unit()),
        ("a split that forgets to share", ONE_MORE, Unit()),
        ("a group of L charged L and not L²", THREE_MORE, Unit(rows=3)),
    ],
)
def test_mistakes_fall(mistake: str, pair: Pair, unit: Unit) -> None:
    report = audit_rho(Wrong(mistake=mistake), rho="1/2", runs=9000, pairs=[pair], unit=unit)
    assert not report.passed, report


def test_noise_of_a_smaller_deviation_falls() -> None:
    quiet = Quieter(inner=Gaussian(), factor=Fraction(4, 5))
    assert not audit_rho(quiet, rho="1/2", runs=9000, pairs=[ONE_MORE]).passed


@pytest.mark.parametrize("mechanism", [Residuals(), Mixture(classes=2, steps=2)])
def test_tables_of_wide_mechanisms(mechanism: Residuals | Mixture) -> None:
    """Under ρ, residuals and the mixture stand, and fall with half the noise."""
    square = Domain([Ordinal("x", range(2)), Ordinal("y", range(2))])
    pair = Pair(
        "one record more",
        Histogram(square, np.array([[20, 4], [3, 9]])),
        Histogram(square, np.array([[21, 4], [3, 9]])),
    )
    # The first runs only teach: more of them would cost more, and be held against nothing either.
    assert audit_rho(mechanism, rho="1/2", runs=20, pairs=[pair]).passed
    report = audit_rho(Quieter(inner=mechanism, factor=Fraction(1, 2)), rho="1/2", runs=1000, pairs=[pair])
    assert not report.passed, report


@pytest.mark.parametrize(("deviation", "least", "most"), [(1.0, 0.2, 0.5), (0.5, 0.5, 2.0)])
def test_six_hundred_losses_tell_much(deviation: float, least: float, most: float) -> None:
    """Losses of a Gaussian question of ρ = 1/2, and of one with half the noise, whose true ρ is 2."""
    draw = np.random.default_rng(3)
    contest = Contest(0.5)
    for runs in (200, 200, 200):
        contest.add(draw.normal(0.5, deviation, runs), draw.normal(-0.5, deviation, runs))
    assert least < contest.bound(0.00025) <= most


def test_mechanisms_of_tables_are_attacked_where_they_decide() -> None:
    """On a line `mixture` has no pairs; the command attacks it on a cube."""
    told = audit_claim(Mixture(classes=2, steps=2), rho="1/2", runs=2)
    assert told.passed
    shapes = []

    @dataclass(frozen=True, kw_only=True)
    class Seen:
        def estimate(self, data: Any) -> Estimate:
            shapes.append(data.shape)
            noisy = data.measure(Identity())
            return Estimate(np.zeros(data.shape), IndependentNoise(noisy.law))

        def estimate_tables(self, data: Any) -> Any:
            raise NotImplementedError

    audit_claim(Seen(), rho="1/2", runs=2)
    assert set(shapes) == {(2, 2, 2)}


def test_a_claim_is_attacked_in_its_own_currency() -> None:
    assert "ρ ≥" in str(audit_claim(Gaussian(), rho="1/2", runs=30))
    assert "ε at δ = 0.05 ≥" in str(audit_claim(Gaussian(), epsilon=1, delta="1/20", runs=30))
    assert "ε ≥" in str(audit_claim(Laplace(), runs=30))
    with pytest.raises(InputError, match="one claim at a time"):
        audit_claim(Gaussian(), rho=1, epsilon=1)
