"""Larger tables that hold many wanted ones: every wanted table is held, and under ε errors are what they should be."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.inference.tables.residuals import TableResiduals
from dphist.mechanisms import Auto, Residuals
from dphist.mechanisms.residuals import measure_residuals
from dphist.mechanisms.wide.plan import covering, plan_tables, planned_variances
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise

ONE = NoiseLaw("laplace", Fraction(1))


@pytest.mark.parametrize("seed", range(12))
def test_every_wanted_table_is_in_a_block_and_no_block_is_too_large(seed):
    draw = np.random.default_rng(seed)
    shape = tuple(int(size) for size in draw.integers(1, 9, int(draw.integers(2, 12))))
    every = [
        axes
        for order in (1, 2, 3)
        for axes in itertools.combinations([a for a, size in enumerate(shape) if size > 1], order)
    ]
    wanted = [every[place] for place in draw.permutation(len(every))[:20]]
    for most in (8, 32, 128):
        blocks = covering(shape, wanted, most)
        assert all(any(set(axes) <= set(block) for block in blocks) for axes in wanted)
        assert all(math.prod(shape[a] for a in block) <= most or block in wanted for block in blocks)
        assert len(blocks) <= len(set(wanted))


def test_blocks_of_few_columns_of_two_values_are_the_whole_table():
    """32 cells with noise of scale 1 each: a cell of a pair is eight of them."""
    pairs = list(itertools.combinations(range(5), 2))
    plan = plan_tables((2,) * 5, pairs, gaussian=False)
    assert plan.tables == ((0, 1, 2, 3, 4),)
    assert plan.shares == (Fraction(1),)
    whole, low = planned_variances(ONE, (2,) * 5, pairs, pairs)
    assert whole == pytest.approx(16.0)
    assert low == pytest.approx(12.0)


def _measured(epsilon, seed=1):
    draw = np.random.default_rng(seed)
    shape = (2, 3, 2, 4, 2)
    held = CodedColumns(
        Domain([Ordinal(f"c{place}", range(size)) for place, size in enumerate(shape)]),
        tuple(draw.integers(0, size, 400).astype(np.uint8) for size in shape),
    )
    pairs = list(itertools.combinations(range(5), 2))
    right, _ = open_gate(held, Budget.of(epsilon), Unit(), noise=Noise(Keystream.for_tests(seed)))
    return held, pairs, measure_residuals(right, pairs)


def test_pairs_read_off_blocks_are_the_true_ones_but_for_noise():
    held, pairs, known = _measured(10_000)
    assert max(len(each.axes) for each in known.measured) > 2
    for axes, table in zip(pairs, held.tables(pairs), strict=True):
        assert known.table(axes) == pytest.approx(table)


def test_what_nobody_asked_for_stays_unknown():
    _, pairs, known = _measured(1)
    assert all(known.covers(axes) for axes in pairs)
    assert not any(known.covers(axes) for axes in itertools.combinations(range(5), 3))


def test_the_variance_of_pairs_read_off_blocks_is_that_of_their_draws():
    """A pair is linear in what was measured: unit draws one after the other give its variance exactly."""
    _, _, known = _measured(1)
    axes, found = (0, 2), 0.0
    for place, each in enumerate(known.measured):
        for cell in np.ndindex(each.values.shape):
            unit = [np.zeros_like(other.values) for other in known.measured]
            unit[place][cell] = 1.0
            parts = [
                type(other)(
                    other.axes, values, other.variance, other.scale, other.differences, about=other.about
                )
                for other, values in zip(known.measured, unit, strict=True)
            ]
            found += each.variance * TableResiduals(known.shape, parts).table(axes)[0, 0] ** 2
    assert known.cell_variance(axes) == pytest.approx(found)


def test_auto_measures_residuals_by_cells_where_columns_are_uneven():
    """All pairs of five columns of two values and one of fifty: 0.78 of the error of whole tables, 1.05 by tables."""
    domain = dphist.Domain(
        [dphist.Ordinal(f"c{place}", range(size)) for place, size in enumerate((2,) * 5 + (50,))]
    )
    full = dphist.Histogram(domain, np.full(domain.shape, 1_000))
    release = dphist.publish(full, epsilon=1, workload="marginals:2", unattended=True)
    assert isinstance(release.mechanism, Auto)
    chosen = release.mechanism.chosen
    assert isinstance(chosen, Residuals)
    assert chosen.by_cells
    release.verify()
