"""Rows by person and cell, against Python's own order."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.kernels.pairs import side_by_side


def rows(kind: str, size: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(5)
    people, cells = draw.integers(-(2**63), 2**63 - 1, size), draw.integers(-9, 9, size)
    if kind == "few people":
        people = draw.choice(people[:40], size)
    elif kind == "one has most":
        people = np.where(draw.random(size) < 0.9, people[0], draw.choice(people[:40], size))
    elif kind == "neighbouring numbers":
        people = draw.integers(-50, 50, size)
    elif kind == "wide cells":
        people, cells = draw.choice(people[:9], size), draw.integers(-(2**63), 2**63 - 1, size)
    elif kind == "far cells":
        people, cells = draw.choice(people[:9], size), draw.integers(0, 2**50, size)
    return people, cells


@pytest.mark.parametrize(
    "kind", ["any", "few people", "one has most", "neighbouring numbers", "wide cells", "far cells"]
)
def test_rows_are_side_by_side_and_in_order(kind: str) -> None:
    people, cells = rows(kind)
    found, ordered = side_by_side(people.copy(), cells)
    changes = np.flatnonzero(np.diff(found)) + 1
    assert len(changes) + 1 == len(set(people.tolist()))
    assert sorted(zip(found.tolist(), ordered.tolist(), strict=True)) == sorted(
        zip(people.tolist(), cells.tolist(), strict=True)
    )
    for piece in np.split(ordered, changes):
        assert (np.diff(piece.astype(object)) >= 0).all()


def test_no_rows_and_one() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert [each.tolist() for each in side_by_side(nothing, nothing)] == [[], []]
    assert [each.tolist() for each in side_by_side(np.array([-3]), np.array([8]))] == [[-3], [8]]
