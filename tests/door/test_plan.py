"""Forecasts against what then happens."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from dphist.errors import InputError, QueryError
from dphist.mechanisms.options import parse
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning import forecast as planning
from dphist.planning import populations
from dphist.testing import run

LINE = Domain([Ordinal("age", range(64))])


@pytest.mark.parametrize("mechanism", ["laplace", "privelet(plain=())", "tree(nonnegative=False)"])
def test_exact_forecasts_come_true(mechanism):
    forecast = planning.plan(LINE, 1, "prefixes", mechanisms=[mechanism])[0]
    assert forecast.basis.startswith("exact")
    workload = Workload.prefixes(LINE)
    counts = np.full(64, 500)
    truth = workload.answer(counts)
    runs = [
        np.mean(
            (workload.answer(run(parse(mechanism), counts, 1, seed=s, workload=workload).counts) - truth) ** 2
        )
        for s in range(300)
    ]
    # Prefixes of one run are correlated: a run's mean deviates by about its size, 300 runs by 6 %; seeds are fixed.
    assert math.sqrt(np.mean(runs)) == pytest.approx(forecast.error, rel=0.15)


def test_forecasts_are_sorted_and_repeat_themselves():
    names = ("laplace", "dpcube", "adaptivegrid", "quadtree")
    forecasts = planning.plan(LINE, 1, "ranges", mechanisms=names, runs=2)
    assert [f.error for f in forecasts] == sorted(f.error for f in forecasts)  # type: ignore[type-var]
    assert forecasts == planning.plan(LINE, 1, "ranges", mechanisms=names, runs=2)
    assert {f.mechanism for f in forecasts} == set(names)


@pytest.mark.parametrize("mechanism", ["laplace", "quadtree"])
def test_the_epsilon_needed_gives_the_error_wanted(mechanism):
    wanted = 12.0
    epsilon = planning.plan(LINE, 1, mechanisms=[mechanism], error=wanted)[0].epsilon_needed
    again = planning.plan(LINE, str(round(epsilon or 0.0, 6)), mechanisms=[mechanism])[0].error
    assert again == pytest.approx(wanted, rel=0.1)


def test_units_and_sizes_and_refusals():
    one = planning.plan(LINE, 1, "cells", mechanisms=["laplace"])[0].error
    three = planning.plan(LINE, 1, "cells", mechanisms=["laplace"], unit=Unit(rows=3))[0].error
    # Whole numbers are drawn: their variance is 1/(2·sinh²(1/2b)) for a scale b of 1 and of 3.
    assert one == pytest.approx(math.sqrt(0.5) / math.sinh(0.5))
    assert three == pytest.approx(math.sqrt(0.5) / math.sinh(1 / 6))
    huge = Domain([Ordinal("x", range(10**6)), Ordinal("y", range(10**6))])
    exact, refused = planning.plan(huge, 1, "ranges", mechanisms=["laplace", "dpcube"])
    assert exact.error is not None
    assert refused.error is None
    assert "too many" in refused.basis
    with pytest.raises(InputError, match="workload"):
        planning.plan(LINE, 1, "everything")
    with pytest.raises(InputError, match="error"):
        planning.plan(LINE, 1, error=0.0)


CUBE = Domain([Ordinal("age", range(16)), Nominal("job", list("abcd")), Nominal("sex", list("FM"))])


@pytest.mark.parametrize(("domain", "workload"), [(LINE, "ranges"), (CUBE, "marginals:2")])
def test_forecasts_come_true_on_data_like_the_populations(domain, workload, all_runs):
    """Every mechanism that `plan` prints: forecast over measured, with other noise, on each population and over all."""
    records = 5000
    for forecast in planning.plan(domain, 1, workload, records=records):
        if forecast.error is None:
            continue
        measured = {}
        hint, asked = populations.questions(domain, workload)
        mechanism = parse(forecast.mechanism)
        for number, (case, make) in enumerate(populations.POPULATIONS.items()):
            counts = Histogram(domain, make(domain.shape, records))
            truth = asked.answer(counts.counts)
            squares = []
            for seed in range(6):
                found = run(mechanism, counts, 1, seed=50_000 + 100 * number + seed, workload=hint).counts
                squares.append(np.mean((asked.answer(found.reshape(domain.shape)) - truth) ** 2))
            measured[case] = math.sqrt(np.mean(squares))
        typical = float(np.median([e for case, e in measured.items() if case != populations.LIMIT]))
        assert 0.8 <= forecast.error / typical <= 1.25, (forecast, measured)
        for case, error in forecast.cases:
            assert 0.5 <= error / measured[case] <= 2.0, (forecast.mechanism, case)
            assert forecast.best is not None
            assert forecast.worst is not None
            assert forecast.best <= measured[case] <= forecast.worst


def test_only_what_is_exact_as_published_is_called_exact():
    names = ["laplace", "privelet", "tree(nonnegative=False)", "auto(guaranteed=True)"]
    assert all(f.basis.startswith("exact") for f in planning.plan(LINE, 1, mechanisms=names))
    names = ["tree", "privelet(threshold=True)", "marginals", "auto"]
    for forecast in planning.plan(LINE, 1, mechanisms=names, runs=2):
        assert forecast.basis.startswith("simulated")
        assert None not in (forecast.best, forecast.error, forecast.worst)
        assert forecast.best <= forecast.error <= forecast.worst  # type: ignore[operator]  # none is None
        assert dict(forecast.cases).keys() == populations.POPULATIONS.keys()


def test_a_figure_is_shown_where_populations_agree_and_a_range_elsewhere():
    cases = (("even", 1.0), ("one hump", 9.0), ("falling", 11.0))
    near = planning.Forecast("tree", 10.0, 0.8, "simulated", worst=14.0, cases=cases)
    assert near.agreed
    assert near.shown == "10 (0.8 to 14)"
    far = planning.Forecast("tree", 10.0, 0.8, "simulated", worst=80.0, cases=(*cases, ("uneven", 64.0)))
    assert not far.agreed
    assert far.shown == "0.8 to 80"
    assert planning.Forecast("laplace", 1.36, 1.36, "exact").shown == "1.36"
    assert planning.Forecast("laplace", 21_623.0, 21_623.0, "exact").shown == "21,600"
    assert planning.Forecast("laplace", None, None, "too many").said == "not known: too many"
    assert planning.Forecast("residuals", 8.97, None, "exact", worst=8.97).shown == "at most 8.97"


def test_the_planner_knows_what_auto_chooses():
    told = planning.plan(CUBE, 1, "ranges", mechanisms=["auto"], runs=1)[0]
    silent = planning.plan(CUBE, 1, "ranges", mechanisms=["auto"], runs=1, announced=False)[0]
    assert "ranges over many counts will be asked for, so " in told.basis
    assert "(marginals): blocks of all sizes would be" in told.basis
    assert "nobody said what will be asked, and single counts, tables and ranges all matter" in silent.basis


def test_tables_of_several_attributes():
    one, two, three = (
        planning.plan(CUBE, 1, f"marginals:{order}", mechanisms=["laplace"])[0].error or 0.0
        for order in (1, 2, 3)
    )
    assert one > two > three
    assert three == pytest.approx(planning.plan(CUBE, 1, "cells", mechanisms=["laplace"])[0].error)
    for wrong in ("marginals:4", "marginals:0", "marginals:x", "marginals:²"):
        with pytest.raises(InputError, match="workload"):
            planning.plan(CUBE, 1, wrong)


def test_command(tmp_path):
    from dphist.cli.commands import app

    schema = tmp_path / "schema.toml"
    schema.write_text(LINE.to_toml())
    options = ["plan", "--schema", str(schema), "--mechanism", "laplace", "--mechanism", "privelet"]
    shown = CliRunner().invoke(app, [*options, "--error", "20"])
    assert shown.exit_code == 0
    assert "laplace" in shown.stdout
    assert "no data were read" in shown.stdout
    told = json.loads(CliRunner().invoke(app, [*options, "--json"]).stdout)
    assert {f["mechanism"] for f in told} == {"laplace", "privelet"}
    assert all(f["error"] > 0 for f in told)


def test_forecasts_go_by_the_whole_numbers_that_are_drawn():
    """Noise of one draw, of a tree's and of Gaussian draws has the variance of its probabilities, summed up."""
    for epsilon in ("1/3", "1", "3"):
        error = planning.plan(LINE, epsilon, "cells", mechanisms=["laplace"])[0].error
        chances = np.exp(-np.abs(np.arange(-400, 401)) * float(Fraction(epsilon)))
        variance = float((np.arange(-400, 401) ** 2 * chances).sum() / chances.sum())
        assert error == pytest.approx(math.sqrt(variance), rel=1e-9)
    error = planning.plan(LINE, rho=2, workload="cells", mechanisms=["gaussian"])[0].error
    chances = np.exp(-(np.arange(-20, 21) ** 2) * 2.0)
    assert error == pytest.approx(
        math.sqrt(float((np.arange(-20, 21) ** 2 * chances).sum() / chances.sum())), rel=1e-6
    )
    # A tree's draws at an ε of 6, far from continuous, of two sizes.
    found = planning.plan(LINE, 6, "cells", mechanisms=["tree(nonnegative=false)"], announced=False)[0]
    assert found.basis.startswith("exact")
    histogram = Histogram(LINE, np.full(LINE.shape, 50, dtype=np.int64))
    off = [run(parse("tree(nonnegative=false)"), histogram, 6, seed=seed).counts - 50 for seed in range(60)]
    assert found.error == pytest.approx(float(np.sqrt(np.mean(np.square(off)))), rel=0.1)


