"""What a campaign over everything public found once (`bench/results/campaigns.md`): each is refused by name now."""

from fractions import Fraction

import pandas
import pytest

import dphist
from dphist.mechanisms import QuadTree, Tree
from dphist.model.budget import Budget
from dphist.planning import compare, currencies, limit
from dphist.uses.classify import ReleaseID3

LINE = dphist.Domain([dphist.Ordinal("x", range(8))])
CUBE = dphist.Domain([dphist.Ordinal(name, range(8)) for name in "xyz"])
COUNTS = dphist.Histogram(LINE, range(8))
FOUND = {
    "a tree wider than memory": lambda: Tree(fanout=4_093_989_736),
    "a tree deeper than floats reach": lambda: QuadTree(height=4157),
    "an epsilon below every float": lambda: limit(dphist.Workload.cells(LINE), "1e-400"),
    "an epsilon above every float": lambda: limit(dphist.Workload.cells(LINE), 10**400),
    "an epsilon and a delta above every float": lambda: Budget.of(10**400, delta="1e-9"),
    "a release at an epsilon above every float": lambda: dphist.publish(COUNTS, epsilon=10**310),
    "a release at an epsilon below every float": lambda: dphist.publish(COUNTS, epsilon=Fraction(1, 10**310)),
    "cells above a threshold at such an epsilon": lambda: dphist.publish(
        COUNTS, epsilon=10**310, mechanism="sparselaplace"
    ),
    "a guess before anything was learned": lambda: ReleaseID3("x").predict({"x": [1]}),
    "a frame without columns": lambda: dphist.rehearse(pandas.DataFrame(index=range(3)), LINE),
    "a release of a frame without columns": lambda: dphist.publish(pandas.DataFrame(), LINE, epsilon=1),
    "ranges beyond memory": lambda: dphist.Workload.random(CUBE, 10**8),
    "no trials": lambda: compare(COUNTS, 1, dphist.Workload.cells(LINE), ["laplace"], trials=0),
    "a sample of nothing": lambda: compare(COUNTS, 1, dphist.Workload.cells(LINE), ["laplace"], most=0),
    "numbers for mechanisms": lambda: compare(COUNTS, 1, dphist.Workload.cells(LINE), range(3)),  # type: ignore[arg-type]
    "questions about another domain": lambda: currencies(LINE, 1, dphist.Workload.marginals(CUBE, 2)),
    "no questions": lambda: compare(COUNTS, 1, dphist.Workload.random(LINE, 0), ["laplace"]),
    "a score before anything was learned": lambda: ReleaseID3("x").score({"x": [1]}, [1]),
}


@pytest.mark.parametrize("ask", FOUND.values(), ids=FOUND)
def test_found(ask):
    with pytest.raises(dphist.errors.DphistError):
        ask()


def test_a_backup_whose_name_is_too_long(tmp_path):
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        with pytest.raises(dphist.errors.OutputError):
            book.backup(tmp_path / ("9" * 400))
