"""Few tall cells in an empty plane: seen by what lies in low ones, and then measured cell by cell."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.errors import MechanismError
from dphist.mechanisms import Auto, Posterior
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.choosing.tall import cells_if_few, counted_look, look_higher
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.private.queries import Heights
from dphist.private.questions import Layout
from dphist.testing import open_counts

PLANE = Domain([Ordinal("x", range(128)), Ordinal("y", range(128))])
RANGES = Workload.random(PLANE, 300, seed=3)


def _few(height=20_000, cells=40):
    counts = np.zeros(PLANE.size, dtype=np.int64)
    counts[np.arange(cells) * 397 % PLANE.size] = height
    return Histogram(PLANE, counts.reshape(PLANE.shape))


def _even(height):
    return Histogram(PLANE, np.full(PLANE.shape, height, dtype=np.int64))


def test_the_question_is_what_its_words_say():
    counts = np.array([0, 1, 3, 4, 5, 7, 8, 100])
    assert Heights(4).answer(counts, Layout((8,))).tolist() == [0 + 1 + 3 + 4 + 4 + 4 + 4 + 4]
    assert Heights(4, falling=True).answer(counts, Layout((8,))).tolist() == [0 + 1 + 3 + 4 + 3 + 1 + 0 + 0]
    huge = np.array([2**62, -(2**62)])
    assert Heights(2**60, falling=True).answer(huge, Layout((2,))).tolist() == [0]
    for height in (0, -1, 2**61, 2.0, True):
        with pytest.raises(MechanismError, match="height"):
            Heights(height)  # type: ignore[arg-type]


def test_a_look_sees_tall_and_low_and_pays_what_it_says():
    right = open_counts(_few(), 1, workload=RANGES, seed=1)
    look, seen, rest = look_higher(counted_look(), *counted_look().at(right), "ranges")
    assert rest.unit_scale == 1 / ((1 - look.total) * (1 - look.heights) * (1 - look.again))
    # Noise of scales 60 and 240 ÷ 18: a chance below 1e-6 to be off by 15 times that.
    assert seen.low is not None
    assert seen.tall is not None
    assert abs(seen.low) < 1000
    assert abs(seen.tall - 40) < 250
    again, left = look.at(open_counts(_few(), 1, workload=RANGES, seed=1))
    assert (again.low, again.tall, left.unit_scale) == (seen.low, seen.tall, rest.unit_scale)
    with pytest.raises(MechanismError, match="heights"):
        Look(heights=Fraction(1, 9))


@pytest.mark.parametrize("asked", [RANGES, None])
def test_few_tall_cells_are_measured_one_by_one_and_all_else_is_not(asked):
    for counts, mechanism in ((_few(), Posterior), (_few(3), AdaptiveTree), (_even(25), AdaptiveTree)):
        made = Auto().estimate(open_counts(counts, 1, workload=asked, seed=2)).made_by
        assert isinstance(made, Auto)
        assert isinstance(made.chosen, mechanism)
        assert made.look is not None
        # Nobody pays for heights where cells cannot be tall.
        assert bool(made.look.heights) == (counts.counts.sum() > 300_000)


def test_full_cells_that_are_all_tall_keep_the_tree():
    right = open_counts(_even(1000), 1, workload=RANGES, seed=1)
    _, seen, rest = look_higher(counted_look(), *counted_look().at(right), "ranges")
    assert cells_if_few(rest, "ranges", seen) is None
    few = cells_if_few(rest, "ranges", replace(seen, low=0.0, tall=50.0))
    assert few is not None
    assert cells_if_few(rest, "ranges", replace(seen, low=1e5, tall=50.0)) is None


def test_noise_of_the_look_is_not_taken_for_records():
    rest = open_counts(_few(), 1, workload=RANGES, seed=1)

    def chosen(low, tall, blur=60.0):
        return cells_if_few(rest, "ranges", Glimpse(8e5, low=low, tall=tall, blur=blur)) is not None

    assert [chosen(low, 10.0) for low in (-200.0, 0.0, 60.0, 120.0, 600.0, 6000.0)] == [True] * 4 + [
        False
    ] * 2
    # The same, known better.
    assert not chosen(120.0, 10.0, blur=6.0)
    # Nor are no tall cells believed, which noise makes of a few.
    assert chosen(0.0, 0.0)
    assert not chosen(0.0, 16_384.0)


def test_what_leaves_doubt_is_asked_once_more_and_replays():
    counts = _few().counts.copy()
    counts.reshape(-1)[5::131] = 2
    for seed, plane, twice in ((2, counts, True), (2, _few().counts, False)):
        right = open_counts(Histogram(PLANE, plane), 1, workload=RANGES, seed=seed)
        look, seen, rest = look_higher(counted_look(), *counted_look().at(right), "ranges")
        assert bool(look.again) == twice
        assert rest.unit_scale == 1 / ((1 - look.total) * (1 - look.heights) * (1 - look.again))
        again, left = look.at(open_counts(Histogram(PLANE, plane), 1, workload=RANGES, seed=seed))
        assert (again, left.unit_scale) == (seen, rest.unit_scale)
        # What both show has less noise than either.
        assert seen.blur < (26.0 if twice else 63.0)
    with pytest.raises(MechanismError, match="again"):
        Look(again=Fraction(1, 9))


def test_beside_tall_cells_empty_ones_add_up_to_no_more_than_was_seen():
    counts = np.zeros(PLANE.shape, dtype=np.int64)
    places = np.random.default_rng(4).normal(64, 12, (2, 900)).round().astype(int)
    np.add.at(counts, tuple(np.clip(places, 0, 127)), 5000)
    plain, few = (
        Posterior(elsewhere=each).estimate(open_counts(counts, 1, seed=3)).counts for each in (0.0, 30.0)
    )
    low = plain < 5.0
    assert plain[low].sum() > 60.0
    assert few[low].sum() == pytest.approx(30.0)
    assert np.array_equal(few[~low], plain[~low])


def test_rectangles_are_off_by_half_of_a_tree_and_what_is_published_replays():
    truth = np.asarray(RANGES.answer(_few().counts))

    def off(mechanism):
        errors = [
            np.asarray(RANGES.answer(mechanism.estimate(right).counts.reshape(PLANE.shape))) - truth
            for right in (open_counts(_few(), 1, workload=RANGES, seed=seed) for seed in (2, 3))
        ]
        return np.sqrt(np.mean(np.square(errors)))

    assert off(Auto()) < 0.8 * off(AdaptiveTree(estimator="averaged"))
    said = Auto().estimate(open_counts(_few(), 1, workload=RANGES, seed=2)).note
    assert "cells, so every cell is measured by itself (posterior)" in said
    # Which is chosen hangs on noise; what is published of it does not.
    release = dphist.publish(_few(), epsilon=1, workload=RANGES, mechanism="posterior(elsewhere=30)")
    release.verify()
    answers = release.answer(RANGES)
    # Each is off by the noise of few cells: half of them beyond two deviations does not happen.
    assert np.mean((answers.low <= truth) & (truth <= answers.high)) > 0.5
