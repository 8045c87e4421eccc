import copy
import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import EpsilonError, MechanismError, RightUsed
from dphist.model.transcript import same_answers
from dphist.model.unit import Unit
from dphist.private.gate import open_gate, open_replay
from dphist.private.queries import Identity, Totals
from dphist.private.questions import Candidates, Scales
from dphist.private.scores.bisections import Bisections
from dphist.testing import open_counts
from dphist.testing.gates import as_histogram

COUNTS = np.array([5, 0, 7, 100, 3, 3], dtype=np.int64)


@dataclass(frozen=True)
class Largest:
    """Chooses a cell by its count, in every part, several times."""

    times: int = 1

    def draws(self, layout):
        return self.times

    def stages(self, counts, layout):
        order, starts = layout.group()
        for _ in range(self.times):
            yield Candidates(counts[order], starts, 1)


def exact_looking(data):
    """With an enormous ε the noise is zero, so that the plumbing can be seen."""
    return open_counts(data, 10**6, seed=1, unproven=True)


def test_a_right_is_used_up_by_every_verb():
    verbs = {
        "split": lambda d: d.split("1/2", "1/2"),
        "partition": lambda d: d.partition(np.zeros(6)),
        "select": lambda d: d.select([True]),
        "arrange": lambda d: d.arrange(np.arange(6)),
        "coarsen": lambda d: d.coarsen(np.zeros(6)),
        "measure": lambda d: d.measure(Identity()),
        "choose": lambda d: d.choose(Largest()),
    }
    for first in verbs.values():
        for second in verbs.values():
            data = open_counts(COUNTS, 1, unproven=True)
            first(data)
            with pytest.raises(RightUsed):
                second(data)


def test_a_right_cannot_be_copied_or_pickled():
    data = open_counts(COUNTS, 1)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RightUsed):
            attempt(data)


def test_shares_must_sum_to_exactly_one():
    for wrong in (("1/2",), ("1/2", "1/3"), (0.5, 0.6), (2, -1), (1, 0)):
        with pytest.raises(EpsilonError):
            open_counts(COUNTS, 1).split(*wrong)
    assert len(open_counts(COUNTS, 1).split(0.1, 0.2, 0.7)) == 3


@pytest.mark.parametrize(
    "epsilon", [0, -1, float("nan"), float("inf"), "many", True, None, "1e99999", "", "1/0"]
)
def test_a_bad_epsilon_is_a_named_error(epsilon):
    with pytest.raises(EpsilonError, match="epsilon"):
        open_counts(COUNTS, epsilon)


def test_noise_scale_follows_budget_share_and_unit():
    for unit, steps in (
        (Unit(), 1),
        (Unit(replace=True), 2),
        (Unit(rows=3), 3),
        (Unit(rows=3, replace=True), 6),
    ):
        half, rest = open_counts(COUNTS, "1/2", unit=unit).split("1/4", "3/4")
        assert half.measure(Identity()).scale == Fraction(8 * steps)
        assert rest.unit_scale == Fraction(8 * steps, 3)


def test_views_show_the_cells_they_say():
    assert exact_looking(COUNTS).measure(Identity()).values.tolist() == COUNTS.tolist()
    assert exact_looking(COUNTS).arrange([3, 0]).measure(Identity()).values.tolist() == [100, 5]
    assert exact_looking(COUNTS).coarsen([0, 1, 0, 1, 2, 2]).measure(Identity()).values.tolist() == [
        12,
        100,
        6,
    ]
    assert exact_looking(COUNTS).measure(Totals()).values.tolist() == [118]
    parts = exact_looking(COUNTS.reshape(2, 3)).partition([0, 1, 0, 1, 2, 2])
    assert (parts.shape, parts.parts) == ((2, 3), 3)
    assert parts.measure(Totals()).values.tolist() == [12, 100, 6]


def test_parts_may_be_empty_and_regrouped():
    data = exact_looking(COUNTS).partition([0, 0, 1, 1, 3, 3], parts=5)
    assert data.partition([1, 1, 1, 1, 0, 0]).measure(Totals()).values.tolist() == [6, 112]
    assert exact_looking(COUNTS).partition([0] * 6, parts=2).measure(Totals()).values.tolist() == [118, 0]


def test_select_separates_disjoint_cells():
    data = exact_looking(COUNTS).partition([0, 1, 2, 0, 1, 2])
    chosen, rest = data.select([True, False, True])
    assert chosen.cells.tolist() == [0, 2, 3, 5]
    assert rest.cells.tolist() == [1, 4]
    assert chosen.measure(Totals()).values.tolist() == [105, 10]
    assert rest.measure(Totals()).values.tolist() == [3]


