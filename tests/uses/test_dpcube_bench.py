"""The experiments run, and print what they are for."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.bench import cubes, paper001, people
from dphist.domain import Domain, Ordinal


def test_the_papers_figures_are_regenerated(capsys):
    assert paper001.main(["--quick", "--figures", "9,11,14,17,18"]) == 0
    shown = capsys.readouterr().out
    assert "made-up" in shown
    for figure in ("Fig. 9", "Fig. 11(b)", "Fig. 14(a)", "Fig. 17", "Fig. 18(b)"):
        assert figure in shown


def test_growth_is_measured(capsys):
    assert cubes.growth(1_000) == 0
    assert "µs/cell" in capsys.readouterr().out


def test_coverage_is_measured(capsys):
    assert cubes.main(["--coverage", "--quick"]) == 0
    assert "hold the truth" in capsys.readouterr().out


def test_errors_are_measured_on_the_sets_that_are_there(tmp_path, capsys):
    assert cubes.main(["--data", str(tmp_path), "--quick"]) == 0
    assert "is not in" in capsys.readouterr().out
    (tmp_path / "plane.csv").write_text("row,col,count\n0,9,4\n255,255,1\n")
    assert cubes.read(tmp_path / "plane.csv").sum() == 5


@pytest.mark.parametrize("largest", [None, 1, 40])
def test_rectangles_lie_in_the_domain(largest):
    domain = Domain([Ordinal("x", range(30)), Ordinal("y", range(20)), Ordinal("z", range(7))])
    asked = paper001.rectangles(domain, 500, largest)
    assert (asked.low >= 0).all()
    assert (asked.high <= np.array(domain.shape)).all()
    assert (asked.high > asked.low).all()
    if largest is not None:
        assert asked.cells_in_each.max() <= largest


def test_missing_census_file_is_replaced_by_made_up_people(tmp_path):
    records, what = people.read(tmp_path, 500)
    assert "made-up" in what
    assert people.count(records, "age", "salary").counts.sum() == 500
