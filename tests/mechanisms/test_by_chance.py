"""Cubes left to chance: chosen where noise would hide the rest, looked at where that matters, with intervals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dphist
from dphist.errors import MechanismError
from dphist.inference.tables.believing import Beside, believe
from dphist.mechanisms import Auto, Marginals
from dphist.mechanisms.choosing import cubes, rule
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.chance import look_at_pairs, outlook, product_of
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.choosing.request import Request
from dphist.model.law import NoiseLaw
from dphist.private.queries.dependence import TopDependence
from dphist.private.records import PrivateRecords
from dphist.publishing.checking import verify_file
from dphist.testing import open_counts, run

SHAPE = (12, 6, 4, 2)
DOMAIN = dphist.Domain([dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(SHAPE)])
CELLS = dphist.Workload.cells(DOMAIN)


def _independent(records: int) -> dphist.Histogram:
    weights = np.ones(())
    for size in SHAPE:
        weights = np.multiply.outer(weights, np.linspace(1.0, 2.0, size) / size / 1.5)
    return dphist.Histogram(DOMAIN, np.rint(records * weights).astype(np.int64))


def _forecaster(records: float, kind: str = "cells") -> Forecaster:
    asked = asked_kinds(SHAPE, DOMAIN, None, "cells" if kind == "cells" else None)
    return Forecaster(SHAPE, asked, NoiseLaw("laplace", Fraction(10)), records, 0.01)


def _least(forecaster: Forecaster) -> float:
    """What the product is off by if attributes go together by chance."""
    return float(outlook(forecaster, 1.0, Glimpse(1e4, 0.01)).ways[1, 0])


@pytest.mark.parametrize("kind", ["cells", "nothing said"])
def test_what_pairs_show_decides(kind):
    forecaster = _forecaster(1e4, kind)
    other = 1.5 * _least(forecaster)
    near, far = (outlook(forecaster, other, Glimpse(1e4, 0.01, 0.003, apart=apart)) for apart in (0.0, 0.3))
    assert near.chosen
    assert not far.chosen
    assert far.expected[1] > 3.0 * near.expected[1]


def test_a_look_is_bought_only_where_it_may_change_something():
    forecaster = _forecaster(1e4)
    assert outlook(forecaster, 1.5 * _least(forecaster), Glimpse(1e4, 0.01)).look() > 0
    for hopeless in (1e-3, 1e9):
        assert outlook(forecaster, hopeless, Glimpse(1e4, 0.01)).look() == 0


def test_where_pairs_may_hide_a_look_is_bought_if_it_is_clear_for_little():
    shares = {10**6: Fraction(1, 200), 2 * 10**4: Fraction(1, 50), 8_000: Fraction(1, 50), 5_000: Fraction(0)}
    for records, bought in shares.items():
        found = outlook(_forecaster(float(records)), 1e-3, Glimpse(float(records), 0.01))
        data = open_counts(_independent(records).counts, "1/10", seed=1)
        assert look_at_pairs(Look(), Glimpse(float(records)), data, found)[0].pairs == 0
        look, seen, _ = look_at_pairs(Look(), Glimpse(float(records)), data, found, hidden=True)
        assert look.pairs == bought
        assert (seen.doubt is None) == (not bought)
        assert seen.doubt is None or seen.doubt <= 0.2


def test_tables_of_one_attribute_share_everything():
    for records in (1e8, 100.0):
        mechanism = product_of(_forecaster(records))
        assert mechanism.tables == ((0,), (1,), (2,), (3,))
        assert mechanism.shares is not None
        assert sum(mechanism.shares) == 1
        assert mechanism.shares[0] > mechanism.shares[3]


def test_a_look_at_blocks_and_pairs_costs_what_it_says():
    look = Look(pairs=Fraction(1, 25), among=((0, 1),), top=1)
    seen, rest = look.at(open_counts(np.full((4, 4, 4), 50), 1, seed=3))
    assert seen.dependence is not None
    assert seen.apart is not None
    assert seen.doubt is not None
    # The whole has the scale 1: what is left pays for the two looks.
    assert rest.law().scale == 1 / (Fraction(31, 32) * Fraction(24, 25))


def test_a_cube_left_to_chance_has_bounds_and_is_replayed(monkeypatch, tmp_path):
    monkeypatch.setattr("dphist.mechanisms.choosing.chance.ByChance.chosen", True)
    people = _independent(20_000)
    release = dphist.publish(people, epsilon="0.1", workload=CELLS)
    told = release.mechanism
    assert isinstance(told, Auto)
    assert isinstance(told.chosen, Marginals)
    assert told.chosen.tables == ((0,), (1,), (2,), (3,))
    assert "put together as if they were independent" in told.why
    answers = release.answer(CELLS)
    assert not np.isnan(answers.low).any()
    assert not np.asarray(answers.measured).any()
    release.save(tmp_path / "chance.parquet")
    monkeypatch.undo()
    verify_file(tmp_path / "chance.parquet")


def test_two_attributes_that_go_by_chance_are_weighed_too(monkeypatch):
    """Six draws: boxes of wards × days are off by little more than the product of their own tables is."""
    table = dphist.Domain(
        [dphist.Nominal("ward", [f"w{ward}" for ward in range(40)]), dphist.Ordinal("day", range(200))]
    )
    wards = np.arange(1.0, 41.0) ** -0.7
    days = 1.0 + 0.6 * np.sin(np.arange(200) / 30.0)
    expected = np.outer(wards / wards.sum(), days / days.sum()) * 40_000
    counts = np.random.default_rng(8).poisson(expected)
    boxes = dphist.Workload.random(table, 200, seed=1)
    truth, off = boxes.answer(counts), []
    mechanism = Marginals(
        tables=((0,), (1,), (0, 1)),
        shares=(Fraction(2, 5), Fraction(9, 20), Fraction(3, 20)),
        estimator="weighed",
    )
    for seed in range(6):
        cube = run(mechanism, dphist.Histogram(table, counts), "0.1", seed=seed).counts
        product = np.outer(cube.sum(axis=1), cube.sum(axis=0)) / cube.sum()
        with monkeypatch.context() as unweighed:
            unweighed.setattr("dphist.inference.tables.believing._weighed", lambda gains: [1.0] * len(gains))
            before = run(mechanism, dphist.Histogram(table, counts), "0.1", seed=seed).counts
        off.append([np.mean((boxes.answer(each) - truth) ** 2) for each in (cube, product, before)])
    weighed, alone, not_weighed = np.sqrt(np.mean(off, axis=0))
    assert weighed < 1.1 * alone
    assert weighed < 0.95 * not_weighed


def test_tables_that_depart_are_believed_and_teach_the_others():
    draw = np.random.default_rng(4)
    even, apart = np.full((6, 6), 400.0), 400.0 + 300.0 * np.eye(6) - 50.0
    noise = [draw.normal(0.0, 30.0, (6, 6)) for _ in range(4)]
    clear = [Beside(apart + each, 900.0, even) for each in noise]
    none = [Beside(even + each, 900.0, even) for each in noise]
    found = believe([*clear, *none])
    for one in found[:4]:
        assert np.abs(one - apart).max() < 120.0
    # Counts of 400 vary by 20 as a sample does, so 400 ÷ 1,300 of what is measured is kept, and hardly more.
    assert np.mean([np.std(one - even) for one in believe(none)]) < 1.2 * 400 / 1300 * 30.0


def test_one_strong_pair_is_seen_that_a_mean_over_all_pairs_would_hide() -> None:
    """Three records in ten make the first two of four attributes agree; the other five pairs go by chance."""
    draw = np.random.default_rng(4)
    one = draw.integers(0, 4, 40_000)
    rows = np.stack([one, np.where(draw.random(one.size) < 0.3, one, draw.integers(0, 4, one.size))], axis=1)
    rest = draw.integers(0, 4, (one.size, 2))
    counts = np.histogramdd(np.hstack([rows, rest]), bins=[np.arange(5)] * 4)[0].astype(np.int64)
    look = Look(pairs=Fraction(1, 25), among=tuple(combinations(range(4), 2)), top=1)
    top, mean = (
        replace(look, top=many).further(open_counts(counts, 1, seed=1), Glimpse(float(counts.sum())))[0].apart
        for many in (1, 6)
    )
    assert top is not None
    assert mean is not None
    # The pair is 0.3 · 3/4 from independence; noise has a deviation of 0.002.
    assert 0.2 < top < 0.25
    assert mean < 0.06
    for many in (0, 7):
        with pytest.raises(MechanismError, match="top"):
            replace(look, top=many)


def _one_follows(strong: float, records: int = 30_000) -> dphist.Histogram:
    """The last of five attributes follows from the others by so much, which go together by chance."""
    draw, shape = np.random.default_rng(1), (60, 9, 12, 2, 2)
    rows = [draw.binomial(size - 1, 0.4, records) for size in shape[:-1]]
    score = strong * sum((row - row.mean()) / row.std() for row in rows)
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (*rows, (draw.random(records) < 1.0 / (1.0 + np.exp(-score))).astype(np.int64)), 1)
    nominal = [dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(shape) if a]
    return dphist.Histogram(dphist.Domain([dphist.Ordinal("x0", range(shape[0])), *nominal]), counts)


@pytest.mark.parametrize(("strong", "left"), [(1.0, 0), (0.0, 8)])
def test_people_of_whom_one_attribute_follows_from_the_others_are_not_left_to_chance(strong, left):
    """Eight draws. Sampling lets the longest pair look as dependent as those that are."""
    people, found = _one_follows(strong), 0
    for seed in range(8):
        auto, data = Auto(), open_counts(people, "0.1", seed=seed)
        look = rule.first_look(Request(data))
        assert look is not None
        seen, data = look.at(data)
        look, seen, data = rule.look_on(Request(data), look, seen)
        found += "as if they were independent" in auto.choose(data, seen)[1]
    assert abs(found - left) <= 2


def test_a_look_takes_off_what_sampling_makes_of_long_pairs() -> None:
    pairs = tuple(combinations(range(5), 2))
    look = Look(pairs=Fraction(1, 25), among=pairs, top=1)
    far, near = (
        look.further(open_counts(_one_follows(strong), 1, seed=1), Glimpse(3e4))[0].apart
        for strong in (1.0, 0.0)
    )
    by_chance = PrivateRecords(open_counts(_one_follows(0.0), 1, seed=1)).measure(TopDependence(pairs, 1))
    raw = float(by_chance.values[0]) / 2.0 / 3e4
    assert far is not None
    assert near is not None
    assert far > 0.1 > raw > 0.02
    assert near < 0.01


def test_tables_that_are_moved_are_expected_to_be_off_by_less_where_there_is_nothing_to_tell():
    forecaster = _forecaster(1e4, "nothing said")
    plan = forecaster.tables()
    seen = Glimpse(1e4, 0.01)
    other = outlook(forecaster, plan.forecast.score, seen, plan.known).ways[0]
    assert (np.diff(other) > 0.0).all()
    assert other[0] < 0.9 * plan.forecast.score < other[-1]
    assert (outlook(forecaster, plan.forecast.score, seen).ways[0] == plan.forecast.score).all()


def _two_depend() -> dphist.Histogram:
    """People of five attributes, of which the last two go together and the others do not."""
    shape, draw = (20, 6, 5, 2, 2), np.random.default_rng(6)
    weights = np.ones(())
    for size in shape[:3]:
        weights = np.multiply.outer(weights, draw.dirichlet(np.full(size, 3.0)))
    weights = np.multiply.outer(weights, np.array([[0.3, 0.03], [0.47, 0.2]]))
    names = [dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(shape)]
    return dphist.Histogram(dphist.Domain(names), draw.poisson(30_000 * weights))


@pytest.mark.parametrize("by_chance", [True, False])
def test_intervals_hold_in_every_table_of_people_of_whom_two_attributes_depend(monkeypatch, by_chance):
    """Sixteen draws. What a look tells of pairs is taken away, so that they are left to chance; or it is not."""
    people = _two_depend()
    held: dict[tuple[str, ...], list[Any]] = {}
    known: dict[tuple[str, ...], list[bool]] = {}
    if by_chance:
        outlook_of = cubes._by_chance
        monkeypatch.setattr("dphist.mechanisms.choosing.chance.ByChance.chosen", True)
        monkeypatch.setattr(cubes, "_by_chance", lambda way, seen: outlook_of(way, replace(seen, apart=None)))
    for seed in range(16):
        found = run(Auto(), people, "0.1", seed=seed)
        for pair in combinations(people.domain.names, 2):
            table = dphist.Workload.parse(people.domain, f"marginals:{','.join(pair)}")
            summed = np.asarray(table.answer(found.counts), dtype=float)
            within = found.errors.interval(table, found.errors.answer(table, summed), 0.95)
            truth = table.answer(people.counts)
            held.setdefault(pair, []).extend((within.low <= truth) & (truth <= within.high))
            known.setdefault(pair, []).append(within.guessed is None or not within.guessed.any())
    assert min(np.mean(each) for each in held.values()) >= 0.9
    # A look sees the strong pair in nearly all releases.
    assert (np.mean(known["x3", "x4"]) > 0.8) is not by_chance
