"""The mistakes of a first hour: none that is dangerous is accepted, and none ends in a bare error."""

from __future__ import annotations

import pytest

from dphist_bench.measurements.trust import mistakes

# What may go on, because it is what somebody may want; said in a warning where that is wise.
ACCEPTED = (
    "epsilon=50", "--epsilon 50", "visits, domain, epsilon=1)", "-o noledger.parquet", '{"F", "M"}', "unique()",
    ".max()",
)  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return list(mistakes.measure(quick=True))


def test_there_are_enough(rows):
    assert sum(row["where"] == "python" for row in rows) >= 100
    assert sum(row["where"] == "command" for row in rows) >= 65


def test_nothing_is_bare_and_whatever_is_accepted_is_told(rows):
    assert rows[-1]["outcome"] == "0 bare"
    for row in rows[:-1]:
        if row["outcome"] != "refused":
            assert row["outcome"] == "told", row
            assert any(words in row["mistake"] for words in ACCEPTED), row
        assert len(row["what is said"]) > 20, row
