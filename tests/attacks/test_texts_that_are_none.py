"""A text that is no UTF-8 is missing in Parquet files and frames, and no other moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.coded import coded
from dphist.sources.count import count_and_sum, keys_of
from dphist.sources.unmatched import unmatched

ODD = [b"\xff", b"p01\xc3", b"\xed\xa0\x80", b"p010\x80", b"\xc0\x80", b"p0" + b"\xfe" * 20]
NAMES = ["ann", "bob", *(f"name{place}" for place in range(90))]
ONE = Unit(rows=1, id="user")
DOMAINS = {
    "short": Domain([Nominal("name", NAMES[:60])]),
    "short and others": Domain([Nominal("name", NAMES[:60], other=True)]),
    "long": Domain([Nominal("name", NAMES)]),
    "long and others": Domain([Nominal("name", NAMES, other=True)]),
    "many edges": Domain([Ordinal("age", edges=[0.5 * edge for edge in range(90)]), Nominal("name", NAMES)]),
    "no text": Domain([Ordinal("age", range(40))]),
}


def texts(values: list[bytes]) -> pa.Array:
    """Texts of any bytes."""
    places = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(places), pa.py_buffer(b"".join(values))]
    )


def table(odd: list[bytes], rows: int = 400) -> pa.Table:
    """A crowd, and in the middle of it a row of nobody's for every odd text."""
    draw = np.random.default_rng(6)
    users = [b"p%03d" % (place % 90) for place in range(rows)]
    names = [NAMES[int(place)].encode() for place in draw.integers(0, len(NAMES), rows)]
    ages = draw.integers(0, 40, rows).tolist()
    half = rows // 2
    return pa.table(
        {
            "user": texts(users[:half] + odd + users[half:]),
            "name": texts(names[:half] + odd + names[half:]),
            "age": pa.array(ages[:half] + [7] * len(odd) + ages[half:]),
        }
    )


def in_parquet(content: pa.Table, folder: Path, **how: Any) -> str:
    folder.mkdir(exist_ok=True)
    pq.write_table(content, folder / "t.parquet", row_group_size=150, **how)
    return str(folder / "t.parquet")


FORMS = {
    "parquet": in_parquet,
    "parquet, no dictionary": lambda content, folder: in_parquet(content, folder, use_dictionary=False),
    "parquet, no statistics": lambda content, folder: in_parquet(
        content, folder, write_statistics=False, store_schema=False
    ),
    "arrow": lambda content, folder: content,
    "dataset": lambda content, folder: pa.dataset.dataset(content),
    "pandas": lambda content, folder: content.to_pandas(types_mapper=pd.ArrowDtype),
    "memtable": lambda content, folder: ibis.memtable(content),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_nobody_else_moves(form: str, domain: str, tmp_path: Path) -> None:
    def put(odd: list[bytes]) -> Any:
        return FORMS[form](table(odd), tmp_path / "one")

    space = DOMAINS[domain]
    for unit in (Unit(), ONE, Unit(cells=1, id="user")):
        before, after = (count(put(odd), space, unit).counts for odd in ([], ODD))
        added = after - before
        assert before.sum() > 50
        # Who has no id is nobody; a row is counted by its age, and as another name than those of the domain.
        seen = unit.id is None and (domain == "no text" or "others" in domain)
        assert added.sum() == (len(ODD) if seen else 0)
        assert np.count_nonzero(added) == int(seen)


@pytest.mark.parametrize("form", FORMS)
def test_keys_sums_tables_and_a_rehearsal(form: str, tmp_path: Path) -> None:
    def put(odd: list[bytes]) -> Any:
        return FORMS[form](table(odd), tmp_path / "one")

    keys = Domain([Nominal("name", discover=True)])
    for unit in (Unit(), ONE):
        found = []
        for odd in ([], ODD):
            names, counts = keys_of(put(odd), keys, unit)
            listed = names.take(np.arange(len(counts)))
            found.append(dict(zip(listed.to_pylist(), counts[:, 0].tolist(), strict=True)))
        assert found[0] == found[1]
    space = DOMAINS["long"]
    quantity = Quantity(Measure("age", low=0, high=40))
    for unit in (Unit(), ONE):
        (_, one), (_, other) = (count_and_sum(put(odd), space, unit, [quantity]) for odd in ([], ODD))
        assert np.array_equal(one, other)
        one, other = (coded(put(odd), space, unit).tables([(0,)]) for odd in ([], ODD))
        assert np.array_equal(one, other)
        assert one[0].sum() >= 90
    told = unmatched(put(ODD), space, ONE)
    assert told.missed == {"name": len(ODD)}
    assert told.values == {"name": [(None, len(ODD))]}
    assert told.nobody == len(ODD)


def test_rows_that_went_out_before_the_odd_one_are_counted_once(tmp_path: Path) -> None:
    """Coded rows go out block by block, and the odd text comes in the last of them."""
    crowd = pa.table({"name": pa.array(NAMES[:2]).take(np.arange(3_000_000) % 2)})
    pq.write_table(pa.concat_tables([crowd, table(ODD, 0).select(["name"])]), tmp_path / "t.parquet")
    found = coded(tmp_path / "t.parquet", DOMAINS["long"]).tables([(0,)])[0]
    assert found[:2].tolist() == [1_500_000, 1_500_000]
    assert found.sum() == 3_000_000


def test_some_files_of_several_types_in_folders_of_odd_names(tmp_path: Path) -> None:
    """Each by its own types still; a name with the marks of a pattern is the name of that file."""
    domain = Domain([Nominal("name", NAMES), Nominal("year", ["2024", "2025"])])
    for unit in (Unit(), ONE):
        found = []
        for odd in ([], ODD):
            for year, file, content in (
                ("2024", "a[1]", table(odd)),
                ("2024", "a1", table([], 100)),
                ("2025", "b*", table(odd[:1], 60)),
                ("2025", "c", table([], 80).set_column(2, "age", pa.array([0.5] * 80))),
            ):
                folder = tmp_path / f"year={year}"
                folder.mkdir(exist_ok=True)
                pq.write_table(content, folder / f"{file}.parquet")
            pattern = str(tmp_path / "*" / "*.parquet")
            found.append(count(pattern, domain, unit).counts)
            ages = Domain([Ordinal("age", range(40)), Nominal("year", ["2024", "2025"])])
            assert count(pattern, ages, unit).counts.sum() > 50
        assert np.array_equal(found[0], found[1])
        assert found[0].sum() == (640 if unit.id is None else 90)


def test_a_damaged_file_is_refused_as_ever(tmp_path: Path) -> None:
    place = Path(in_parquet(table(ODD), tmp_path / "one"))
    place.write_bytes(place.read_bytes()[:2000])
    with pytest.raises(SourceError, match="cannot be read"):
        count(str(place), DOMAINS["long"], ONE)
