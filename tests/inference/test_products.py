"""Intervals of announced tables for which a product of single attributes stands: no wider than what the cube tells."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dphist.inference.tables.noise import TableNoise
from dphist.mechanisms.marginals import Marginals
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing import run

DOMAIN = Domain([Ordinal("a", range(14)), Ordinal("b", range(9)), Ordinal("c", range(3))])
PRODUCT = Marginals(
    tables=((0,), (1,), (2,), (0, 1, 2)),
    shares=(Fraction(3, 10), Fraction(3, 10), Fraction(1, 10), Fraction(3, 10)),
    estimator="chance",
)
PAIRS = Workload.marginals(DOMAIN, 2)


def _people(lean=0.0):
    draws = np.random.default_rng(8)
    one, two, three = (draws.dirichlet(np.full(n, 5.0)) for n in DOMAIN.shape)
    weights = one[:, None, None] * two[:, None] * three
    slope = np.linspace(-1, 1, 14)[:, None] * np.linspace(-1, 1, 9)
    return Histogram(DOMAIN, draws.poisson(60_000 * weights * (1.0 + lean * slope)[..., None]))


def _shrunk(people, seed):
    found = run(PRODUCT, people, Fraction(1, 10), seed=seed, workload=PAIRS)
    assert isinstance(found.errors, TableNoise)
    assert found.errors.shrunk is not None
    return found, found.errors.shrunk


@pytest.mark.parametrize(("lean", "most"), [(0.0, 0.8), (0.3, 0.9), (1.0, 1.0)])
def test_tables_near_a_product_have_narrower_intervals_that_hold(lean, most):
    people, held, parts = _people(lean), [], []
    truth = np.asarray(PAIRS.answer(people.counts), dtype=float)
    for seed in range(8):
        found, shrunk = _shrunk(people, seed)
        published = np.asarray(PAIRS.answer(found.counts), dtype=float)
        interval = found.errors.interval(PAIRS, published, 0.95)
        held.append(((interval.low <= truth) & (truth <= interval.high)).mean())
        plain = replace(shrunk, reconciled=True).squares(PAIRS.low, PAIRS.high)
        parts.append(np.sqrt(shrunk.squares(PAIRS.low, PAIRS.high) / plain).mean())
    assert np.mean(held) > 0.93
    assert np.mean(parts) < most
