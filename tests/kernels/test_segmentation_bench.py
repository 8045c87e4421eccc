"""The measurements behind the figures we quote run, and print what they promise."""

import pytest

from dphist.bench import noisefirst, paper000, segmentation


def test_segmentation(capsys):
    assert segmentation.main(["--quick"]) == 0
    printed = capsys.readouterr().out
    assert "O(n²)" in printed
    assert "spikes" in printed


def test_paper_tables(capsys, tmp_path):
    assert paper000.main(["--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "18,865" in printed
    assert "Table 3" in printed
    assert (tmp_path / "paper000.md").read_text(encoding="utf-8") in printed


def test_prices(capsys):
    assert noisefirst.main(["--quick"]) == 0
    assert "mean 3 ln n" in capsys.readouterr().out


def test_printed_figures_are_complete():
    for table in (paper000.SQUARED, paper000.ABSOLUTE):
        assert list(table) == ["Dwork", "Boost", "Privelet", "Median-NF", "Mean-NF", "Median-SF", "Mean-SF"]
        assert all(len(row) == 12 for row in table.values())
    # Laplace noise has squared error 2/ε² and absolute error 1/ε: the printed figures are of this kind.
    for row, expected in (
        (paper000.SQUARED["Dwork"], (20_000, 200, 2)),
        (paper000.ABSOLUTE["Dwork"], (100, 10, 1)),
    ):
        for i, value in enumerate(row):
            assert value == pytest.approx(expected[i % 3], rel=0.2)
