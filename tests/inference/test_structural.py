"""A line read as a trend with a profile that repeats, and what that makes of noisy counts."""

from typing import Any, cast

import numpy as np
import pytest

from dphist import Domain, Histogram, Nominal, Ordinal, publish
from dphist.inference.neighbours.fields import denoise_field
from dphist.inference.neighbours.structural import MOST, structural
from dphist.kernels import trend
from dphist.mechanisms import Posterior
from dphist.testing import run

CELLS = np.arange(364)
WEEKS = np.where(CELLS % 7 < 5, 1.0, 0.3) * (1.2 + np.sin(CELLS / 60))


def _noisy(expected, scale, seed):
    generator = np.random.default_rng(seed)
    truth = generator.poisson(expected)
    return truth, truth + np.rint(generator.laplace(0, scale, truth.size)).astype(np.int64)


def _alone(expected, seed, structural, scale=40.0):
    truth, values = _noisy(expected, scale, seed)
    counts, _ = denoise_field(values, scale, fine=True, structural=structural)
    return float(np.mean((counts - truth) ** 2))


@pytest.mark.parametrize("period", [2, 7, 24])
def test_a_profile_that_repeats_is_found(period):
    expected = np.random.default_rng(period).gamma(2.0, 100.0, period)[np.arange(480) % period]
    _, values = _noisy(expected, 30.0, 1)
    assert structural(values, 1800.0, np.full(480, expected.mean())).period == period


def test_no_profile_is_found_where_there_is_none():
    # Fixed noise; a trend alone, and nothing but noise.
    for expected in (300 * (1.2 + np.sin(CELLS / 60)), np.zeros(364)):
        _, values = _noisy(expected, 30.0, 2)
        assert structural(values, 1800.0, np.maximum(values, 0.0)).period == 1


def test_weeks_are_read_where_neighbours_tell_nothing():
    errors = np.array(
        [[_alone(300 * WEEKS, seed, structural) for structural in (False, True)] for seed in range(3)]
    ).mean(axis=0)
    # Without: hardly less than the noise of a cell, 40²·2.
    assert errors[1] < 0.5 * errors[0]


def test_the_note_says_what_repeats():
    weeks = np.random.default_rng(7).poisson(300 * WEEKS)
    note = run(Posterior(), Histogram(Domain([Ordinal("day", range(364))]), weeks), "0.05", seed=1).note
    assert "a profile that repeats every 7 cells" in note


def test_where_a_trend_says_nothing_the_level_model_stays():
    # Steps, and lone peaks over nothing.
    steps = np.repeat(np.random.default_rng(3).gamma(1.0, 300.0, 16), 25)
    peaks = np.zeros(400)
    peaks[[31, 180, 333]] = 3000
    for expected in (steps, peaks):
        errors = np.array(
            [[_alone(expected, seed, structural) for structural in (False, True)] for seed in range(3)]
        ).mean(axis=0)
        # Within a hundredth of the noise of a cell, 2·40², which a trend alone would leave behind by far.
        assert errors[1] < errors[0] + 0.01 * 3200.0


def test_freedom_is_how_far_counts_move_with_the_values():
    # A trend is nearly linear in the values: moving each of them a little shows how far its count follows. All have one
    # first reading, as freedom is that of the trend and of the profile alone.
    _, values = _noisy(200 * WEEKS[:98], 30.0, 4)
    first = np.full(98, 200.0)
    reading = structural(values, 1800.0, first)
    moved = 0.0
    for i in range(98):
        more = values.copy()
        more[i] += 3
        moved += (structural(more, 1800.0, first).counts[i] - reading.counts[i]) / 3
    assert reading.freedom == pytest.approx(moved, rel=0.15)


def test_compiled_or_not_the_bits_are_the_same():
    _, values = _noisy(200 * WEEKS, 30.0, 5)
    level, profile = np.full(364, 200.0), np.maximum(WEEKS, 0.02)
    noise = 1800.0 + level * profile
    results = []
    for pair in (
        (trend.filtered, trend.smoothed),
        tuple(cast(Any, each).compiled() for each in (trend.filtered, trend.smoothed)),
    ):
        kept, mean, doubt = np.empty((364, 10)), np.empty(364), np.empty(364)
        evidence = pair[0](values.astype(float), profile, noise, level, 1e-6, 1e-4, kept)
        pair[1](kept, mean, doubt)
        results.append((evidence, mean.tobytes(), doubt.tobytes()))
    assert results[0] == results[1]


def test_smoothing_is_least_squares():
    # Against the normal equations of the same model, written out.
    n, drift, bend = 12, 0.01, 0.002
    generator = np.random.default_rng(6)
    level, profile = np.full(n, 10.0), generator.uniform(0.5, 2.0, n)
    noise, values = generator.uniform(1.0, 9.0, n), generator.normal(10.0, 5.0, n)
    kept, mean, doubt = np.empty((n, 10)), np.empty(n), np.empty(n)
    trend.filtered(values, profile, noise, level, bend, drift, kept)
    trend.smoothed(kept, mean, doubt)
    step = np.array([[1.0, 1.0], [0.0, 1.0]])
    precision, pull = np.zeros((2 * n, 2 * n)), np.zeros(2 * n)
    precision[:2, :2] += np.diag([1 / (100 * 100.0), 1 / (0.01 * 100.0)])
    pull[0] += 10.0 / (100 * 100.0)
    for i in range(n):
        precision[2 * i, 2 * i] += profile[i] ** 2 / noise[i]
        pull[2 * i] += profile[i] * values[i] / noise[i]
        if i:
            both = np.zeros((2, 2 * n))
            both[:, 2 * i - 2 : 2 * i] = -step
            both[:, 2 * i : 2 * i + 2] = np.eye(2)
            precision += both.T @ np.diag([1 / (drift * 100), 1 / (bend * 100)]) @ both
    covariance = np.linalg.inv(precision)
    assert mean == pytest.approx((covariance @ pull)[::2], rel=1e-9)
    assert doubt == pytest.approx(np.diag(covariance)[::2], rel=1e-9)


def test_ordered_lines_are_read_so_and_categories_are_not():
    # Fixed noise.
    weeks = np.random.default_rng(7).poisson(300 * WEEKS)
    for attribute, expected in (
        (Ordinal("day", range(364)), True),
        (Nominal("ward", [f"w{i}" for i in range(364)]), False),
    ):
        histogram = Histogram(Domain([attribute]), weeks)
        assert ("trend" in run(Posterior(), histogram, "0.05", seed=1).note) == expected
        publish(histogram, epsilon="0.05", workload="cells").verify()


def test_lines_too_short_or_too_long_are_left_to_the_level_model():
    for size in (8, MOST + 1):
        values = np.full(size, 3)
        left, read = (denoise_field(values, 1.0, structural=each)[0] for each in (False, True))
        assert (left == read).all()
