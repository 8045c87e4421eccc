"""Tables counted in blocks are the tables counted one by one."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dphist.errors import TooLargeError
from dphist.model import coded
from dphist.model.coded import CodedColumns, HistogramTables, code_type, count_blocks
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram

SIZES = (2, 3, 300, 5)
DOMAIN = Domain([Ordinal(f"x{axis}", range(size)) for axis, size in enumerate(SIZES)])
EVERY = [axes for order in range(5) for axes in combinations(range(4), order)]


def columns(rows: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], ...]:
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, size, rows).astype(code_type(size)) for size in SIZES)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 100])
def test_every_table_is_the_one_counted_alone(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coded, "_CHUNK", 8)
    held = CodedColumns(DOMAIN, columns(rows))
    cube = np.zeros(SIZES, dtype=np.int64)
    np.add.at(cube, tuple(column.astype(int) for column in held.columns), 1)
    # In any order, and with axes in any order; an order that shares prefixes is only faster.
    asked = [*EVERY[::-1], (2, 0), (3, 1, 0)]
    for axes, found in zip(asked, held.tables(asked), strict=True):
        kept = sorted(axes)
        summed = cube.sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        assert np.array_equal(found, np.transpose(summed, [kept.index(axis) for axis in axes]))
    other = HistogramTables(Histogram(DOMAIN, cube))
    assert all(np.array_equal(a, b) for a, b in zip(held.tables(asked), other.tables(asked), strict=True))


def test_blocks_add_up_and_are_told() -> None:
    held, told = columns(30), list[int]()
    blocks = [np.stack([column[i : i + 10].astype(np.int32) for column in held]) for i in (0, 10, 20)]
    found = count_blocks(DOMAIN, EVERY, blocks, told.append)
    assert told == [10, 10, 10]
    assert all(
        np.array_equal(a, b) for a, b in zip(found, CodedColumns(DOMAIN, held).tables(EVERY), strict=True)
    )


def test_a_domain_larger_than_any_integer_is_never_multiplied_out() -> None:
    domain = Domain([Ordinal(f"x{axis}", range(1000)) for axis in range(100)])
    assert domain.size == 1000**100
    held = CodedColumns(domain, tuple(np.full(3, axis, dtype=np.uint16) for axis in range(100)))
    (pair,) = held.tables([(7, 99)])
    assert pair[7, 99] == 3
    assert pair.sum() == 3
    with pytest.raises(TooLargeError, match="1,000,000,000 counts together"):
        held.tables([(1, 2, 3)])
