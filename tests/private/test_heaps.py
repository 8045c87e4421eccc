"""Values on which records heap up: what is chosen, by which law, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.private.questions import Layout
from dphist.private.scores.counting import HIGHEST, Heaps, heap_at
from dphist.testing import open_counts


def test_scores_are_totals_of_values_cut_at_a_height_less_the_bar_of_their_attribute() -> None:
    counts = np.array([[5, 0, 1], [7, 2, 0]])
    candidates = next(Heaps((4, 10), 6).stages(counts.reshape(-1), Layout((2, 3))))
    assert candidates.scores.tolist() == [0, 6 - 4, 8 - 4, 11 - 10, 2 - 10, 1 - 10]
    assert (candidates.starts.tolist(), candidates.ranges) == ([0, 6], 1)


def test_every_answer_names_one_value_or_none() -> None:
    shape = (2, 3, 4)
    named = [heap_at(pick, shape) for pick in range(1 + sum(shape))]
    assert named == [None, *((axis, value) for axis, size in enumerate(shape) for value in range(size))]


def test_the_fullest_value_is_chosen_where_it_is_far_above_its_bar_and_none_where_none_is() -> None:
    counts = np.ones((20, 30), dtype=np.int64)
    assert open_counts(counts, 1, seed=1).choose(Heaps((100, 100), 50)).tolist() == [[0]]
    counts[:, 7] = 50
    assert heap_at(int(open_counts(counts, 1, seed=1).choose(Heaps((400, 400), 50))[0, 0]), (20, 30)) == (
        1,
        7,
    )


def test_what_is_no_question_is_refused_before_it_is_paid_for() -> None:
    for bars in ((-1, 0), (0, HIGHEST + 1)):
        with pytest.raises(MechanismError, match="bar"):
            Heaps(bars, 1)
    for height in (0, HIGHEST + 1):
        with pytest.raises(MechanismError, match="height"):
            Heaps((0, 0), height)
    right = open_counts([[1, 2], [3, 4]], 1)
    with pytest.raises(MechanismError, match="bar for each"):
        right.choose(Heaps((1,), 1))
    right.choose(Heaps((1, 1), 1))  # nothing was used up


def test_cells_can_be_called_those_of_a_domain_of_as_many() -> None:
    from dphist.model.domain import Domain, Ordinal
    from dphist.model.workload import Workload
    from dphist.private.queries import Identity

    domain = Domain([Ordinal("a", range(2)), Ordinal("b", range(2))])
    chosen, _ = (
        open_counts([9, 8, 7, 6, 5], 10**6, seed=1).partition([0, 1, 1, 1, 1], 2).select([False, True])
    )
    asked = Workload.cells(domain)
    called = chosen.of(domain, asked)
    assert (called.shape, called.domain, called.workload) == ((2, 2), domain, asked)
    assert called.measure(Identity()).values.reshape(-1).tolist() == [8, 7, 6, 5]
    with pytest.raises(MechanismError, match="as many cells"):
        open_counts([1, 2, 3], 1).of(domain)
    with pytest.raises(MechanismError, match="one part"):
        open_counts([1, 2, 3, 4], 1).partition([0, 0, 1, 1], 2).of(domain)
