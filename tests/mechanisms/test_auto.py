"""Auto: what it chooses, that it says so, that it spends what it says, and the comparison command."""

from typing import Any

import numpy as np
import pytest

from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.choosing.pilot import PilotAnswer
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.tree import Tree
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.publishing.checking import verify_file
from dphist.publishing.door import publish
from dphist.testing import open_counts, run

LINE = Domain([Ordinal("x", range(200))])
CUBE = Domain([Ordinal("x", range(12)), Ordinal("y", range(10)), Ordinal("z", range(4))])


def _ranges(domain, length):
    low = np.zeros((50, len(domain.shape)), dtype=np.int64)
    return Workload(domain, low, np.minimum(low + length, domain.shape))


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
    assert "with the weights 1 × tables of one attribute + 1 × tables of two attributes" in reason
    assert cube["9 cells + marginals:1"] > 1.5 * cube["cells + 9 marginals:1"] > 0
    assert cube["marginals:1 + marginals:2"] == 0
    for text, chosen in (("3 cells + ranges", Posterior), ("cells + 3 ranges", AdaptiveTree)):
        right = open_counts(
            Histogram(LINE, np.ones(200, dtype=np.int64)), 1, workload=Workload.parse(LINE, text)
        )
        assert isinstance(Auto().choose(right)[0], chosen)


def test_a_release_for_a_mixture_can_be_checked(tmp_path):
    counts = Histogram(CUBE, np.ones(CUBE.shape, dtype=np.int64))
    release = publish(counts, epsilon=1, workload="9 cells + marginals:2")
    assert "with the weights 9 × single counts + 1 × tables of two attributes" in release.note
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


@pytest.mark.parametrize("kind", [None, "cells", "ranges"])
def test_attributes_of_one_value_go_together_with_nothing(kind):
    domain = Domain([Ordinal("x", range(30)), Nominal("y", ["all"]), Nominal("z", ["every"])])
    release = publish(Histogram(domain, np.full((30, 1, 1), 5)), epsilon=1, workload=kind)
    assert "chance" not in release.note
