"""What `dphist bench run publicfuzz` found once: each is refused by name now."""

import pytest

import dphist
from dphist.mechanisms import QuadTree, Tree
from dphist.planning import limit
from dphist.uses.classify import ReleaseID3

LINE = dphist.Domain([dphist.Ordinal("x", range(8))])
FOUND = {
    "a tree wider than memory": lambda: Tree(fanout=4_093_989_736),
    "a tree deeper than floats reach": lambda: QuadTree(height=4157),
    "an epsilon below every float": lambda: limit(dphist.Workload.cells(LINE), "1e-400"),
    "an epsilon above every float": lambda: limit(dphist.Workload.cells(LINE), 10**400),
    "a guess before anything was learned": lambda: ReleaseID3("x").predict({"x": [1]}),
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
