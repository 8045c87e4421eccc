"""What mechanisms make of Gaussian noise: intervals, likelihoods and shares by the law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from dphist import Domain, Ordinal, Workload
from dphist.inference.intervals import Spread, chernoff_widths, half_widths
from dphist.kernels.levels.likelihood import likelihoods, moments
from dphist.mechanisms import AdaptiveTree, PrefixSums, Privelet, Tree
from dphist.model.budget import Budget
from dphist.model.law import NoiseLaw
from dphist.testing import open_counts, run


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(3), Fraction(400)])
@pytest.mark.parametrize("terms", [1, 7])
def test_sums_of_equal_draws_have_their_exact_quantile(variance: Fraction, terms: int) -> None:
    reach = int(14 * math.sqrt(float(variance) * terms)) + 4
    places = np.arange(-reach, reach + 1)
    one = np.exp(-(places**2) / (2 * float(variance)))
    one /= one.sum()
    whole = one
    for _ in range(terms - 1):
        whole = np.convolve(whole, one)
    middle = whole.size // 2
    width = half_widths(Spread.of_terms(np.array([terms]), NoiseLaw("gaussian", variance)), 0.95)[0]
    inside = whole[middle - int(width) : middle + int(width) + 1].sum()
    narrower = whole[middle - int(width) + 1 : middle + int(width)].sum() if width else 0.0
    assert inside >= 0.95 > narrower


def test_gaussian_spreads_are_normal_and_their_theorem_is_chernoffs() -> None:
    spread = Spread(np.array([4.0, 0.0]), np.zeros(2))
    assert half_widths(spread, 0.95)[0] == pytest.approx(2 * special.ndtri(0.975), rel=1e-3)
    assert half_widths(spread, 0.95)[1] == 0.0
    wide = chernoff_widths(spread.variance, spread.largest, 0.95)
    assert wide[0] == pytest.approx(2 * math.sqrt(2 * math.log(40)), rel=1e-2)
    assert wide[0] >= 2 * math.sqrt(2 * math.log(40)) * (1 - 1e-12)


def test_a_law_and_its_shares() -> None:
    laplace, gaussian = NoiseLaw("laplace", Fraction(2)), NoiseLaw("gaussian", Fraction(8))
    assert laplace.variance == gaussian.variance == 8
    assert laplace.of_share(Fraction(1, 2)).variance == 32
    assert gaussian.of_share(Fraction(1, 2)).variance == 16
    assert (laplace.exponent, gaussian.exponent, laplace.kurtosis, gaussian.kurtosis) == (2, 1, 3.0, 0.0)
    assert gaussian.scale == pytest.approx(2.0)
    assert laplace.quantile(0.95) == pytest.approx(-2 * math.log(0.05))


def test_levels_under_gaussian_noise() -> None:
    """Against plain sums over all counts, and the closed form of two Gaussians."""
    normal, level = 9.0, 6.0
    values = np.array([-7, 0, 5, 6, 20])
    grid = np.array([0.0, level, 500.0])
    table, scales = likelihoods(values, grid, 0.0, 1.0, normal)
    logs = np.log(np.maximum(table, 1e-300)) + scales[:, None]
    counts = np.arange(0, 200)
    chance = stats.poisson.pmf(counts, level)
    first, second = moments(values, grid, 0.0, 1.0, np.ones(table.shape), normal)
    for i, y in enumerate(values):
        weights = chance * np.exp(-((y - counts) ** 2) / (2 * normal)) / math.sqrt(2 * math.pi * normal)
        assert logs[i, 1] == pytest.approx(math.log(weights.sum()), abs=1e-6)
        assert first[i, 1] == pytest.approx(float(weights @ counts / weights.sum()), abs=1e-6)
        mean = weights @ counts / weights.sum()
        assert second[i, 1] == pytest.approx(float(weights @ (counts - mean) ** 2 / weights.sum()), abs=1e-5)
    assert first[4, 2] == pytest.approx(500 + 500 / 509 * (20 - 500))
    assert second[4, 2] == pytest.approx(500 * 9 / 509)


@pytest.mark.parametrize(
    "mechanism", [Tree(nonnegative=False), Privelet(), PrefixSums()], ids=lambda m: type(m).__name__
)
def test_stated_variances_are_the_errors(mechanism: object) -> None:
    domain = Domain([Ordinal("x", range(40))])
    asked, budget = Workload.random(domain, 30, seed=2), Budget.of(rho="1/8")
    truth = np.full(40, 1000)
    errors = []
    for seed in range(250):
        made = run(mechanism, truth, budget, seed=seed)  # type: ignore[arg-type]
        errors.append(asked.answer(made.counts) - asked.answer(truth))
    assert made.errors.words.short.startswith("exact: ")
    assert "not covered" not in made.errors.words.details
    stated = made.errors.variance(asked)
    assert np.var(errors, axis=0) / stated == pytest.approx(np.ones(30), abs=0.4)
    assert float(np.mean(np.var(errors, axis=0) / stated)) == pytest.approx(1.0, abs=0.06)
    width = half_widths(made.errors.spread(asked), 0.9)  # type: ignore[attr-defined]
    assert float(np.mean(np.abs(np.array(errors)) <= width)) == pytest.approx(0.9, abs=0.015)


def test_guaranteed_intervals_of_trees_hold_under_rho() -> None:
    domain = Domain([Ordinal("x", range(64))])
    asked = Workload.random(domain, 20, seed=4)
    truth = (np.arange(64) % 7 == 0) * 300 + np.arange(64) // 32 * 20
    held = widths = 0.0
    for seed in range(12):
        made = AdaptiveTree().estimate(open_counts(truth, Budget.of(rho="1/20"), seed=seed))
        answers = np.asarray(asked.answer(made.counts), dtype=float)
        found = made.errors.interval(asked, answers, 0.9, guaranteed=True)
        right = asked.answer(truth)
        held += float(np.mean((found.low <= right) & (right <= found.high)))
        widths += float(np.mean(found.high - found.low))
    assert held / 12 >= 0.9
    assert widths / 12 < 400
