"""An id in JSON is one person however its number is written: a writer puts a point into all where one is missing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

DOMAIN = Domain([Ordinal("x", range(3))])
ONE = Unit(rows=1, id="id")


def people(path: Path, *ids: str) -> int:
    """How many rows are kept of objects with these ids, one of each person."""
    path.write_text("".join(f'{{"id": {each}, "x": 1}}\n' for each in ids), encoding="utf-8")
    kept = int(count(path, DOMAIN, ONE).counts.sum())
    path.write_text("[" + ", ".join(f'{{"id": {each}, "x": 1}}' for each in ids) + "]", encoding="utf-8")
    assert int(count(path, DOMAIN, ONE).counts.sum()) == kept
    return kept


@pytest.mark.parametrize(
    "other", ["1", "1.0", "1.00", "1e0", "10E-1", '"1"', '"\\u0031"'], ids=lambda text: repr(text)
)
def test_one_number_is_one_person(other: str, tmp_path: Path) -> None:
    assert people(tmp_path / "a.json", "1", other) == 1
    assert people(tmp_path / "a.json", "0", "-0.0", "-0") == 1


def test_what_differs_stays_apart(tmp_path: Path) -> None:
    large = [
        "9007199254740992",
        "9007199254740993",
        "18446744073709551617",
        "18446744073709551618",
        "1" + "0" * 400,
    ]
    apart = ["1", "2", '"1.0"', '"01"', '" 1"', "true", '"a"', '"A"', '"a\\u0000"', *large]
    assert people(tmp_path / "a.json", *apart) == len(apart)


def test_nobody_has_no_rows(tmp_path: Path) -> None:
    assert people(tmp_path / "a.json", "1", "null", "1.5", "[1]", '{"a": 1}', "1e400", '"\\ud800"') == 1


def test_floats_that_may_be_several_people_are_refused(tmp_path: Path) -> None:
    for far in ("9007199254740992.0", "-1e16", "1.8446744073709552e+19"):
        with pytest.raises(SourceError, match="several people"):
            people(tmp_path / "a.json", "1", far)


def test_a_missing_id_in_one_file_makes_nobody_two(tmp_path: Path) -> None:
    """Pandas writes 1.0 for 1 where an id of that file is missing: everybody in both files counted twice."""
    pd.DataFrame({"id": [1, 2], "x": [1, 1]}).to_json(tmp_path / "a.json", orient="records", lines=True)
    pd.DataFrame({"id": [1, 2, None], "x": [1, 1, 1]}).to_json(
        tmp_path / "b.json", orient="records", lines=True
    )
    assert "1.0" in (tmp_path / "b.json").read_text()
    assert count(str(tmp_path / "*.json"), DOMAIN, ONE).counts.tolist() == [0, 2, 0]
