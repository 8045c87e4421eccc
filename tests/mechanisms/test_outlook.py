"""What `mixture` expects of its ways, and what looks are worth: forecasts held to what happens on made-up tables."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dphist
from dphist.inference.tables.residuals import Measured, TableResiduals
from dphist.inference.tables.shrinking import shrink_together
from dphist.mechanisms import Mixture
from dphist.mechanisms.wide.outlook import Outlook
from dphist.model.law import NoiseLaw


def outlook(size, columns=15, total=50_000, kind="gaussian", noise=Fraction(100)):
    pairs = tuple(itertools.combinations(range(columns), 2))
    return Outlook(NoiseLaw(kind, noise), (size,) * columns, pairs, pairs).counted(total)


def test_every_way_gets_better_with_more_records_and_the_best_one_is_expected():
    few, many = outlook(10, total=1_000), outlook(10, total=10**8)
    assert many.plain < few.plain
    assert (many.ways <= few.ways).all()
    # Tables that are moved towards a model are never expected to be worse by it.
    assert (few.together <= few.plain).all()
    assert few.losses()[2] < 0.01 < few.losses()[0]
    assert many.losses()[0] < 0.01 < many.losses()[1:].min()


def test_noise_of_the_total_is_no_error_of_shares():
    # Four residuals of equal shares: the total has four times the variance, a sixteenth of which is in every cell.
    one = Outlook(NoiseLaw("gaussian", Fraction(1)), (2, 2), ((0, 1),), ((0, 1),))
    whole, low = one.variances
    assert (float(whole[0]), float(low[0])) == pytest.approx((0.75, 0.5), rel=0.05)


@pytest.mark.parametrize(("alike", "way"), [(0.0, "alone"), (0.6, "together")])
def test_a_release_names_its_look_and_replays_it(alike, way, tmp_path):
    """Fifteen answers, each like its neighbour in some of the records and by itself in the others."""
    draw = np.random.default_rng(5)
    held = draw.random((3_000, 15)) < 0.4
    for place in range(1, 15):
        held[:, place] = np.where(draw.random(3_000) < alike, held[:, place - 1], held[:, place])
    domain = dphist.Domain([dphist.Nominal(f"q{place}", ["no", "yes"]) for place in range(15)])
    people = pd.DataFrame(np.where(held, "yes", "no"), columns=list(domain.names))
    release = dphist.publish(people, domain, epsilon=1, mechanism=Mixture(classes=6, steps=20))
    assert isinstance(release.mechanism, Mixture)
    course = release.mechanism.course
    assert course is not None
    assert course.look > 0
    assert course.way == way
    assert [entry.question["ask"] for entry in release.transcript][:2] == ["TableTotals", "TopDependence"]
    release.save(tmp_path / "wide.parquet")
    dphist.load(tmp_path / "wide.parquet").verify()


def test_one_table_that_departs_among_many_that_do_not_is_kept():
    shape, draw = (2,) * 20, np.random.default_rng(3)
    pairs = list(itertools.combinations(range(20), 2))
    sign = np.array([[1.0, -1.0], [-1.0, 1.0]])
    measured = [
        Measured(pair, 1_000 + sign * (300 if pair == (3, 7) else draw.normal(0, 5)), 100.0, 0.0)
        for pair in pairs
    ]
    known = TableResiduals(shape, measured)
    found = shrink_together(known, pairs, lambda axes: np.full((2, 2), 1_000.0))
    kept = {pair: abs(float(found[pair][0, 0] - found[pair].mean())) for pair in pairs}
    assert kept[3, 7] > 250
    assert np.mean([kept[pair] for pair in pairs if pair != (3, 7)]) < 2


def test_records_depart_from_chance_at_least_as_a_sample_does():
    """Noise far below sampling: a table that looks independent by luck is what it is, and is not moved."""
    exact = np.array([[1000.8, 999.2], [999.2, 1000.8]])
    measured = TableResiduals((2, 2), [Measured((0, 1), exact, 1.0, 0.0)])
    chance: dict[tuple[int, ...], NDArray[np.float64]] = {(0, 1): np.full((2, 2), 1000.0)}
    moved = shrink_together(measured, [(0, 1)], chance.__getitem__)[(0, 1)]
    kept = shrink_together(measured, [(0, 1)], chance.__getitem__, sampled=True)[(0, 1)]
    assert np.abs(moved - exact).max() > 0.1
    assert np.abs(kept - exact).max() < 0.002
    # Where noise is far above it, sampling says next to nothing.
    noisy = TableResiduals((2, 2), [Measured((0, 1), exact, 1e8, 0.0)])
    one, two = (
        shrink_together(noisy, [(0, 1)], chance.__getitem__, sampled=s)[(0, 1)] for s in (False, True)
    )
    assert np.allclose(one, two, atol=1e-3)


def test_looks_are_small_and_none_is_taken_where_nothing_would_be_done_otherwise():
    unsure = outlook(2, total=3_000, kind="laplace", noise=Fraction(1))
    assert 0 < unsure.look() <= Fraction(1, 64)
    assert outlook(10, total=10**8).look() == 0
    assert unsure.seen(0.4, 0.005).look() == 0
    assert unsure.strongest == 10


def test_what_is_seen_moves_the_expectation():
    before = outlook(2, noise=Fraction(3_000))
    strong, weak = before.seen(0.1, 0.01), before.seen(0.0, 0.001)
    assert strong.losses()[0] < strong.losses()[2]
    assert weak.losses()[2] < weak.losses()[0]
    assert weak.likely.sum() == pytest.approx(1)
