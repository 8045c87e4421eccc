"""Counts averaged with what the law of the same tree expects of every cell."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.inference.predictive.learning import Learned, learned_of_tree
from dphist.mechanisms.adaptivetree import averaged
from dphist.mechanisms.trees.growing import grow
from dphist.mechanisms.trees.planning import PlannedBoxes, Planner, counts_of_boxes
from dphist.testing import open_counts

N = 64
Y, X = np.mgrid[0:N, 0:N] / N
GENTLE = np.asarray(np.rint(60 + 50 * np.sin(3 * Y) * np.cos(4 * X)), dtype=np.int64)


def _read(plane: np.ndarray, epsilon: str, seed: int) -> tuple[np.ndarray, np.ndarray, Learned]:
    data = open_counts(plane, epsilon, seed=seed)
    planner = Planner.for_ranges(data.shape, None, data.domain, data.law())
    tree, level = grow(data, PlannedBoxes(planner))
    learned, counts = learned_of_tree(tree), counts_of_boxes(tree, level)
    return counts, averaged(counts, learned), learned


@pytest.mark.parametrize("seed", [1, 2])
def test_gentle_planes_lean_towards_the_law(seed: int) -> None:
    pruned, counts, learned = _read(GENTLE, "1/5", seed)
    assert (counts >= 0.0).all()
    assert ((counts - GENTLE) ** 2).mean() < 0.8 * ((pruned - GENTLE) ** 2).mean()
    # Between the two readings everywhere.
    assert (counts >= np.minimum(pruned, learned.law.counts) - 1e-9).all()
    assert (counts <= np.maximum(pruned, learned.law.counts) + 1e-9).all()


def test_the_law_of_cells_adds_up_to_its_law_of_boxes() -> None:
    _, _, learned = _read(GENTLE, "1/5", 3)
    low, high = np.array([[5, 9], [0, 0]]), np.array([[40, 30], [N, N]])
    sums = [learned.law.counts[5:40, 9:30].sum(), learned.law.counts.sum()]
    assert np.allclose(learned.law.ask(low, high).mean, sums)
