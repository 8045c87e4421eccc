"""Large dense releases: what a file holds of each row group, and answers that are rounded where they stand."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.private import gate, noise, pricing
from dphist.private.noise import Keystream, Noise
from dphist.release import Release, writing

DOMAINS = {
    "cube": Domain([Ordinal("a", range(17)), Nominal("s", ["F", "M", "x"]), Ordinal("d", range(5, 105))]),
    "plane": Domain([Ordinal("a", range(300)), Ordinal("b", edges=[0, 0.5, 1, 2.5, 7])]),
    "levels": Domain([Ordinal("a", range(200)), Nominal("p", {"n": ["a", "b"], "s": ["c", "d", "e"]})]),
    "short": Domain([Nominal("one", ["only"]), Ordinal("b", range(1300))]),
    "days": Domain([Ordinal("day", dates=("2020-01-01", "2021-06-01", "1d")), Ordinal("b", range(3))]),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large, in small."""
    monkeypatch.setattr(writing, "_ROWS", 256)


def _release(name: str, mechanism: str, epsilon: float = 1) -> Release:
    domain = DOMAINS[name]
    counts = np.arange(domain.size) * 2654435761 % 7
    counts[5] = 100_000
    return dphist.publish(
        Histogram(domain, counts.reshape(domain.shape)), epsilon=epsilon, mechanism=mechanism, unattended=True
    )


@pytest.mark.parametrize("name", list(DOMAINS))
def test_row_groups_hold_what_their_rows_need(name: str, tmp_path: Path) -> None:
    """Every text of a group's dictionary is that of a row, and groups are told apart by the labels that differ."""
    _release(name, "laplace").save(tmp_path / "a.parquet")
    file = pq.ParquetFile(tmp_path / "a.parquet")
    labels = dphist.load(tmp_path / "a.parquet").to_arrow(confidence=None)
    begin, told = 0, set()
    for group in range(file.num_row_groups):
        table, stated = file.read_row_group(group), file.metadata.row_group(group)
        for place, column in enumerate(table.columns):
            name_of = table.column_names[place]
            if name_of in labels.column_names:
                here = labels.column(name_of).slice(begin, len(column)).to_pylist()
                assert column.to_pylist() == here
            for chunk in column.chunks:
                if hasattr(chunk, "dictionary"):
                    assert sorted(chunk.dictionary.to_pylist()) == sorted(set(column.to_pylist()))
            said = stated.column(place).statistics
            if said is not None:
                told.add(name_of)
                assert (said.min, said.max) == (min(column.to_pylist()), max(column.to_pylist()))
        begin += table.num_rows
    wanted = {"cube": {"a", "s"}, "plane": {"a"}, "levels": {"a"}, "short": {"one", "b"}, "days": {"day"}}
    assert told == wanted[name]
    question = f"select {labels.column_names[-2]}, count(*), sum(estimate) from $1 group by 1 order by 1"
    found = duckdb.sql(question.replace("$1", f"'{tmp_path}/a.parquet'")).fetchall()
    assert found == duckdb.sql(question.replace("$1", "labels")).fetchall()


def test_pages_have_checksums(tmp_path: Path) -> None:
    """One flipped byte of a page is found by any reader that looks."""
    _release("cube", "laplace").save(tmp_path / "a.parquet")
    raw = bytearray((tmp_path / "a.parquet").read_bytes())
    chunk = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(1).column(3)
    raw[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
    (tmp_path / "a.parquet").write_bytes(raw)
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(tmp_path / "a.parquet", page_checksum_verification=True)


def test_answers_are_rounded_where_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transcript and estimate share their memory, the file holds them once, and the replay is the release."""
    monkeypatch.setattr(gate, "_MANY", 1000)
    monkeypatch.setattr(pricing, "_BLOCK", 100)
    release = _release("cube", "laplace")
    answer = release.transcript[0].answer
    assert answer.dtype == np.float64
    assert np.shares_memory(answer, release.counts)
    assert not answer.flags.writeable
    release.verify()
    release.save(tmp_path / "a.parquet")
    dphist.load(tmp_path / "a.parquet").verify()


def test_two_threads_draw_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of a long vector get different noise of the same law; a test seed is drawn by one thread."""
    monkeypatch.setattr(noise, "_THREADS_PAY", 1 << 17)
    zeros = np.zeros(1 << 18, dtype=np.int64)
    drawn = Noise.system().add_laplace(zeros, Fraction(100))
    first, second = drawn[: 1 << 17], drawn[1 << 17 :]
    assert not np.array_equal(first, second)
    # The variance is 2·100²; so many draws hold it within a twentieth (eight deviations).
    for half in (first, second):
        assert 0.95 < half.var() / 20_000 < 1.05
    seeded = [Noise(Keystream.for_tests(3)).add_laplace(zeros, Fraction(100)) for _ in range(2)]
    monkeypatch.setattr(noise, "_THREADS_PAY", 1 << 30)
    seeded.append(Noise(Keystream.for_tests(3)).add_laplace(zeros, Fraction(100)))
    assert np.array_equal(seeded[0], seeded[1])
    assert np.array_equal(seeded[0], seeded[2])
