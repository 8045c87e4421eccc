"""Blocks of a file: equal cells by one width, and many blocks as one."""

import numpy as np
import pytest

import dphist
from dphist.inference.estimate import IndependentNoise
from dphist.release import writing


@pytest.mark.parametrize("polish", [False, True])
def test_single_cells_are_as_any_question_is(polish):
    domain = dphist.Domain([dphist.Ordinal("x", range(50)), dphist.Nominal("sex", ["F", "M"])])
    release = dphist.publish(
        dphist.Histogram(domain, np.arange(100).reshape(50, 2) // 30), epsilon="1/2", mechanism="laplace"
    )
    release = release.polished(nonnegative=True, integer=True) if polish else release
    assert type(release._estimate.errors) is IndependentNoise
    low, high = release.cells.bounds(release, 5, 90, 0.9)
    cells = release.answer(dphist.Workload.cells(domain), confidence=0.9)
    np.testing.assert_array_equal(low, cells.low[5:90])
    np.testing.assert_array_equal(high, cells.high[5:90])


def test_a_block_that_cannot_be_written_stops_the_file(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    domain = dphist.Domain([dphist.Ordinal("x", range(50))])
    release = dphist.publish(dphist.Histogram(domain, np.arange(50)), epsilon=1, mechanism="laplace")
    monkeypatch.setattr(writing, "_ROWS", 16)
    written, write = [], pq.ParquetWriter.write_table

    def full(self, table, *more):
        written.append(len(table))
        if len(written) == 3:
            raise OSError("no space left")
        write(self, table, *more)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(dphist.errors.OutputError):
        release.save(tmp_path / "full.parquet")
    assert list(tmp_path.iterdir()) == []
