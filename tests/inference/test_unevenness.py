"""What is believed of the inside of blocks that were not divided: splits count by what they tell."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive import MeasuredBlocks, PredictiveErrors
from dphist.inference.predictive.halved import Halved
from dphist.inference.predictive.law import Law
from dphist.inference.predictive.learning import _learned
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


def _law(tree: MeasuredTree, *, wary: bool) -> Law:
    return _learned(Halved.of_tree(tree), 1.1, doubt=0.2, wary=wary).law


def _inside(tree: MeasuredTree, *, wary: bool) -> np.ndarray:
    return _law(tree, wary=wary).uneven


def test_noise_that_tells_nothing_is_not_taken_for_evenness():
    level = np.full(1024, 4.0)
    loud = _tree(level, 10.0, 32)
    # 256 pairs of cells were seen, each lost in its noise: by their number they say that pairs are even.
    assert _inside(loud, wary=False)[1] < 0.03
    assert _inside(loud, wary=True)[1] > 0.07
    # Where they can tell, both believe it.
    quiet = _tree(100.0 * level, 10.0, 32)
    assert _inside(quiet, wary=True)[1] < 0.03


def test_what_many_faint_splits_show_together_is_heard():
    comb = np.where(np.arange(1024) % 2 == 0, 20.0, 0.0)
    found = np.mean([_inside(_tree(comb, 10.0, 32, seed), wary=True)[1:3] for seed in range(6)], axis=0)
    # Pairs are all on one side, pairs of pairs are even.
    assert found[0] > 0.6
    assert found[1] < 0.35


def test_full_blocks_do_not_speak_for_sparse_ones():
    full = np.full(512, 400.0)
    line = np.concatenate([full, np.full(512, 10.0)])
    assert _inside(_tree(line, 10.0, 32), wary=True)[1] > 0.07


def test_cells_of_a_hidden_comb_hold():
    counts = np.where(np.arange(4096) % 2 == 0, 50, 0)
    asked = Workload.cells(Domain([Ordinal("x", range(4096))]))
    held = []
    for seed in range(3):
        made = run(AdaptiveTree(estimator="averaged"), counts, "0.1", seed=seed)
        errors = cast(PredictiveErrors, made.errors)
        bold = _law(cast(MeasuredBlocks, errors.measured).tree, wary=False)
        for each in (replace(errors, law=bold), errors):
            bounds = each.interval(asked, made.counts, 0.95)
            held.append(float(((bounds.low <= counts) & (counts <= bounds.high)).mean()))
    # Noise is larger than any cell: those that were measured look even. The law that goes by their number holds in 0.1.
    assert np.mean(held[::2]) < 0.5
    assert np.mean(held[1::2]) > 0.93


def test_trees_are_wary_on_lines_alone():
    for shape, wary in (((256,), True), ((32, 32), False)):
        errors = cast(PredictiveErrors, run(AdaptiveTree(), np.full(shape, 9), 1, seed=1).errors)
        blocks = cast(MeasuredBlocks, errors.measured)
        assert (blocks.learned.law.uneven == _inside(blocks.tree, wary=wary)).all()
