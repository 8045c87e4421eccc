"""Full planes under ρ: wavelets where blocks are full, a tree where they are not, and what both promise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.mechanisms import Auto, Privelet
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.choosing.glimpse import Crowd
from dphist.mechanisms.choosing.planes import crowded_look, within
from dphist.mechanisms.choosing.request import Request
from dphist.mechanisms.choosing.rule import first_look
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing import open_counts

PLANE = Domain([Ordinal("x", range(128)), Ordinal("y", range(96))])
RANGES = Workload.random(PLANE, 400, seed=3)
HALF = Budget.of(rho="1/2")


def _hill(height):
    x, y = np.meshgrid(np.arange(128) / 128, np.arange(96) / 96, indexing="ij")
    return Histogram(PLANE, np.rint(height * (0.3 + x * y)).astype(np.int64))


def _lone(height):
    counts = np.zeros(PLANE.shape, dtype=np.int64)
    counts[5, 7] = counts[100, 90] = height
    return Histogram(PLANE, counts)


def _made(counts: Histogram, asked: Workload) -> Auto:
    made = Auto().estimate(open_counts(counts, HALF, workload=asked, seed=4)).made_by
    assert isinstance(made, Auto)
    return made


def test_a_full_plane_gets_wavelets_and_few_cells_a_tree():
    made = {
        name: _made(each, RANGES)
        for name, each in {"full": _hill(400), "few": _lone(10**6), "thin": _hill(0)}.items()
    }
    assert isinstance(made["full"].chosen, Privelet)
    assert isinstance(made["few"].chosen, AdaptiveTree)
    assert isinstance(made["thin"].chosen, AdaptiveTree)
    looks = {name: each.look for name, each in made.items() if each.look is not None}
    # Where there are records, it is asked too how many of them lie in no tall cell: too many, or too few, for a heap.
    assert looks["thin"] == crowded_look(PLANE.shape)
    assert looks["full"] == looks["few"] == replace(looks["thin"], spread=Fraction(1, 128))


def test_rectangles_of_a_full_plane_are_off_by_much_less_than_from_a_tree():
    full = _hill(400)
    truth = np.asarray(RANGES.answer(full.counts))

    def off(mechanism):
        squares = [
            np.asarray(RANGES.answer(mechanism.estimate(right).counts.reshape(PLANE.shape))) - truth
            for right in (open_counts(full, HALF, workload=RANGES, seed=seed) for seed in (1, 2))
        ]
        return np.sqrt(np.mean(np.square(squares)))

    assert off(Auto()) < 0.8 * off(AdaptiveTree(estimator="averaged"))


def test_nobody_pays_for_blocks_under_epsilon_or_where_nothing_was_announced():
    for budget, asked in ((Budget.of(epsilon=1), RANGES), (HALF, None), (HALF, Workload.cells(PLANE))):
        look = first_look(Request(open_counts(_hill(400), budget, workload=asked)))
        assert look is None or not look.blocks


def test_what_is_published_says_why_replays_and_holds():
    release = dphist.publish(_hill(400), rho="1/2", workload=RANGES)
    assert isinstance(release.mechanism, Auto)
    assert "(wavelets) are measured (privelet)" in release.mechanism.why
    release.verify()
    answers = release.answer(RANGES, confidence=0.95)
    assert answers.method.startswith("exact: ")
    truth = np.asarray(RANGES.answer(_hill(400).counts))
    # The noise of each is normal and known: half of 400 ranges beyond two deviations
    # does not happen.
    assert np.mean((answers.low <= truth) & (truth <= answers.high)) > 0.5
    assert np.isfinite(answers.high - answers.low).all()


def test_for_narrow_guarantees_a_full_plane_is_reckoned_with():
    right = open_counts(_lone(10**6), HALF, workload=RANGES)
    mechanism, why = Auto(guaranteed=True).choose(right)
    assert isinstance(mechanism, Privelet)
    assert "nearly everywhere" not in why


def test_blocks_are_as_uneven_inside_as_beside_each_other():
    density, cells = np.array([[0.0, 4.0], [2.0, 2.0], [5.0, 7.0]]), np.full((3, 2), 8.0)
    parts, weight = within(Crowd(density, cells))
    # As many records as before, none of them anywhere in a block that is empty.
    assert parts @ weight == pytest.approx(float((density * cells).sum()))
    assert weight.sum() == pytest.approx(cells.sum())
    assert (parts[:4] == 0.0).all()
    # Neighbours with nothing between them say nothing.
    assert (within(Crowd(np.zeros((2, 2)), np.ones((2, 2))))[0] == 0.0).all()


def test_spaces_with_a_nominal_attribute_may_have_wavelets_as_well():
    space = Domain([Ordinal("x", range(32)), Ordinal("y", range(32)), Nominal("sex", ["F", "M"])])
    asked = Workload.random(space, 200, seed=1)
    full = Histogram(space, np.full(space.shape, 500, dtype=np.int64))
    assert isinstance(_made(full, asked).chosen, Privelet)
