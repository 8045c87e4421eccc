"""The measurement of intervals: it runs, counts what it should, and can tell intervals that are too narrow."""

from __future__ import annotations

import json

import numpy as np

from dphist.inference.estimate import Interval
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist_bench import catalogue
from dphist_bench.data.coverage import Data, adult_cube
from dphist_bench.data.drawn import drawn_cube, drawn_line, drawn_people, drawn_plane, drawn_space
from dphist_bench.measurements.accuracy.coverage import LEVELS, Tally, outcomes


def test_the_quick_form_prints_its_cases_and_sums_them_up(tmp_path, capsys):
    asked = ["--quick", "--first", "6", "--only", "line", "--mechanisms", "auto", "auto, told", "laplace"]
    assert catalogue.measure("coverage", asked, tmp_path) == 0
    kept = json.loads((tmp_path / "quick" / "measurements" / "coverage.json").read_text(encoding="utf-8"))
    summed = {(line["mechanism"], line["questions"]): line for line in kept["lines"] if "cases" in line}
    assert summed["laplace", "cells"]["of laplace"] == 1.0
    assert 0.0 < summed["auto", "ranges"]["of laplace"] < 1.0
    assert "line 6 (" in kept["lines"][0]["data"]


def test_exact_intervals_hold_as_often_as_they_say():
    domain = Domain([Ordinal("x", range(64))])
    data = Data("steps", "line", Histogram(domain, np.repeat(np.array([5, 400]), 32)))
    found = {each.kind: each for each in outcomes(data, "1", 16, ("laplace",))}
    assert 0.93 <= found["ranges"].at(0.95) <= 1.0
    assert found["ranges"].at(0.5) < found["ranges"].at(0.99)


def test_too_narrow_is_noticed():
    tally = Tally()
    truth = np.arange(10.0)
    narrow = Interval(truth + 0.5, truth + 0.6)
    wide = Interval(truth - 1.0, truth + 1.0)
    unknown = Interval(np.full(10, np.nan), np.full(10, np.nan))
    tally.add(truth, truth, [narrow, wide, wide, unknown])
    held, width, error = tally.close(2.0)
    assert held[:3] == (0.0, 1.0, 1.0)
    assert np.isnan(held[3])
    assert (width, error) == (2.0, 0.0)
    assert len(LEVELS) == 4


def test_data_drawn_by_number_are_the_same_again():
    for make in (drawn_line, drawn_plane, drawn_cube, drawn_people, drawn_space):
        (name, one, epsilon), again, other = make(3), make(3), make(4)
        assert (name, epsilon) == (again[0], again[2])
        assert (one.counts == again[1].counts).all()
        assert one.domain.shape != other[1].domain.shape or (one.counts != other[1].counts).any()
        assert 100 <= one.counts.sum() <= 10**6
    # All of whose parts left no weight anywhere.
    assert drawn_space(115)[1].counts.sum() >= 100


def test_the_census_is_read_attribute_by_attribute(tmp_path):
    """Its first attributes are counted, with age in years as long as there are few of them."""
    names = "age,workclass,education,sex,salary,marital_status,race,relationship"
    rows = ["39,a,x,F,low,m,r,s", "39,b,x,M,low,m,r,s", "41,a,y,F,high,n,q,t"]
    (tmp_path / "adult-records.csv").write_text("\n".join([names, *rows]))
    three = adult_cube(tmp_path / "adult-records.csv", 3)
    assert three.domain.names == ("age", "workclass", "education")
    assert three.counts.shape == (100, 2, 2)
    assert three.counts[39, 0, 0] == 1
    assert three.counts.sum() == 3
    assert adult_cube(tmp_path / "adult-records.csv", 8).counts.shape[0] == 10
