"""Trees of boxes: conformance, budgets, nested boxes, and what they are better at."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import DphistError
from dphist.mechanisms.spatialtrees import HierarchicalKD, KDHybrid, QuadTree
from dphist.mechanisms.trees.growing import Front
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import open_counts, run


@pytest.mark.parametrize("mechanism", [QuadTree(), KDHybrid(), HierarchicalKD()])
@pytest.mark.parametrize("shape", [(40,), (9, 14), (4, 5, 6)])
def test_children_tile_their_parents(mechanism, shape):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 200, shape)
    tree = run(mechanism, counts, 2, seed=4).errors.tree  # type: ignore[attr-defined]
    volume = np.prod(tree.high - tree.low, axis=1)
    kids = np.bincount(tree.parent[tree.parent >= 0], volume[tree.parent >= 0], minlength=len(tree))
    inner = np.setdiff1d(np.arange(len(tree)), tree.leaves)
    assert np.array_equal(kids[inner], volume[inner])
    up = tree.parent[tree.parent >= 0]
    below = np.flatnonzero(tree.parent >= 0)
    assert (tree.low[below] >= tree.low[up]).all()
    assert (tree.high[below] <= tree.high[up]).all()
    assert volume[tree.leaves].sum() == counts.size


def test_medians_put_cuts_where_the_records_are():
    counts = np.zeros(256, dtype=np.int64)
    counts[200:210] = 1000
    tree = run(KDHybrid(switch=2), counts, 5, seed=2).errors.tree  # type: ignore[attr-defined]
    first_cut = tree.high[np.flatnonzero(tree.parent == 0)[0], 0]
    assert 200 < first_cut < 210


def test_variances_agree_with_simulation():
    mechanism = QuadTree(stop=-1e9, nonnegative=False)
    counts = np.arange(60).reshape(6, 10) * 10
    domain = Domain([Ordinal("x0", range(6)), Ordinal("x1", range(10))])
    workload = Workload(domain, [[0, 0], [1, 2], [3, 3]], [[6, 10], [5, 9], [4, 4]])
    answers = np.array([workload.answer(run(mechanism, counts, 1, seed=s).counts) for s in range(400)])
    told = run(mechanism, counts, 1, seed=0).errors.spread(workload).variance  # type: ignore[attr-defined]
    assert np.allclose(answers.var(axis=0), told, rtol=0.5)  # a deviation is 11 %; seeds are fixed
    assert np.allclose(answers.mean(axis=0), workload.answer(counts), atol=6 * np.sqrt(told / 400))


def test_a_front_cannot_overspend():
    front = Front.whole(open_counts(np.arange(8), 1, seed=1)).measure(Fraction(1, 2))
    with pytest.raises(Exception, match="above zero"):
        front.measure(Fraction(3, 4))


def test_a_spent_front_cannot_ask_again():
    front = Front.whole(open_counts(np.arange(8), 1, seed=1)).measure(Fraction(1))
    with pytest.raises(DphistError):
        front.finish(np.ones(1, dtype=bool))
