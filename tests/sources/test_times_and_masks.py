"""Zoned times before 1970, values that NumPy masks, objects nested deep: each is read as it is, or refused by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from dphist import Domain, Histogram, Nominal, Ordinal
from dphist.errors import InputError, SourceError
from dphist.sources.count import count

DAYS = Domain([Ordinal("d", dates=("1969-12-30", "1970-01-03", "1d"))])
CELLS = Domain([Ordinal("x", range(4))])
DAY = 86_400 * 10**9
EARLY = [-1, -DAY - 1, -DAY, 5, DAY - 1, None]


def times(moments: Sequence[int | None], zone: str | None) -> pa.Table:
    return pa.table({"d": pa.array(moments, pa.timestamp("ns", zone))})


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_zoned_nanoseconds_before_1970_lie_in_their_day_or_are_refused(tmp_path, zone: str) -> None:
    assert count(times(EARLY, zone), DAYS).counts.tolist() == [1, 2, 2, 0]
    file = tmp_path / "early.parquet"
    for early in (EARLY, [-1, 5], [0, 5]):
        pq.write_table(times(early, zone), file)
        with pytest.raises(
            SourceError, match=r"column d holds times of nanoseconds with a zone.*microseconds"
        ):
            count(file, DAYS)
    pq.write_table(times(EARLY, zone), file)
    assert count(pyarrow.dataset.dataset(file), DAYS).counts.tolist() == [1, 2, 2, 0]
    # A file that says nothing of its values is not taken at its word.
    pq.write_table(times([5], zone), file, write_statistics=False)
    with pytest.raises(SourceError, match="does not say"):
        count(file, DAYS)


def test_other_times_of_parquet_files_are_read(tmp_path) -> None:
    file = tmp_path / "times.parquet"
    for moments, zone, cells in (
        (EARLY, None, [1, 2, 2, 0]),
        ([5_000, DAY, DAY + 1, None], "UTC", [0, 0, 1, 2]),
        ([None, None], "UTC", [0, 0, 0, 0]),
        ([], "UTC", [0, 0, 0, 0]),
    ):
        pq.write_table(times(moments, zone), file)
        assert count(file, DAYS).counts.tolist() == cells
    # A column that nobody needs may hold what it likes.
    pq.write_table(times(EARLY, "UTC").append_column("x", pa.array([0, 1, 1, 2, 3, 3])), file)
    assert count(file, CELLS).counts.tolist() == [1, 2, 1, 2]


def test_what_numpy_masks_is_missing() -> None:
    odd = [1, np.ma.masked, 2, np.ma.array(3, mask=True), np.ma.array(3, mask=False), None]
    frame = pd.DataFrame({"x": pd.Series(odd, dtype=object)})
    assert count(frame, CELLS).counts.tolist() == [0, 1, 1, 1]
    some = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert CELLS.attributes[0].cells(some).tolist() == [1, -1, 3]
    assert Ordinal("x", range(4), other=True).cells(some).tolist() == [1, 4, 3]
    assert Ordinal("x", edges=[0, 2, 4]).cells(some).tolist() == [0, -1, 1]
    assert Nominal("x", [1, 2, 3]).cells(some).tolist() == [0, -1, 2]
    with pytest.raises(InputError, match="masked"):
        Histogram(CELLS, np.ma.array([1, 2, 3, 4], mask=[False, True, False, True]))


@pytest.mark.parametrize("array", [False, True])
def test_objects_nested_deeper_than_is_followed_are_refused_in_these_words(tmp_path, array: bool) -> None:
    file = tmp_path / "deep.json"

    def write(depth: int) -> None:
        odd = f'{{"x": 1, "y": {"[" * depth}{"]" * depth}}}'
        text = f'[{{"x": 0}}, {odd}]' if array else f'{{"x": 0}}\n{odd}\n'
        file.write_text(text)

    write(50)
    assert count(file, CELLS).counts.tolist() == [1, 1, 0, 0]
    for depth in (60, 5_000, 100_000):
        write(depth)
        with pytest.raises(SourceError, match="more than 60 lists and objects inside each other"):
            count(file, CELLS)
