"""Calibrated intervals that are to hold all at once: a law that is right on average is wrong somewhere among many."""

import numpy as np
import pytest
from scipy import stats

import dphist
from dphist.errors import QueryError
from dphist.inference.intervals import joint_deviations, normal_quantile
from dphist.inference.predictive import MeasuredCells, PredictiveErrors
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.posterior import Posterior
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing import run

RELEASES = 12


def _islands(size, each, draws):
    """Next to nothing but for some hills of a few cells."""
    made = np.full(size, 0.03)
    for start in draws.integers(0, size - 8, max(4, size // 25)):
        made[start : start + int(draws.integers(2, 8))] += draws.uniform(0.5, 2.0)
    return draws.poisson(each * made / made.mean()).astype(np.int64)


def _together(make, budget, mechanism=None, releases=RELEASES):
    """In how many releases all intervals of all cells hold, and how wide they and guaranteed ones are beside single."""
    held, wide = [], []
    for seed in range(releases):
        histogram = make(np.random.default_rng(1_000 + seed))
        cells, truth = Workload.cells(histogram.domain), np.ravel(histogram.counts)
        estimate = run(mechanism or Auto(), histogram, budget, seed=seed)
        published = np.asarray(estimate.counts, dtype=float).reshape(-1)
        every = estimate.errors.interval(cells, published, 0.95, simultaneous=True)
        alone = estimate.errors.interval(cells, published, 0.95)
        held.append(((every.low <= truth) & (truth <= every.high)).all())
        wide.append((every.high - every.low).mean() / (alone.high - alone.low).mean())
    return np.mean(held), np.mean(wide)


@pytest.mark.parametrize("budget", [Budget.of("0.1"), Budget.of(rho="1/200")], ids=["epsilon", "rho"])
@pytest.mark.parametrize("shape", [(300,), (16, 16)], ids=["line", "plane"])
def test_all_cells_hold_together(shape, budget):
    domain = Domain([Ordinal(f"x{axis}", range(size)) for axis, size in enumerate(shape)])

    def make(draws):
        return Histogram(domain, _islands(domain.size, 3.0, draws).reshape(shape))

    held, wide = _together(make, budget)
    assert held >= 0.75
    # By the normal law 1.8; they are no longer than they have to be.
    assert 2.0 < wide < 7.0


def test_cells_of_parts_hold_together():
    domain = Domain([Ordinal("x", range(100)), Nominal("part", ["a", "b", "c"])])

    def make(draws):
        return Histogram(domain, np.stack([_islands(100, 10.0, draws) for _ in range(3)], axis=1))

    held, wide = _together(make, Budget.of("0.1"), ByPart(by=("part",), inner=Auto()), releases=2 * RELEASES)
    assert held >= 0.8
    assert wide > 2.0


def _beside_guaranteed(shape, each, epsilon, confidence):
    """Bounds of 80 boxes together, calibrated at 95 % and guaranteed at another confidence, and what is published."""
    domain = Domain([Ordinal(f"x{axis}", range(size)) for axis, size in enumerate(shape)])
    counts = np.random.default_rng(3).poisson(each, shape).astype(np.int64)
    asked = Workload.random(domain, 80, seed=1)
    estimate = run(Auto(), Histogram(domain, counts), Budget.of(epsilon), seed=3)
    published = estimate.errors.answer(asked, np.asarray(asked.answer(estimate.counts), dtype=float))
    every = estimate.errors.interval(asked, published, 0.95, simultaneous=True)
    sure = estimate.errors.interval(asked, published, confidence, guaranteed=True, simultaneous=True)
    assert ((every.low <= published) & (published <= every.high)).all()
    return every, sure


@pytest.mark.parametrize(("shape", "each"), [((100,), 30.0), ((100,), 3.0), ((8, 8), 200.0)])
def test_they_are_no_wider_than_guaranteed_ones(shape, each):
    every, sure = _beside_guaranteed(shape, each, "1", 0.95)
    assert (every.high - every.low <= sure.high - sure.low).all()


def test_where_either_may_stand_the_theorem_has_a_third_of_what_may_be_missed():
    every, sure = _beside_guaranteed((16, 16), 3.0, "1", 1.0 - 0.05 / 3.0)
    assert (every.high - every.low <= sure.high - sure.low).all()
    stands = (every.low == sure.low) & (every.high == sure.high)
    assert 0 < stands.sum() < stands.size


def test_those_of_a_plane_reach_beyond_the_noisy_counts():
    """Where the law takes a cell for empty it is sure of it; of hundreds one is not."""
    domain = Domain([Ordinal("x", range(24)), Ordinal("y", range(24))])
    histogram = Histogram(domain, _islands(domain.size, 3.0, np.random.default_rng(5)).reshape(24, 24))
    estimate = run(Posterior(), histogram, Budget.of("0.1"), seed=5)
    assert isinstance(estimate.errors, PredictiveErrors)
    assert isinstance(estimate.errors.measured, MeasuredCells)
    cells, noisy = Workload.cells(domain), np.ravel(estimate.errors.measured.values)
    every = estimate.errors.interval(cells, np.ravel(estimate.counts), 0.95, simultaneous=True)
    reach = 2.0 * np.sqrt(200.0)
    assert (every.high >= noisy + reach - 1.0).all()
    assert (every.low <= np.maximum(noisy - reach, 0.0) + 1.0).all()


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_the_law_of_many_is_students(confidence):
    assert joint_deviations(confidence, confidence) == normal_quantile(confidence)
    for questions in (2, 30, 10_000):
        share = 1.0 - (1.0 - confidence) / questions
        law = stats.t.isf((1.0 - share) / 2.0, 4) / stats.t.isf((1.0 - confidence) / 2.0, 4)
        assert joint_deviations(confidence, share) == pytest.approx(
            normal_quantile(confidence) * law, rel=1e-9
        )


@pytest.mark.parametrize("mechanism", [None, "laplace", "marginals(tables=[[0], [1]])"])
@pytest.mark.parametrize("guaranteed", ["calibrated", "guaranteed"])
def test_a_confidence_that_cannot_be_divided_is_refused_by_name(mechanism, guaranteed):
    domain = dphist.Domain([dphist.Ordinal("x", range(8)), dphist.Ordinal("y", range(8))])
    kind = {} if mechanism is None else {"mechanism": mechanism}
    release = dphist.publish(dphist.Histogram(domain, np.full((8, 8), 9)), epsilon=1, **kind)
    with pytest.raises(QueryError, match="confidence: so near to 1"):
        release.answer(
            dphist.Workload.cells(domain), confidence=1 - 2**-53, interval=guaranteed, simultaneous=True
        )
