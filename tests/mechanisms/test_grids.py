"""Grids: conformance, how fine they are, and that their boxes tile the cells."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.mechanisms.grids import fineness, lay_grid
from dphist.mechanisms.trees.growing import Front
from dphist.testing import open_counts


def test_fineness_is_the_papers_in_a_plane():
    assert fineness(np.array([1e6]), 0.1, 2, 10.0)[0] == 100  # √(N ε / 10)
    assert fineness(np.array([-5.0, 0.0]), 1.0, 2, 10.0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_fineness_minimises_noise_and_unevenness(axes):
    records, epsilon, constant = 1e7, 0.5, 10.0
    m = fineness(np.array([records]), epsilon, axes, constant)[0]

    def error(m):
        return np.sqrt(2.0) * m ** (axes / 2) / epsilon + records / (constant / np.sqrt(2) * m)

    assert error(m) <= 1.001 * min(error(m * 0.8), error(m * 1.25))


@pytest.mark.parametrize("shape", [(37,), (10, 7), (5, 1, 8)])
@pytest.mark.parametrize("fine", [1, 3, 4, 100])
def test_a_grid_tiles_its_box(shape, fine):
    front = lay_grid(Front.whole(open_counts(np.zeros(shape, dtype=np.int64), 1)), np.array([float(fine)]))
    labels = front.box.reshape(shape)
    for number in range(len(front.low)):
        box = tuple(slice(a, b) for a, b in zip(front.low[number], front.high[number], strict=True))
        assert labels[box].size > 0
        assert (labels[box] == number).all()
    assert len(front.low) == np.prod([min(fine, n) for n in shape])
