"""Look first, ask again: two answers for the price of one, and never a finer answer beside the rest of the budget."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from test_noise_laplace import chi_square

from dphist.errors import EpsilonError, MechanismError, RightUsed
from dphist.kernels import grouping
from dphist.model.budget import Budget
from dphist.model.unit import Unit
from dphist.private import gate
from dphist.private.gate import open_gate, open_replay
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Identity, Totals
from dphist.testing import open_counts
from dphist.testing.gates import as_histogram

COUNTS = np.array([5, 0, 7, 100, 3, 3], dtype=np.int64)
PARTS = np.array([0, 0, 1, 1, 2, 2])


def looked(epsilon=1, seed=1, share="1/4"):
    return open_counts(COUNTS, epsilon, seed=seed).partition(PARTS, 3).look(share)


def test_both_answers_have_the_noise_of_what_they_cost():
    noisy, rest = looked()
    assert noisy.scale == 4
    assert rest.looked
    assert rest.unit_scale == Fraction(4, 3)
    assert rest.again().scale == 1


def test_the_two_answers_have_their_laws_and_are_one_draw_and_a_rest():
    data = np.zeros(40_000, dtype=np.int64)
    right = open_counts(data, 1, seed=3).partition(np.arange(data.size), data.size)
    noisy, rest = right.look("1/3")
    fine = rest.again()
    assert chi_square(noisy.values, Fraction(3)) > 1e-6
    assert chi_square(fine.values, Fraction(1)) > 1e-6
    # As often as the proof says, the look is the finer answer itself; two independent answers agree by chance only.
    a, b = np.exp(-1 / 3), np.exp(-1.0)
    same = b / a * ((1 - a) / (1 - b)) ** 2
    same += (1 - same) * (1 - a) / (1 + a)
    assert np.mean(noisy.values == fine.values) == pytest.approx(same, abs=0.02)


def test_parts_that_go_separate_ways_take_their_answers_along():
    _, rest = looked(epsilon=10**6)
    chosen, others = rest.select([False, True, True])
    assert chosen.again().values.tolist() == [107, 6]
    assert others.looked
    assert others.measure(Totals()).values.tolist() == [5]


def test_a_finer_answer_is_never_to_be_had_beside_the_rest():
    """Whoever spends the rest on something else, in part or in whole, has no finer answer to come back for."""
    verbs = {
        "split": lambda right: right.split("1/2", "1/2")[0],
        "partition": lambda right: right.partition(PARTS, 3),
        "arrange": lambda right: right.arrange(np.arange(6)),
        "coarsen": lambda right: right.coarsen(PARTS, 3),
        "look": lambda right: right.look("1/2")[1],
    }
    for name, verb in verbs.items():
        _, rest = looked()
        left = verb(rest)
        with pytest.raises(RightUsed):
            rest.again()
        assert left.looked == (name == "look")
        if name != "look":
            with pytest.raises(MechanismError, match="looked at"):
                left.again()
    _, rest = looked()
    rest.measure(Identity())
    with pytest.raises(RightUsed):
        rest.again()
    _, rest = looked()
    rest.again()
    for after in (rest.again, lambda: rest.measure(Identity()), lambda: rest.select([True] * 3)):
        with pytest.raises(RightUsed):
            after()


def test_a_second_look_is_finer_than_the_first_by_what_it_costs():
    noisy, rest = looked(share="1/4")
    more, last = rest.look("1/3")
    # A look at the rest is a question of its own, of 3/4 · 1/3 of the budget; its finer answer costs the rest.
    assert (noisy.scale, more.scale) == (4, 4)
    assert last.again().scale == Fraction(4, 3)


def test_it_is_accounted_for_and_can_be_replayed():
    histogram = as_histogram(COUNTS)
    right, transcript = open_gate(histogram, 1, Unit(), noise=Noise(Keystream.for_tests(5)))

    def ask(right):
        _, rest = right.partition(PARTS, 3).look("1/4")
        chosen, others = rest.select([True, False, True])
        return chosen.again().values, others.measure(Totals()).values

    answers = ask(right)
    assert [entry.verb for entry in transcript] == ["look", "again", "measure"]
    assert [entry.cost for entry in transcript] == [Fraction(1, 4), Fraction(3, 4), Fraction(3, 4)]
    assert transcript.spent() == 1
    replayed, book = open_replay(histogram.domain, 1, Unit(), transcript)
    assert all(np.array_equal(*pair) for pair in zip(ask(replayed), answers, strict=True))
    book.finish()


def test_the_finer_answer_is_in_no_transcript_unless_it_was_asked_for():
    histogram = as_histogram(np.zeros(2_000, dtype=np.int64))
    right, transcript = open_gate(histogram, 1, Unit(), noise=Noise(Keystream.for_tests(6)))
    _, rest = right.partition(np.arange(2_000), 2_000).look("1/2")
    rest.measure(Totals())
    look, total = transcript
    # Noise of scale 2 twice, drawn apart: had the finer answer been told, they would agree far more often.
    assert np.mean(look.answer == total.answer) < 0.2
    assert "again" not in {entry.verb for entry in transcript}


def test_several_rows_a_person_and_rho():
    right, _ = open_gate(as_histogram(COUNTS), 1, Unit(rows=3), noise=Noise(Keystream.for_tests(7)))
    noisy, rest = right.look("1/2")
    assert (noisy.scale, rest.again().scale) == (6, 3)
    under_rho = open_counts(COUNTS, Budget.of(rho="1/2"), seed=1)
    noisy, rest = under_rho.look("1/4")
    assert noisy.law.kind == "gaussian"
    assert not rest.looked
    with pytest.raises(MechanismError, match="looked at"):
        rest.again()


@pytest.mark.parametrize("share", [0, 1, "3/2", -1])
def test_a_look_costs_something_and_leaves_something(share):
    with pytest.raises(EpsilonError, match="share"):
        looked(share=share)


def test_labels_and_masks_are_the_gates_own():
    """Else a part's answer would go one way, and the rest of its budget the other: in a thread, at any moment."""
    labels, mask = PARTS.copy(), np.array([True, False, False])
    right = open_counts(COUNTS, 1, seed=1).partition(labels, 3)
    assert right.labels is not None
    assert not np.shares_memory(right.labels, labels)
    shown = right.labels
    for reached in (shown, shown.base):
        if reached is not None:
            reached.setflags(write=True)
            reached[:] = 2
    assert right.labels.tolist() == PARTS.tolist()
    labels[0] = 2
    _, rest = right.look("1/4")
    labels[:] = 1
    one, other = rest.select(mask)
    mask[:] = [False, True, True]
    assert (one.parts, other.parts) == (1, 2)
    assert (one.size, other.size) == ((PARTS == 0).sum(), (PARTS != 0).sum())
    assert (one.again().values.size, other.again().values.size) == (1, 2)


def test_a_mask_that_changes_while_parts_are_separated_changes_nothing(monkeypatch):
    """As another thread could: after the cells went their ways, before their fine answers do."""
    mask = np.array([True, False, False])
    separate = grouping.two_ways

    def meanwhile(labels, chosen):
        found = separate(labels, chosen)
        mask[:] = True
        return found

    monkeypatch.setattr(gate, "two_ways", meanwhile)
    _, rest = looked()
    one, other = rest.select(mask)
    assert (one.parts, other.parts) == (1, 2)
    assert (one.again().values.size, other.again().values.size) == (1, 2)