def test_every_range_of_a_workload_is_forecast_by_some_of_them():
    from dphist.planning.populations import questions

    domain = Domain([Ordinal("age", range(100)), Ordinal("hour", range(24))])
    every = Workload.parse(domain, "ranges")
    told, asked = questions(domain, every)
    assert told is every
    assert len(asked) < 5_000 < len(every)


@pytest.mark.parametrize("budget", [Budget.of(1), Budget.of(rho="1/200")], ids=["epsilon", "rho"])
def test_what_wide_tables_need_is_found_by_the_model_that_publishes_them(budget):
    """By least squares, which asks for up to two and a half times as much, the error would be far below the wanted."""
    wide = Domain([Nominal(f"c{i}", ["a", "b", "c", "d"]) for i in range(24)])
    wanted = 50.0
    first = planning.plan(wide, budget, "marginals:2", mechanisms=["auto"], records=10_000, error=wanted)[0]
    assert first.cases  # a model is fitted
    spent = Budget.of(first.epsilon_needed) if budget.pure else Budget.of(rho=first.epsilon_needed)
    again = planning.plan(wide, spent, "marginals:2", mechanisms=["auto"], records=10_000)[0]
    assert again.error == pytest.approx(wanted, rel=0.03)


def test_what_is_astronomically_many_is_forecast_or_refused_by_name():
    line = Domain([Ordinal("x", range(10**18))])
    for workload in ("cells", "prefixes"):
        plain, tree = planning.plan(line, 1, workload, mechanisms=["laplace", "tree"])
        assert plain.error is not None
        assert tree.error is None
    with pytest.raises(QueryError, match=r"x has 1,0.* values.*bins"):
        planning.plan(line, 1, "ranges", mechanisms=["laplace"])
