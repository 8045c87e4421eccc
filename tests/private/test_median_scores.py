"""The ranges that medians and decisions promise, searched over every step; and what they choose."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.private.questions import Layout
from dphist.private.scores.counting import BestAttributes, Medians
from dphist.testing import open_counts


def candidates(score, counts, layout):
    score.draws(layout)  # refuses what is not there to be chosen, before anything is paid
    return next(score.stages(np.asarray(counts, dtype=np.int64), layout))


def largest_range(score, counts, layout):
    """The largest spread of changes within a part, over all steps up and down."""
    before = candidates(score, counts, layout)
    worst = 0
    for cell in range(len(counts)):
        for step in (1, -1):
            if counts[cell] + step < 0:
                continue
            moved = np.array(counts)
            moved[cell] += step
            change = candidates(score, moved, layout).scores - before.scores
            for a, b in zip(before.starts[:-1], before.starts[1:], strict=True):
                worst = max(worst, int(change[a:b].max() - change[a:b].min()))
    return worst


def median_case(seed):
    rng = np.random.default_rng(seed)
    parts = int(rng.integers(1, 4))
    lengths = rng.integers(1, 6, parts)
    labels = np.repeat(np.arange(parts), rng.integers(3, 9, parts))
    slot = np.array([rng.integers(0, lengths[p]) for p in labels])
    counts = rng.integers(0, 5, labels.size)
    return Medians(slot, lengths), counts, Layout((labels.size,), labels, parts)


@pytest.mark.parametrize("seed", range(60))
def test_medians_keep_their_range(seed):
    score, counts, layout = median_case(seed)
    promised = candidates(score, counts, layout).ranges
    assert largest_range(score, counts, layout) <= promised


def test_the_range_of_medians_is_reached():
    score = Medians(np.arange(5), np.array([5]))
    assert largest_range(score, np.array([1, 0, 5, 0, 1]), Layout((5,))) == 2


@pytest.mark.parametrize("seed", range(20))
def test_scores_are_how_unequal_the_sides_are(seed):
    score, counts, layout = median_case(seed)
    given = candidates(score, counts, layout)
    for p in range(layout.parts):
        mine = given.scores[given.starts[p] : given.starts[p + 1]]
        assert mine.size == max(1, score.lengths[p] - 1)
        inside = layout.labels == p
        for c, value in enumerate(mine):
            below = counts[inside & (score.slot <= c)].sum()
            above = counts[inside & (score.slot > c)].sum()
            assert value == -abs(below - above)


def test_with_much_budget_the_median_is_found_in_every_part():
    slots = np.tile(np.arange(10), 2)
    counts = np.zeros(20, dtype=np.int64)
    counts[[2, 3, 7]] = [50, 60, 90]
    counts[[10, 19]] = [100, 100]
    right = open_counts(counts, 1000, seed=1).partition(np.repeat([0, 1], 10))
    chosen = right.choose(Medians(slots, np.array([10, 10])))[0]
    assert 3 <= chosen[0] < 7
    assert 0 <= chosen[1] < 9


def test_slots_outside_their_part_are_refused():
    score = Medians(np.array([0, 3]), np.array([2]))
    with pytest.raises(MechanismError, match="outside"):
        candidates(score, [1, 1], Layout((2,)))
    with pytest.raises(MechanismError, match="one slot"):
        candidates(Medians(np.array([0]), np.array([2])), [1, 1], Layout((2,)))


@pytest.mark.parametrize("seed", range(30))
def test_decisions_keep_their_range(seed):
    rng = np.random.default_rng(seed)
    index = np.indices((2, 3, 2)).reshape(3, -1)
    labels = rng.integers(0, 2, 12)
    score = BestAttributes((index[0], index[1]), (2, 3), index[2], 2)
    layout = Layout((12,), labels, 2)
    counts = rng.integers(0, 4, 12)
    assert largest_range(score, counts, layout) <= candidates(score, counts, layout).ranges == 1


def test_decisions_prefer_the_attribute_that_tells_classes_apart():
    index = np.indices((2, 3, 2)).reshape(3, -1)
    counts = np.where(index[1] == 2, index[2] * 40, (1 - index[2]) * 40)  # attribute 1 decides the class
    score = BestAttributes((index[0], index[1]), (2, 3), index[2], 2)
    assert open_counts(counts, 100, seed=2).choose(score)[0, 0] == 1
    with pytest.raises(MechanismError, match="outside"):
        candidates(BestAttributes((index[1],), (2,), index[2], 2), counts, Layout((12,)))
