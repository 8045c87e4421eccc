"""What the DPCube experiments and measurements stand on: questions, people, and their own output."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.model.domain import Domain, Ordinal
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.data import people
from dphist_bench.papers.dpcube_histograms import rectangles
from dphist_bench.results import Results, Row
from dphist_bench.views.heatmap import Maps


@pytest.mark.parametrize("largest", [None, 1, 40])
def test_rectangles_lie_in_the_domain(largest):
    domain = Domain([Ordinal("x", range(30)), Ordinal("y", range(20)), Ordinal("z", range(7))])
    asked = rectangles(domain, 500, largest)
    assert (asked.low >= 0).all()
    assert (asked.high <= np.array(domain.shape)).all()
    assert (asked.high > asked.low).all()
    if largest is not None:
        assert asked.cells_in_each.max() <= largest


RECORD = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Clerk, Single, White, Male, 2174, 0, 40, {}, <=50K"
)
NAMES = "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex"


def test_missing_census_file_is_replaced_by_made_up_people(tmp_path):
    records = people.records(Setting(files=tmp_path))
    assert people.count(records, "age", "salary").counts.sum() == len(records["age"]) > 30_000


@pytest.mark.parametrize(
    ("file", "head"),
    [
        ("adult.data", ""),
        ("adult-records.csv", NAMES + ",capital_gain,capital_loss,hours_per_week,native,salary\n"),
    ],
)
def test_the_census_is_read_without_records_that_lack_a_value(file, head, tmp_path):
    (tmp_path / file).write_text(head + RECORD.format("Peru") + "\n" + RECORD.format("?") + "\n\n")
    found = people.count(people.records(Setting(files=tmp_path)), "age", "education_num", "salary")
    assert found.counts.sum() == found.counts[39, 12, 0] == 1


def test_a_quick_run_never_reads_a_file(tmp_path):
    (tmp_path / "adult.data").write_text("not,a,census\n")
    assert len(people.records(Setting(quick=True, files=tmp_path))["age"]) == 3_000


def test_maps_are_one_picture(tmp_path):
    rows = [Row(Case("d", "m"), 0, Reading("count", float(place == 3), place)) for place in range(16)]
    view = Maps(title="T", measure="count", axes=("first", "second"), cut=0.0)
    assert "![T](map.png)" in view.markdown(Results(rows, {}), tmp_path, "map")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
