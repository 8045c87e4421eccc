"""What a user may try by themselves: an attack that sees what is published, and nothing else."""

import math

import numpy as np
import pytest

import dphist
from dphist.audit import Pair, attack, audit
from dphist.errors import InputError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.private.queries import Identity
from dphist.testing.gates import as_histogram
from dphist_bench.zoo import leaky_mechanisms

pytestmark = pytest.mark.audit
SURE = 1 - 1e-6


def test_a_sound_mechanism_stands_and_is_nearly_reached():
    report = audit("laplace", epsilon=1, runs=1_500, confidence=SURE)
    assert report.passed
    assert report.attacked
    assert 0.5 < report.epsilon_lower <= 1
    assert dphist.audit.audit(dphist.mechanisms.Gaussian(), delta="1/20", runs=400, confidence=SURE).passed


@pytest.mark.parametrize("name", ["wrong sensitivity", "forgotten half", "true total", "mutant: unpaid"])
def test_leaks_are_caught(name):
    leaky = leaky_mechanisms()[name]
    report = audit(leaky.mechanism, epsilon=1, runs=2_000, pairs=leaky.pairs, confidence=SURE)
    assert not report.passed, report
    assert report.to_json()["passed"] is False
    assert "CLAIM REFUTED" in str(report)


@pytest.mark.parametrize(("chance", "sign"), [(0.3, -1), (0.3, 1), (0.01, -1), (0.01, 1)])
def test_bounds_of_a_chance_are_wrong_as_rarely_as_they_say(chance, sign):
    """By every count that can come of 60 runs, with its exact probability."""
    runs, alpha = 60, 0.01
    wrong = 0.0
    for seen in range(runs + 1):
        bound = attack._chernoff(seen, runs, alpha, sign)
        assert (bound - seen / runs) * sign >= 0
        if (chance - bound) * sign > 0:
            wrong += math.comb(runs, seen) * chance**seen * (1 - chance) ** (runs - seen)
    assert wrong <= alpha


def test_learning_can_err_but_the_bound_does_not():
    """Numbers that tell nothing refute nothing, whatever was learned of them."""
    rng = np.random.default_rng(1)
    one: list[attack.Run] = [((), rng.normal(size=3)) for _ in range(400)]
    other: list[attack.Run] = [((), rng.normal(size=3)) for _ in range(400)]
    # Wrong in one of a thousand.
    assert attack._bound(one, other, 0.0, 1e-3) == 0


def test_what_refutes_nothing_says_so():
    for runs in (0, 3, 8):
        report = audit("laplace", runs=runs)
        assert report.epsilon_lower == 0
        assert not report.attacked
        assert "NOT ATTACKED" in str(report)
    assert "claim stands" in str(audit("laplace", runs=200))
    with pytest.raises(InputError, match="pairs"):
        audit("laplace", pairs=[])
    for confidence in (1, 99.9, 0, float("nan")):
        with pytest.raises(InputError, match="confidence"):
            audit("laplace", confidence=confidence)


def test_a_leak_in_the_number_of_answers_is_seen():
    """Which questions are asked tells, too."""
    empty, one = as_histogram([0, 0]), as_histogram([0, 1])

    class Chatty:
        def estimate(self, data):
            halves = data.split("1/2", "1/2") if data._right[0].sum() else (data,)
            for each in halves:
                noisy = each.measure(Identity())
            return Estimate(noisy.values * 0.0, IndependentNoise(noisy.law))

    assert not audit(Chatty(), runs=400, pairs=[Pair("one", empty, one)]).passed
