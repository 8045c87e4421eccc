"""Forecasts of candidates: closed forms that agree with what mechanisms say of themselves, and plans that are best."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.marginals import Marginals
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.testing import run

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
    assert np.sqrt(fitted.errors.variance(workload).mean()) == pytest.approx(plan.score, rel=1e-6)


def test_the_forecast_of_cells_is_that_of_plain_noise():
    workload = Workload.random(CUBE, 60, seed=2)
    mean = workload.cells_in_each.mean()
    assert _forecaster(workload).cells() == pytest.approx(np.sqrt(LAW.drawn_variance * mean))


def test_forecasts_know_that_whole_numbers_are_drawn():
    workload = Workload.marginals(CUBE, 1)
    continuous, whole = (
        _forecaster(workload, law=NoiseLaw("laplace", size)) for size in (Fraction(1000), Fraction(1, 10))
    )

    def parts(forecaster):
        found = forecaster.cells(), forecaster.tree(), forecaster.tables().score
        return np.array(found) / float(forecaster.law.deviation)

    # At ε = 10 hardly a cell has noise, while tables share the budget.
    for forecaster, better in ((continuous, False), (whole, True)):
        cells, _, tables = parts(forecaster)
        assert bool(cells < tables) is better
    assert (parts(whole) < parts(continuous)).all()
