"""Counts averaged with what the law of the same tree expects of every cell."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist.inference.predictive.learning import Learned, learned_of_tree
from dphist.mechanisms.adaptivetree import AdaptiveTree, averaged
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.trees.growing import grow
from dphist.mechanisms.trees.planning import PlannedBoxes, Planner, counts_of_boxes
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Kind
from dphist.testing import open_counts

N = 64


def _plane(name: str) -> NDArray[np.int64]:
    y, x = np.mgrid[0:N, 0:N] / N
    if name == "gentle":
        return np.asarray(np.rint(60 + 50 * np.sin(3 * y) * np.cos(4 * x)), dtype=np.int64)
    peaks = np.zeros((N, N), dtype=np.int64)
    peaks[[3, 20, 41, 60], [50, 7, 33, 12]] = [4000, 900, 2500, 1500]
    return peaks


def _read(plane: np.ndarray, epsilon: str, seed: int) -> tuple[np.ndarray, np.ndarray, Learned]:
    data = open_counts(plane, epsilon, seed=seed)
    planner = Planner.for_ranges(data.shape, None, data.domain, data.law())
    tree, level = grow(data, PlannedBoxes(planner))
    learned, counts = learned_of_tree(tree), counts_of_boxes(tree, level)
    return counts, averaged(counts, learned), learned


@pytest.mark.parametrize("seed", [1, 2])
def test_gentle_planes_lean_towards_the_law(seed: int) -> None:
    plane = _plane("gentle")
    pruned, counts, learned = _read(plane, "1/5", seed)
    assert (counts >= 0.0).all()
    assert ((counts - plane) ** 2).mean() < 0.8 * ((pruned - plane) ** 2).mean()
    # Between the two readings everywhere.
    assert (counts >= np.minimum(pruned, learned.law.counts) - 1e-9).all()
    assert (counts <= np.maximum(pruned, learned.law.counts) + 1e-9).all()


def test_lone_peaks_stay_as_they_are() -> None:
    plane, errors = _plane("peaks"), np.zeros(2)
    for seed in range(4):
        pruned, counts, learned = _read(plane, "1", seed)
        assert learned.one_sided > 0.5
        errors += ((counts - plane) ** 2).mean(), ((pruned - plane) ** 2).mean()
    assert errors[0] < 1.1 * errors[1]


def test_the_law_of_cells_adds_up_to_its_law_of_boxes() -> None:
    _, _, learned = _read(_plane("gentle"), "1/5", 3)
    low, high = np.array([[5, 9], [0, 0]]), np.array([[40, 30], [N, N]])
    sums = [learned.law.counts[5:40, 9:30].sum(), learned.law.counts.sum()]
    assert np.allclose(learned.law.ask(low, high).mean, sums)


def test_the_release_says_what_was_read() -> None:
    plane = _plane("gentle")
    for moved, mechanism in ((True, AdaptiveTree(estimator="averaged")), (False, AdaptiveTree())):
        data = open_counts(plane, "1/5", seed=1)
        planner = Planner.for_ranges(data.shape, None, data.domain, data.law())
        tree, level = grow(data, PlannedBoxes(planner))
        expected = counts_of_boxes(tree, level)
        expected = averaged(expected, learned_of_tree(tree)) if moved else expected
        estimate = mechanism.estimate(open_counts(plane, "1/5", seed=1))
        assert np.array_equal(estimate.counts, expected)
    kinds: tuple[Kind | None, ...] = ("all_ranges", None)
    for asked in kinds:
        found = Auto(workload=asked).estimate(open_counts(plane, "1/5", seed=1))
        assert isinstance(found.made_by, Auto)
        assert found.made_by.chosen == AdaptiveTree(estimator="averaged")
        # A small part counts the records first, and those in no tall cell; the tree has the rest.
        assert found.made_by.look is not None
        _, rest = found.made_by.look.at(open_counts(plane, "1/5", seed=1))
        assert np.array_equal(found.counts, found.made_by.chosen.estimate(rest).counts)


def test_spaces_are_read_as_planes_are() -> None:
    space = np.full((32, 24, 20), 5)
    space[13] = 55
    moved = AdaptiveTree(estimator="averaged")
    data = open_counts(space, "1/10", seed=1)
    tree, level = grow(data, PlannedBoxes(Planner.for_ranges(data.shape, None, data.domain, data.law())))
    expected = averaged(counts_of_boxes(tree, level), learned_of_tree(tree))
    assert np.array_equal(moved.estimate(open_counts(space, "1/10", seed=1)).counts, expected)
    domain = Domain([Ordinal(name, range(size)) for name, size in zip("abc", space.shape, strict=True)])
    right = open_counts(Histogram(domain, space), "1/10")
    assert Auto(workload="all_ranges").choose(right)[0] == moved


@pytest.mark.parametrize("plane", [_plane("gentle"), _plane("gentle").reshape(-1)])
def test_cells_are_measured_where_whole_numbers_are_nearly_exact(plane: np.ndarray) -> None:
    mechanism, why = Auto().choose(open_counts(plane, 10))
    assert isinstance(mechanism, Posterior)
    assert "whole numbers" in why
    for epsilon in (1, 2):
        assert isinstance(Auto().choose(open_counts(plane, epsilon))[0], AdaptiveTree)
    # And they pay: sums over a quarter of the plane are exact but for chances of 1e-4 a cell.
    counts = Auto().estimate(open_counts(plane, 10, seed=4)).counts
    tree = AdaptiveTree().estimate(open_counts(plane, 10, seed=4)).counts
    assert np.abs(counts - plane).max() <= 1.0
    assert ((counts - plane) ** 2).mean() < 0.2 * ((tree - plane) ** 2).mean()
