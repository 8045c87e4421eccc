"""A value set apart: pieces hold every cell once, answers add up, intervals hold, and `auto` finds the value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from attacking import stands

import dphist
from dphist import Domain, Histogram, Ordinal, Workload
from dphist.audit.neighbours import Pair
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.pieces import PartErrors
from dphist.mechanisms import FPA, AdaptiveTree, Auto, Heap, Laplace, Marginals, Posterior
from dphist.mechanisms.choosing.pilot import find_point_masses
from dphist.mechanisms.options import from_json, parse, show, to_json
from dphist.mechanisms.protocol import Mechanism
from dphist.model.pieces import OneApart
from dphist.testing import check_mechanism, open_counts, run

SPACE = Domain([Ordinal("a", range(3)), Ordinal("b", range(4)), Ordinal("c", range(2))])


def wall(records: int = 4000, side: int = 40, seed: int = 3) -> Histogram:
    """A gentle hill, and six of ten records on one value of the second attribute."""
    x = (np.arange(side) + 0.5) / side
    hill = np.exp(-(((x - 0.5) / 0.2) ** 2))
    weights = 0.4 * np.outer(hill, hill) / hill.sum() ** 2
    weights[:, 11] += 0.6 * hill / hill.sum()
    counts = np.random.default_rng(seed).multinomial(records, weights.reshape(-1)).reshape(side, side)
    return Histogram(Domain([Ordinal("age", range(side)), Ordinal("hours", range(side))]), counts)


@pytest.mark.parametrize(("axis", "value"), [(0, 0), (1, 2), (1, 3), (2, 1)])
def test_pieces_hold_every_cell_once_and_what_is_asked_of_them_adds_up(axis: int, value: int) -> None:
    pieces = OneApart(SPACE, axis, value)
    cells = np.arange(24, dtype=np.float64) ** 2
    parts = [cells[pieces.labels == part] for part in (0, 1)]
    assert pieces.joined(parts).reshape(-1).tolist() == cells.tolist()
    some = Workload.random(SPACE, 60, seed=5)
    unions = Workload(SPACE, some.low, some.high, np.arange(60) // 2)
    for workload in (some, unions):
        total = np.zeros(len(workload))
        for part, asked, inside in pieces.meetings(workload):
            total[asked] += inside.answer(parts[part].reshape(pieces.domains[part].shape))
        assert total.tolist() == workload.answer(cells.reshape(SPACE.shape)).tolist()


def test_pieces_are_told_what_will_be_asked_of_them() -> None:
    pieces = OneApart(SPACE, 1, 0)
    assert pieces.asked(None) == (None, None)
    for kind in ("cells", "prefixes", "all_ranges"):
        told = pieces.asked(Workload.from_json(SPACE, {"kind": kind}))
        assert [each.kind for each in told if each is not None] == [kind, kind]
    beside = Workload(SPACE, [[0, 1, 0]], [[3, 4, 2]])
    alone, others = pieces.asked(beside)
    assert alone is not None
    assert others is not None
    assert (len(alone), others.low.tolist(), others.high.tolist()) == (0, [[0, 0, 0]], [[3, 3, 2]])


def test_what_is_published_is_what_the_pieces_made_of_their_cells() -> None:
    data = Histogram(SPACE, np.arange(24).reshape(SPACE.shape))
    for axis, value in ((0, 1), (1, 3), (2, 0)):
        made = run(Heap(of=SPACE.names[axis], value=value, inner=Laplace()), data, 10**6, seed=1)
        assert made.counts.tolist() == data.counts.tolist()


def test_a_line_or_no_attribute_is_one_piece_and_strange_values_are_refused() -> None:
    check_mechanism(Heap(inner=Laplace()))
    line = Histogram(Domain([Ordinal("x", range(9))]), np.arange(9))
    assert run(Heap(of="x", value=5, inner=Laplace()), line, 10**6, seed=1).counts.tolist() == list(range(9))
    for value in (-1, 4):
        with pytest.raises(MechanismError, match="value"):
            run(Heap(of="b", value=value), Histogram(SPACE, np.zeros(SPACE.shape, dtype=int)), 1)
    with pytest.raises(MechanismError, match="whole domain"):
        Heap(of="x0").estimate(open_counts([[1, 2], [3, 4]], 1).partition([0, 0, 1, 1]))


def test_a_value_that_only_the_second_piece_would_refuse_is_refused_before_the_first_pays(tmp_path) -> None:
    ledger = dphist.Ledger.open(tmp_path / "spent.db")
    ledger.create("census", epsilon=1)
    plane = Histogram(SPACE.project(["a", "b"]), np.ones((3, 4), dtype=int))
    for value in (-1, 4):
        nested = Heap(of="a", value=1, inner=Heap(of="b", value=value, inner=Laplace()))
        with pytest.raises(MechanismError, match="value"):
            dphist.publish(plane, epsilon=1, mechanism=nested, ledger=ledger, dataset="census")
    assert ledger.spent("census") == 0


@pytest.mark.parametrize("by", [None, "c"])
@pytest.mark.parametrize("measured", [False, True])
def test_what_one_kind_of_piece_cannot_do_is_refused_before_the_first_pays(by, measured, tmp_path) -> None:
    ledger = dphist.Ledger.open(tmp_path / "spent.db")
    ledger.create("census", epsilon=1)
    domain = SPACE if by else SPACE.project(["a", "b"])
    rows = pa.table({"a": [1, 2], "b": [3, 0], "c": [0, 1], "cost": [1, 2]})
    measures = [dphist.Measure("cost", low=0, high=2)] if measured else []
    # One number of frequencies for the line that is set apart; the plane beside it has two axes.
    recipe = Heap(of="a", value=1, inner=FPA(keep=(2,)))
    with pytest.raises(MechanismError, match="keep"):
        dphist.publish(
            rows, domain, 1, recipe, partition_by=by, measures=measures, ledger=ledger, dataset="census"
        )
    assert ledger.spent("census") == 0


@pytest.mark.parametrize("of", ["", "x"])
def test_a_line_around_a_choice_can_be_verified(of: str, tmp_path) -> None:
    line = Histogram(Domain([Ordinal("x", range(20))]), np.arange(20) * 5)
    dphist.publish(line, epsilon=1, mechanism=Heap(of=of, inner=Auto())).save(tmp_path / "line.parquet")
    dphist.load(tmp_path / "line.parquet").verify()


def test_what_one_piece_did_not_measure_lies_between_what_it_allows() -> None:
    made = pieces_of(Posterior(), Marginals(tables=((0,),)))
    assert isinstance(made.errors, PartErrors)
    cells = Workload(wall(side=24).domain, [[3, 2], [3, 11], [3, 9]], [[4, 3], [4, 12], [4, 13]])
    published = np.asarray(cells.answer(made.counts), dtype=np.float64)
    truth = cells.answer(wall(side=24).counts)
    for together in (False, True):
        found = made.errors.interval(cells, published, 0.999, simultaneous=together)
        assert ((found.low <= truth) & (truth <= found.high)).all()
        assert found.guessed is not None
        assert found.guessed.tolist() == [True, False, True]


def test_boxes_without_cells_hold_nobody_for_certain() -> None:
    domain = wall(side=24).domain
    none = Workload(domain, [[3, 11], [0, 0], [2, 5]], [[9, 11], [0, 24], [5, 9]])
    made = pieces_of(AdaptiveTree(), AdaptiveTree())
    published = np.asarray(none.answer(made.counts), dtype=np.float64)
    found = made.errors.interval(none, published, 0.95, guaranteed=True)
    assert found.low[:2].tolist() == found.high[:2].tolist() == [0.0, 0.0]
    assert found.low[2] <= published[2] <= found.high[2] < np.inf


def test_guaranteed_intervals_of_pieces_hold_together() -> None:
    data, held = wall(side=24), []
    workload = Workload.random(data.domain, 200, seed=2)
    truth = workload.answer(data.counts)
    for seed in range(8):
        made = run(Heap(of="hours", value=11, inner=AdaptiveTree()), data, "1/2", seed=seed)
        assert isinstance(made.errors, PartErrors)
        published = np.asarray(workload.answer(made.counts), dtype=np.float64)
        for sure in (0.5, 0.95):
            found = made.errors.interval(workload, published, sure, guaranteed=True)
            held.append(((found.low <= truth) & (truth <= found.high)).mean() - sure)
    assert min(np.mean(held[::2]), np.mean(held[1::2])) >= 0.0


@pytest.mark.audit
def test_the_audit_finds_nothing_in_a_plane_with_a_wall() -> None:
    counts = np.zeros((20, 20), dtype=np.int64)
    counts[:, 11] = 200
    counts[3, 10], counts[5] = 9, 3
    domain = Domain([Ordinal("x", range(20)), Ordinal("y", range(20))])
    larger = counts.copy()
    larger[3, 10] += 1
    pair = Pair("beside a wall", Histogram(domain, counts), Histogram(domain, larger))
    assert stands(Heap(of="y", value=11, inner=AdaptiveTree()), 150, [pair])


def pieces_of(*each: Mechanism, seed: int = 3) -> Estimate:
    found = run(Heap(of="hours", value=11, inner=Laplace(), each=each), wall(side=24), "1/2", seed=seed)
    assert isinstance(found, Estimate)
    return found


def test_auto_sets_a_wall_apart_and_the_release_says_so_and_can_be_verified(tmp_path) -> None:
    release = dphist.publish(wall(), epsilon=1, workload="ranges")
    assert isinstance(release.mechanism, Auto)
    chosen = release.mechanism.chosen
    assert isinstance(chosen, Heap)
    assert (chosen.of, chosen.value) == ("hours", 11)
    assert "one value of hours" in release.mechanism.why
    assert release.transcript.spent() == 1
    release.save(tmp_path / "wall.parquet")
    back = dphist.load(tmp_path / "wall.parquet")
    back.verify()
    workload = Workload.random(release.domain, 50, seed=4)
    one, other = release.answer(workload), back.answer(workload)
    assert one.low.tolist() == other.low.tolist()
    assert one.high.tolist() == other.high.tolist()
    assert "one value of hours" in one.details
    assert from_json(to_json(release.mechanism)) == release.mechanism
    back_again = parse(show(release.mechanism, filled=True))
    assert isinstance(back_again, Auto)
    assert back_again.chosen == chosen


@pytest.mark.parametrize("workload", ["ranges", None])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "1/2"}])
def test_a_wall_is_found_whatever_is_announced_and_in_either_currency(workload, budget) -> None:
    told = {} if workload is None else {"workload": workload}
    release = dphist.publish(wall(10_000, side=80), **budget, **told)
    assert isinstance(release.mechanism, Auto)
    assert isinstance(release.mechanism.chosen, Heap)
    release.verify()


def test_nothing_is_set_apart_where_no_value_stands_out_or_records_are_few() -> None:
    level = Histogram(wall().domain, np.full((40, 40), 10))
    for data in (level, wall(200)):
        release = dphist.publish(data, epsilon=1, workload="ranges")
        assert isinstance(release.mechanism, Auto)
        assert isinstance(release.mechanism.chosen, AdaptiveTree)


def test_the_top_of_a_hill_is_no_wall_and_every_question_costs_what_it_is_said_to() -> None:
    price, hill, one = Fraction(1, 32), np.ones((40, 40), dtype=np.int64), np.ones((40, 40), dtype=np.int64)
    hill[:, 20:23], one[:, 20] = 50, 100
    for counts, found, spent in ((hill, (), price + price / 2), (one, ((1, 20),), price + price / 2 + price)):
        total = float(counts.sum())
        heaps, rest = find_point_masses(open_counts(counts, 100, seed=1), total, total, price)
        assert heaps == found
        assert rest.unit_scale == 1 / (100 * (1 - spent))
