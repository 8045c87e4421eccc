"""The experiments of the building blocks run from one command each, in seconds when asked to be quick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dphist_bench import blocks


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
