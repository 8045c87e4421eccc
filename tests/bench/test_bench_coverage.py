"""The measurement of intervals: it runs, counts what it should, and can tell intervals that are too narrow."""

from __future__ import annotations

import json

import numpy as np

from dphist.inference.estimate import Interval
from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.testing import run
from dphist_bench import catalogue
from dphist_bench.data.coverage import Data, lines
from dphist_bench.data.drawn import drawn_cube, drawn_line, drawn_people, drawn_plane, drawn_space
from dphist_bench.measurements.accuracy.coverage import LEVELS, _Tally, intervals, outcomes, questions


def test_the_quick_form_prints_its_cases_and_sums_them_up(tmp_path, capsys):
    asked = ["--quick", "--only", "line", "--mechanisms", "auto", "laplace"]
    assert catalogue.measure("coverage", asked, tmp_path) == 0
    kept = json.loads((tmp_path / "quick" / "measurements" / "coverage.json").read_text(encoding="utf-8"))
    summed = {(line["mechanism"], line["questions"]): line for line in kept["lines"] if "cases" in line}
    assert summed["laplace", "cells"]["of laplace"] == 1.0
    assert 0.0 < summed["auto", "ranges"]["of laplace"] < 1.0


def test_every_shape_of_a_line_is_there():
    wanted = {"flat", "empty", "spike", "steps", "Zipf", "comb of 2", "comb of 16", "sawtooth", "smooth"}
    assert wanted <= set(lines(128))


def test_exact_intervals_hold_as_often_as_they_say():
    domain = Domain([Ordinal("x", range(64))])
    data = Data("steps", "line", Histogram(domain, np.repeat(np.array([5, 400]), 32)))
    found = {each.kind: each for each in outcomes(data, 1, "1", 16, ("laplace",))}
    assert 0.93 <= found["ranges"].at(0.95) <= 1.0
    assert found["ranges"].at(0.5) < found["ranges"].at(0.99)


def test_too_narrow_is_noticed():
    tally = _Tally()
    truth = np.arange(10.0)
    narrow = Interval(truth + 0.5, truth + 0.6)
    wide = Interval(truth - 1.0, truth + 1.0)
    unknown = Interval(np.full(10, np.nan), np.full(10, np.nan))
    tally.add(truth, truth, [narrow, wide, wide, unknown])
    held, width, error, _, _ = tally.close(2.0)
    assert held == (0.0, 1.0, 1.0, 0.0)
    assert width == 2.0
    assert error == 0.0
    assert len(LEVELS) == 4


def test_data_drawn_by_number_are_the_same_again_and_are_tried(tmp_path):
    for make in (drawn_line, drawn_plane, drawn_cube, drawn_people, drawn_space):
        (name, one, epsilon), again, other = make(3), make(3), make(4)
        assert (name, epsilon) == (again[0], again[2])
        assert (one.counts == again[1].counts).all()
        assert one.domain.shape != other[1].domain.shape or (one.counts != other[1].counts).any()
        assert 100 <= one.counts.sum() <= 10**6
    # All of whose parts left no weight anywhere.
    assert drawn_space(115)[1].counts.sum() >= 100
    asked = ["--quick", "--drawn", "1", "--first", "6", "--only", "line", "--mechanisms", "auto"]
    assert catalogue.measure("coverage", asked, tmp_path) == 0
    assert '"line 6 (' in (tmp_path / "quick" / "measurements" / "coverage.json").read_text(encoding="utf-8")


def test_all_levels_at_once_are_the_intervals_of_each():
    histogram = drawn_line(6)[1]
    asked = questions("line", histogram.domain)["lists of pieces"]
    errors = run(parse("auto"), histogram, 1, seed=1).errors
    published = asked.answer(histogram.counts).astype(np.float64)
    for level, found in zip(LEVELS, intervals(errors, asked, published), strict=True):
        wanted = errors.interval(asked, published, level)
        assert (found.low == wanted.low).all()
        assert (found.high == wanted.high).all()
