"""Engines are asked for few larger tables: every wanted one lies in a block, and its counts are added up exactly."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dphist.model.coded import CodedColumns, code_type
from dphist.model.domain import Domain, Ordinal
from dphist.sources import coded as module
from dphist.sources.coded import _counted, blocks_of


class Counting:
    """An engine that counts in memory, and remembers what it was asked for."""

    def __init__(self, records):
        self.records, self.asked = records, []

    def count_tables(self, keys, sizes, bound, batches):
        for batch in batches:
            self.asked += batch
            found = self.records.tables(batch)
            occupied = [np.flatnonzero(table) for table in found]
            yield (
                np.concatenate([np.full(len(cells), t) for t, cells in enumerate(occupied)]),
                np.concatenate(occupied),
                np.concatenate([table.reshape(-1)[c] for table, c in zip(found, occupied, strict=True)]),
            )


def records(sizes, rows=400):
    draw = np.random.default_rng(3)
    domain = Domain([Ordinal(f"c{axis}", range(size)) for axis, size in enumerate(sizes)])
    return CodedColumns(domain, tuple(draw.integers(0, s, rows).astype(code_type(s)) for s in sizes))


@pytest.mark.parametrize(
    "tables",
    [
        list(combinations(range(9), 2)),
        [(), (3,), (0, 1), (1, 0), (2, 4, 5), (4, 5), (8,)],
        [(8, 0)],
        [()],
    ],
)
def test_tables_are_what_counting_each_by_itself_gives(tables):
    held = records((2, 3, 40, 2, 5, 7, 30, 4, 11))
    engine: Any = Counting(held)
    found = _counted(engine, held.domain, [], None, tables)
    for axes, table in zip(tables, found, strict=True):
        order = np.argsort(axes)
        expected = held.tables([tuple(sorted(axes))])[0]
        assert table.shape == tuple(held.domain.shape[axis] for axis in axes)
        assert np.array_equal(np.transpose(table, order) if axes else table, expected)


def test_blocks_are_few_and_small():
    sizes = tuple(2 + 3 * axis % 29 for axis in range(24))
    pairs = list(combinations(range(24), 2))
    blocks = blocks_of(sizes, [*pairs, *((axis,) for axis in range(24)), ()])
    assert all(any(set(pair) <= set(block) for block in blocks) for pair in pairs)
    assert all(math.prod(sizes[axis] for axis in block) <= module._BLOCK for block in blocks)
    assert len(blocks) < len(pairs) / 2
