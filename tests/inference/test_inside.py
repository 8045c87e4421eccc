"""What repeats inside blocks: seen by sums with public signs, and allowed for by intervals of what cuts blocks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dphist
from dphist.audit import audit
from dphist.audit.neighbours import pair
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive import Engine
from dphist.inference.predictive.inside import Inside, Sketches, value_groups, value_signs
from dphist.mechanisms import AdaptiveTree
from dphist.mechanisms.trees.looking import look_of, signed_sums
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.private.questions import Layout
from dphist.testing import check_mechanism, run

PLANE = Domain([Ordinal("x", range(64)), Ordinal("y", range(64))])
PLAIN = AdaptiveTree(estimator="averaged", mixture=True, near=True)
LOOKING = AdaptiveTree(estimator="averaged", mixture=True, near=True, inside=True)
Y, X = np.mgrid[0:64, 0:64]


def test_one_step_moves_one_sum_of_each_attribute_by_one():
    shape, groups = (4, 3, 2), (2, 1, 1)
    question, layout = signed_sums(shape, groups), Layout(shape)
    counts = np.arange(24)
    before = question.answer(counts, layout)
    for cell in range(24):
        after = counts.copy()
        after[cell] += 1
        moved = np.abs(question.answer(after, layout) - before)
        assert [int(moved[:2].sum()), int(moved[2]), int(moved[3])] == [1, 1, 1]
    assert question.scales(layout) == question.variances(layout) == 3


def test_it_conforms():
    check_mechanism(AdaptiveTree(inside=True))


@pytest.mark.audit
@pytest.mark.slow
def test_the_audit_finds_nothing_where_it_is_looked():
    full = np.full((4, 4), 20)
    looked: Any = run(AdaptiveTree(inside=True), full, 1, seed=1).errors
    assert looked.sketches.sums.size
    pairs = [
        pair("one more in a full plane", full, 5),
        pair("a row that has all", full * [[0], [4], [0], [0]], 4),
    ]
    # A sound mechanism is refuted with probability at most 1e-6.
    assert audit(AdaptiveTree(inside=True), epsilon=1, runs=600, pairs=pairs, confidence=1 - 1e-6).passed


def test_signs_and_groups_are_fixed_since_releases_are_read_by_them():
    assert value_signs(0, 12).tolist() == [1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, 1]
    assert value_signs(1, 12).tolist() == [-1, -1, 1, 1, 1, -1, 1, 1, -1, 1, -1, -1]
    assert value_groups(1, 9, 3).tolist() == [1, 0, 2, 2, 0, 2, 1, 0, 1]
    # Of every group both signs, on a plane of ordinary size.
    for axis in range(2):
        groups = value_groups(axis, 64, 8)
        assert np.bincount(groups).tolist() == [8] * 8
        assert abs(value_signs(axis, 64).sum()) < 24


def test_a_look_costs_more_where_there_is_less_to_tell_and_nothing_where_there_is_nothing():
    law = NoiseLaw("laplace", Fraction(1))
    assert look_of((64, 64), 50.0, law) == (Fraction(0), (0, 0))
    assert look_of((64, 64), 1000.0, law) == (Fraction(1, 24), (4, 4))
    assert look_of((64, 64), 1e5, law) == (Fraction(1, 96), (16, 16))
    assert look_of((512, 4), 4e4, law) == (Fraction(1, 96), (16, 2))
    assert look_of((64, 64), 1e6, law) is None


def _one_block(strengths):
    tree = MeasuredTree.of((4, 6), [-1], [[0, 0]], [[4, 6]], [240.0], [8.0])
    counts = np.full((4, 6), 10.0)
    return Inside(Engine.of_tree(tree), counts, Sketches((1, 1), np.zeros(2), 8.0), np.array(strengths))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_a_cut_adds_is_the_variance_of_values_less_their_mean(axis):
    inside = _one_block([1.0, 0.0] if axis == 0 else [0.0, 1.0])
    n, across = (4, 6) if axis == 0 else (6, 4)
    draws = np.random.default_rng(1).standard_normal((20_000, n))
    draws -= draws.mean(axis=1, keepdims=True)
    for stop in range(1, n + 1):
        low, high = np.zeros((1, 2), dtype=np.int64), np.array([[4, 6]])
        high[0, axis] = stop
        expected = float((10.0 * across * draws[:, :stop].sum(axis=1)).var())
        assert inside.variance(low, high)[0] == pytest.approx(expected, rel=0.05, abs=1e-6)
    # One value between others: no more than all of its cells, not both of its ends.
    low, high = np.zeros((1, 2), dtype=np.int64), np.array([[4, 6]])
    low[0, axis], high[0, axis] = 1, 2
    assert inside.variance(low, high)[0] == pytest.approx((10.0 * across) ** 2)
    both = inside.variance(np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0), np.array([0, 2]))
    assert both[0] == pytest.approx(2 * (10.0 * across) ** 2)


def _rows_held(mechanism, counts, epsilon="1", seed=3):
    estimate = run(mechanism, Histogram(PLANE, counts), epsilon, seed=seed)
    tables = Workload.marginals(PLANE, 1)
    truth, summed = tables.answer(counts), tables.answer(estimate.counts)
    held = estimate.errors.interval(tables, estimate.errors.answer(tables, summed), 0.95)
    return float(((held.low <= truth) & (truth <= held.high)).mean()), estimate.errors


def test_stripes_inside_blocks_are_seen_and_intervals_hold():
    stripes = np.where(X % 2 == 0, 5, 0)
    without, _ = _rows_held(PLAIN, stripes)
    held, errors = _rows_held(LOOKING, stripes)
    assert without < 0.6
    assert held > 0.95
    # Whole columns are fuller than others, rows are not.
    rows, columns = errors.inside.strengths
    assert columns > 10 * rows
    assert columns > 0.5


def test_little_is_added_where_nothing_repeats():
    level = np.full((64, 64), 3)
    held, errors = _rows_held(LOOKING, level)
    assert held == 1.0
    assert errors.inside.strengths.max() < 0.1
    boxes = Workload.random(PLANE, 200, seed=1)
    answers = boxes.answer(level)
    width = [
        np.sqrt(each.squares(boxes.low, boxes.high, None, answers)).mean()
        for each in (errors, replace(errors, sketches=None))
    ]
    assert 1.0 <= width[0] / width[1] < 1.1


def test_under_rho_and_on_cubes_it_is_looked_at_too():
    stripes = np.where(Y % 4 == 1, 2, 0)
    held, planes = _rows_held(LOOKING, stripes, Budget.of(rho=Fraction(1, 2)))
    assert planes.sketches.gaussian
    assert planes.inside.strengths[0] > 1.0
    assert held > 0.93
    cube = Domain([Ordinal(name, range(16)) for name in "xyz"])
    counts = np.zeros((16, 16, 16), dtype=np.int64)
    counts[:, ::4] = 4
    errors: Any = run(AdaptiveTree(inside=True), Histogram(cube, counts), "1", seed=1).errors
    assert errors.inside.strengths[1] > 4 * max(errors.inside.strengths[0], errors.inside.strengths[2])


def test_with_few_records_nothing_is_paid_and_the_unknown_is_allowed_for():
    few = np.zeros((64, 64), dtype=np.int64)
    few[::4, ::4] = 1
    plain, looking = (run(each, Histogram(PLANE, few), "1", seed=2) for each in (PLAIN, LOOKING))
    np.testing.assert_array_equal(plain.counts, looking.counts)
    row = Workload(PLANE, np.array([[8, 0]]), np.array([[9, 64]]))
    assert (
        looking.errors.interval(row, np.array([4.0]), 0.95).high
        > plain.errors.interval(row, np.array([4.0]), 0.95).high
    )


def test_what_is_published_with_a_look_replays(tmp_path):
    stripes = Histogram(PLANE, np.where(X % 2 == 0, 5, 0))
    release = dphist.publish(stripes, epsilon=1, mechanism=LOOKING)
    release.save(tmp_path / "plane.parquet")
    again = dphist.load(tmp_path / "plane.parquet")
    again.verify(exact=True)
    tables = Workload.marginals(PLANE, 1)
    np.testing.assert_array_equal(again.answer(tables).high, release.answer(tables).high)
    # Every second column holds nothing, and none is taken for it.
    assert (again.answer(tables).low[64:] == 0.0).mean() > 0.4
