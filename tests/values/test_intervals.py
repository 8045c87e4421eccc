from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import QueryError
from dphist.inference.estimate import IndependentNoise, PieceNoise, around, nonnegative
from dphist.inference.intervals import Spread, half_widths, normal_quantile
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise

LINE = Domain([Ordinal("x", range(40))])


def spread_of(terms, scale):
    size = np.array([terms], dtype=np.int64)
    return Spread.of_terms(size, NoiseLaw("laplace", Fraction(scale)))


def test_one_draw_is_exact():
    for scale in (Fraction(1, 3), Fraction(1), Fraction(10), Fraction(1000)):
        for beta in (0.5, 0.05, 0.001):
            a = np.exp(-1 / float(scale))
            # Pr(|Z| > s) = 2 a^(s+1) / (1 + a): the smallest s that brings it to beta.
            wanted = next(s for s in range(100_000) if 2 * a ** (s + 1) / (1 + a) <= beta)
            assert half_widths(spread_of(1, scale), 1 - beta)[0] == wanted


@pytest.mark.parametrize(("terms", "scale"), [(2, 1), (10, 3), (100, 10), (1000, Fraction(1, 2))])
def test_sums_cover_as_often_as_they_say(terms, scale):
    draws = Noise(Keystream.for_tests(terms)).laplace(Fraction(scale), (20_000, terms)).sum(axis=1)
    for confidence in (0.5, 0.95):
        width = half_widths(spread_of(terms, scale), confidence)[0]
        covered = np.mean(np.abs(draws) <= width)
        # At least as often, and the next smaller width would not do (five standard errors, fixed seed).
        slack = 5 * np.sqrt(confidence * (1 - confidence) / draws.size)
        assert covered >= confidence - slack
        assert np.mean(np.abs(draws) <= width - 1) <= confidence + slack


def test_large_sums_agree_with_the_continuum():
    assert half_widths(spread_of(10**6, 1000), 0.95)[0] == pytest.approx(1.96 * np.sqrt(2e6) * 1000, rel=1e-3)


@pytest.mark.parametrize(
    "weights", [[1.0], [1, 1], [1, 0.5, 0.25, 0.125], [0.1] * 50, list(np.linspace(0.01, 1, 30))]
)
def test_weighted_sums_cover_between_the_promise_and_a_little_more(weights):
    weights = np.array(weights)
    scale = 200
    draws = (
        Noise(Keystream.for_tests(len(weights))).laplace(Fraction(scale), (60_000, weights.size)) @ weights
    )
    spread = Spread(np.array([2 * np.sum((weights * scale) ** 2)]), np.array([weights.max() * scale]))
    for confidence in (0.9, 0.95, 0.99):
        covered = np.mean(np.abs(draws) <= half_widths(spread, confidence)[0])
        slack = 5 * np.sqrt(confidence * (1 - confidence) / draws.size)
        assert confidence - slack <= covered <= confidence + 0.02


def test_no_noise_no_width_and_bad_confidence_is_named():
    assert half_widths(Spread(np.zeros(2), np.zeros(2)), 0.95).tolist() == [0, 0]
    with pytest.raises(QueryError, match="confidence"):
        half_widths(Spread(np.zeros(1), np.zeros(1)), 1.0)


def test_many_sizes_are_rounded_up_only():
    terms = np.arange(0, 3000, dtype=np.int64)
    spread = Spread(2.0 * terms, np.ones(terms.size), terms, NoiseLaw("laplace", Fraction(1)))  # type: ignore[arg-type]
    wide = half_widths(spread, 0.95)
    for size in (0, 1, 17, 500, 2999):
        single = half_widths(spread_of(size, 1), 0.95)[0]
        assert single <= wide[size] <= single * 1.03 + 1


def test_questions_made_of_several_boxes():
    spread = IndependentNoise(Fraction(2)).spread(Workload(LINE, [[0], [10], [20]], [[5], [11], [40]]))
    joint = spread.combine(np.array([0, 0, 1]), 2)
    assert joint.terms.tolist() == [6, 20]  # type: ignore[union-attr]
    pieces = PieceNoise((40,), np.repeat(np.arange(4), 10), np.full(4, 2.0))
    apart = pieces.spread(Workload(LINE, [[0], [10]], [[5], [15]]))
    # Two halves of two parts: standard deviations are added, since in general they may share draws.
    assert apart.combine(np.array([0, 0]), 1).variance[0] == pytest.approx(
        (2 * np.sqrt(apart.variance[0])) ** 2
    )


def test_piece_noise_matches_its_definition_on_lines_and_planes():
    rng = np.random.default_rng(3)
    plane = Domain([Ordinal("a", range(6)), Ordinal("b", range(7))])
    for domain, labels in (
        (LINE, np.sort(rng.integers(0, 5, 40))),
        (LINE, rng.integers(0, 5, 40)),
        (plane, rng.integers(0, 5, 42)),
    ):
        scales = rng.random(5) + 0.5
        workload = Workload.random(domain, 200, seed=2)
        found = PieceNoise(domain.shape, labels, scales).spread(workload).variance
        sizes = np.bincount(labels, minlength=5)
        for q in range(200):
            inside = np.zeros(domain.shape, dtype=bool)
            inside[tuple(slice(a, b) for a, b in zip(workload.low[q], workload.high[q], strict=True))] = True
            taken = np.bincount(labels[inside.reshape(-1)], minlength=5)
            wanted = np.sum((taken / np.maximum(sizes, 1)) ** 2 * 2 * scales**2)
            assert found[q] == pytest.approx(wanted)


def test_nonnegative_is_the_nearest_point_with_the_same_total():
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.normal(1, 3, 12)
        fixed = nonnegative(counts)
        assert (fixed >= 0).all()
        assert fixed.sum() == pytest.approx(max(0.0, counts.sum()))
        for _ in range(20):
            other = rng.random(12)
            other *= fixed.sum() / other.sum()
            assert np.sum((fixed - counts) ** 2) <= np.sum((other - counts) ** 2) + 1e-9
    assert nonnegative(np.array([-1.0, -2.0])).tolist() == [0, 0]
    assert nonnegative(np.array([1.0, 1.0]), total=10).tolist() == [5, 5]


def test_a_confidence_next_to_one_has_a_quantile() -> None:
    assert 8.0 < normal_quantile(1.0 - 2.0**-53) < 9.0


def test_intervals_are_widened_to_hold_what_is_published():
    found = around(np.array([5.0, 5.0, 5.0]), 1.0, np.array([9.0, 0.5, -3.0]))
    assert found.low.tolist() == [4.0, 0.5, 0.0]
    assert found.high.tolist() == [9.0, 6.0, 6.0]
