"""Counts at the end of 64 bits, and rows in any order, thread or chunk."""

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dphist
from dphist.mechanisms.options import parse
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.sources import count
from dphist.testing.gates import as_histogram
from dphist_bench.audit.campaign import claims

EXTREMES = st.sampled_from([0, 1, 2, 3, 100, 2**31, 2**40, 2**53, 2**61, 2**62, 2**63 - 1])


def outcome(mechanism, counts, seed):
    """What is told of a run apart from its numbers: an exception is an output too."""
    right, _ = open_gate(as_histogram(counts), 1, Unit(), noise=Noise(Keystream.for_tests(seed)))
    try:
        estimate = mechanism.estimate(right)
    except Exception as error:
        return type(error).__name__, str(error)
    return estimate.counts.shape, bool(np.isfinite(estimate.counts).all())


@pytest.mark.slow
@pytest.mark.parametrize("text", claims())
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(counts=st.lists(EXTREMES, min_size=6, max_size=6), square=st.booleans(), seed=st.integers(0, 2**16))
def test_no_mechanism_raises_or_warns_because_of_a_count(text, counts, square, seed):
    # Warnings are errors in the suite, so a numpy warning that depends on the data would show here too.
    table = np.array(counts, dtype=np.int64).reshape((2, 3) if square else (6,))
    told = outcome(parse(text), table, seed)
    assert told == (table.shape, True) or told == ((table.size,), True)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    n = 20_000
    frame = pd.DataFrame(
        {"id": rng.integers(0, 3_000, n), "x": rng.integers(0, 20, n), "place": rng.choice(list("abc"), n)}
    )
    domain = dphist.Domain([dphist.Ordinal("x", range(20)), dphist.Nominal("place", ["a", "b", "c"])])
    return frame, domain


@pytest.mark.parametrize("unit", [dphist.Unit(), dphist.Unit(rows=2, id="id")])
def test_permuted_rows_threads_and_chunks_give_the_same_counts(rows, unit, tmp_path, monkeypatch):
    frame, domain = rows
    expected = count(frame, domain, unit)
    shuffled = frame.sample(frac=1, random_state=3)
    assert count(shuffled, domain, unit) == expected
    duckdb.sql("SELECT * FROM shuffled").write_parquet(str(tmp_path / "all.parquet"), row_group_size=2048)
    parts = tmp_path / "parts"
    parts.mkdir()
    for i in range(5):
        piece = shuffled.iloc[i::5]  # noqa: F841 -- DuckDB reads it by name
        duckdb.sql("SELECT * FROM piece").write_parquet(str(parts / f"{i}.parquet"))
    for threads in ("1", "4"):
        monkeypatch.setenv("DPHIST_THREADS", threads)
        assert count(str(tmp_path / "all.parquet"), domain, unit) == expected
        assert count(str(parts / "*.parquet"), domain, unit) == expected


def test_a_person_moves_at_most_their_own_rows(rows):
    frame, domain = rows
    unit = dphist.Unit(rows=2, id="id")
    expected = count(frame, domain, unit).counts
    for person in (0, 17, 2_999):
        without = count(frame[frame["id"] != person], domain, unit).counts
        assert (expected - without).min() >= 0
        assert (expected - without).sum() <= 2


@pytest.mark.parametrize(
    "odd", ["7", "1,2,3,4", '5" pipe,1', '"1","a, b"', "zebra;zebra", "\t|\t", "\xff\xfe,1"]
)
def test_one_odd_line_of_a_csv_file_changes_no_other_row(odd, tmp_path):
    # A reader that guesses separators and headers from the rows would see another table.
    domain = dphist.Domain([dphist.Ordinal("x", range(9)), dphist.Nominal("y", ["a", "b"])])
    lines = [f"{i % 9},{'ab'[i % 2]}" for i in range(60)]
    counts = []
    for extra in ([], [odd]):
        path = tmp_path / "d.csv"
        path.write_text("\n".join(["x,y", *lines, *extra]) + "\n", encoding="latin-1")
        counts.append(count(str(path), domain).counts)
    assert np.abs(counts[0] - counts[1]).sum() <= 1
    short = tmp_path / "short.csv"
    short.write_text(f"x,y\n1,a\n{odd}\n", encoding="latin-1")
    assert count(str(short), domain).counts[1, 0] == 1
