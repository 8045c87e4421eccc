"""Bounds of what was not measured: held against all data that have the same tables, and against noise."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from dphist import Domain, Histogram, Nominal, Workload
from dphist.inference.estimate import Interval
from dphist.inference.tables.frechet import Bounding, cover
from dphist.inference.tables.residuals import subsets
from dphist.mechanisms import Marginals
from dphist.testing import run

SHAPE = (4, 3, 2)


def exact(counts: np.ndarray) -> Any:
    """Questions answered without noise, as intervals of no width."""

    def ask(low, high, query, count, confidence):
        boxes = np.array(
            [counts[tuple(map(slice, *each))].sum() for each in zip(low, high, strict=True)], dtype=float
        )
        whole = boxes if query is None else np.bincount(query, boxes, count).astype(float)
        return Interval(whole.copy(), whole.copy())

    return ask


def boxes(rng: np.random.Generator, count: int, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.zeros((count, 3), dtype=np.int64), np.tile(np.array(SHAPE), (count, 1))
    for axis in axes:
        ends = np.sort([rng.choice(SHAPE[axis] + 1, 2, replace=False) for _ in range(count)], axis=1)
        whole = ends[:, 1] - ends[:, 0] == SHAPE[axis]
        low[:, axis], high[:, axis] = ends[:, 0], ends[:, 1] - whole
    return low, high


@pytest.mark.parametrize(
    "tables",
    [[(0,), (1,), (2,)], [(0, 1), (2,)], [(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)], [(0, 2)], [()]],
    ids=str,
)
def test_without_noise_bounds_hold_for_any_data(tables) -> None:
    rng = np.random.default_rng(1)
    low, high = boxes(rng, 60, (0, 1, 2))
    measured = {inner for axes in tables for inner in subsets(axes)}

    def known(axes):
        return [each for each in measured if set(each) <= set(axes)]

    for data in range(12):
        # Few cells that hold anything depend on each other as much as can be.
        counts = rng.integers(0, 50, SHAPE) * (rng.random(SHAPE) < (0.15 if data % 2 else 1.0))
        found = Bounding(SHAPE, known, exact(counts)).bounds((low, high), None, 0.95)
        truth = exact(counts)(low, high, None, 60, 0.95).low
        assert (found.low <= truth).all()
        assert (truth <= found.high).all()


def test_both_ends_are_met_by_copies_and_by_what_excludes() -> None:
    # Of two attributes that say the same, and of two that exclude each other.
    same, apart = np.diag([30, 20, 50]), np.array([[0, 40], [60, 0]])
    ones = np.array([[0, 0]]), np.array([[1, 1]])
    for counts, end in ((same, "high"), (apart, "low")):
        shape = counts.shape
        found = Bounding(shape, lambda axes: [(0,), (1,)], exact(counts)).bounds(ones, None, 0.95)
        assert getattr(found, end)[0] == counts[0, 0]


def test_what_tables_have_in_common_narrows_the_bound_below() -> None:
    # By Fréchet's bound of disjoint tables alone the three would be n(0, 1) + n(2) − n = −20.
    counts = np.zeros((2, 2, 2), dtype=int)
    counts[0, 0, 0], counts[1, 1, 1] = 40, 60
    box = np.zeros((1, 3), dtype=np.int64), np.ones((1, 3), dtype=np.int64)
    found = Bounding((2, 2, 2), lambda axes: [(0, 1), (1, 2)], exact(counts)).bounds(box, None, 0.95)
    assert (found.low[0], found.high[0]) == (40, 40)


def test_a_list_of_values_is_one_condition() -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 30, SHAPE)
    # The first attribute is 0 or 2, the second 1: two boxes; beside it a question of boxes that are no combination.
    low = np.array([[0, 1, 0], [2, 1, 0], [0, 0, 0], [1, 1, 0]])
    high = np.array([[1, 2, 2], [3, 2, 2], [1, 1, 2], [2, 2, 2]])

    def singles(low, high, query, count, confidence):
        found = exact(counts)(low, high, query, count, confidence)
        missing = ((low != 0) | (high != np.array(SHAPE))).sum(axis=1) > 1
        if query is None:
            found.low[missing], found.high[missing] = np.nan, np.nan
        return found

    bounding = Bounding(SHAPE, lambda axes: [(axis,) for axis in axes], singles)
    found = bounding.bounds((low, high), np.array([0, 0, 1, 1]), 0.95)
    first, second = counts.sum(axis=(1, 2)), counts.sum(axis=(0, 2))
    assert found.high[0] == min(first[0] + first[2], second[1])
    assert found.low[0] == max(0, first[0] + first[2] + second[1] - counts.sum())
    assert found.high[1] == min(first[0], second[0]) + min(first[1], second[1])


def test_the_error_is_shared_by_all_that_is_looked_at() -> None:
    asked: list[float] = []

    def ask(low, high, query, count, confidence):
        asked.append(confidence)
        unknown = ((low != 0) | (high != np.array(SHAPE))).sum(axis=1) > 1
        value = np.where(unknown & (query is None), np.nan, 100.0)
        return Interval(value[:count] - 10.0, value[:count] + 10.0)

    bounding = Bounding(SHAPE, lambda axes: [(axis,) for axis in axes], ask)
    low, high = np.array([[0, 1, 0], [1, 2, 0]]), np.array([[1, 2, 2], [2, 3, 2]])
    one = bounding.bounds((low[:1], high[:1]), None, 0.95)
    # Two attributes and the number of records.
    assert np.allclose(asked, 1 - 0.05 / 3)
    # Lower ends of what is added, the upper one of what is taken off.
    assert (one.low[0], one.high[0]) == (90 + 90 - 110, 110)
    asked.clear()
    # Two boxes that are no combination: each has half of the error, and shares it in turn.
    bounding.bounds((low, high), np.array([0, 0]), 0.95)
    assert np.allclose(asked, [1 - 0.05 / 2, *[1 - 0.05 / 6] * 3])


def test_many_tables_are_not_all_looked_at() -> None:
    every = tuple(range(40))
    chosen = cover(every, combinations(every, 2))
    assert len(chosen.looked) < 100
    assert set().union(*chosen.pieces) == set(every)
    assert cover(every, [(0, 1), (2,)]).chains == ()


@pytest.mark.parametrize("copies", [True, False])
def test_bounds_hold_in_noise(copies) -> None:
    # Copies lie at the upper end, so that only the width for noise is between the bounds and the truth.
    domain = Domain([Nominal(name, list("abcde")) for name in "xyz"])
    counts = np.zeros(domain.shape, dtype=np.int64)
    for place in product(range(5), repeat=3):
        counts[place] = (len(set(place)) == 1) * 40 * (1 + place[0]) if copies else sum(place) % 4
    asked = Workload.marginals(domain, 2)
    truth = asked.answer(counts)
    mechanism = Marginals(tables=((0,), (1,), (2,)))
    held: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(16):
        estimate: Any = run(mechanism, Histogram(domain, counts), 1, seed=seed)
        published = asked.answer(estimate.counts)
        for guaranteed, each in held.items():
            found = estimate.errors.interval(asked, published, 0.9, guaranteed=guaranteed)
            assert found.guessed.all()
            assert (found.low <= published).all()
            assert (published <= found.high).all()
            each.append(float(np.mean((found.low <= truth) & (truth <= found.high))))
    assert np.mean(held[False]) >= 0.9
    assert np.mean(held[True]) >= 0.9
