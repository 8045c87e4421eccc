"""Forecasts of candidates: closed forms that agree with what mechanisms say of themselves, and plans that are best."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.pilot import PilotAnswer
from dphist.mechanisms.marginals import Marginals
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.testing import open_counts, run

CUBE = Domain([Ordinal("x", range(9)), Nominal("y", list("abcd")), Nominal("z", list("uv"))])
LAW = NoiseLaw("laplace", Fraction(1))


def _forecaster(workload=None, records=None, domain=CUBE, law=LAW):
    kind = None if workload is None else workload.kind
    return Forecaster(domain.shape, asked_kinds(domain.shape, domain, workload, kind), law, records)


@pytest.mark.parametrize(
    "workload", [Workload.marginals(CUBE, 1), Workload.marginals(CUBE, 2), Workload.random(CUBE, 60, seed=2)]
)
def test_the_forecast_of_tables_is_the_variance_that_the_release_states(workload):
    # A release states continuous noise, and at this budget whole numbers are as good as that.
    plan = _forecaster(workload, law=NoiseLaw("laplace", Fraction(1000))).tables()
    assert sum(plan.shares) == 1
    fitted = run(
        Marginals(tables=plan.tables, shares=plan.shares),
        np.ones(CUBE.shape, dtype=np.int64),
        Fraction(1, 1000),
        seed=1,
    )
    assert np.sqrt(fitted.errors.variance(workload).mean()) == pytest.approx(plan.forecast.score, rel=1e-6)


def test_the_forecast_of_cells_is_that_of_plain_noise():
    workload = Workload.random(CUBE, 60, seed=2)
    mean = workload.cells_in_each.mean()
    assert _forecaster(workload).cells().score == pytest.approx(np.sqrt(LAW.drawn_variance * mean))


def test_forecasts_know_that_whole_numbers_are_drawn():
    workload = Workload.marginals(CUBE, 1)
    continuous, whole = (
        _forecaster(workload, law=NoiseLaw("laplace", size)) for size in (Fraction(1000), Fraction(1, 10))
    )

    def parts(forecaster):
        found = forecaster.cells(), forecaster.tree(), forecaster.tables().forecast
        return np.array([each.score for each in found]) / float(forecaster.law.deviation)

    # At ε = 10 hardly a cell has noise, while tables share the budget.
    for forecaster, better in ((continuous, False), (whole, True)):
        cells, _, tables = parts(forecaster)
        assert bool(cells < tables) is better
    assert (parts(whole) < parts(continuous)).all()


@pytest.mark.parametrize("workload", [None, Workload.marginals(CUBE, 2), Workload.random(CUBE, 60, seed=2)])
def test_no_plan_nearby_is_better(workload):
    plan = _forecaster(workload).tables()
    best, shares = plan.forecast.score, np.array([float(each) for each in plan.shares])
    kinds = asked_kinds(CUBE.shape, CUBE, workload, None if workload is None else workload.kind)
    weights = np.array([each.weight for each in kinds])
    for giver in range(len(shares)):
        for taker in range(len(shares)):
            moved = shares.copy()
            moved[giver] -= 0.02
            moved[taker] += 0.02
            if giver == taker or moved[giver] <= 0.01:
                continue
            exact = [Fraction(round(each * 1000), 1000) for each in moved]
            exact[-1] += 1 - sum(exact)
            errors = run(
                Marginals(tables=plan.tables, shares=tuple(exact), nonnegative=False),
                np.ones(CUBE.shape, dtype=np.int64),
                1,
                seed=1,
            ).errors
            means = [
                (each.times * errors.variance(Workload(CUBE, each.low, each.high))).sum() for each in kinds
            ]
            score = np.exp((weights * np.log(means)).sum() / weights.sum() / 2)
            assert score >= best * (1 - 1e-3)


def test_few_records_promise_less_than_their_noise_and_many_as_much():
    known = _forecaster().tables().forecast
    few, many = (_forecaster(records=records).tables().forecast for records in (5.0, 1e9))
    assert few.score < 0.5 * known.score
    assert many.score == pytest.approx(known.score, rel=0.01)


def test_half_the_noise_is_half_the_error():
    one, two = (_forecaster(law=NoiseLaw("laplace", Fraction(size))) for size in (1000, 2000))
    assert two.tables().forecast.score == pytest.approx(2 * one.tables().forecast.score)
    assert two.tree().score == pytest.approx(2 * one.tree().score)


def test_pairs_of_many_small_attributes_are_read_off_the_cube():
    # 21 tables would share the budget; the cube of 128 cells serves all of them better.
    domain = Domain([Nominal(f"a{axis}", ["n", "y"]) for axis in range(7)])
    workload = Workload.marginals(domain, 2)
    plan = _forecaster(workload, domain=domain).tables()
    assert plan.tables[-1] == tuple(range(7))
    assert plan.shares[-1] > Fraction(1, 2)
    right = open_counts(Histogram(domain, np.ones(domain.shape, dtype=np.int64)), 1, workload=workload)
    chosen = Auto().choose(right)[0]
    assert isinstance(chosen, Marginals)
    assert chosen.tables == plan.tables


@pytest.mark.parametrize(("axes", "chosen"), [((0, 1), AdaptiveTree), ((0,), Marginals)])
def test_rectangles_of_a_plane_get_a_tree_and_ranges_of_one_attribute_its_table(axes, chosen):
    plane = Domain([Ordinal("x", range(256)), Ordinal("y", range(256))])
    ranges = Workload.random(plane, 200, seed=1)
    low, high = np.zeros_like(ranges.low), np.full_like(ranges.high, 256)
    low[:, axes], high[:, axes] = ranges.low[:, axes], ranges.high[:, axes]
    right = open_counts(
        Histogram(plane, np.zeros(plane.shape, dtype=np.int64)), 1, workload=Workload(plane, low, high)
    )
    for records in (None, 10.0, 1e4, 1e7):
        assert isinstance(Auto().choose(right, PilotAnswer(records))[0], chosen)


@pytest.mark.parametrize("kind", ["clusters", "spikes", "diagonal"])
@pytest.mark.parametrize("largest", [16, 64])
def test_rectangles_of_made_up_planes_are_no_worse_than_the_trees(kind, largest):
    draw, place = np.random.default_rng(5), np.arange(64)
    y, x = np.meshgrid(place, place, indexing="ij")
    weights = {
        "clusters": sum(
            draw.pareto(1.2) * np.exp(-((y - a) ** 2 + (x - b) ** 2) / (2 * w * w))
            for a, b, w in zip(
                draw.uniform(0, 64, 12), draw.uniform(0, 64, 12), draw.uniform(0.5, 4, 12), strict=True
            )
        ),
        "spikes": np.where(draw.random((64, 64)) < 0.02, draw.pareto(0.9, (64, 64)) + 0.1, 0.0),
        "diagonal": np.exp(-np.abs(y - x) / 1.3),
    }[kind]
    counts = draw.multinomial(10**5, weights.ravel() / weights.sum()).reshape(64, 64)
    domain = Domain([Ordinal("y", range(64)), Ordinal("x", range(64))])
    side = draw.integers(5, largest + 1, (400, 2))
    low = (draw.random((400, 2)) * (65 - side)).astype(np.int64)
    workload = Workload(domain, low, low + side)
    errors = []
    for mechanism in (Auto(), AdaptiveTree()):
        made = [
            run(mechanism, Histogram(domain, counts), "0.1", seed=seed, workload=workload).counts
            for seed in range(5)
        ]
        errors.append(sum(np.mean(np.asarray(workload.answer(each - counts)) ** 2) for each in made))
    assert errors[0] < 1.5 * errors[1]
