"""Marginals: tables that overlap agree, are published within their noise, and have intervals that hold."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.inference.tables.shrunk import TableNoise
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.marginals import Marginals
from dphist.model.domain import Domain, Nominal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.publishing.measures import plan_tables
from dphist.testing import RecordingNoise, open_counts, run

PAIRS = tuple(combinations(range(4), 2))


def _cube(records, shape=(30, 7, 5, 2), seed=0):
    """Attributes that go together by a hidden kind of person; most cells are empty."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, records)
    places = []
    for size in shape:
        law = rng.dirichlet(np.full(size, 0.5), 4).cumsum(axis=1)
        places.append(np.minimum((law[kind] < rng.random(records)[:, None]).sum(axis=1), size - 1))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(places), 1)
    names = "abcdef"[: len(shape)]
    domain = Domain(
        [Nominal(name, [f"{name}{i}" for i in range(n)]) for name, n in zip(names, shape, strict=True)]
    )
    return Histogram(domain, counts)


def _table(counts, axes):
    return counts.sum(axis=tuple(a for a in range(counts.ndim) if a not in axes))


def test_tables_that_overlap_agree():
    counts = np.random.default_rng(9).poisson(40, (6, 5, 4))
    estimate = run(Marginals(tables=((0, 1), (1, 2), (1,))), counts, 100, seed=1).counts
    for axis in (2, 0):
        assert np.allclose(estimate.sum(axis=axis), counts.sum(axis=axis), atol=1)


@pytest.mark.parametrize("epsilon", ["1/10", "1"])
def test_every_table_is_published_within_the_noise_it_was_measured_with(epsilon):
    histogram = _cube(20_000)
    noise = np.sqrt(2.0) * len(PAIRS) / float(Fraction(epsilon))
    squares: dict[Any, list[Any]] = {axes: [] for axes in PAIRS}
    for seed in range(8):
        counts = run(Marginals(tables=PAIRS), histogram, epsilon, seed=seed).counts
        for axes in PAIRS:
            squares[axes].append(np.mean((_table(counts, axes) - _table(histogram.counts, axes)) ** 2))
    assert max(np.sqrt(np.mean(each)) for each in squares.values()) <= 1.2 * noise


@pytest.mark.parametrize("announced", [True, False])
def test_intervals_hold_as_often_as_they_say(announced):
    histogram = _cube(20_000)
    domain = histogram.domain
    workload = Workload.marginals(domain, 2)
    truth = workload.answer(histogram.counts)
    held = []
    for seed in range(16):
        given = workload if announced else None
        estimate = run(Auto(), histogram, 1, seed=seed, workload=given)
        found = estimate.errors.interval(workload, workload.answer(estimate.counts), 0.95)
        held.append((found.low <= truth) & (truth <= found.high))
    # Questions of one release share noise; over 16 releases the mean lies within 0.02 of what the law says.
    assert 0.93 < np.mean(held) < 0.98


def test_what_lies_inside_no_table_was_not_measured_but_is_bounded():
    histogram = _cube(5_000)
    errors = run(Marginals(tables=PAIRS), histogram, 1, seed=3).errors
    triples = Workload.marginals(histogram.domain, 3)
    found = errors.interval(triples, np.zeros(len(triples)), 0.95)
    assert np.isnan(errors.variance(triples)).all()
    assert np.all(found.guessed)
    truth = triples.answer(histogram.counts)
    assert np.mean((found.low <= truth) & (truth <= found.high)) > 0.99


def test_plans_split_the_budget_exactly_and_always_measure_the_cube():
    for shape in ((7, 3, 2), (100, 9, 16, 2, 2), (4,) * 7):
        plan = plan_tables(shape)
        assert sum(plan.shares) == 1
        assert tuple(range(len(shape))) in plan.tables


@pytest.mark.parametrize(
    "mechanism",
    [
        Marginals(tables=((0,), (3,))),
        Marginals(tables=((0,), (1,)), shares=(Fraction(1, 2),)),
        Marginals(tables=((0,), (1,)), shares=(Fraction(1, 2), Fraction(1, 3))),
        Marginals(tables=((0,), (1,)), shares=(Fraction(3, 2), Fraction(-1, 2))),
    ],
)
def test_tables_and_shares_that_make_no_sense_are_refused(mechanism):
    with pytest.raises(MechanismError, match=r"tables|shares"):
        run(mechanism, np.ones((2, 2), dtype=np.int64), 1)


def test_every_table_is_asked_once_for_its_own_share():
    """What reaches the sampler, table by table; and what is told of it."""
    counts = np.ones((4, 3, 2), dtype=np.int64)
    for mechanism, sizes, scales in (
        (Marginals(tables=((0,), (0, 1), (1, 2))), [12, 6], [2, 2]),
        (
            Marginals(tables=((0,), (1, 2)), shares=(Fraction(1, 4), Fraction(3, 4))),
            [4, 6],
            [4, Fraction(4, 3)],
        ),
    ):
        noise = RecordingNoise(seed=2)
        estimate = mechanism.estimate(open_counts(counts, 1, noise=noise))
        assert [draw.size for draw in noise.drawn] == sizes
        # The gate may round a scale up, never down.
        drawn = [draw.amounts[0] for draw in noise.drawn]
        exact = [Fraction(str(want)) for want in scales]
        assert all(have >= want for have, want in zip(drawn, exact, strict=True))
        wanted = [float(want) for want in exact]
        assert [float(have) for have in drawn] == pytest.approx(wanted)
        assert isinstance(estimate.errors, TableNoise)
        assert estimate.errors.residuals.scales == pytest.approx(wanted)
