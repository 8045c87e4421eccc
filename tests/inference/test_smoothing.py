"""Gentle counts along a line: better where the evidence says so, untouched where it does not, the same everywhere."""

import numpy as np
import pytest

from dphist.inference.measured import MeasuredTree
from dphist.inference.neighbours.smoothing import read_bins, smoothed
from dphist.mechanisms.adaptivetree import AdaptiveTree, counts_of
from dphist.model.domain import Domain, Nominal
from dphist.model.histogram import Histogram
from dphist.testing import open_counts, run

PLACE = (np.arange(4096) + 0.5) / 4096
DRAWS = 12


def _errors(counts, epsilon):
    """Mean squared errors of all prefixes, by the tree alone and smoothed, over the same noise."""
    found = np.zeros(2)
    for seed in range(DRAWS):
        trees: list[MeasuredTree] = []

        class Kept(AdaptiveTree):
            def grow(self, data, grown=trees):
                found = super().grow(data)
                grown.append(found[0])
                return found

        best = run(Kept(), counts, epsilon, seed=seed).counts
        for place, each in enumerate((counts_of(trees[0]), best)):
            found[place] += np.mean(np.cumsum(each - counts) ** 2) / DRAWS
    return found


def test_a_gentle_slope_is_read_as_one():
    slope = np.rint(40.0 - 36.0 * PLACE).astype(np.int64)
    plain, better = _errors(slope, "0.01")
    assert better < 0.7 * plain


@pytest.mark.parametrize("kind", ["steps", "spikes", "half"])
def test_what_is_not_gentle_stays_as_it_is(kind):
    draw = np.random.default_rng(3)
    counts = {
        "steps": np.repeat(draw.pareto(1.0, 64) * 40, 64),
        "spikes": np.where(draw.random(4096) < 0.03, draw.pareto(1.2, 4096) * 600, 0),
        "half": np.where(PLACE < 0.5, 40, 1),
    }[kind].astype(np.int64)
    plain, after = _errors(counts, "0.1")
    assert after < 1.05 * plain


@pytest.mark.parametrize("size", [1, 3, 63, 64, 65, 100, 257, 1000, 4097])
def test_any_number_of_cells_will_do(size):
    counts = np.full(size, 20, dtype=np.int64)
    tree = AdaptiveTree().grow(open_counts(counts, 1))[0]
    before = counts_of(tree)
    after = smoothed(tree, before)
    assert after.shape == before.shape
    assert (after >= 0).all()
    assert np.isfinite(after).all()
    assert abs(after.sum() - before.sum()) < 0.2 * size + 60


def test_measurements_without_noise_are_believed():
    level = np.linspace(300.0, 100.0, 64)
    cells = np.arange(64)
    tree = MeasuredTree.of(
        (64,), [-1, *[0] * 64], [[0], *cells[:, None].tolist()], [[64], *(cells[:, None] + 1).tolist()],
        [level.sum(), *level], [1e-6] * 65,
    )  # fmt: skip
    counts = counts_of(tree)
    assert smoothed(tree, counts) == pytest.approx(level, abs=0.5)


def test_neighbours_of_a_nominal_attribute_are_none():
    names = [f"v{value}" for value in range(128)]
    counts = np.rint(np.linspace(40, 4, 128)).astype(np.int64)
    histogram = Histogram(Domain([Nominal("x", names)]), counts)
    trees = []

    class Kept(AdaptiveTree):
        def grow(self, data):
            found = super().grow(data)
            trees.append(found[0])
            return found

    assert np.array_equal(run(Kept(), histogram, "0.1", seed=1).counts, counts_of(trees[0]))


def test_empty_blocks_that_were_measured_together_do_not_speak_for_the_rest_of_their_bin():
    # A bin of 64 cells in four blocks: two empty ones in a pool, and two full ones by themselves.
    sides = np.full(64, 64)
    level = [0.0, *[6_000.0] * 64]
    low, high = [0, *(64 * np.arange(64))], [4096, *(64 * np.arange(64) + 64)]
    parent, pool = [-1, *[0] * 64], [False] * 65
    # The last bin, node 64, is divided: blocks 65 and 66, and a pool 67 of blocks 68 and 69.
    parent += [64, 64, 64, 67, 67]
    low += [4048, 4064, 4032, 4032, 4080]
    high += [4064, 4080, 4096, 4048, 4096]
    level += [2_900.0, 3_100.0, 0.0, 0.0, 0.0]
    pool += [False, False, True, False, False]
    tree = MeasuredTree.of(
        *((4096,), parent, np.array(low)[:, None], np.array(high)[:, None], level, [np.inf, *[100.0] * 69]), pool=pool
    )  # fmt: skip
    precise, weighted, _ = read_bins(tree, 64 * np.arange(64), sides.astype(float))
    assert np.linalg.solve(precise, weighted) == pytest.approx(np.full(64, 6_000.0), rel=1e-6)
