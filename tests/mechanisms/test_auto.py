"""Auto: what it chooses, that it says so, that it spends what it says, and the comparison command."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.choosing.pilot import PilotAnswer, PilotQuery
from dphist.mechanisms.choosing.request import Request
from dphist.mechanisms.choosing.rule import first_look
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.tree import Tree
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.planning.compare import compare
from dphist.publishing.checking import verify_file
from dphist.publishing.door import publish
from dphist.testing import open_counts, run

LINE = Domain([Ordinal("x", range(200))])
CUBE = Domain([Ordinal("x", range(12)), Ordinal("y", range(10)), Ordinal("z", range(4))])


def _ranges(domain, length):
    low = np.zeros((50, len(domain.shape)), dtype=np.int64)
    return Workload(domain, low, np.minimum(low + length, domain.shape))


@pytest.mark.parametrize(
    ("workload", "chosen"),
    [
        (None, AdaptiveTree),
        (Workload.cells(LINE), Posterior),
        (Workload.prefixes(LINE), AdaptiveTree),
        (Workload.all_ranges(LINE), AdaptiveTree),
        (Workload.marginals(LINE), Posterior),
        (_ranges(LINE, 5), Posterior),
        (_ranges(LINE, 150), AdaptiveTree),
        (Workload.marginals(CUBE), Marginals),
        (Workload.marginals(CUBE, 2), Marginals),
        (Workload.marginals(CUBE, 3), Posterior),
        (Workload.cells(CUBE), Posterior),
        # Bounded on two attributes, so a table of these two is enough.
        (_ranges(CUBE, 9), Marginals),
        (None, Marginals),
    ],
)
def test_the_choice_follows_what_is_asked_and_is_explained(workload, chosen):
    domain = workload.domain if workload is not None else LINE if chosen is AdaptiveTree else CUBE
    counts = Histogram(domain, np.ones(domain.shape, dtype=np.int64))
    mechanism, reason = Auto().choose(open_counts(counts, 1, workload=workload))
    assert isinstance(mechanism, chosen)
    assert chosen.__name__.lower() in reason
    note = run(Auto(), counts, 1, seed=1, workload=workload).note
    # With a first look at hand the forecast is another one, and for single cells who measures.
    assert reason.split(",")[0].lower() in note.lower()
    assert note.endswith(".")


def test_a_kind_given_by_name_wins():
    counts = Histogram(LINE, np.ones(200, dtype=np.int64))
    right = open_counts(counts, 1, workload=Workload.cells(LINE))
    assert isinstance(Auto(workload="prefixes").choose(right)[0], AdaptiveTree)


def test_the_choice_sees_no_count():
    # Two very different data sets behind the same public facts get the same mechanism.
    for workload in (None, Workload.cells(LINE)):
        rights = [open_counts(Histogram(LINE, np.full(200, c)), 1, workload=workload) for c in (0, 10**6)]
        assert Auto().choose(rights[0]) == Auto().choose(rights[1])


def test_the_explanation_is_no_part_of_the_value():
    assert Auto(why="because") == Auto()


def test_compare_orders_by_error_and_reports_who_cannot():
    histogram = Histogram(LINE, np.arange(200) // 50 * 40)
    rows = compare(
        histogram, 1, Workload.cells(LINE), [Auto(), Laplace(), "uniform", "uniformgrid"], 2, seed=1
    )
    assert [row.error for row in rows] == sorted(row.error for row in rows)
    by_name = {row.name: row for row in rows}
    assert by_name["auto"].ratio == pytest.approx(1.0)
    assert by_name["laplace"].ratio > 1
    assert by_name["uniform"].ratio > 1
    assert all(row.seconds >= 0 for row in rows)
    assert all(np.isfinite(row.error) or row.why_not for row in rows)


def test_a_noisy_total_moves_the_budget_to_small_tables_where_records_are_few():
    right = open_counts(Histogram(CUBE, np.ones(CUBE.shape, dtype=np.int64)), 1)
    cube = {}
    for records in (100, 10**7):
        mechanism, reason = Auto().choose(right, PilotAnswer(records))
        assert isinstance(mechanism, Marginals)
        assert f"of about {records:,} records" in reason
        assert mechanism.tables is not None
        assert mechanism.shares is not None
        cube[records] = dict(zip(mechanism.tables, mechanism.shares, strict=True))[(0, 1, 2)]
    assert cube[100] < cube[10**7] / 2


def test_the_total_is_replayed_with_the_rest():
    release = publish(
        Histogram(CUBE, np.ones(CUBE.shape, dtype=np.int64)), epsilon=1, mechanism="auto", workload=None
    )
    assert " records in all. In detail" in release.note
    release.verify()


def test_tables_and_cells_of_a_cube_are_set_against_each_other_and_replayed():
    counts = np.where(np.indices(CUBE.shape).sum(axis=0) % 4 == 0, 90, 0)
    release = publish(Histogram(CUBE, counts), epsilon=1, mechanism="auto", workload=None)
    assert isinstance(release.mechanism, Auto)
    assert isinstance(release.mechanism.chosen, Marginals)
    assert release.mechanism.chosen.estimator == "weighed"
    release.verify()


@pytest.mark.parametrize(
    ("workload", "domain", "chosen"),
    [
        (None, LINE, Tree),
        (Workload.cells(LINE), LINE, Laplace),
        (Workload.prefixes(LINE), LINE, Tree),
        (_ranges(LINE, 5), LINE, Laplace),
        (_ranges(LINE, 150), LINE, Tree),
        (None, CUBE, Marginals),
        (Workload.marginals(CUBE, 2), CUBE, Marginals),
        (Workload.marginals(CUBE, 3), CUBE, Laplace),
        (_ranges(CUBE, 9), CUBE, Marginals),
    ],
)
def test_told_to_prefer_guarantees_it_takes_what_is_the_same_on_all_data(workload, domain, chosen):
    counts = Histogram(domain, np.ones(domain.shape, dtype=np.int64))
    mechanism, reason = Auto(guaranteed=True).choose(open_counts(counts, 1, workload=workload))
    assert type(mechanism) is chosen
    assert f"({chosen.__name__.lower()})" in reason
    release = publish(counts, epsilon=1, mechanism="auto(guaranteed=true)", workload=workload)
    assert release.note.startswith(reason)
    asked = workload if workload is not None else Workload.marginals(domain, 1)
    sure = release.answer(asked, interval="guaranteed")
    plain = release.answer(asked)
    assert sure.method.startswith("guaranteed: ")
    wide = np.median(sure.high - sure.low)
    assert wide <= 2.2 * np.median(plain.high - plain.low)


def test_an_announced_mixture_moves_the_budget_to_what_counts():
    cube = {}
    for text in ("9 cells + marginals:1", "cells + 9 marginals:1", "marginals:1 + marginals:2"):
        told = Workload.parse(CUBE, text)
        right = open_counts(Histogram(CUBE, np.ones(CUBE.shape, dtype=np.int64)), 1, workload=told)
        mechanism, reason = Auto().choose(right, PilotAnswer(10**5, 0.01))
        assert isinstance(mechanism, Marginals)
        assert mechanism.shares is not None
        cube[text] = dict(zip(mechanism.tables or (), mechanism.shares, strict=True)).get((0, 1, 2), 0)
    assert "count as 1 one-way tables + 1 two-way tables" in reason
    assert cube["9 cells + marginals:1"] > 1.5 * cube["cells + 9 marginals:1"] > 0
    assert cube["marginals:1 + marginals:2"] == 0
    for text, chosen in (("3 cells + ranges", Posterior), ("cells + 3 ranges", AdaptiveTree)):
        right = open_counts(
            Histogram(LINE, np.ones(200, dtype=np.int64)), 1, workload=Workload.parse(LINE, text)
        )
        assert isinstance(Auto().choose(right)[0], chosen)


def test_announced_cells_of_a_cube_are_its_one_table():
    ones = Histogram(CUBE, np.ones(CUBE.shape, dtype=np.int64))
    right = open_counts(ones, 1, workload=Workload.cells(CUBE))
    every = tuple(range(len(CUBE.shape)))
    # Sums of them suggest what single ones are.
    alone = Marginals(tables=(every,), shares=(Fraction(1),), estimator="weighed")
    assert Auto().choose(right, PilotAnswer(1e6 * CUBE.size, 0.1))[0] == alone


@pytest.mark.parametrize(
    "told", [None, Workload.cells(CUBE), Workload.marginals(CUBE, 1), Workload.random(CUBE, 50)]
)
def test_cells_of_a_cube_are_measured_where_whole_numbers_are_nearly_exact(told):
    draws = np.random.default_rng(3)
    people = Histogram(CUBE, draws.poisson(draws.gamma(0.3, 20.0, CUBE.shape)))
    right = open_counts(people, 10, workload=told)
    assert first_look(Auto()._request(right)) is None
    mechanism, why = Auto().choose(right)
    assert isinstance(mechanism, Laplace)
    assert "whole numbers" in why
    assert isinstance(Auto(guaranteed=True).choose(right)[0], Laplace)
    assert np.abs(run(Auto(), people, 10, seed=2, workload=told).counts - people.counts).max() <= 1.0
    assert (
        "whole numbers" not in Auto().choose(open_counts(people, 1, workload=told), PilotAnswer(1e4, 0.01))[1]
    )


def test_announced_cells_of_a_full_cube_are_nearer_than_each_by_itself():
    draws = np.random.default_rng(4)
    one, two, three = (draws.dirichlet(np.full(n, 2.0)) for n in (12, 6, 5))
    counts = draws.poisson(4000.0 * one[:, None, None] * two[:, None] * three)
    domain = Domain([Ordinal("a", range(12)), Nominal("b", list("pqrstu")), Nominal("c", list("vwxyz"))])
    people, told = Histogram(domain, counts), Workload.cells(domain)

    def off(mechanism):
        found = [run(mechanism, people, 1, seed=seed, workload=told).counts for seed in range(8)]
        return np.sqrt(np.mean([(each - counts) ** 2 for each in found]))

    # Same noise but for what a look costs, a thirtieth; 0.87 of the error when this was written.
    assert off(Auto()) < 0.95 * off(Posterior())


def test_a_mixture_of_a_space_is_planned_for_too():
    plane = Domain([Ordinal("x", range(64)), Ordinal("y", range(64))])
    right = open_counts(Histogram(plane, np.ones(plane.shape, dtype=np.int64)), 1)
    assert isinstance(Auto().choose(right, PilotAnswer(1e4))[0], AdaptiveTree)
    told = Workload.parse(plane, "3 marginals:1 + cells")
    right = open_counts(Histogram(plane, np.ones(plane.shape, dtype=np.int64)), 1, workload=told)
    assert isinstance(Auto().choose(right, PilotAnswer(1e4))[0], Marginals)


def test_a_release_for_a_mixture_can_be_checked(tmp_path):
    counts = Histogram(CUBE, np.ones(CUBE.shape, dtype=np.int64))
    release = publish(counts, epsilon=1, workload="9 cells + marginals:2")
    assert "count as 9 cells + 1 two-way tables" in release.note
    release.save(tmp_path / "mixed.parquet")
    again = verify_file(tmp_path / "mixed.parquet")
    assert again.workload == Workload.parse(CUBE, "9 cells + marginals:2")


def test_categories_without_an_order_are_measured_one_by_one():
    states = Domain([Nominal("state", [f"s{state}" for state in range(50)])])
    counts = np.random.default_rng(3).integers(0, 400, 50)
    found: Any = run(Auto(), Histogram(states, counts), 1, seed=1)
    assert isinstance(found.made_by.chosen, Posterior)
    assert found.made_by.look is None
    # A tree of blocks had 2.2 times the noise of a category that is measured with all of the budget.
    assert np.sqrt(np.mean((found.counts - counts) ** 2)) < 1.8
    grouped = Nominal(
        "place", {"north": ["a", "b", "c"], "south": ["d", "e", "f"], "west": ["g", "h", "i", "j"]}
    )
    assert "adaptivetree" in run(Auto(), Histogram(Domain([grouped]), counts[:10]), 1, seed=1).note


@pytest.mark.parametrize(("size", "records", "chosen"), [(100, 60_000, Posterior), (100, 100, AdaptiveTree)])
def test_a_short_line_is_its_cells_if_they_are_full(size, records, chosen):
    age = np.exp(-0.5 * ((np.arange(size) - 0.4 * size) / (0.2 * size)) ** 2)
    counts = np.rint(records * age / age.sum()).astype(np.int64)
    found: Any = run(Auto(), counts, 1, seed=1)
    assert found.made_by.look.total > 0
    assert isinstance(found.made_by.chosen, chosen)
    # Who is not short, or said what will be asked, or spends ρ, is not counted first.
    for told in (
        run(Auto(workload="prefixes"), counts, 1, seed=1),
        run(Auto(), counts, Budget.of(rho=1), seed=1),
    ):
        assert "adaptivetree" in told.note or "prefixsums" in told.note


def test_tables_and_cells_of_two_attributes_are_reconciled_too():
    table = Domain([Nominal("ward", [f"w{ward}" for ward in range(12)]), Ordinal("day", range(365))])
    counts = np.random.default_rng(6).poisson(3.0, table.shape)
    release = publish(Histogram(table, counts), epsilon=1)
    assert isinstance(release.mechanism, Auto)
    assert isinstance(release.mechanism.chosen, Marginals)
    assert release.mechanism.chosen.estimator == "weighed"
    release.verify()


@pytest.mark.parametrize("kind", [None, "cells", "ranges"])
def test_attributes_of_one_value_go_together_with_nothing(kind):
    domain = Domain([Ordinal("x", range(30)), Nominal("y", ["all"]), Nominal("z", ["every"])])
    release = publish(Histogram(domain, np.full((30, 1, 1), 5)), epsilon=1, workload=kind)
    assert "chance" not in release.note


def test_what_blocks_may_hide_is_not_independent_product():
    draws = np.random.default_rng(5)
    counts = draws.multinomial(20_000, draws.dirichlet(np.full(12, 0.3), 300).reshape(-1) / 300).reshape(
        300, 12
    )
    codes = Domain([Nominal("code", [str(v) for v in range(300)]), Ordinal("month", range(12))])
    long = Domain([Ordinal("x", range(48)), Ordinal("y", range(24)), Nominal("z", list("abcd"))])
    for histogram in (Histogram(codes, counts), Histogram(long, np.ones(long.shape, dtype=np.int64))):
        for workload in (None, Workload.cells(histogram.domain)):
            right = open_counts(histogram, "0.001", workload=workload)
            assert first_look(Request(right)) == PilotQuery(blocks=0)  # type: ignore[arg-type]
            assert "independent" not in Auto().choose(right, PilotAnswer(1e3, 0.0))[1]


@pytest.mark.parametrize(("rho", "chosen"), [(True, Privelet), (False, Tree)])
def test_for_narrow_guarantees_rectangles_under_rho_have_wavelets(rho, chosen):
    plane = Domain([Ordinal("x", range(128)), Ordinal("y", range(96))])
    counts = Histogram(plane, np.ones(plane.shape, dtype=np.int64))
    right = open_counts(
        counts, Budget.of(rho="1/2") if rho else 1, workload=Workload.random(plane, 400, seed=3)
    )
    mechanism, why = Auto(guaranteed=True).choose(right)
    assert isinstance(mechanism, chosen)
    assert f"({chosen.__name__.lower()})" in why
