"""What other cells say of one, and what a mixture of that with the level model makes of noisy counts."""

from typing import Any, cast

import numpy as np
import pytest

from dphist import Domain, Histogram, Nominal, Ordinal, publish
from dphist.inference import compound as reading
from dphist.inference.fields import denoise_field
from dphist.kernels import compound as kernels
from dphist.kernels.levels import chain, fit
from dphist.kernels.levels.likelihood import level_grid, likelihoods
from dphist.mechanisms import Auto, Posterior
from dphist.mechanisms.spec import parse
from dphist.testing import run


def _noisy(expected, scale, seed):
    generator = np.random.default_rng(seed)
    truth = generator.poisson(expected)
    return truth, truth + np.rint(generator.laplace(0, scale, truth.size)).astype(np.int64)


def _errors(expected, scale, seeds=3):
    """Mean squared errors without the reading and with it."""
    found = []
    for seed in range(seeds):
        truth, values = _noisy(expected, scale, seed)
        found.append(
            [
                np.mean((denoise_field(values, scale, fine=True, compound=each)[0] - truth) ** 2)
                for each in (False, True)
            ]
        )
    return np.mean(found, axis=0)


def test_levels_that_occur_again_and_again_are_recognised():
    # People of a survey who stand for a thousand each, fewer and fewer of them: counts are about whole thousands.
    heaps = 1000.0 * np.random.default_rng(1).poisson(8.0 * np.exp(-np.arange(2048) / 400.0))
    without, told = _errors(heaps, 100.0)
    assert told < 0.8 * without


def test_peaks_among_many_are_believed_sooner():
    peaks = np.zeros(4096)
    generator = np.random.default_rng(2)
    peaks[generator.choice(4096, 200, replace=False)] = 100.0 * (generator.pareto(1.0, 200) + 0.5)
    without, told = _errors(peaks, 100.0)
    assert told < 0.95 * without


@pytest.mark.parametrize("kind", ["steps", "hill", "nothing", "one level"])
def test_where_neighbours_tell_more_the_level_model_stays(kind):
    place = np.arange(2048)
    expected = {
        "steps": np.repeat(np.random.default_rng(3).gamma(1.0, 300.0, 32), 64),
        "hill": 600.0 * np.exp(-(((place - 900) / 300.0) ** 2)),
        "nothing": np.zeros(2048),
        "one level": np.full(2048, 20.0),
    }[kind]
    without, told = _errors(expected, 40.0)
    # Within a five hundredth of the noise of a cell, 2·40².
    assert told < without + 0.002 * 3200.0


def test_what_the_level_model_foretells_is_a_ratio_of_evidences():
    # A cell whose value is not seen has a likelihood of one at every level: beside it evidence is what its value adds.
    _, values = _noisy(np.repeat([0.0, 200.0, 30.0], 8), 10.0, 4)
    distinct, rows = np.unique(values, return_inverse=True)
    grid = level_grid(values, 0.1)
    table, scales = likelihoods(distinct, grid, 0.3, 0.0, 0.1)
    start = np.full(grid.size, 1.0 / grid.size)
    weights = np.array([0.9, 0.03, 0.03, 0.04])
    model = fit._Candidate(0.3, 0.0, grid, table, chain.possible(table), scales, 0.0, start, weights)
    found = fit._foretold(model, values)
    blank, whole = np.vstack([table, np.ones(grid.size)]), np.array([[0, values.size]])

    def evidence(which):
        return chain.expect(
            blank, chain.possible(blank), which, whole, start, weights, np.empty((values.size, grid.size))
        )[0]

    for i in range(values.size):
        without = rows.copy()
        without[i] = distinct.size
        assert found[i] == pytest.approx(evidence(rows) - evidence(without) + scales[rows[i]], rel=1e-9)


def test_of_next_to_nothing_the_level_model_speaks_alone():
    _, values = _noisy(np.full(2048, 0.2), 40.0, 10)
    line = fit.denoise(values, 1 / 40, foretell=True)
    assert line.foretold is None
    assert reading.compound(values, 1 / 40, line) is line


def _looks(values, rate):
    distinct, rows = np.unique(values, return_inverse=True)
    levels, low = kernels.level_steps(values, rate)
    return levels, rows.astype(np.int64), kernels.looked_at(distinct, levels, low, rate)


def test_looks_are_the_level_model_s_likelihoods():
    values = np.array([-30, -2, 0, 5, 14, 70, 900, 20_000])
    levels, rows, looks = _looks(values, 0.1)
    table, scales = likelihoods(values, levels, kernels._SCATTER, 0.0, 0.1)
    for i in rows:
        for w in range(looks.likely.shape[1]):
            k = looks.starts[i] + w - 1 if w else 0
            if looks.likely[i, w] > 1e-30:
                log = np.log(looks.likely[i, w]) + looks.best[i]
                assert log == pytest.approx(np.log(table[i, k]) + scales[i], abs=1e-9)
        # What it does not look at is next to impossible.
        seen = {0, *range(looks.starts[i], looks.starts[i] + looks.likely.shape[1] - 1)}
        assert max((table[i, k] for k in range(levels.size) if k not in seen), default=0.0) < 0.02


