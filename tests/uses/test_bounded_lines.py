"""Sums, means, quantiles and shares over groups that were not measured: between what bounds of counts allow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dphist
from dphist.inference.estimate import Interval
from dphist.mechanisms import Marginals
from dphist.release.cube.bounded import BoundedLine
from dphist.uses import Cube

SINGLE = Marginals(tables=((0,), (1,)))
DOMAIN = dphist.Domain([dphist.Ordinal("age", range(-5, 25)), dphist.Nominal("sex", ["F", "M"])])
AGES = np.arange(-5, 25)
LEVELS = (0.1, 0.5, 0.9)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
    st.data(),
)
def test_whatever_the_bounds_allow_lies_between_the_ends(cells, data):
    """Counts in cells, and how far the bounds of each prefix and suffix lie below and above."""
    counts = np.array([count for count, _, _ in cells], dtype=float)
    below, above = (np.array([cell[place] for cell in cells], dtype=float) for place in (1, 2))
    steps = data.draw(st.lists(st.integers(1, 5), min_size=counts.size, max_size=counts.size))
    values = np.cumsum(np.array(steps, dtype=float)) - data.draw(st.integers(0, 20))
    inside, beyond = np.cumsum(counts), counts.sum() - np.cumsum(counts)
    # None are beyond the last cell, for certain.
    last = np.arange(counts.size) == counts.size - 1
    line = BoundedLine(
        Interval(np.maximum(inside - below, 0), inside + above),
        Interval(np.maximum(beyond - above, 0), np.where(last, 0, beyond + below)),
    )
    low, high = line.sum(values)
    assert low - 1e-9 <= values @ counts <= high + 1e-9
    if counts.sum() == 0:
        assert line.mean(values)[0] == values[0]
        return
    low, high = line.mean(values)
    assert low - 1e-9 <= values @ counts / counts.sum() <= high + 1e-9
    shares = inside / counts.sum()
    assert (line.shares()[0] <= shares).all()
    assert (shares <= line.shares()[1]).all()
    for level in LEVELS:
        first, end = (int(each[0]) for each in line.cells(np.array([level])))
        # Of a share that is reached exactly floats may say either.
        assert first <= int(np.argmax(shares >= level + 1e-9))
        assert int(np.argmax(shares >= level - 1e-9)) <= end


def test_bounds_without_noise_leave_one_answer():
    counts, values = np.array([3.0, 0.0, 5.0, 2.0]), np.array([-2.0, 1.0, 4.0, 5.0])
    inside = np.cumsum(counts)
    line = BoundedLine(Interval(inside, inside), Interval(10 - inside, 10 - inside))
    assert line.sum(values) == (24.0, 24.0)
    assert line.mean(values) == (2.4, 2.4)
    assert np.array_equal(line.shares()[0], [0.3, 0.3, 0.8, 1.0])
    assert np.array_equal(line.shares()[1], line.shares()[0])
    assert [each.tolist() for each in line.cells(np.array([0.2, 0.5, 0.9]))] == [[0, 2, 3]] * 2
    # Reached to the record: floats may say either.
    assert [each.tolist() for each in line.cells(np.array([0.3]))] == [[0], [2]]


def test_a_group_that_may_be_empty_may_have_any_mean():
    line = BoundedLine(
        Interval(np.zeros(3), np.array([4.0, 5.0, 6.0])), Interval(np.zeros(3), np.array([5.0, 4.0, 0.0]))
    )
    assert line.mean(np.array([10.0, 20.0, 40.0])) == (10.0, 40.0)
    assert line.sum(np.array([10.0, 20.0, 40.0])) == (
        0.0,
        190.0,
    )  # one, one and four records: six in all, five beyond the first
    assert not line.filled


def crossed(kind: str) -> np.ndarray:
    """Ages by sex: unrelated, or as far apart as the single columns leave possible; then noise alone may refute."""
    if kind == "unrelated":
        return np.random.default_rng(3).poisson(9, DOMAIN.shape)
    counts = np.zeros(DOMAIN.shape, dtype=np.int64)
    if kind == "few men, all young":
        counts[:, 0], counts[0, 1] = 100, 60
        return counts
    counts[:12, 0], counts[12:, 1] = 40, 25
    return counts


def parts(counts: np.ndarray, *, pieces: bool) -> dphist.Release:
    """A release of single columns, as one or by two places."""
    if not pieces:
        return dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=1, mechanism=SINGLE)
    places = dphist.Domain([*DOMAIN.attributes, dphist.Nominal("place", ["north", "south"])])
    both = np.stack([counts, counts[::-1]], axis=2)
    return dphist.publish(dphist.Histogram(places, both), epsilon=1, mechanism=SINGLE, partition_by="place")


@pytest.mark.parametrize("pieces", [False, True], ids=["whole", "in pieces"])
@pytest.mark.parametrize("kind", ["unrelated", "young women", "few men, all young"])
def test_ends_hold_whatever_was_not_measured(kind, pieces):
    """Eight draws; bounds hold more often than they say, so none of these groups should miss more than once."""
    counts = crossed(kind)
    both = counts + counts[::-1] if pieces else counts
    missed = np.zeros(4)
    for _ in range(8):
        cube = Cube(parts(counts, pieces=pieces)).by("sex")
        sums, means = cube.sum("age"), cube.mean("age")
        quantiles, shares = cube.quantiles("age", LEVELS), cube.cdf("age")
        cumulated = (np.cumsum(both, axis=0) / both.sum(axis=0)).T
        reached = np.array([[AGES[np.argmax(line >= level)] for level in LEVELS] for line in cumulated])
        truths = AGES @ both, AGES @ both / both.sum(axis=0), reached, cumulated
        for place, (table, truth) in enumerate(zip((sums, means, quantiles, shares), truths, strict=True)):
            assert table.method.startswith("bounds: ")
            assert np.all(table.guessed)
            assert (table.low <= table.value).all()
            assert (table.value <= table.high).all()
            wide = truth.reshape(-1)
            missed[place] += ((wide < table.low - 1e-9) | (wide > table.high + 1e-9)).any()
        # They say something: ages of the larger sex cannot be anything at all.
        assert (means.high - means.low).min() < AGES[-1] - AGES[0]
    assert (missed <= 1).all()


def test_what_was_measured_keeps_its_intervals_beside_what_was_not():
    release = parts(crossed("unrelated"), pieces=False)
    whole = Cube(release).mean("age")
    assert whole.guessed is None
    assert not whole.method.startswith("bounds")
    assert Cube(release).dice(sex=["F", "M"]).mean("age").guessed is None
