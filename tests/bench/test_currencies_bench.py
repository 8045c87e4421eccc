"""Errors by currency: the short form runs, and its figures are those of the laws."""

import math
from typing import Any

import pytest

from dphist import Domain, Ordinal, Workload
from dphist.mechanisms import Gaussian, Laplace
from dphist.planning import limit
from dphist_bench.measurements.accuracy.currencies import BUDGETS, error, measure


def test_the_short_form_runs():
    made: list[Any] = list(measure(quick=True))
    rows = {row["questions"]: row for row in made}
    assert set(rows) == {"cells", "prefixes", "rectangles", "all pairs of 8 attributes"}
    assert "Laplace" in rows["cells"]["ε = 1"]
    assert "Gaussian" in rows["cells"]["ρ = 1/2"]
    pairs = rows["all pairs of 8 attributes"]
    assert float(pairs["ρ = 1/2"].split()[0]) < float(pairs["ε = 1"].split()[0]) / 3


def test_errors_are_those_of_the_laws():
    asked = Workload.cells(Domain([Ordinal("x", range(4))]))
    assert error(Laplace(), asked, BUDGETS["ε = 1"]) == pytest.approx(math.sqrt(2))
    assert error(Gaussian(), asked, BUDGETS["ρ = 1/2"]) == pytest.approx(1.0)
    assert error(Gaussian(), asked, BUDGETS["ε = 1"]) == math.inf
    prefixes = Workload.prefixes(Domain([Ordinal("x", range(4096))]))
    assert limit(prefixes, BUDGETS["ρ = 1/2"]) == pytest.approx(3.35, abs=0.01)
