"""Drafting a schema takes names and types, never values."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist.errors import DomainError, SourceError
from dphist.model.domain import Domain
from dphist.sources import draft_schema
from dphist.sources.draft import columns_of


def table(value: int) -> pa.Table:
    return pa.table(
        {
            "age": [value],
            "income": [value + 0.5],
            'the "sex"': [f"secret{value}"],
            "ok": [True],
            "day": [dt.date(2000 + value % 100, 1, 1)],
            "seen": [dt.datetime(2000 + value % 100, 1, 1)],
            "tags": [[value]],
        }
    )


def test_a_draft_does_not_depend_on_the_values(tmp_path: Path) -> None:
    drafts = []
    for value in (7, 777_777):
        pq.write_table(table(value), tmp_path / "t.parquet")
        drafts.append(draft_schema(tmp_path / "t.parquet"))
        (tmp_path / "t.csv").write_text(f"age,sex\n{value},secret\n")
        drafts.append(draft_schema(tmp_path / "t.csv"))
    assert drafts[:2] == drafts[2:]
    assert not any("secret" in draft or "777" in draft for draft in drafts)


def test_a_draft_asks_for_bounds_and_works_once_they_are_filled_in(tmp_path: Path) -> None:
    pq.write_table(table(7), tmp_path / "t.parquet")
    draft = draft_schema(tmp_path / "t.parquet")
    with pytest.raises(DomainError, match="age: give exactly one of"):
        Domain.from_toml(draft)
    filled = re.sub(r"^# edges = \[0, 18.*$", "", draft, flags=re.MULTILINE)
    filled = re.sub(r"^# (?=range|edges|categories|dates)", "", filled, flags=re.MULTILINE)
    domain = Domain.from_toml(filled)
    assert domain.names == ("age", "income", 'the "sex"', "ok", "day", "seen")
    assert domain.shape == (100, 3, 2, 2, 12, 12)


def test_a_draft_needs_a_file() -> None:
    with pytest.raises(SourceError):
        draft_schema(table(7))
    with pytest.raises(SourceError):
        draft_schema("none.csv")


ODD = [
    "female",
    "male",
    "m",
    "no",
    "Age [years]",
    "2019_income",
    "% insured",
    "how often " * 8 + "a year",
    "2nd visit",
]


@pytest.mark.parametrize("names", [*([name] for name in ODD), ["age", "female"], ["id", "sex", "area", *ODD]])
def test_odd_names_of_columns_are_no_records(tmp_path: Path, names: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{','.join(names)}\n{','.join('1' for _ in names)}\n")
    assert [column.name for column in columns_of(path)] == names
    assert all(f'name = "{name}"' in draft_schema(path) for name in names)


def test_a_refused_first_line_says_which_column_and_not_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for head, place in (("ann,7321,x", 2), ("ann,x,alice@example.org", 3), ("ann,,x", 2), ("yes,no,ann", 1)):
        path.write_text(f"{head}\n{head}\n")
        with pytest.raises(SourceError, match=f"column names: column {place} looks like a value") as caught:
            draft_schema(path)
        assert not any(word in str(caught.value) for word in ("7321", "alice", "ann"))
