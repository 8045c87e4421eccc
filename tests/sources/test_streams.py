"""A stream of batches can be read once; whoever has to read it several times holds it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.publishing.suggest import suggest
from dphist.sources import coded as codes
from dphist.sources.coded import Passes, coded

NAMES = [f"q{place}" for place in range(20)]
DOMAIN = dphist.Domain([dphist.Ordinal(name, range(3)) for name in NAMES])


def records() -> pa.Table:
    return pa.table({name: np.arange(3000) % 3 for name in NAMES})


def test_passes_over_a_stream_see_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where codes are not kept, every table is another pass: all but the first had counted nobody."""
    monkeypatch.setattr(codes, "_KEPT", 10)
    held = coded(records().to_reader(), DOMAIN)
    assert isinstance(held, Passes)
    for _ in range(2):
        (table,) = held.tables([(0, 1)])
        assert table.tolist() == [[1000, 0, 0], [0, 1000, 0], [0, 0, 1000]]


def test_bounds_are_learned_from_a_stream() -> None:
    table = pa.table({name: np.tile(np.arange(20, 60), 500) for name in ("hours", "days")})
    found = suggest(table.to_reader(), ["hours", "days"], epsilon=2)
    assert [Fraction(measure.high) >= 57 for measure in found.measures] == [True, True]
