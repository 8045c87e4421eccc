"""Large dense releases: the file that is written by hand is the one that Arrow would write."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.inference.estimate import around
from dphist.kernels.coding import multiples, outward
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.private import gate, noise, pricing
from dphist.private.noise import Keystream, Noise
from dphist.release import Release, bounds
from dphist.release.file import large, writing
from dphist.release.file import parquet_pages as pages
from dphist.release.release import Release as _Release

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
    monkeypatch.setattr(writing, "LARGE", 500)
    monkeypatch.setattr(large, "_ROWS", 256)


def _release(name: str, mechanism: str, epsilon: float = 1) -> _Release:
    domain = DOMAINS[name]
    counts = np.arange(domain.size) * 2654435761 % 7
    counts[5] = 100_000
    return dphist.publish(
        Histogram(domain, counts.reshape(domain.shape)),
        epsilon=epsilon,
        mechanism=mechanism,
        unattended=True,
    )


def _both(release: Release, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    ours, theirs = folder / "ours.parquet", folder / "theirs.parquet"
    written: list[int] = []
    write = large.write

    def noted(*given: Any) -> None:
        written.append(1)
        write(*given)

    monkeypatch.setattr(large, "write", noted)
    release.save(ours)
    assert written
    monkeypatch.setattr(writing, "LARGE", 1 << 40)
    release.save(theirs)
    assert len(written) == 1
    return ours, theirs


@pytest.mark.parametrize("mechanism", ["laplace", "privelet", "gaussian"])
@pytest.mark.parametrize("name", list(DOMAINS))
def test_same_file(name: str, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema, metadata and every value are those of Arrow's writer, for Arrow, for DuckDB and for us."""
    if mechanism == "gaussian":
        domain = DOMAINS[name]
        release = dphist.publish(
            Histogram(domain, np.ones(domain.shape, dtype=np.int64)), rho=1, mechanism="gaussian"
        )
    else:
        release = _release(name, mechanism)
    ours, theirs = _both(release, tmp_path, monkeypatch)
    one, other = pq.read_table(ours), pq.read_table(theirs)
    assert one.schema.equals(other.schema, check_metadata=True)
    for column in one.column_names:
        assert one.column(column).to_pylist() == other.column(column).to_pylist()
    last = one.column_names[-4]
    question = f"select {last}, count(*), sum(estimate), min(low), max(high) from '%s' group by 1 order by 1"
    assert duckdb.sql(question % ours).fetchall() == duckdb.sql(question % theirs).fetchall()
    again = dphist.load(ours)
    again.verify()
    assert np.array_equal(again.counts, release.counts)


@pytest.mark.parametrize(("domain", "labels"), [("cube", "ad"), ("short", "b")])
def test_statistics_let_readers_skip(domain: str, labels: str, tmp_path: Path) -> None:
    """Row groups say between what their labels and numbers lie, whether a label comes often in a group or never."""
    _release(domain, "laplace").save(tmp_path / "a.parquet")
    table, described = (
        pq.read_table(tmp_path / "a.parquet"),
        pq.ParquetFile(tmp_path / "a.parquet").metadata,
    )
    begin = 0
    for group in range(described.num_row_groups):
        rows = described.row_group(group).num_rows
        here = table.slice(begin, rows)
        begin += rows
        for name in (*labels, "estimate", "low", "high"):
            told = described.row_group(group).column(table.column_names.index(name)).statistics
            values = here.column(name).to_pylist()
            assert (told.min, told.max) == (min(values), max(values)), (group, name)


def test_many_different_numbers_are_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where codes do not pay, numbers are written as they are."""
    monkeypatch.setattr(pages, "_CODES", 3)
    ours, theirs = _both(_release("cube", "laplace"), tmp_path, monkeypatch)
    for column in ("estimate", "low", "high"):
        assert (
            pq.read_table(ours).column(column).to_pylist() == pq.read_table(theirs).column(column).to_pylist()
        )


def test_what_does_not_suit_is_written_by_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that are missing, polished numbers, errors that differ from cell to cell."""
    other = Domain([Ordinal("a", range(300), other=True), Ordinal("b", range(4))])
    published = dphist.publish(
        Histogram(other, np.ones(other.shape, dtype=np.int64)),
        epsilon=1,
        mechanism="laplace",
        unattended=True,
    )
    monkeypatch.setattr(large, "write", None)
    for release in (
        published,
        _release("cube", "tree"),
        _release("cube", "laplace").polished(nonnegative=True),
    ):
        release.save(tmp_path / "a.parquet")
        dphist.load(tmp_path / "a.parquet").verify()


def test_bounds_are_rounded_outward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very large files hold bounds of few digits, never inside the release's own and at most 1/32 wider."""
    domain = Domain([Ordinal("a", range(2000))])
    release = dphist.publish(
        Histogram(domain, np.full(2000, 50)), epsilon=1, mechanism="privelet", unattended=True
    )
    low, high = bounds.block_bounds(release, 0, 2000, 0.95)
    monkeypatch.setattr(bounds, "COARSE", 1000)
    release.save(tmp_path / "a.parquet")
    again = dphist.load(tmp_path / "a.parquet")
    again.verify()
    table = pq.read_table(tmp_path / "a.parquet")
    found = [np.array(table.column(name).to_pylist()) for name in ("low", "high")]
    assert (found[0] <= low).all()
    assert (found[1] >= high).all()
    width = release.answer(where={"a": 5}).high - release.answer(where={"a": 5}).value
    assert ((low - found[0]) < width / 32).all()
    assert ((found[1] - high) < width / 32).all()
    assert len(set(found[1])) < 1000
    asked = again.answer(where={"a": 1500})
    assert asked.high - asked.value == pytest.approx(width)


def test_one_pass_is_the_formula() -> None:
    """The kernel's bounds are those of `around`, rounded."""
    stand = np.linspace(-9, 9, 1001)
    published = np.maximum(stand, -1.0)
    for widths in (np.array([2.3]), np.linspace(0.1, 4, 1001)):
        low, high = np.empty(1001), np.empty(1001)
        outward(stand, widths, published, 0.25, low, high)
        known = around(stand, widths, published)
        assert np.array_equal(low, np.floor(known.low * 4) / 4)
        assert np.array_equal(high, np.ceil(known.high * 4) / 4)


def test_numbers_that_are_no_multiples() -> None:
    """A fraction, an infinity or something that is no number has no code."""
    for odd in (0.5, np.inf, np.nan):
        assert pages.Coded.of(np.array([1.0, odd, 3.0])) is None
    assert multiples(np.array([1.0, 3.0]), 1.0) == (True, 1.0, 3.0)


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
