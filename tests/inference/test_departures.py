"""What shrinking leaves to doubt: sums over boxes by brute force, and intervals that hold with less width."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.shrunk import Departures, TableNoise
from dphist.mechanisms import Marginals
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing import run

SHAPE = (24, 5, 4, 3)
DOMAIN = Domain([Ordinal("x", range(24)), *(Nominal(f"n{n}", [str(v) for v in range(n)]) for n in (5, 4, 3))])


def _mechanism():
    tables = (*itertools.combinations(range(4), 2), (0, 1, 2, 3))
    return Marginals(tables=tables, shares=(Fraction(1, 7),) * 7, estimator="weighed")


def _people(depends: bool) -> Histogram:
    draw = np.random.default_rng(5)
    lines = [draw.dirichlet(np.full(n, 2.0)) for n in SHAPE]
    weights = np.einsum("a,b,c,d->abcd", *lines)
    if depends:
        # What no table of two shows: three attributes go together by their parity.
        a, b, c, _ = np.indices(SHAPE)
        weights = weights * np.where((a + b + c) % 2 == 0, 1.9, 0.1)
    return Histogram(DOMAIN, draw.multinomial(20_000, (weights / weights.sum()).reshape(-1)).reshape(SHAPE))


def test_a_level_of_single_cells_is_summed_beyond_the_smaller_tables():
    variances = np.random.default_rng(1).random((3, 4, 2))
    departures = Departures.of([variances])
    low, high = np.array([[0, 1, 0], [1, 0, 1]]), np.array([[2, 3, 1], [2, 4, 2]])
    found = departures.variances(low, high, 1)
    for box in range(2):
        here = tuple(slice(a, b) for a, b in zip(low[box], high[box], strict=True))
        # The part of a box that tables of one attribute hold is that of its own indicator.
        indicator = np.zeros((3, 4, 2))
        indicator[here] = 1.0
        smaller = indicator.mean() ** 2 * indicator.size
        for axis in range(3):
            others = tuple(a for a in range(3) if a != axis)
            line = indicator.mean(axis=others) - indicator.mean()
            smaller += float((line**2).sum()) * indicator.size / line.size
        beyond = 1.0 - smaller / indicator.sum()
        assert found[box] == pytest.approx(variances[here].sum() * beyond)


@pytest.mark.parametrize("depends", [False, True])
def test_boxes_hold_with_less_than_the_width_of_least_squares(depends):
    people = _people(depends)
    boxes = Workload.random(DOMAIN, 300, seed=4)
    truth = boxes.answer(people.counts)
    held, width, plain = [], [], []
    for seed in range(6):
        estimate: Any = run(_mechanism(), people, "0.3", seed=seed)
        published = estimate.errors.answer(boxes, np.asarray(boxes.answer(estimate.counts), dtype=np.float64))
        found = estimate.errors.interval(boxes, published, 0.95)
        exact = ResidualNoise.interval(estimate.errors, boxes, published, 0.95)
        held.append(float(np.mean((found.low <= truth) & (truth <= found.high))))
        width.append(float(np.mean(found.high - found.low)))
        plain.append(float(np.mean(exact.high - exact.low)))
    assert np.mean(held) >= 0.93
    assert np.mean(width) < (1.0 if depends else 0.75) * np.mean(plain)


def test_what_must_hold_for_any_data_stands_on_least_squares():
    people = _people(False)
    boxes = Workload.random(DOMAIN, 20, seed=4)
    errors: Any = run(_mechanism(), people, 1, seed=1).errors
    published = np.asarray(boxes.answer(people.counts), dtype=np.float64)
    kinds: list[dict[str, Any]] = [{"guaranteed": True}, {"simultaneous": True}]
    for options in kinds:
        found = errors.interval(boxes, published, 0.95, **options)
        exact = ResidualNoise.interval(errors, boxes, published, 0.95, **options)
        assert found.low.tolist() == exact.low.tolist()
        assert found.high.tolist() == exact.high.tolist()
    assert errors.words.short.startswith("calibrated")


def test_least_squares_does_not_answer_where_it_has_more_noise_than_there_are_records():
    domain = Domain([Ordinal(name, range(n)) for name, n in zip("xyz", (16, 16, 8), strict=True)])
    histogram = Histogram(domain, np.ones(domain.shape, dtype=np.int64))
    shares = Fraction(32, 100), Fraction(32, 100), Fraction(30, 100), Fraction(6, 100)
    product = Marginals(tables=((0,), (1,), (2,), (0, 1, 2)), shares=shares, estimator="weighed")
    boxes = Workload.random(domain, 200, seed=1)
    released = run(product, histogram, 0.1, seed=56)
    assert isinstance(released.errors, TableNoise)
    # A file may say that sums of all sizes are biased; the cube's own are off by thousands.
    errors = replace(released.errors, biased=np.ones_like(released.errors.biased))
    summed = np.asarray(boxes.answer(released.counts), dtype=np.float64)
    answers = errors.answer(boxes, summed)
    assert answers.max() < released.counts.sum() < 2_100
    assert np.sqrt(np.mean((answers - boxes.answer(histogram.counts)) ** 2)) < 20.0
    held = errors.interval(boxes, answers, 0.95)
    truth = boxes.answer(histogram.counts)
    assert np.mean((held.low <= truth) & (truth <= held.high)) > 0.93
    # A question of two boxes has two bounds.
    whole = Workload(
        domain, np.zeros((2, 3), dtype=np.int64), np.array([domain.shape] * 2), query=np.zeros(2, int)
    )
    assert errors._most(whole).tolist() == pytest.approx([2.0 * released.counts.sum()])
