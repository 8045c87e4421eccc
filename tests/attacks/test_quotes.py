"""A record of a CSV file must not take others with it: quotes that go on past their line are refused."""

import gzip

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.errors import SourceError
from dphist.sources import count

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(9)), dphist.Nominal("y", ["a", "b", 'say "hi", all'])])
LINES = [f"{i % 9},{'ab'[i % 2]}" for i in range(60)]
OPEN = [
    '"',
    '1,"a',
    'x"y,"z',
    '1, "a',
    '1,"a""',
    '"a"b,c',
    '"1","a"x',
    '1,  "a',
    '1,"a\n1,a\n1,a"',
    '1,"a\r\n"',
    '1,"\xff',
]


def written(path, lines):
    text = "\n".join(["x,y", *lines]) + "\n"
    raw = text.encode("latin-1")
    if path.suffix == ".gz":
        raw = gzip.compress(raw)
    elif path.suffix == ".zst":
        raw = pa.compress(raw, codec="zstd", asbytes=True)
    path.write_bytes(raw)
    return str(path)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("line", OPEN)
def test_a_field_that_goes_on_past_its_line_is_refused(line, place, tmp_path):
    at = {"first": 0, "middle": 30, "last": 60}[place]
    source = written(tmp_path / "d.csv", [*LINES[:at], line, *LINES[at:]])
    with pytest.raises(SourceError, match="one record could take others with it") as caught:
        count(source, DOMAIN)
    # It says that there is such a field; neither where nor what is in it.
    assert str(caught.value).replace(source, "").count('"') == 0
    assert not any(character.isdigit() for character in str(caught.value).replace(source, ""))


def test_nothing_is_spent_on_a_refused_file(tmp_path):
    source = written(tmp_path / "d.csv", [*LINES, '"'])
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        with pytest.raises(SourceError):
            dphist.publish(source, DOMAIN, 1, ledger=book, dataset="people")
        assert book.spent("people") == 0


@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz", "d.csv.zst"])
def test_every_way_to_name_a_file_is_looked_at(name, tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder, extra in ((good, []), (bad, ['"'])):
        folder.mkdir()
        written(folder / f"1{name}", LINES)
        written(folder / f"2{name}", [*LINES, *extra])
    for form in (f"%s/2{name}", f"%s/*{name}", f"file://%s/2{name}"):
        assert count(form % good, DOMAIN).counts.sum() in (60, 120)
        with pytest.raises(SourceError, match="one record"):
            count(form % bad, DOMAIN)


@pytest.mark.parametrize("name", ["d.csv.gz", "d.csv.zst"])
def test_damaged_archives_are_refused_by_name(name, tmp_path):
    path = tmp_path / name
    written(path, LINES)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(SourceError, match="cannot be read"):
        count(str(path), DOMAIN)


def test_quoted_fields_on_one_line_are_read(tmp_path):
    source = written(tmp_path / "d.csv", ['"1","a"', '2, "b"', '"3" ,"say ""hi"", all"', '5" pipe,a'])
    counts = count(source, DOMAIN).counts
    assert [counts[1, 0], counts[2, 1], counts[3, 2], counts.sum()] == [1, 1, 1, 3]


def test_a_large_file_of_quoted_lines_is_read_whole(tmp_path):
    # DuckDB starts threads in the middle of the file; with every quote closed on its line they find their way.
    rows = [f'"{i % 9}","say ""hi"", all"' for i in range(300_000)]
    counts = count(written(tmp_path / "d.csv", rows), DOMAIN).counts
    assert counts[:, 2].sum() == 300_000
    assert np.ptp(counts[:, 2]) <= 1
