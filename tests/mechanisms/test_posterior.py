"""Posterior: conformance, accuracy on kinds of data with fixed noise, and honest posterior intervals."""

import numpy as np
import pytest

from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.posterior import Posterior
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run


def _kinds(n=600):
    generator = np.random.default_rng(1)
    place = np.arange(n) / n
    return {
        "flat": np.full(n, 30),
        "steps": np.repeat([0, 80, 5, 400, 0, 30], n // 6),
        "spikes": np.where(generator.random(n) < 0.05, 300, 0),
        "hump": (200 * np.exp(-(((place - 0.4) / 0.1) ** 2))).astype(np.int64),
        "empty": np.zeros(n, dtype=np.int64),
    }


@pytest.mark.parametrize("kind", sorted(_kinds()))
def test_cells_are_closer_than_their_noise(kind):
    # Fixed noise: the same every time.
    counts = _kinds()[kind]
    mine = plain = 0.0
    for seed in range(3):
        mine += np.mean((run(Posterior(), counts, "0.1", seed=seed).counts - counts) ** 2)
        plain += np.mean((run(Laplace(), counts, "0.1", seed=seed).counts - counts) ** 2)
    assert mine < 0.6 * plain


def test_posterior_intervals_cover_cells_about_as_often_as_stated():
    # Poisson counts about slowly moving levels, as the model has it; the noise is fixed.
    generator = np.random.default_rng(3)
    levels = np.repeat(generator.gamma(1.0, 60.0, 40), 50)
    hits = []
    for seed in range(6):
        counts = generator.poisson(levels)
        estimate = run(Posterior(), counts, "0.2", seed=seed)
        workload = Workload.cells(Domain([Ordinal("x", range(counts.size))]))
        found = estimate.errors.interval(workload, estimate.counts, 0.95)
        hits.append(np.mean((found.low <= counts) & (counts <= found.high)))
    assert 0.94 <= np.mean(hits) <= 0.99
    assert "calibrated" in estimate.errors.words.short


def test_intervals_of_sums_are_never_beyond_what_the_noise_allows():
    counts = np.arange(256)
    estimate = run(Posterior(), counts, "0.5", seed=5)
    domain = Domain([Ordinal("x", range(256))])
    workload = Workload.prefixes(domain)
    answers = workload.answer(estimate.counts)
    found = estimate.errors.interval(workload, answers, 0.95)
    noisy = workload.answer(run(Laplace(), counts, "0.5", seed=5).counts)
    most = 1.96 * np.sqrt(1.2 * 2 * np.arange(1, 257) * 4 + (noisy - answers) ** 2)
    assert (found.high - answers <= most + 1).all()
    truth = workload.answer(counts)
    assert np.mean((found.low <= truth) & (truth <= found.high)) > 0.9


def _error_of_ranges(counts, epsilon):
    """Errors of 300 ranges: added cells, what is answered, noisy sums; root mean squares over four releases."""
    domain = Domain([Ordinal("x", range(counts.size))])
    workload = Workload.random(domain, 300, seed=3)
    truth, squares = workload.answer(counts), []
    for seed in range(4):
        estimate = run(Posterior(), counts, epsilon, seed=seed)
        added = workload.answer(estimate.counts)
        noisy = workload.answer(run(Laplace(), counts, epsilon, seed=seed).counts)
        three = (added, estimate.errors.answer(workload, added), noisy)
        squares.append([np.mean((each - truth) ** 2) for each in three])
    return np.sqrt(np.mean(squares, axis=0))


def test_long_sums_of_flattened_cells_are_answered_no_worse_than_by_noisy_sums():
    # Few large counts among many small ones, which are pulled to zero: over thousands of cells that adds up.
    generator = np.random.default_rng(5)
    weights = generator.permutation(1.0 / (1.0 + np.arange(2048)) ** 1.2)
    counts = generator.multinomial(5000, weights / weights.sum())
    added, answered, noisy = _error_of_ranges(counts, "1")
    assert added > 1.3 * noisy
    assert answered < 1.05 * noisy


def test_long_sums_of_sparse_cells_stay_the_sums_of_what_is_published():
    counts = np.zeros(2048, dtype=np.int64)
    counts[300] = 5000
    added, answered, noisy = _error_of_ranges(counts, "1")
    assert answered < 0.4 * noisy
    assert added < 0.1 * noisy


def test_single_cells_are_answered_as_they_are_published():
    counts = np.random.default_rng(5).poisson(2.4, 512)
    estimate = run(Posterior(), counts, "1", seed=1)
    workload = Workload.cells(Domain([Ordinal("x", range(512))]))
    assert (estimate.errors.answer(workload, estimate.counts) == estimate.counts).all()
