"""The experiments of the building blocks run from one command each, in seconds when asked to be quick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dphist.bench import blocks, paper002


def test_speed_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert blocks.main(["--quick", "--only", "h", "--only", "s2+h"]) == 0
    printed = capsys.readouterr().out
    assert "4,096" in printed
    assert "s2+h" in printed


def test_errors_beside_peers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = np.arange(64)
    lines = ["bin,count", *(f"{i},{c}" for i, c in enumerate(counts))]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ADULT.csv").write_text("\n".join(lines))
    (tmp_path / "peers.csv").write_text(
        "dataset,scale,eps,workload,best_excl_nonprivate,rmse\nADULT,1000,1.0,prefix,HB,5.0\nADULT,1000,1.0,identity,AHP,2.0\n"
    )
    assert blocks.main(["--data", str(tmp_path / "data"), "--quick", "--trials", "1", "--only", "hb"]) == 0
    assert "n=1" in capsys.readouterr().out


@pytest.mark.slow
def test_table_2_and_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paper002.main(["--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Times on a skyline, of 16" in printed
    assert all(f"| {scheme} |" in printed for scheme in paper002.PRINTED)
    assert {f"fig{number:02}.png" for number in range(3, 19)} <= {path.name for path in tmp_path.iterdir()}


def test_mean_error_of_all_intervals_against_writing_them_out() -> None:
    error = np.random.default_rng(1).normal(0, 3, 12)
    every = [error[i:j].sum() ** 2 for i in range(12) for j in range(i + 1, 13)]
    assert paper002.mean_interval_error(error) == pytest.approx(np.mean(every))
