"""What is believed of the inside of blocks that were not divided: splits count by what they tell."""

from __future__ import annotations

import numpy as np

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.learning import learned_of_tree
from dphist.kernels.predictive.ways import WAYS
from dphist.mechanisms import AdaptiveTree
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run


def _tree(cells: np.ndarray, noise: float, measured: int, seed: int = 1) -> MeasuredTree:
    """Blocks of 16 cells, the first so many of which were divided into cells; all with noise of one deviation."""
    draws = np.random.default_rng(seed)
    blocks = cells.reshape(-1, 16)
    n = len(blocks)
    low = [0, *(16 * np.arange(n)), *range(16 * measured)]
    high = [cells.size, *(16 * np.arange(1, n + 1)), *range(1, 16 * measured + 1)]
    truth = np.concatenate([[cells.sum()], blocks.sum(axis=1), cells[: 16 * measured]])
    parent = [-1, *([0] * n), *np.repeat(np.arange(1, measured + 1), 16)]
    value = truth + noise * draws.standard_normal(truth.size)
    return MeasuredTree.of(
        *((cells.size,), parent, np.array(low)[:, None], np.array(high)[:, None]),
        *(value, np.full(truth.size, noise**2)),
    )


def _hidden(tree: MeasuredTree) -> float:
    """What pairs of cells are believed to depart from even beyond what measured pairs show."""
    learned = learned_of_tree(tree)
    return float((learned.law.uneven - learned.ways @ np.array(WAYS))[1])


def test_noise_that_tells_nothing_is_not_taken_for_evenness():
    """256 pairs of cells were seen: by their number they would say that pairs are even, whatever noise lies on them."""
    level = np.full(1024, 4.0)
    lost, clear = _hidden(_tree(level, 10.0, 32)), _hidden(_tree(100.0 * level, 10.0, 32))
    assert lost > 10.0 * clear > 0.0


def test_cells_of_a_hidden_comb_hold():
    """Noise is larger than any cell, so that those which were measured look even."""
    counts = np.where(np.arange(4096) % 2 == 0, 50, 0)
    asked = Workload.cells(Domain([Ordinal("x", range(4096))]))
    held = []
    for seed in range(3):
        made = run(AdaptiveTree(estimator="averaged"), counts, "0.1", seed=seed)
        bounds = made.errors.interval(asked, made.counts, 0.95)
        held.append(float(((bounds.low <= counts) & (counts <= bounds.high)).mean()))
    assert np.mean(held) > 0.93
