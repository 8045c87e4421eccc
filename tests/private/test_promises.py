"""What a mechanism's author may not get away with: questions that promise less than they move."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dphist
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.private import questions
from dphist.private.queries import Identity
from dphist.private.queries.tables import TableTotals
from dphist.private.questions import Candidates, Layout, Scales, own_array, own_copy, proven
from dphist.private.scores.bisections import Configurations
from dphist.private.scores.counting import BestAttributes, Disagreements, Medians
from dphist.private.scores.tables import TableErrors
from dphist.private.segments import AbsoluteDeviation
from dphist.testing import open_counts

SECRET = [12_345, 7]


def test_a_buffer_changed_after_the_sensitivity_was_computed_has_no_effect() -> None:
    tables, model = ((0,), (0, 1)), np.zeros(6, dtype=np.int64)
    weights = np.ones(2, dtype=np.int64)
    score = TableErrors(tables, model, 1, weights)
    layout, cells = Layout((2, 2)), np.array([5, 0, 0, 1])
    before = next(own_copy(score).stages(cells, layout))
    model[:], weights[:] = 10**6, 500
    after = next(own_copy(score).stages(cells, layout))
    assert (before.scores.tolist(), before.ranges) == (after.scores.tolist(), after.ranges) == ([6, 6], 2)
    # Forced through the frozen object, what is asked is still what the range is computed from.
    object.__setattr__(score, "weights", 500 * np.ones(2, dtype=np.int64))
    forced = next(own_copy(score).stages(cells, layout))
    assert (forced.scores.tolist(), forced.ranges) == ([3000, 3000], 1000)


def test_what_is_hidden_in_the_object_is_not_asked() -> None:
    query = TableTotals(((),), (Fraction(1, 10**6),))
    for name, lie in (("scales", lambda layout: Fraction(1)), ("answer", lambda counts, layout: counts)):
        object.__setattr__(query, name, lie)
    noisy = open_counts(SECRET, 1, seed=2).measure(query)
    assert noisy.scale.tolist() == [10**6]
    assert noisy.values.shape == (1,)


def test_arrays_of_a_question_cannot_be_written_to() -> None:
    given = np.arange(6).reshape(2, 3)
    mine = own_array(given)
    given[:] = 9
    assert mine.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert own_array(mine) is mine
    with pytest.raises(ValueError, match="WRITEABLE"):
        mine.setflags(write=True)
    with pytest.raises(MechanismError, match="whole"):
        own_array(np.array([0.5]))
    with pytest.raises(MechanismError, match="64-bit"):
        own_array(np.array([2**63], dtype=np.uint64))
    query = Medians(np.arange(4), np.array([4]))
    for array in (query.slot, query.lengths):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@dataclass(frozen=True)
class Silent:
    """Says that it noises, and does not."""

    def answer(self, counts, layout):
        return counts

    def scales(self, layout):
        return Fraction(1)

    def perturb(self, counts, layout, noise):
        return counts.copy()

    def draws(self, layout):
        return 1

    def stages(self, counts, layout):
        yield Candidates(counts * 10**6, np.array([0, counts.size]), 1)

    def check(self, layout):
        return Fraction(1)

    def segment(self, counts, layout, noise):
        return counts.copy()


class Quiet(Identity):
    def scales(self, layout):
        return Fraction(1, 10**6)


@pytest.mark.parametrize("verb", ["measure", "choose", "segment"])
def test_a_question_without_a_proof_is_refused_before_it_is_paid_for(verb: str) -> None:
    right = open_counts(SECRET, 1)
    with pytest.raises(MechanismError, match="Silent carries no proof"):
        getattr(right, verb)(Silent())
    right.measure(Identity())  # nothing was used up
    # The door for tests, which must be asked for.
    getattr(open_counts(SECRET, 1, unproven=True), verb)(Silent())


def test_a_subclass_of_a_proven_question_is_not_proven() -> None:
    with pytest.raises(MechanismError, match="Quiet carries no proof"):
        open_counts(SECRET, 1).measure(Quiet())
    with pytest.raises(MechanismError, match="only questions of dphist"):
        proven(Silent)
    with pytest.raises(MechanismError, match="no proof"):
        open_counts(SECRET, 1).measure(Identity)  # type: ignore[arg-type]


@pytest.mark.parametrize("view", ["split", "partition", "select", "arrange", "coarsen", "separate", "of"])
def test_no_view_loses_the_demand_for_a_proof(view: str) -> None:
    for unproven in (False, True):
        right = open_counts(np.arange(6).reshape(2, 3), 1, unproven=unproven)
        views = {
            "split": lambda d: d.split("1/2", "1/2")[1],
            "partition": lambda d: d.partition(np.zeros(6)),
            "select": lambda d: d.select([True])[0],
            "arrange": lambda d: d.arrange(np.arange(6)),
            "coarsen": lambda d: d.coarsen(np.zeros(6)),
            "separate": lambda d: d.separate(["x0"])[1],
            "of": lambda d: d.of(d.domain),
        }
        assert views[view](right)._unproven is unproven


@dataclass(frozen=True, kw_only=True)
class Cheat:
    def estimate(self, data):
        noisy = data.measure(Silent())
        return Estimate(noisy.values.astype(float), IndependentNoise(noisy.scale))


def test_publish_refuses_it_and_cannot_be_told_otherwise() -> None:
    domain = dphist.Domain([dphist.Ordinal("x", range(2))])
    with pytest.raises(MechanismError, match="Silent carries no proof"):
        dphist.publish(dphist.Histogram(domain, np.array(SECRET)), epsilon="1/10", mechanism=Cheat())
    source = Path(questions.__file__).parents[1]
    doors = {
        path.relative_to(source).as_posix() for path in source.rglob("*.py") if "unproven" in path.read_text()
    }
    assert doors == {"private/gate.py", "testing/gates.py", "audit/attack.py"}


def test_a_copy_is_made_of_plain_values_only() -> None:
    class Sly(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    class SlyFraction(Fraction):
        pass

    class SlyText(str):
        __slots__ = ()

    made = own_copy(AbsoluteDeviation(SlyFraction(3), (Sly(4), Sly(2)), SlyText("mean"), Sly(2)))  # type: ignore[arg-type]
    assert [type(value) for value in (made.price, made.centre, made.grid, *made.sizes)] == [
        Fraction,
        str,
        int,
        int,
        int,
    ]
    with pytest.raises(MechanismError, match="cannot hold a set"):
        own_copy(AbsoluteDeviation({1}))  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="dataclass"):
        own_copy(object())


def test_labels_changed_after_the_parts_were_made_change_no_part() -> None:
    labels, order = np.array([0, 1]), np.array([1, 0])
    right = open_counts(SECRET, 1).partition(labels)
    arranged = open_counts(SECRET, 1).arrange(order)
    labels[0], order[:] = 5, 0
    assert right.labels is not None
    assert right.labels.tolist() == [0, 1]
    assert arranged.cells.tolist() == [1, 0]
    one, other = right.select([True, False])
    assert (one.cells.tolist(), other.cells.tolist()) == ([0], [1])


@pytest.mark.parametrize("index", [[0, -1], [0, 2]])
def test_every_answer_has_a_scale(index: list[int]) -> None:
    with pytest.raises(MechanismError, match="index"):
        Scales((Fraction(1), Fraction(2)), np.array(index))
    with pytest.raises(MechanismError, match="above zero"):
        Scales((Fraction(1), Fraction(0)), np.array([0, 0]))


def test_a_scale_that_cannot_be_drawn_is_refused_before_anything_is_used() -> None:
    for ask in (
        lambda d: d.measure(Identity()),
        lambda d: d.segment(AbsoluteDeviation()),
        lambda d: d.measure(TableTotals(((0,),), (Fraction(1, 2**60),))),
    ):
        right = open_counts(SECRET, "1/100000000000000000")
        with pytest.raises(dphist.errors.DphistError, match="scale"):
            ask(right)
        right.split("1/2", "1/2")  # still unused


CUTS = {
    "twice": [[0, 4, 9], [0, 4, 9]],
    "of a run that is no more": [[0, 4, 9], [0, 6, 9]],
    "of nothing": [[0, 4, 4]],
    "before its run": [[2, 1, 9]],
    "beyond the cells": [[0, 4, 10]],
    "below the cells": [[-9, 4, 9]],
    "of a run that is not there yet": [[0, 2, 4], [0, 4, 9]],
}


@pytest.mark.parametrize("name", CUTS)
def test_configurations_take_only_cuts_of_what_is_there(name: str) -> None:
    score = Configurations(*np.array(CUTS[name]).T.copy(), Fraction(1))  # type: ignore[call-arg]
    with pytest.raises(MechanismError, match="every cut"):
        open_counts(np.arange(9), 1).choose(score)


def test_structures_are_refused_before_they_are_paid_for() -> None:
    boxes = np.array([[0]]), np.array([[3]])
    wrong = [
        Disagreements(np.array([[-1]]), np.array([[2]]), np.array([0])),
        Disagreements(np.array([[0]]), np.array([[4]]), np.array([0])),
        Disagreements(np.array([[2]]), np.array([[1]]), np.array([0])),
        Disagreements(np.array([[0, 0]]), np.array([[1, 1]]), np.array([0])),
        Disagreements(np.zeros((0, 1), dtype=int), np.zeros((0, 1), dtype=int), np.zeros(0, dtype=int)),
        Medians(np.array([0, 3, 0]), np.array([2])),
        Medians(np.array([0, 0]), np.array([2])),
        Medians(np.array([0, 0, 0]), np.array([0])),
        BestAttributes((np.array([0, 2, 0]),), (2,), np.array([0, 0, 0]), 1),
        BestAttributes((np.array([0, 1, 0]),), (2,), np.array([0, 1, 0]), 1),
        BestAttributes((), (), np.array([0, 0, 0]), 1),
    ]
    for score in wrong:
        right = open_counts([1, 2, 3], 1)
        with pytest.raises(MechanismError):
            right.choose(score)  # type: ignore[arg-type]
        right.choose(Disagreements(*boxes, np.array([1])))
    with pytest.raises(MechanismError, match="2\\^61"):
        Disagreements(*boxes, np.array([2**61]))
    with pytest.raises(MechanismError, match="row of bounds"):
        Disagreements(*boxes, np.array([1, 2]))
    with pytest.raises(MechanismError, match="size for each"):
        BestAttributes((np.array([0]),), (1, 2), np.array([0]), 1)


def test_a_grid_so_fine_that_costs_would_wrap_is_refused() -> None:
    with pytest.raises(MechanismError, match="grid"):
        AbsoluteDeviation(grid=2**20)
    with pytest.raises(MechanismError, match="grid"):
        AbsoluteDeviation(grid=1024, sizes="powers").check(Layout((2**26,)))
    # At the finest grid and the fullest cells nothing wraps: two cells far apart are not put together.
    counts = np.array([0, 2**62], dtype=np.int64)
    for sizes in ("all", "powers", (2, 1)):
        starts = open_counts(counts, 1, seed=3).segment(AbsoluteDeviation(sizes=sizes, grid=1024))
        assert starts.tolist() == [0, 1]
