"""Small files of whole numbers, counted without an engine: the same cells as DuckDB finds, or DuckDB itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.files import few
from dphist.sources.tally import Tallied

AGE, SEX = dphist.Ordinal("age", range(10, 60, 5)), dphist.Ordinal("sex", range(2))
KINDS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]


def _written(path: Path, table: pa.Table, **options: Any) -> str:
    pq.write_table(table, path, **options)
    return str(path)


def _by_engine(monkeypatch: pytest.MonkeyPatch, path: Any, domain: dphist.Domain) -> np.ndarray:
    with monkeypatch.context() as patch:
        patch.setattr(few, "MOST_ROWS", -1)
        assert few.count_few(path, domain, Unit()) is None
        return count(path, domain).counts


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_same_cells_as_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any) -> None:
    rng = np.random.default_rng(1)
    least = 0 if str(kind).startswith("u") else -90
    table = pa.table(
        {
            "other": pa.array(["text"] * 900),
            "sex": pa.array(rng.integers(0, 4, 900).tolist(), kind),
            "age": pa.array(rng.integers(least, 100, 900).tolist(), kind),
        }
    )
    path = _written(tmp_path / "r.parquet", table, row_group_size=111)
    # Counted into all cells, or sorted where there are many more of them than rows.
    many = dphist.Ordinal("age", range(least, 9_000))
    for attributes in ([AGE], [SEX], [AGE, SEX], [SEX, AGE], [many]):
        domain = dphist.Domain(attributes)
        assert few.count_few(path, domain, Unit()) is not None
        np.testing.assert_array_equal(count(path, domain).counts, _by_engine(monkeypatch, path, domain))
    tallied = Tallied(Path(path))
    found = count(tallied, dphist.Domain([AGE, SEX]))
    assert (tallied.tally.rows, tallied.tally.placed) == (900, int(found.counts.sum()))


def test_no_rows_and_the_ends_of_whole_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [-(2**63), 2**63 - 1, 0, 9, 10, 55, 59, 60]
    for values in ([], ends):
        path = _written(tmp_path / "r.parquet", pa.table({"age": pa.array(values, pa.int64())}))
        domain = dphist.Domain([AGE])
        assert few.count_few(path, domain, Unit()) is not None
        np.testing.assert_array_equal(count(path, domain).counts, _by_engine(monkeypatch, path, domain))


def test_what_is_not_plain_is_left_to_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = pa.table({"age": pa.array([10, 15, 15], pa.int64())})
    domain = dphist.Domain([AGE])
    folder = tmp_path / "age=10"
    folder.mkdir()
    cases = {
        "a missing value": _written(tmp_path / "a.parquet", pa.table({"age": pa.array([10, None, 15])})),
        "broken numbers": _written(tmp_path / "b.parquet", pa.table({"age": [10.0, 15.0]})),
        "texts": _written(tmp_path / "c.parquet", pa.table({"age": ["10", "15"]})),
        "capitals": _written(tmp_path / "e.parquet", plain.append_column("AGE", plain.column(0))),
        "a pattern": str(Path(_written(tmp_path / "f.parquet", plain)).with_name("f*.parquet")),
        "a folder with a value": _written(folder / "g.parquet", plain.append_column("x", plain.column(0))),
        "unsigned": _written(tmp_path / "h.parquet", pa.table({"age": pa.array([10], pa.uint64())})),
    }
    for name, path in cases.items():
        assert few.count_few(path, domain, Unit()) is None, name
    path = _written(tmp_path / "i.parquet", plain)
    for unit, other in (
        (Unit(id="age"), domain),
        (Unit(), dphist.Domain([dphist.Ordinal("age", range(10, 60), other=True)])),
        (Unit(), dphist.Domain([dphist.Nominal("age", ["10"])])),
        (Unit(), dphist.Domain([dphist.Ordinal("age", edges=[0, 10, 20])])),
        (Unit(), dphist.Domain([dphist.Ordinal("nobody", range(9))])),
    ):
        assert few.count_few(path, other, unit) is None
    assert few.count_few(plain, domain, Unit()) is None
    assert few.count_few(tmp_path / "none.parquet", domain, Unit()) is None
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no PAR1")
    assert few.count_few(tmp_path / "broken.parquet", domain, Unit()) is None
    with monkeypatch.context() as patch:
        patch.setattr(few, "_MOST_TOGETHER", 2)
        assert few.count_few(path, domain, Unit()) is None
    monkeypatch.setattr(few, "MOST_ROWS", 2)
    assert few.count_few(path, domain, Unit()) is None


def test_a_small_file_needs_no_engine(tmp_path: Path) -> None:
    path = _written(tmp_path / "r.parquet", pa.table({"age": pa.array([10, 15, 15], pa.int64())}))
    script = f"""
import sys, dphist
domain = dphist.Domain([dphist.Ordinal("age", range(10, 60, 5))])
dphist.publish({path!r}, domain, 1, "laplace", unattended=True).save({str(tmp_path / "o.parquet")!r})
print("duckdb" in sys.modules, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
