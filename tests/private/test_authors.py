"""What an author may hand to the gate, or write to what it hands out: neither moves a promise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_origin

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private import questions
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Identity, Totals
from dphist.private.queries.wavelet import Wavelet
from dphist.private.questions import own_copy
from dphist.private.scores.boundaries import Boundaries
from dphist.private.scores.counting import Heaps
from dphist.private.spectrum import LowFrequencies
from dphist.testing import open_counts
from dphist.testing.gates import as_histogram

sys.path += [str(Path(__file__).parent)]

from every_question import COSTS, QUERIES, SCORES, TABLE

FLAT = Nominal("p", list("abcdefgh"))
DEEP = Nominal("p", {"G": {"H": ["a", "b"], "I": ["c", "d"]}, "J": {"K": ["e", "f"], "L": ["g", "h"]}})


class Turning(Nominal):
    """Flat when its noise is sized, deep when it is asked."""

    __slots__ = ("asked",)

    asked: int

    @property
    def hierarchy(self) -> Any:
        object.__setattr__(self, "asked", getattr(self, "asked", 0) + 1)
        return FLAT.hierarchy if self.asked < 2 else DEEP.hierarchy


class Larger(Domain):
    """Says that it has four cells."""

    size = 4


def turning() -> Nominal:
    made = object.__new__(Turning)
    for name in ("name", "other", "categories", "discover"):
        object.__setattr__(made, name, getattr(FLAT, name))
    return made


def test_cells_are_called_those_of_plain_domains_only() -> None:
    # Of a turning tree wavelets had noise for two levels, and four were answered.
    right = open_counts(np.arange(8), 1)
    with pytest.raises(MechanismError, match="as they are"):
        right.of(Domain([turning()]))
    with pytest.raises(MechanismError, match="as they are"):
        open_counts(np.arange(4), 1).of(Larger([Ordinal("x", range(2))]))
    with pytest.raises(MechanismError, match="workload"):
        right.of(Domain([FLAT]), Workload.cells(Domain([DEEP])))
    called = right.of(Domain([DEEP]), Workload.cells(Domain([DEEP])))  # nothing was used up
    assert called.measure(Wavelet()).scale == 4


def test_trees_of_a_domain_cannot_be_written_to() -> None:
    tree = DEEP.hierarchy
    for array in (tree.parent, tree.start, tree.stop, tree.depth, tree.children):
        for reached in (array, array.base):
            if isinstance(reached, np.ndarray):
                with pytest.raises(ValueError, match="WRITEABLE"):
                    reached.setflags(write=True)


def test_what_is_written_to_what_a_right_hands_out_changes_no_right() -> None:
    right = open_counts([9, 8, 7, 6, 5, 4], 10**6, seed=1).partition([0, 0, 1, 1, 2, 2], 3)
    chosen, _ = right.select([True, False, True])
    for name in ("cells", "labels"):
        before = getattr(chosen, name).tolist()
        handed = getattr(chosen, name)
        for reached in (handed, handed.base):
            if reached is not None:
                reached.setflags(write=True)
                reached[:] = 0
        assert getattr(chosen, name).tolist() == before
    assert chosen.measure(Totals()).values.tolist() == [17, 9]


def test_the_number_of_parts_is_a_plain_one() -> None:
    class Sly(int):
        def __lt__(self, other: object) -> bool:
            return False

        def __gt__(self, other: object) -> bool:
            return True

    # Sums of four parts were written behind an array for one.
    for verb in ("partition", "coarsen"):
        with pytest.raises(MechanismError, match="labels"):
            getattr(open_counts([1, 2, 3, 4], 1), verb)([0, 1, 2, 3], Sly(1))
    assert type(open_counts([1, 2], 1).partition([0, 0], Sly(1)).parts) is int
    for parts in (1.5, "1", float("nan")):
        with pytest.raises(TypeError):
            open_counts([1, 2], 1).partition([0, 0], parts)  # type: ignore[arg-type]


def otherwise(value: Any) -> Iterator[Any]:
    """Parameters of another kind than the one that is there."""
    if type(value) is int:
        yield from (Fraction(2 * value + 1, 2), bool(value), np.array(value), str(value))
    elif isinstance(value, tuple):
        for place, each in enumerate(value):
            for other in otherwise(each):
                yield (*value[:place], other, *value[place + 1 :])


@pytest.mark.parametrize("kind", [*QUERIES, *SCORES, *COSTS], ids=lambda kind: kind.__name__)
def test_a_parameter_of_another_kind_is_refused_before_anything_is_paid(kind: type) -> None:
    for question, _ in {**QUERIES, **SCORES, **COSTS}[kind]:
        own_copy(question)
        for field in fields(question):
            for other in otherwise(getattr(question, field.name)):
                changed = replace(question)
                object.__setattr__(changed, field.name, other)
                with pytest.raises(MechanismError):
                    own_copy(changed)


@pytest.mark.parametrize("kind", [*QUERIES, *SCORES, *COSTS], ids=lambda kind: kind.__name__)
def test_arrays_are_known_whatever_numpy_calls_them(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """From NumPy 2.5 on, what `get_origin` gives for `NDArray[…]` is no class of arrays."""
    monkeypatch.setattr(
        questions, "get_origin", lambda kind: "NDArray" if kind == questions.IntArray else get_origin(kind)
    )
    for question, _ in {**QUERIES, **SCORES, **COSTS}[kind]:
        own_copy(question)


@pytest.mark.parametrize("size", [-(10**30), -(2**63), -1, 10**30])
def test_public_weights_that_would_make_scores_wrap_are_refused_or_cut(size: int) -> None:
    """A score beyond 64 bits moves by any distance when a record moves it by one."""
    right = open_counts(np.arange(4), 1)
    with pytest.raises(MechanismError, match="noise"):
        right.choose(LowFrequencies((4,), Fraction(size)))
    with pytest.raises(MechanismError, match="even"):
        right.choose(Boundaries(3, "absolute", even=Fraction(size)))
    counts = np.array([2**40, 0, 2**50, 3], dtype=np.int64)
    for kind in [each for each in SCORES if {field.name for field in fields(each)} & {"price"}]:
        for question, layout in SCORES[kind]:
            score = replace(question, price=Fraction(size))
            cells = np.resize(counts, layout.size)
            for cell in range(layout.size):
                one = next(score.stages(cells, layout))
                other = next(score.stages(cells + (np.arange(layout.size) == cell), layout))
                moved = [b - a for a, b in zip(one.scores.tolist(), other.scores.tolist(), strict=True)]
                assert max(moved) - min(moved) <= one.ranges


def test_tables_and_thresholds_that_are_none_are_refused_before_they_are_paid_for() -> None:
    from dphist.private.queries.tables import TopDependence
    from dphist.private.scores.counting import BestAttributes
    from dphist.private.segments import AbsoluteDeviation
    from dphist.private.sparse import Above

    right = open_counts([[1, 2], [3, 4]], 1)
    far = ((0, 9),)
    for query in (TopDependence(far, 1), Above(2**70)):
        with pytest.raises(MechanismError):
            right.measure(query)
    huge = BestAttributes((np.zeros(4, dtype=int),), (2**70,), np.zeros(4, dtype=int), 1)
    with pytest.raises(MechanismError, match="too many"):
        right.choose(huge)
    for sizes in ((4, 0), (2**70, 1)):
        with pytest.raises(MechanismError, match="lengths"):
            AbsoluteDeviation(sizes=sizes)
    right.measure(Identity())  # nothing was used up


UNITS = [Unit(), Unit(replace=True), Unit(rows=3), Unit(rows=3, replace=True), Unit(cells=2, per_cell=3)]


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_no_person_tilts_the_choice_of_a_heap_further_than_their_steps(unit: Unit) -> None:
    """All that a person may do, rows come and gone, on the scores themselves: never beyond steps times the range."""
    rng = np.random.default_rng(24)
    for question, layout in SCORES[Heaps]:
        for _ in range(200):
            counts = rng.integers(0, 5, layout.size) + unit.rows
            other = counts.copy()
            for sign in (1, -1) if unit.replace else (rng.choice([1, -1]),):
                np.add.at(other, rng.integers(0, layout.size, unit.rows), sign)
            one, two = (next(question.stages(each, layout)) for each in (counts, other))
            moved = two.scores - one.scores
            assert moved.max() - moved.min() <= unit.steps * one.ranges


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_a_heap_is_chosen_at_the_rate_that_the_unit_leaves(unit: Unit) -> None:
    """Two candidates that are one apart, drawn many times: the law is exp(ε · score ÷ steps)."""
    drawn, noise = 0, Noise(Keystream.for_tests(unit.steps))
    score = Heaps((10, 10), 5)
    counts = np.array([[5, 5], [0, 1]])
    runs = 4000
    for _ in range(runs):
        right, _ = open_gate(as_histogram(counts), 1, unit, noise=noise)
        drawn += int(right.choose(score)[0, 0] == 0)
    scores = next(score.stages(counts.reshape(-1), TABLE)).scores
    weights = np.exp(scores / unit.steps)
    share = weights[0] / weights.sum()
    assert abs(drawn / runs - share) < 5.5 * np.sqrt(share * (1 - share) / runs)
