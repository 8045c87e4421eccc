"""The load experiment runs, and the ledger's part of it is exact."""

import pytest

from dphist_bench.measurements.trust import main


@pytest.mark.slow
def test_the_ledger_is_exact_under_load(capsys):
    assert main(["--quick", "--only", "ledger"]) == 0
    assert "(exact)" in capsys.readouterr().out


def test_timing_prints_a_line_for_each_mechanism(capsys):
    assert main(["--quick", "--only", "timing"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_precision_and_quotes_print_their_lines(capsys):
    assert main(["--quick", "--only", "precision"]) == 0
    assert "2 mechanisms" in capsys.readouterr().out
    assert main(["--quick", "--only", "quotes"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
