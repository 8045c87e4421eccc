"""Whatever is no number is so in every file, and whoever has one: what a file states of its columns is somebody's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.coded import coded
from dphist.sources.count import count_and_sum, rows_of_people

NAN = float("nan")
# A Parquet file states the least and the largest value of a column, and leaves NaN out. All others lie inside the
# bounds below; one of these, who has no cell, does not.
FAR = [(11.0, pa.float64()), (-5.0, pa.float32()), (float("inf"), pa.float64())]
DOMAINS = [
    Domain([Ordinal("x", edges=[0, 2.5, 5, 10])]),
    Domain([Ordinal("x", edges=range(0, 11, 2))]),
    Domain([Ordinal("x", edges=[cell / 10 for cell in range(101)])]),
    Domain([Ordinal("x", range(11))]),
    Domain([Nominal("x", [0, 4, 9])]),
    Domain([Ordinal("x", edges=[0, 2.5, 5, 10], other=True)]),
]


def written(folder: Path, kind: Any, more: list[float]) -> str:
    """Three numbers, a hundred rows without, and whoever comes; everybody has an id."""
    values = [1.0, 4.0, 9.0, *[NAN] * 100, *more]
    table = pa.table(
        {"x": pa.array(values, kind), "town": ["a"] * len(values), "id": list(range(len(values)))}
    )
    path = folder / f"{len(more)}.parquet"
    pq.write_table(table, path)
    return str(path)


@pytest.mark.parametrize(("far", "kind"), FAR)
@pytest.mark.parametrize("domain", DOMAINS)
def test_one_value_does_not_decide_about_the_nan_of_others(
    tmp_path: Path, domain: Domain, far: float, kind: Any
) -> None:
    unit = Unit(rows=1, id="id")
    rest = 100 * (domain.attributes[0].other_cell is not None)
    for protected in (Unit(), unit):
        without, others = (
            count(written(tmp_path, kind, more), domain, protected).counts for more in ([], [far])
        )
        assert np.abs(others - without).sum() <= 1
        assert without.sum() == 3 - (domain.attributes[0].kind == "nominal") + rest
    (table,) = coded(written(tmp_path, kind, []), domain).tables([(0,)])
    np.testing.assert_array_equal(table, without)


def test_sums_leave_rows_without_a_number_out(tmp_path: Path) -> None:
    domain, quantity = Domain([Nominal("town", ["a"])]), Quantity(Measure("x", 0, 10))
    for unit in (Unit(), Unit(rows=1, id="id")):
        counts, (sums,) = count_and_sum(written(tmp_path, pa.float64(), []), domain, unit, [quantity])
        assert (counts.counts.tolist(), sums.tolist()) == ([3], [14])


def test_a_table_of_somebodys_duckdb_over_a_file_does_so_too(tmp_path: Path) -> None:
    connection = ibis.duckdb.connect()
    for more in ([], [11.0]):
        table = connection.read_parquet(written(tmp_path, pa.float64(), more))
        assert count(table, DOMAINS[0]).counts.tolist() == [1, 1, 1]


def test_an_id_that_is_no_number_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "ids.parquet"
    pq.write_table(pa.table({"id": [1.0, 2.0, NAN, NAN, NAN], "town": ["a"] * 5}), path)
    assert count(str(path), Domain([Nominal("town", ["a"])]), Unit(rows=1, id="id")).counts.tolist() == [2]
    rows, people = rows_of_people(str(path), "id")
    assert dict(zip(rows.tolist(), people.tolist(), strict=True)) == {1: 2}


@pytest.mark.parametrize("ids", [[7, 8], ["p", "q"], [7.0, 8.0]])
def test_that_nobody_has_a_cell_is_no_error_of_sums(ids: list[Any]) -> None:
    """It had been one where people are numbers: whether anybody has a cell was told by a failure."""
    table = pa.table({"id": ids, "town": ["b", "b"], "x": [1.0, 2.0]})
    domain, quantity = Domain([Nominal("town", ["a"])]), Quantity(Measure("x", 0, 10))
    counts, (sums,) = count_and_sum(table, domain, Unit(rows=1, id="id"), [quantity])
    assert (counts.counts.tolist(), sums.tolist()) == ([0], [0])
