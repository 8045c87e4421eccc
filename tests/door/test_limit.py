"""The limit of unbiased linear answers: against matrices, and below every forecast."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from dphist import Domain, Histogram, Nominal, Ordinal, Unit, Workload, planning
from dphist.cli.commands import app
from dphist.errors import InputError, NotPrivate
from dphist.mechanisms.options import parse
from dphist.model.budget import Budget
from dphist.model.conversion import rho_of_epsilon
from dphist.testing import open_counts

LINE = Domain([Ordinal("x", range(16))])
PLANE = Domain([Ordinal("x", range(6)), Ordinal("y", range(4))])
CUBE = Domain([Ordinal("x", range(4)), Nominal("y", ["a", "b", "c"]), Ordinal("z", range(2))])
WORKLOADS = {
    "cells": lambda domain: Workload.cells(domain),
    "prefixes": lambda domain: Workload.prefixes(domain),
    "all ranges": lambda domain: Workload.all_ranges(domain),
    "pairs": lambda domain: Workload.marginals(domain, min(2, len(domain.shape))),
    "single attributes": lambda domain: Workload.marginals(domain, 1),
}
UNITS = (
    Unit(),
    Unit(rows=3),
    Unit(replace=True),
    Unit(cells=2, per_cell=2),
    Unit(cells=2, replace=True),
)
LINEAR = (
    "laplace",
    "gaussian",
    "prefixsums",
    "privelet",
    "tree(nonnegative=false)",
    "tree(fanout=4, nonnegative=false)",
    "marginals(nonnegative=false)",
)


def matrix_of(workload: Workload) -> np.ndarray:
    """The questions as rows over cells."""
    matrix = np.zeros((workload.size, *workload.domain.shape))
    for question, low, high in zip(matrix, workload.low, workload.high, strict=True):
        question[tuple(map(slice, low, high))] = 1.0
    return matrix.reshape(workload.size, -1)


@pytest.mark.parametrize("domain", [LINE, PLANE, CUBE], ids=["line", "plane", "cube"])
@pytest.mark.parametrize("kind", ["cells", "prefixes", "all ranges", "pairs", "single attributes"])
def test_known_singular_values_are_those_of_the_matrix(domain: Domain, kind: str) -> None:
    workload = WORKLOADS[kind](domain)
    values = np.linalg.svd(matrix_of(workload), compute_uv=False)
    found = planning.limit(workload, rho="1/2")
    assert found == pytest.approx(values.sum() / np.sqrt(domain.size * len(workload)))


def test_figures_of_the_literature() -> None:
    line = Domain([Ordinal("x", range(4096))])
    assert planning.limit(Workload.prefixes(line), rho="1/2") == pytest.approx(3.35, abs=0.005)
    assert planning.limit(Workload.cells(line), 1) == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("domain", [LINE, CUBE], ids=["line", "cube"])
@pytest.mark.parametrize("unit", [UNITS[0], UNITS[-1]], ids=str)
def test_no_linear_mechanism_has_an_error_below(domain: Domain, unit: Unit) -> None:
    nobody = Histogram(domain, np.zeros(domain.shape, dtype=np.int64))
    compared = 0
    for budget in (Budget.of(1), Budget.of(rho="1/3"), Budget.of(1, delta="1e-9")):
        for make in WORKLOADS.values():
            workload = make(domain)
            least = planning.limit(workload, budget, unit=unit)
            assert least is not None
            for text in LINEAR:
                right = open_counts(nobody, budget, seed=1, unit=unit, workload=workload)
                try:
                    variance = parse(text).estimate(right).errors.variance(workload)
                except NotPrivate:
                    continue
                if np.isfinite(variance).all():
                    assert np.sqrt(variance.mean()) >= least * (1 - 1e-9), (text, workload, budget)
                    compared += 1
    assert compared > 80


def test_an_epsilon_with_a_delta_has_the_less_of_both_limits() -> None:
    """Either keeps the promise: the ρ that it buys, and the pure ε."""
    for epsilon, delta in ((1, "1e-9"), ("1/10", "1/2"), (10, "1e-6")):
        budget = Budget.of(epsilon, delta=delta)
        for make in WORKLOADS.values():
            pure, rho = (planning.limit(make(LINE), each) for each in (epsilon, Budget.of(rho=budget.amount)))
            assert pure is not None
            assert rho is not None
            assert planning.limit(make(LINE), budget) == pytest.approx(min(pure, rho))
    assert planning.limit(Workload.cells(LINE), 1, delta="1e-9") == planning.limit(Workload.cells(LINE), 1)
    easy, pure = (planning.limit(Workload.cells(LINE), "1/10", delta=delta) for delta in ("1/2", None))
    assert easy is not None
    assert pure is not None
    assert easy < 0.2 * pure


def test_questions_that_follow_no_rule_have_no_limit() -> None:
    domain = Domain([Ordinal("x", range(2000))])
    assert planning.limit(Workload.random(domain, 50), 1) is None
    assert planning.limit(Workload(domain, np.zeros((0, 1), int), np.zeros((0, 1), int)), 1) is None


def test_a_domain_that_nobody_can_write_out_has_its_limit() -> None:
    wide = Domain([Ordinal(f"a{i}", range(10)) for i in range(400)])
    # Two tables share nothing but their total: √(1/100 + 1/100) for it and √(1/100) for each of 2 · 99 contrasts.
    found = planning.limit(Workload.marginals(wide, [["a0", "a7"], ["a3", "a9"]]), "1/10")
    assert found == pytest.approx((0.02**0.5 + 198 * 0.1) * (2**0.5 / 0.1) / 200**0.5)


def test_three_currencies_side_by_side() -> None:
    names = ["laplace", "gaussian", "prefixsums"]
    quotes = planning.currencies(LINE, 1, "prefixes", mechanisms=names)
    assert [quote.label for quote in quotes] == ["ε = 1", "(1, 1e-09)", "ρ = 0.462"]
    assert quotes[2].budget.amount == rho_of_epsilon(quotes[0].budget.amount)
    for quote in quotes:
        errors = {each.mechanism: each.error for each in quote.forecasts}
        assert set(errors) == set(names)
        assert (errors["gaussian"] is None) == quote.budget.pure
        assert quote.limit is not None
        assert min(e for e in errors.values() if e is not None) >= quote.limit
        assert all(each.limit == quote.limit for each in quote.forecasts)


def test_a_plan_under_rho_finds_the_rho_that_is_needed() -> None:
    (found,) = planning.plan(LINE, rho="1/2", workload="cells", mechanisms=["gaussian"], error=0.5)
    assert found.error == pytest.approx(1.0)
    (again,) = planning.plan(LINE, rho=str(found.epsilon_needed), workload="cells", mechanisms=["gaussian"])
    assert again.error == pytest.approx(0.5)
    with pytest.raises(InputError):
        planning.plan(LINE, 1, "cells", rho=1)


def test_the_command_shows_them(tmp_path) -> None:
    schema = tmp_path / "schema.toml"
    schema.write_text('[[attribute]]\nname = "x"\nkind = "ordinal"\nrange = [0, 16]\n')
    given = ["plan", "--schema", str(schema), "--workload", "prefixes", "--mechanism", "prefixsums"]
    shown = CliRunner().invoke(app, [*given, "--mechanism", "gaussian", "--delta", "1e-6"])
    assert shown.exit_code == 0, shown.output
    assert "(1, 1e-06)" in shown.output
    assert "ρ = 0.462" in shown.output
    assert "limit of unbiased linear answers: ε = 1:" in shown.output
    told = json.loads(CliRunner().invoke(app, [*given, "--epsilon", "1", "--rho", "1/2", "--json"]).output)
    assert set(told) == {"ε = 1", "(1, 1e-09)", "ρ = 0.5"}
    one = told["ρ = 0.5"]
    assert one["limit"] == pytest.approx(planning.limit(Workload.prefixes(LINE), rho="1/2"))
    assert one["limit"] <= one["forecasts"][0]["error"]
    alone = CliRunner().invoke(app, [*given, "--rho", "1/2"])
    assert alone.exit_code == 0, alone.output
    assert "--delta" not in alone.output
