"""Several dimensions: trees of boxes, marginals, and what their intervals say."""

import numpy as np
import pytest

from dphist.inference.neighbours.fields import _classified, _from_places, _weighed, classify
from dphist.kernels.levels.fit import Denoised
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run


def _plane(records, seed=1, side=64):
    generator = np.random.default_rng(seed)
    weights = np.zeros((side, side))
    for _ in range(6):
        x, y = generator.random(2) * side
        i, j = np.mgrid[:side, :side]
        weights += np.exp(-((i - x) ** 2 + (j - y) ** 2) / (2 * generator.uniform(1, 6) ** 2))
    return generator.multinomial(records, (weights / weights.sum()).ravel()).reshape(side, side)


def _domain(shape):
    return Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(shape)])


@pytest.mark.parametrize(("records", "share"), [(2_000, 0.7), (200_000, 0.9)])
def test_rectangles_beat_both_extremes(records, share):
    # Fixed noise: the same every time.
    counts = _plane(records)
    workload = Workload.random(_domain(counts.shape), 500, seed=2)
    errors = {}
    for mechanism in (AdaptiveTree(), Laplace(), Uniform()):
        squares = [
            np.mean(workload.answer(run(mechanism, counts, "0.1", seed=s).counts - counts) ** 2)
            for s in range(3)
        ]
        errors[type(mechanism).__name__] = np.sqrt(np.mean(squares))
    assert errors["AdaptiveTree"] < share * min(errors["Laplace"], errors["Uniform"])


def test_boxes_have_intervals():
    counts = _plane(200_000)
    estimate = run(AdaptiveTree(), counts, 1, seed=3)
    workload = Workload.random(_domain(counts.shape), 300, seed=4)
    found = estimate.errors.interval(workload, workload.answer(estimate.counts), 0.95)
    truth = workload.answer(counts)
    assert np.mean((found.low <= truth) & (truth <= found.high)) > 0.92


def test_readings_of_a_plane_weigh_as_their_errors_look() -> None:
    """Where one reading is right and the other far off, the mean goes to the right one, whichever it is."""
    generator = np.random.default_rng(5)
    y, x = np.mgrid[0:64, 0:64] / 64
    truth = np.rint(80 * np.exp(-((y - 0.5) ** 2 + (x - 0.4) ** 2) / 0.1))
    scale = 10.0
    noisy = truth + np.rint(generator.laplace(0.0, scale, truth.shape))
    good = Denoised(truth, np.zeros_like(truth), np.zeros_like(truth), 0.1, 0.9)
    boxes, number = _from_places(noisy, 2 * scale**2)
    wrong = np.full_like(truth, 300.0)
    variance = 2.0 * scale**2
    assert np.abs(_weighed(noisy, wrong, 1.0, good, variance)[0] - truth).max() < 30.0
    bad = Denoised(wrong, np.zeros_like(truth), np.zeros_like(truth), 0.1, 0.9)
    assert np.abs(_weighed(noisy, boxes, number, bad, variance)[0] - boxes).max() < 30.0
    # Several places to begin from are better than one, and boxes are counted.
    assert ((boxes - truth) ** 2).mean() < 0.9 * ((classify(noisy, variance) - truth) ** 2).mean()
    assert 1.0 < number < 64 * 64
    assert _classified(np.zeros((8, 8)), 1.0)[1] == 1
    assert _classified(np.arange(64).reshape(8, 8) * 1e6, 1.0)[1] == 64
