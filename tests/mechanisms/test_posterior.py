"""Posterior: honest intervals, and cells that are answered as they are published."""

import numpy as np

from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.posterior import Posterior
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run


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


def test_single_cells_are_answered_as_they_are_published():
    counts = np.random.default_rng(5).poisson(2.4, 512)
    estimate = run(Posterior(), counts, "1", seed=1)
    workload = Workload.cells(Domain([Ordinal("x", range(512))]))
    assert (estimate.errors.answer(workload, estimate.counts) == estimate.counts).all()
