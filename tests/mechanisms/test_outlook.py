"""What `mixture` expects of both ways, and what looks are worth: forecasts held to what happens on made-up tables."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.inference.tables.columns import believed
from dphist.inference.tables.residuals import Measured, TableResiduals
from dphist.inference.tables.shrinking import shrink_together
from dphist.mechanisms.wide.outlook import Outlook, ring
from dphist.mechanisms.wide.singles import plan_singles
from dphist.model.law import NoiseLaw


def outlook(size, columns=15, total=50_000, kind="gaussian", noise=Fraction(100)):
    pairs = tuple(itertools.combinations(range(columns), 2))
    return Outlook(NoiseLaw(kind, noise), (size,) * columns, pairs, pairs).counted(total)


def test_both_ways_get_better_with_more_records_and_the_better_one_is_expected():
    few, many = outlook(10, total=1_000), outlook(10, total=10**8)
    assert many.plain < few.plain
    assert (many.together <= few.together).all()
    assert few.losses()[1] < 0.01 < few.losses()[0]
    assert many.losses()[0] < 0.01 < many.losses()[1]


def test_noise_of_the_total_is_no_error_of_shares():
    # Four residuals of equal shares: the total has four times the variance, a sixteenth of which is in every cell.
    one = Outlook(NoiseLaw("gaussian", Fraction(1)), (2, 2), ((0, 1),), ((0, 1),))
    whole, low = one.variances
    assert (float(whole[0]), float(low[0])) == pytest.approx((0.75, 0.5), rel=0.05)


def test_nothing_is_looked_at_where_nothing_would_be_done_otherwise():
    sure = outlook(10, total=10**8)
    assert sure.trial(ring(15)) == (0, sure.losses().min())
    unsure = outlook(2, noise=Fraction(3_000))
    assert unsure.trial(ring(15))[0] > 0
    assert outlook(2, kind="laplace", noise=Fraction(40)).trial(ring(15))[0] == 0


def test_what_is_seen_moves_the_expectation():
    before = outlook(2, noise=Fraction(3_000))
    strong, weak = before.seen(0.1, 0.01), before.seen(0.0, 0.001)
    assert strong.losses()[0] < strong.losses()[1]
    assert weak.losses()[1] < weak.losses()[0]
    assert weak.likely.sum() == pytest.approx(1)


@pytest.mark.parametrize("dependent", [False, True])
def test_a_trial_tells_uneven_independent_columns_from_dependent_ones(dependent):
    """Uneven columns have an interaction on the scale of counts even if they are independent."""
    total, columns = 50_000, 15
    before = outlook(2, columns, total, noise=Fraction(3_000))
    draw = np.random.default_rng(1)
    measured = [Measured((), np.array(float(total)), 10.0, 0.0, residual=True)]
    share = draw.uniform(0.1, 0.4, columns)
    for axis in range(columns):
        half = total * (share[axis] - 0.5)
        noisy = np.array([half, -half]) + draw.normal(0, 100)
        measured.append(Measured((axis,), noisy, 1e4, 0.0, residual=True))
    for a, b in ring(columns):
        table = total * np.outer([share[a], 1 - share[a]], [share[b], 1 - share[b]])
        table += dependent * 0.02 * total * np.array([[1, -1], [-1, 1]])
        even = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
        noise = draw.normal(0, 100) * np.array([[1, -1], [-1, 1]])
        measured.append(Measured((a, b), even + noise, 4e4, 0.0, residual=True))
    after = before.tried(TableResiduals((2,) * columns, measured), ring(columns))
    together, apart = after.losses()
    assert (together < apart) == dependent


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_columns_of_two_values_are_asked_by_difference_and_known_better(kind):
    law, shape = NoiseLaw(kind, Fraction(1)), (2,) * 9
    plan = plan_singles(law, shape)
    assert sum(plan.shares) <= 1
    assert set(plan.differences) == {(), *((axis,) for axis in range(9))}
    variances = [float(law.variance) * float(share) ** -law.exponent for share in plan.shares]
    measured = [
        Measured(axes, np.zeros([1 if axis in d else shape[axis] for axis in axes]), variance, 0.0, d)
        for axes, variance, d in zip(plan.tables, variances, plan.differences, strict=True)
    ]
    known = TableResiduals(shape, measured)
    # What two values differ by: nine tables of two cells with equal shares would have this variance.
    equal = 2.0 * float(law.variance) * 9.0**law.exponent
    for axis in range(9):
        assert 2.0 / known.residuals[(axis,)].precision < 0.75 * equal
    wide = plan_singles(law, (2, 12)).noise(law)
    assert wide[1] > 2 * wide[0] > 0.0


def test_shares_and_rings_are_what_they_say():
    assert sum(plan_singles(NoiseLaw("laplace", Fraction(1)), (2, 50, 7)).shares) <= 1
    for columns in (2, 3, 4, 9, 40):
        pairs = ring(columns)
        seen = np.bincount(np.array(pairs).reshape(-1), minlength=columns)
        assert (seen == (2 if columns > 2 else 1)).all()


@pytest.mark.parametrize("noise", [0.01, 1.0, 3.0])
def test_a_column_is_believed_to_be_nearer_to_the_truth(noise):
    draw = np.random.default_rng(2)
    errors = np.zeros(2)
    for _ in range(40):
        true = 1_000 * draw.dirichlet(np.full(40, 1.0))
        noisy = true + draw.normal(0, noise * 25, 40)
        for place, found in enumerate(
            (believed(noisy, (noise * 25) ** 2, 1_000.0), nonnegative(noisy, 1_000.0))
        ):
            assert found.min() >= 0
            assert found.sum() == pytest.approx(1_000)
            errors[place] += np.abs(found - true).sum()
    assert errors[0] < (1.01 if noise < 0.1 else 0.95) * errors[1]


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