def test_wrong_labels_are_named_errors():
    for wrong in ([0, 1], [0, 1, 2, 3, 4, -1]):
        with pytest.raises(MechanismError, match="labels"):
            open_counts(COUNTS, 1).partition(wrong)
    with pytest.raises(MechanismError, match="labels"):
        open_counts(COUNTS, 1).coarsen([0, 0, 0, 0, 0, 3], parts=2)
    with pytest.raises(MechanismError, match="distinct"):
        open_counts(COUNTS, 1).arrange([0, 0])
    with pytest.raises(MechanismError, match="mask"):
        open_counts(COUNTS, 1).select([True, False])


def test_parts_that_no_memory_holds_are_refused_with_the_right_unused():
    data = open_counts(COUNTS, 1)
    for regroup in (data.partition, data.coarsen):
        for parts in (2**62, COUNTS.size + 2**24 + 1):
            with pytest.raises(MechanismError, match="parts"):
                regroup([0] * 6, parts)
    data.measure(Identity())
    assert open_counts(COUNTS, 1).partition([0] * 6, COUNTS.size + 2**24).parts == 6 + 2**24


def test_choice_prefers_the_best_and_keeps_parts_apart():
    data = exact_looking(COUNTS).partition([0, 0, 0, 1, 1, 1])
    assert data.choose(Largest(times=2)).tolist() == [[2, 0], [2, 0]]


def test_candidates_may_have_a_range_for_each_part():
    class TwoRanges(Largest):
        def stages(self, counts, layout):
            order, starts = layout.group()
            yield Candidates(counts[order], starts, np.array([1, 2]))

    data = exact_looking(COUNTS).partition([0, 1, 0, 1, 0, 1])
    assert data.choose(TwoRanges()).tolist() == [[1, 1]]


def test_answers_may_have_different_scales():
    @dataclass(frozen=True)
    class Uneven(Identity):
        def scales(self, layout):
            return Scales((Fraction(1), Fraction(3)), np.array([0, 1, 0, 1, 0, 1]))

    noisy = open_counts(COUNTS, 2, unproven=True).measure(Uneven())
    assert noisy.scale.tolist() == [0.5, 1.5] * 3
    assert exact_looking(COUNTS).measure(Uneven()).values.tolist() == COUNTS.tolist()


def test_spent_adds_along_splits_and_takes_the_largest_beside():
    right, transcript = open_gate(as_histogram(COUNTS), "1/2", Unit(rows=2), unproven=True)
    one, two = right.split("1/5", "4/5")
    one.measure(Identity())
    left, middle = two.partition([0, 0, 0, 1, 1, 1]).select([True, False])
    left.measure(Totals())
    a, b = middle.split("1/2", "1/2")
    a.measure(Totals())
    assert transcript.spent() == Fraction(1, 2)  # 1/10 + max(2/5, 1/5)
    b.choose(Largest())
    assert transcript.spent() == Fraction(1, 2)


def test_replay_gives_the_same_answers_and_insists_on_the_same_questions():
    from dphist.errors import VerificationError

    histogram = as_histogram(COUNTS)

    def ask(right):
        one, two = right.split("1/5", "4/5")
        noisy = one.measure(Identity())
        return noisy.values, two.partition([0, 0, 0, 1, 1, 1]).choose(Bisections(Fraction(1)))

    right, transcript = open_gate(histogram, 1, Unit())
    live = ask(right)
    again, replay = open_replay(histogram.domain, 1, Unit(), transcript)
    played = ask(again)
    replay.finish()
    assert all(np.array_equal(x, y) for x, y in zip(live, played, strict=True))
    assert same_answers(transcript, transcript)

    other, _ = open_replay(histogram.domain, 1, Unit(), transcript)
    with pytest.raises(VerificationError):
        other.measure(Totals())
    unfinished, replay = open_replay(histogram.domain, 1, Unit(), transcript)
    unfinished.split("1/5", "4/5")[0].measure(Identity())
    with pytest.raises(VerificationError):
        replay.finish()


def test_published_answers_cannot_be_edited():
    noisy = open_counts(COUNTS, 1).measure(Identity())
    with pytest.raises(ValueError, match="read-only"):
        noisy.values[0] = 0


def test_huge_counts_are_cut_at_a_public_ceiling_so_that_sums_never_overflow():
    huge = np.full(8, 2**63 - 1, dtype=np.int64)
    assert open_counts(huge, 10**6, seed=3).measure(Totals()).values.tolist() == [2**62]
    assert huge.tolist() == [2**63 - 1] * 8


def test_counts_are_never_printed():
    data = open_counts(np.array([123456789]), 1)
    assert "123456789" not in repr(data) + str(data)