def test_laws_of_others_leave_the_cell_out():
    _, values = _noisy(np.tile([0.0, 0.0, 60.0, 200.0], 10), 5.0, 5)
    levels, rows, looks = _looks(values, 0.2)
    prior = np.full(levels.size, 0.05)
    believed = np.empty((values.size, looks.likely.shape[1]))
    held = kernels.settle(rows, looks.starts, looks.likely, prior, 8, believed)
    # As one table of cells and levels.
    all_of = np.zeros((values.size, levels.size))
    likely, means = np.zeros_like(all_of), np.zeros_like(all_of)
    for i, row in enumerate(rows):
        for w in range(looks.likely.shape[1]):
            k = looks.starts[row] + w - 1 if w else 0
            if looks.likely[row, w] > 0:
                all_of[i, k], likely[i, k] = believed[i, w], looks.likely[row, w]
                means[i, k] = looks.mean[row, w]
    assert all_of.sum(axis=1) == pytest.approx(1.0)
    assert held == pytest.approx(all_of.sum(axis=0))
    told, near = np.empty((3, values.size)), np.empty((3, values.size))
    kernels.by_all(rows, *looks, believed, held, prior, told)
    kernels.by_near(rows, *looks, believed, held, 0.7, near)
    for i, row in enumerate(rows):
        distance = np.abs(np.arange(values.size) - i)
        for law, weight, before in (
            (told, distance > 0, prior),
            (near, (distance > 0) * 0.7**distance, 0.0),
        ):
            chances = (weight @ all_of + before) / (weight.sum() + np.sum(before))
            total = chances @ likely[i]
            assert law[0, i] == pytest.approx(np.log(total) + looks.best[row], abs=1e-9)
            assert law[1, i] == pytest.approx(chances @ (likely[i] * means[i]) / total, abs=1e-9)


def test_stacked_weights_make_the_values_likeliest():
    generator = np.random.default_rng(6)
    logs = np.log(generator.uniform(0.05, 1.0, (400, 3)) + (generator.random((400, 3)) < [0.5, 0.3, 0.1]))
    weights = np.full(3, 1 / 3)
    kernels.stack(logs, np.zeros(3), weights, 400)

    def likelihood(each):
        return np.log(np.exp(logs) @ each).sum()

    for other in generator.dirichlet(np.ones(3), 50):
        assert likelihood(weights) >= likelihood(other) - 1e-6


def test_compiled_or_not_the_bits_are_the_same():
    _, values = _noisy(np.tile([0.0, 0.0, 60.0, 9000.0], 20), 5.0, 7)
    distinct, rows = np.unique(values, return_inverse=True)
    levels, low = kernels.level_steps(values, 0.2)
    prior = np.full(levels.size, 0.05)
    names = ("_look", "settle", "by_all", "by_near", "stack")
    results = []
    for python in (True, False):
        calls = {
            name: cast(Any, getattr(kernels, name)).function
            if python
            else cast(Any, getattr(kernels, name)).compiled()
            for name in names
        }
        original = kernels._look
        try:
            kernels._look = calls["_look"]
            looks = kernels.looked_at(distinct, levels, low, 0.2)
        finally:
            kernels._look = original
        believed, told = np.empty((rows.size, looks.likely.shape[1])), np.empty((2, 3, rows.size))
        held = calls["settle"](rows, looks.starts, looks.likely, prior, 8, believed)
        calls["by_all"](rows, *looks, believed, held, prior, told[0])
        calls["by_near"](rows, *looks, believed, held, 0.9, told[1])
        weights = np.array([0.9, 0.1])
        calls["stack"](np.ascontiguousarray(told[:, 0].T), np.ones(2), weights, 20)
        results.append([each.tobytes() for each in (*looks, believed, held, told, weights)])
    assert results[0] == results[1]


@pytest.mark.parametrize("epsilon", ["0.001", "1", "8", "100"])
def test_any_noise_is_read(epsilon):
    counts = np.tile([0, 0, 3, 1_000_000_000], 256)
    found = run(Posterior(compound=True), counts, epsilon, seed=1).counts
    assert np.isfinite(found).all()
    assert (found >= 0.0).all()


def test_auto_reads_so_under_laplace_noise_where_cells_are_many():
    for cells, epsilon, rho, expected in (
        (1024, 1, None, True),
        (1023, 1, None, False),
        (1024, None, 1, False),
    ):
        for attribute in (Ordinal("x", range(cells)), Nominal("x", [f"c{i}" for i in range(cells)])):
            histogram = Histogram(Domain([attribute]), np.full(cells, 40))
            release = publish(histogram, epsilon=epsilon, rho=rho, workload="cells")
            assert isinstance(release.mechanism, Auto)
            chosen = release.mechanism.chosen
            assert isinstance(chosen, Posterior)
            assert chosen.compound is expected
            release.verify()


def test_the_reading_is_an_option_that_is_saved():
    assert parse("posterior(compound=true)") == Posterior(compound=True)
    counts = 50 * np.random.default_rng(8).poisson(0.5, 1024)
    without, told = (run(Posterior(compound=each), counts, "0.1", seed=1).counts for each in (False, True))
    assert (without != told).any()


def test_lines_too_short_or_too_long_and_normal_noise_are_left_to_the_level_model():
    for size, gaussian in ((reading.FEWEST - 1, False), (reading.MOST + 1, False), (reading.FEWEST, True)):
        values = 50 * np.random.default_rng(9).poisson(0.5, size)
        left, read = (
            denoise_field(values, 4.0, gaussian=gaussian, compound=each)[0] for each in (False, True)
        )
        assert (left == read).all()
