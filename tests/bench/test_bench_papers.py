"""What the papers' experiments stand on: every figure has a name, printed tables are whole, skylines are right."""

import numpy as np
import pytest

from dphist_bench import catalogue, competitors, data
from dphist_bench.cases import Case, Reading
from dphist_bench.data import files
from dphist_bench.papers import xu2013_setup
from dphist_bench.results import Results, Row
from dphist_bench.views import Lines
from dphist_bench.views.skylines import SkylinePlot, SkylineTable, appearances


@pytest.mark.parametrize(
    ("paper", "tables", "figures"), [("xu2013", (2, 3), range(6, 21)), ("kellaris", (2,), range(3, 19))]
)
def test_every_table_and_figure_can_be_asked_for(paper, tables, figures):
    for what in (*(f"table{n}" for n in tables), *(f"figure{n}" for n in figures)):
        found = catalogue.load(f"{paper}/{what}")
        assert catalogue.chosen(f"{paper}/{what}") == [found.name]
        assert what in (found.name.partition("/")[2], *found.covers)


def test_errors_of_ranges_on_numbers_worked_by_hand():
    truth = np.arange(20)
    found = {(r.measure, r.x): r.value for r in xu2013_setup.range_errors(truth, truth + 1.0)}  # type: ignore[arg-type]
    # Every cell is off by one, so a range of m cells is off by m.
    for length in (1, 2, 5, 10, 20):
        assert found["squared error", length] == pytest.approx(length**2)
        assert found["absolute error", length] == pytest.approx(length)
    tenths = np.arange(2, 21, 2)
    assert found["squared error, all lengths", None] == pytest.approx(np.mean(tenths**2))


def _results():
    figures = {
        "slow and good": (9.0, 1.0),
        "fast and bad": (1.0, 9.0),
        "beaten": (9.5, 9.5),
        "odd": (2.0, 20.0),
    }
    rows = [
        Row(Case("d", method, "1"), 0, Reading(measure, value))
        for method, costs in figures.items()
        for measure, value in zip(("CPU s", "error"), costs, strict=True)
    ]
    return Results(rows, {})


def test_a_skyline_has_who_is_beaten_by_nobody_on_both():
    assert appearances(_results(), "CPU s", ("error",), {}) == (
        {"slow and good": 1, "fast and bad": 1, "beaten": 0, "odd": 0},
        1,
    )
    text = SkylineTable(title="T", measure="CPU s", ups=("error",), printed={"slow and good": 7}).markdown(
        _results(),
        None,  # type: ignore[arg-type]
        "",
    )
    assert "| slow and good | 1 | 7 | ✓ |" in text
    assert "| beaten | 0 |  | · |" in text


def test_a_skyline_is_drawn_with_its_figures(tmp_path):
    plot = SkylinePlot(title="P", measure="CPU s", ups=("error",), axis="seconds", unit="error")
    text = plot.markdown(_results(), tmp_path, "p")
    assert "| fast and bad | 1 | **9** |" in text
    assert "| beaten | 9.5 | 9.5 |" in text
    drawn = (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert "slow and good" in drawn


def test_small_numbers_keep_their_digits_in_a_picture(tmp_path):
    rows = [Row(Case("d", "m", "1", x), 0, Reading("CPU s", x / 1_000)) for x in (2.0, 5.0, 9.0)]
    Lines(title="L", measure="CPU s").markdown(Results(rows, {}), tmp_path, "l")
    assert ">0.005<" in (tmp_path / "l.svg").read_text(encoding="utf-8")


def test_real_files_are_read(tmp_path):
    (tmp_path / "counts.csv").write_text("bin,count\n0,3\n1,1\n2,3\n3,0\n4,9\n")
    assert files.counts(tmp_path / "counts.csv").tolist() == [3, 1, 3, 0, 9]
    # One line says 1, two say 3; nothing and what is beyond the domain are left out.
    assert files.occurrences(tmp_path / "counts.csv", 4).tolist() == [1, 0, 2, 0]
    row = "{},Private,1,B,9,Divorced,x,x,White,Male,0,0,40,x,<=50K\n"
    (tmp_path / "adult.data").write_text("".join(row.format(age) for age in (17, 17, 120)))
    ages = files.ages(tmp_path / "adult.data")
    assert ages.sum() == 3
    assert (ages[17], ages[100]) == (2, 1)


def test_printed_smoothing_merges_what_is_level_and_keeps_what_is_not():
    counts = np.repeat([1_000, 0], [64, 64])
    estimate = competitors.printed_s_approx(counts, 10.0, seed=1)
    assert estimate.shape == counts.shape
    assert np.unique(estimate).size < counts.size
    assert np.abs(estimate - counts).max() < 10


def test_data_of_lossy_compression_are_of_the_papers_kind():
    """Cells, records and empty cells of the paper's Table I, within a tenth."""
    known = {
        "Location": (7_725, 186_471, 4_720),
        "Rochdale": (256, 665, 165),
        "Search Log": (32_768, 335_889, 17_082),
        "NetTrace": (65_536, 25_714, 63_318),
    }
    for name, make in data.paper_003().items():
        counts = make(0)
        cells, records, empty = known[name]
        assert (counts.size, counts.sum()) == (cells, records)
        assert np.sum(counts == 0) == pytest.approx(empty, rel=0.1)
