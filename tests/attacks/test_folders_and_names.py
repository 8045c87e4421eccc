"""Which column is read, and as what, is for its own name and the domain to say: no other column, folder or row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count, draft_schema


def written(path: Path, **columns: list[Any]) -> str:
    """A Parquet file in a folder that is made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize("names", [["Y", "y", "y_1"], ["y", "y", "z"], ["y_1", "Y", "y"]])
@pytest.mark.parametrize("asked", ["Y", "y", "y_1", "z"])
def test_columns_that_differ_in_capitals_alone_are_refused_by_what_they_are(names, asked, tmp_path):
    """DuckDB calls the second of two y's y_1, so that whoever asked for the column y_1 was given another."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([pa.array([1, 1]), pa.array([2, 2]), pa.array([3, 3])], names=names), path)
    with pytest.raises(SourceError, match="two columns whose names differ in capitals alone, or not at all"):
        count(path, Domain([Nominal(asked, ["1", "2", "3"])]))
    with pytest.raises(SourceError, match="two columns whose names differ"):
        draft_schema(path)


def test_two_declared_columns_that_differ_in_capitals_alone_are_refused_by_name(tmp_path):
    table = pa.table([pa.array([1, 2]), pa.array([1, 1])], names=["X", "x"])
    lines = tmp_path / "a.json"
    lines.write_text('{"X": 1, "x": 1}\n{"X": 2, "x": 1}\n')
    for source in (table, table.to_pandas(), lines):
        assert count(source, Domain([Ordinal("x", range(1, 3))])).counts.tolist() == [2, 0]
        with pytest.raises(SourceError, match="the columns x and X differ in capitals alone"):
            count(source, Domain([Ordinal("x", range(1, 3))]), Unit(id="X"))


def test_a_column_that_is_in_folders_and_in_files_is_refused(tmp_path):
    """DuckDB gave the folder's value, and left rows out by the file's least and largest: one row more changed all."""
    domain = Domain([Ordinal("region", range(200_000))])
    for place, values in enumerate(([3_000_000] * 4, [*[3_000_000] * 4, 0])):
        path = written(tmp_path / str(place) / "region=1" / "a.parquet", region=values)
        with pytest.raises(SourceError, match="folders and files both have a column region"):
            count(path, domain)
        with pytest.raises(SourceError, match="folders and files both have a column Region"):
            count(path, Domain([Ordinal("Region", range(9))]))


@pytest.mark.parametrize("stranger", ["zz", "2.5", "2024-01-05", "%20"])
@pytest.mark.parametrize(
    "domain",
    [
        Domain([Ordinal("year", range(2020, 2023))]),
        Domain([Nominal("year", ["2020", "2021", " 2021"])]),
        Domain([Ordinal("x", range(4))]),
    ],
    ids=["numbers", "texts", "another column"],
)
def test_one_more_folder_changes_nobodys_cell(stranger, domain, tmp_path):
    """DuckDB found a type that fits all folders' names: a stranger's made texts of everybody's numbers."""
    for folder in ("2020", "2021", " 2021"):
        written(tmp_path / f"year={folder}" / "a.parquet", x=[1, 2, 3])
    pattern = str(tmp_path / "*" / "*.parquet")
    before = count(pattern, domain).counts
    assert before.sum() == 9
    written(tmp_path / f"year={stranger}" / "a.parquet", x=[9])
    assert (count(pattern, domain).counts == before).all()


def test_ids_in_folders_are_told_apart_whatever_others_are_called(tmp_path):
    people = Unit(rows=1, id="user")
    domain = Domain([Ordinal("x", range(9))])
    for folder in ("1", " 1", "-0", "0"):
        written(tmp_path / f"user={folder}" / "a.parquet", x=[1])
    before = count(str(tmp_path / "*" / "*.parquet"), domain, people).counts
    written(tmp_path / "user=zz" / "a.parquet", x=[5])
    after = count(str(tmp_path / "*" / "*.parquet"), domain, people).counts
    assert (after - before).tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_folders_and_files_of_several_types_go_together(tmp_path):
    """Files that differ in types are read each by its own, and still know the folder that they lie in."""
    written(tmp_path / "year=2020" / "a.parquet", x=[1, 2])
    written(tmp_path / "year=2021" / "a.parquet", x=[1.0, 2.5])
    domain = Domain([Ordinal("year", range(2020, 2022)), Ordinal("x", edges=[0, 2, 4])])
    assert count(str(tmp_path / "*" / "*.parquet"), domain).counts.tolist() == [[1, 1], [1, 1]]


LINES = {"parquet": None, "csv": "x\n1\n2\n", "json": '{"x": 1}\n{"x": 2}\n'}


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_beside_its_file_does_not_count_records_twice(kind, link, tmp_path):
    path = tmp_path / f"2024.{kind}"
    if LINES[kind] is None:
        written(path, x=[1, 2])
    else:
        path.write_text(LINES[kind])
    getattr(tmp_path / f"latest.{kind}", link)(path)
    domain = Domain([Ordinal("x", range(3))])
    assert count(tmp_path / f"latest.{kind}", domain).counts.tolist() == [0, 1, 1]
    with pytest.raises(SourceError, match="one file twice"):
        count(tmp_path / f"*.{kind}", domain)
    (tmp_path / f"other.{kind}").write_bytes(path.read_bytes())
    (tmp_path / f"latest.{kind}").unlink()
    assert count(tmp_path / f"*.{kind}", domain).counts.tolist() == [0, 2, 2]


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("name", ["a[1]", "a?", "*", "a[!b]"])
def test_a_file_whose_name_looks_like_a_pattern_is_that_file(kind, name, tmp_path):
    """Others' records were read in its place, and paid for by those whom its budget is about."""
    for stem, value in ((name, 1), ("a1", 2), ("ax", 2)):
        path = tmp_path / f"{stem}.{kind}"
        if kind == "parquet":
            written(path, x=[value], y=["text"])
        else:
            path.write_text(f"x\n{value}\n" if kind == "csv" else f'{{"x": {value}}}\n')
    assert count(tmp_path / f"{name}.{kind}", Domain([Ordinal("x", range(3))])).counts.tolist() == [0, 1, 0]
    assert draft_schema(tmp_path / f"{name}.{kind}")
