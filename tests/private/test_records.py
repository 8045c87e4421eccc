"""The gate over records: the noise that reaches the sampler, one-shot rights, refusals and replay."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dphist.errors import EpsilonError, InputError, MechanismError, RightUsed, VerificationError
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.private.gate import PrivateCounts, open_gate, open_replay
from dphist.private.held import Held, ceiling
from dphist.private.queries import Identity
from dphist.private.queries.tables import RangedTables, TableTotals, TopDependence
from dphist.private.scores.counting import Medians
from dphist.private.scores.tables import TableErrors, chosen_tables
from dphist.testing import Draw, RecordingNoise, open_counts

# More cells than there are atoms, so that whoever multiplied all sizes would be found out.
ATTRIBUTES: list[Any] = [
    Nominal("sex", ["F", "M"]),
    Ordinal("age", range(5)),
    Nominal("ill", ["no", "yes"]),
] + [Ordinal(f"x{i}", range(50)) for i in range(60)]
DOMAIN = Domain(ATTRIBUTES)
EPSILON, RHO = Fraction(3, 7), Fraction(2, 11)
UNITS = {Unit(): (1, 1), Unit(replace=True): (2, 4), Unit(rows=3): (3, 9)}
TABLES = ((0, 1), (1,), (0, 1, 2))
SHARES = (Fraction(1, 2), Fraction(1, 8), Fraction(1, 8))


def records(rows: int = 40) -> CodedColumns:
    rng = np.random.default_rng(1)
    return CodedColumns(DOMAIN, tuple(rng.integers(0, size, rows).astype(np.uint8) for size in DOMAIN.shape))


def opened(budget: Any = EPSILON, unit: Unit | None = None) -> tuple[PrivateCounts, RecordingNoise, Any]:
    noise = RecordingNoise(seed=1)
    right, transcript = open_gate(records(), budget, unit or Unit(), noise=noise)
    return right, noise, transcript


def residuals(tables: Any, shares: Any) -> RangedTables:
    return RangedTables(tables, shares, centred=True)


def expected(query: Any, share: Fraction) -> list[np.ndarray[Any, Any]]:
    counted = records().tables(query.tables)
    if isinstance(query, RangedTables):
        for place, table in enumerate(counted):
            for axis, n in enumerate(table.shape):
                counted[place] = counted[place] * n - counted[place].sum(axis=axis, keepdims=True)
    return counted


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("way", ["whole", "split"])
def test_the_noise_that_is_drawn_is_the_promise_over_the_budget(unit: Unit, way: str) -> None:
    steps, squared = UNITS[unit]
    shape = DOMAIN.shape
    for query in (TableTotals(TABLES, SHARES), residuals(TABLES, SHARES)):
        for currency in ("epsilon", "rho"):
            budget = EPSILON if currency == "epsilon" else Budget.of(rho=RHO)
            right, noise, transcript = opened(budget, unit)
            part = Fraction(1)
            if way == "split":
                right, part = right.split("1/3", "2/3")[1], Fraction(2, 3)
            noisy = right.measure(query)
            drawn: Counter[Fraction] = Counter()
            for draw in noise.drawn:
                assert draw.sampler == ("laplace" if currency == "epsilon" else "gaussian")
                drawn[draw.amounts[0]] += draw.size
            wanted: Counter[Fraction] = Counter()
            for axes, share in zip(TABLES, SHARES, strict=True):
                cells = math.prod(shape[axis] for axis in axes)
                if isinstance(query, TableTotals):
                    one = two = Fraction(1)
                else:
                    one = Fraction(math.prod(2 * (shape[axis] - 1) for axis in axes))
                    two = Fraction(math.prod(shape[axis] * (shape[axis] - 1) for axis in axes))
                if currency == "epsilon":
                    wanted[one / share * steps / (EPSILON * part)] += cells
                else:
                    # Tables are sums with weights of one sign: a replaced row moves √2, not 2.
                    factor = 2 if unit.replace and isinstance(query, TableTotals) else squared
                    wanted[two / share * factor / (2 * RHO * part)] += cells
            assert drawn == wanted
            exact = np.concatenate([table.reshape(-1) for table in expected(query, part)])
            moved = noisy.values - exact
            assert sorted(moved.tolist()) == sorted(np.concatenate(noise.given).tolist())
            assert transcript[0].verb == "measure"


def test_differences_stand_for_both_values() -> None:
    tables, differences = ((0, 1), (0, 2)), ((0,), (0, 2))
    right, noise, _ = opened(Fraction(10**6))
    noisy = right.measure(TableTotals(tables, (Fraction(1, 2), Fraction(1, 2)), differences))
    one, two = records().tables(tables)
    wanted = [*(one[0] - one[1]).tolist(), int(two[0, 0] - two[0, 1] - two[1, 0] + two[1, 1])]
    assert noisy.values.tolist() == wanted
    assert [draw.amounts[0] for draw in noise.drawn] == [Fraction(2, 10**6)]
    with pytest.raises(MechanismError, match="two values"):
        opened()[0].measure(TableTotals(((1,),), (Fraction(1),), ((1,),)))


def test_differences_do_not_meet_alike() -> None:
    """A row that changes sides moves a difference by two: four times the variance of one step, not twice."""
    right, noise, _ = opened(Budget.of(rho=RHO), Unit(replace=True))
    right.measure(TableTotals(((0,),), (Fraction(1),), ((0,),)))
    assert noise.drawn[0].amounts == (Fraction(4) / (2 * RHO),)


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_choices_pay_their_share_each_and_none_is_chosen_twice(currency: str) -> None:
    from dphist.model.conversion import choice_epsilon

    tables = ((0,), (1,), (0, 1), (2,))
    model = np.zeros(2 + 5 + 10 + 2, dtype=np.int64)
    score = TableErrors(tables, model, 3)
    right, noise, transcript = opened(EPSILON if currency == "epsilon" else Budget.of(rho=RHO))
    picks = right.choose(score)
    each = EPSILON / 3 if currency == "epsilon" else choice_epsilon(RHO / 3)
    # A distance moves by one up or down: the range is 2.
    assert [draw.amounts for draw in noise.drawn] == [(each / 2,)] * 3
    chosen = chosen_tables(picks, 4)
    assert len(set(chosen)) == 3
    assert transcript.spent() == (EPSILON if currency == "epsilon" else RHO)


def test_a_right_is_used_once_and_not_copied() -> None:
    right, _, _ = opened()
    for forbidden in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RightUsed):
            forbidden(right)
    right.measure(TableTotals(TABLES, SHARES))
    for again in (
        lambda: right.measure(TableTotals(TABLES, SHARES)),
        lambda: right.split("1/2", "1/2"),
        lambda: right.choose(TableErrors(((0,),), np.zeros(2, int))),
    ):
        with pytest.raises(RightUsed):
            again()
    with pytest.raises(EpsilonError):
        opened()[0].split("1/2", "1/3")


def test_scores_and_differences_that_do_not_fit_their_tables_are_refused() -> None:
    one = np.zeros(2, dtype=np.int64)
    for wrong in (
        lambda: TableTotals(((0,), (1,)), (Fraction(1, 2), Fraction(1, 2)), ((0,),)),
        lambda: TableTotals(((0,),), (Fraction(1),), ((1,),)),
        lambda: TableErrors(((0,),), one, picks=0),
        lambda: TableErrors(((0,),), one, picks=2),
        lambda: opened()[0].choose(TableErrors(((0,),), np.zeros(77, dtype=np.int64))),
    ):
        with pytest.raises(MechanismError):
            wrong()


def test_only_questions_about_tables_are_asked() -> None:
    right, noise, transcript = opened()
    with pytest.raises(MechanismError, match="TableTotals or RangedTables"):
        right.measure(Identity())
    with pytest.raises(MechanismError, match="TableErrors"):
        right.choose(Medians(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)))

    class Cheaper(TableTotals):
        def scales(self, layout: Any) -> Any:
            return Fraction(1, 1000)

    with pytest.raises(MechanismError, match="carries no proof"):
        right.measure(Cheaper(TABLES, SHARES))
    for regroup in (
        lambda: right.partition([0]),
        lambda: right.coarsen([0]),
        lambda: right.select([True]),
        lambda: right.arrange([0]),
        lambda: right.separate(["a"]),
        lambda: right.of(Domain([Ordinal("other", range(6))])),
    ):
        with pytest.raises(MechanismError, match="regroups every combination"):
            regroup()
    # Around the questions there is still nothing to read.
    held = Held(records())
    for touch in (np.asarray, len, iter, lambda h: h[0], lambda h: h.sum()):
        with pytest.raises(MechanismError):
            touch(held)
    assert not noise.drawn
    assert len(transcript) == 0
    with pytest.raises(MechanismError, match="whole domain"):
        _ = open_counts(np.arange(4), 1).partition([0, 0, 1, 1]).whole


@pytest.mark.parametrize(
    ("tables", "shares", "words"),
    [
        (((0,), (1,)), (Fraction(1, 2), Fraction(2, 3)), "not be above 1"),
        (((0,),), (Fraction(0),), "above zero"),
        (((0,),), (Fraction(-1),), "above zero"),
        (((0,),), (), "above zero"),
        (((1, 0),), (Fraction(1),), "ascending"),
        (((0, 0),), (Fraction(1),), "ascending"),
        (((-1,),), (Fraction(1),), "ascending"),
        ((), (), "at least one"),
        (((63,),), (Fraction(1),), "one of the domain's"),
    ],
)
def test_questions_that_would_break_the_promise_are_refused(tables: Any, shares: Any, words: str) -> None:
    for kind in (TableTotals, residuals):
        right, noise, transcript = opened()
        with pytest.raises(MechanismError, match=words):
            right.measure(kind(tables, shares))
        assert not noise.drawn
        assert len(transcript) == 0


def test_a_right_over_cells_answers_the_same_questions() -> None:
    """Cells or records: the same right, and the same noise for the same seed."""
    small = Domain(DOMAIN.attributes[:3])
    coded = CodedColumns(small, records().columns[:3])
    (cube,) = coded.tables([(0, 1, 2)])
    for query in (TableTotals(TABLES, SHARES), residuals(TABLES, SHARES)):
        one, _ = open_gate(coded, EPSILON, Unit(), noise=RecordingNoise(seed=4))
        other = open_counts(cube, EPSILON, noise=RecordingNoise(seed=4))
        assert np.array_equal(one.measure(query).values, other.measure(query).values)


def test_replay_answers_the_same_questions_and_no_others() -> None:
    right, _, transcript = opened()
    first, second = right.split("1/4", "3/4")
    one = first.measure(TableTotals(TABLES, SHARES))
    two = second.choose(TableErrors(((0,), (1,)), np.zeros(7, int)))
    again, replay = open_replay(DOMAIN, EPSILON, Unit(), transcript)
    first, second = again.split("1/4", "3/4")
    assert np.array_equal(first.measure(TableTotals(TABLES, SHARES)).values, one.values)
    with pytest.raises(VerificationError):
        second.choose(TableErrors(((0,), (2,)), np.zeros(4, int)))
    again, replay = open_replay(DOMAIN, EPSILON, Unit(), transcript)
    first, second = again.split("1/4", "3/4")
    first.measure(TableTotals(TABLES, SHARES))
    assert np.array_equal(second.choose(TableErrors(((0,), (1,)), np.zeros(7, int))), two)
    replay.finish()


def test_one_record_more_is_one_step_in_every_table() -> None:
    """Brute force: whatever record comes or goes, no question moves further than it promised."""
    small = Domain([Nominal("a", ["x", "y"]), Ordinal("b", range(3)), Nominal("c", ["x", "y"])])
    rng = np.random.default_rng(0)
    base = np.stack([rng.integers(0, size, 6) for size in small.shape])
    shares = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    layout = open_counts(np.zeros(small.shape, int), 1)._layout
    questions: list[Any] = [
        TableTotals(((0, 1), (1, 2), ()), shares),
        TableTotals(((0, 1), (0, 2), (2,)), shares, ((0,), (0, 2), ())),
        residuals(((0, 1), (1, 2), ()), shares),
    ]
    for question in questions:
        scales, variances = question.scales(layout), question.variances(layout)

        def ask(codes: Any, question: Any = question) -> Any:
            held: Any = Held(CodedColumns(small, tuple(row.astype(np.uint8) for row in codes)))
            return question.answer(held, layout)

        before, worst = ask(base), [Fraction(0), Fraction(0)]
        for cell in range(small.size):
            row = np.array(np.unravel_index(cell, small.shape))[:, None]
            moved = np.abs(ask(np.concatenate([base, row], axis=1)) - before)
            one = sum(Fraction(int(m)) / scales.values[i] for m, i in zip(moved, scales.index, strict=True))
            two = sum(
                Fraction(int(m)) ** 2 / variances.values[i]
                for m, i in zip(moved, variances.index, strict=True)
            )
            worst = [max(worst[0], Fraction(one)), max(worst[1], Fraction(two))]
        # And some record does move it that far: nothing is given away.
        assert worst == [1, 1]


def test_counts_beyond_the_ceiling_do_not_overflow() -> None:
    top = ceiling((50, 50))
    assert top * 4 * 50 * 50 <= 2**61

    class Many:
        domain = DOMAIN

        def tables(self, tables: Any) -> Any:
            found = [np.zeros([DOMAIN.shape[axis] for axis in axes], dtype=np.int64) for axes in tables]
            for table in found:
                table.flat[0] = 2**62
            return found

    right, _ = open_gate(Many(), 1, Unit(), noise=RecordingNoise(seed=1))
    noisy = right.measure(residuals(((3, 4),), (Fraction(1),)))
    assert abs(int(noisy.values[0]) - 49 * 49 * top) < 10**6


def test_distances_of_many_pairs_do_not_overflow() -> None:
    """All pairs as dependent as counts can be: together they would need more than 64 bits."""

    class Twins:
        domain = Domain([Nominal(f"a{i}", ["n", "y"]) for i in range(12)])

        def tables(self, tables: Any) -> Any:
            return [np.diag([2**62, 2**62]) for _ in tables]

    pairs = tuple(combinations(range(12), 2))
    for query in (TopDependence(pairs, len(pairs)), TopDependence(pairs, 60)):
        right, _ = open_gate(Twins(), 1, Unit(), noise=RecordingNoise(seed=1))
        assert abs(int(right.measure(query).values[0]) - 2**61) < 10**6


def test_drawn_kinds_are_recorded() -> None:
    right, noise, _ = opened(Budget.of(rho=RHO))
    right.measure(TableTotals(((0,),), (Fraction(1),)))
    assert noise.drawn == [Draw("gaussian", (Fraction(1) / (2 * RHO),), 2)]


@pytest.mark.parametrize(
    "columns",
    [
        ([0, 9], [0, 0]),
        ([0, -1], [0, 0]),
        ([0], [0, 0]),
        ([0, 1],),
        ([0.0, 1.0], [0, 0]),
    ],
)
def test_codes_that_no_cell_has_never_reach_the_kernel(columns):
    domain = Domain([Nominal("a", ["x", "y"]), Nominal("b", ["x", "y"])])
    with pytest.raises(InputError, match="columns"):
        CodedColumns(domain, tuple(np.array(each) for each in columns))
