"""Several dimensions: trees of boxes, marginals, and what their intervals say."""

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.inference.intervals import half_widths
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.mechanisms.marginals import Marginals, tables_of
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import check_mechanism, run


def _plane(records, seed=1, side=64):
    generator = np.random.default_rng(seed)
    weights = np.zeros((side, side))
    for _ in range(6):
        x, y = generator.random(2) * side
        i, j = np.mgrid[:side, :side]
        weights += np.exp(-((i - x) ** 2 + (j - y) ** 2) / (2 * generator.uniform(1, 6) ** 2))
    return generator.multinomial(records, (weights / weights.sum()).ravel()).reshape(side, side)


def _domain(shape):
    return Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(shape)])


@pytest.mark.parametrize(("records", "share"), [(2_000, 0.7), (200_000, 0.9)])
def test_rectangles_beat_both_extremes(records, share):
    # Fixed noise: the same every time.
    counts = _plane(records)
    workload = Workload.random(_domain(counts.shape), 500, seed=2)
    errors = {}
    for mechanism in (AdaptiveTree(), Laplace(), Uniform()):
        squares = [
            np.mean(workload.answer(run(mechanism, counts, "0.1", seed=s).counts - counts) ** 2)
            for s in range(3)
        ]
        errors[type(mechanism).__name__] = np.sqrt(np.mean(squares))
    assert errors["AdaptiveTree"] < share * min(errors["Laplace"], errors["Uniform"])


def test_boxes_have_intervals():
    counts = _plane(200_000)
    estimate = run(AdaptiveTree(), counts, 1, seed=3)
    workload = Workload.random(_domain(counts.shape), 300, seed=4)
    spread = estimate.errors.spread(workload)
    assert np.isfinite(spread.variance).all()
    hits = np.abs(workload.answer(estimate.counts - counts)) <= half_widths(spread, 0.95)
    assert hits.mean() > 0.85


def test_marginals_conform():
    check_mechanism(Marginals(), bias="only single attributes are measured, not how they go together")


def test_marginals_are_measured_directly():
    counts = _plane(50_000)
    workload = Workload.marginals(_domain(counts.shape))
    assert sorted(tables_of(workload)) == [(0,), (1,)]
    mine = run(Marginals(), counts, "0.1", seed=1).counts
    plain = run(Laplace(), counts, "0.1", seed=1).counts
    error = [np.sqrt(np.mean(workload.answer(c - counts) ** 2)) for c in (mine, plain)]
    assert error[0] < 0.4 * error[1]


def test_tables_that_overlap_agree():
    counts = np.random.default_rng(9).poisson(40, (6, 5, 4))
    mechanism = Marginals(tables=((0, 1), (1, 2), (1,)))
    estimate = run(mechanism, counts, 100, seed=1).counts
    for axis in (2, 0):
        assert np.allclose(estimate.sum(axis=axis), counts.sum(axis=axis), atol=1)


def test_a_peak_keeps_its_marginal():
    # Moving tables to a common total must not put the difference on the largest cell.
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[3, 5] = 10**7
    estimate = run(Marginals(), counts, "0.1", seed=2).counts
    assert abs(estimate.sum(axis=0)[5] - 10**7) < 300


def test_marginal_intervals_cover_and_say_what_they_do_not_know():
    counts = _plane(50_000)
    estimate = run(Marginals(), counts, 1, seed=3)
    workload = Workload.marginals(_domain(counts.shape))
    widths = half_widths(estimate.errors.spread(workload), 0.95)
    assert np.mean(np.abs(workload.answer(estimate.counts - counts)) <= widths) > 0.9
    cells = Workload.cells(_domain(counts.shape))[:10]
    assert (half_widths(estimate.errors.spread(cells), 0.95) > counts.sum()).all()


def test_tables_outside_the_domain_are_refused():
    with pytest.raises(MechanismError, match="tables"):
        run(Marginals(tables=((0,), (3,))), np.ones((2, 2), dtype=np.int64), 1)
