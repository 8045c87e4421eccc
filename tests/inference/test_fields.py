"""Several dimensions: trees of boxes, marginals, and what their intervals say."""

import numpy as np
import pytest

from dphist.inference.neighbours import classify, denoise_field
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


def test_readings_of_a_plane_take_out_most_of_its_noise():
    y, x = np.mgrid[0:64, 0:64] / 64
    truth = np.rint(80 * np.exp(-((y - 0.5) ** 2 + (x - 0.4) ** 2) / 0.1)).astype(np.int64)
    errors = np.zeros(2)
    for seed in range(3):
        noisy = truth + np.rint(np.random.default_rng(seed).laplace(0.0, 10.0, truth.shape)).astype(np.int64)
        both, boxes = denoise_field(noisy, 10.0)[0], classify(noisy, 200.0)
        errors += [((each - truth) ** 2).mean() / 3 for each in (both, boxes)]
    # Noise has a variance of 200. Averaging along the curve as well is better than boxes alone.
    assert errors[0] < 0.9 * errors[1] < 0.5 * 200
