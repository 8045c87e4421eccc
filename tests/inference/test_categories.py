"""Categories have no neighbours: rows that lean each their own way are believed and checked one by one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dphist.inference.tables.shrunk import TableNoise
from dphist.mechanisms import Marginals
from dphist.mechanisms.marginals import shrunk_cube
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing import run

ROWS, COLUMNS = 40, 64
DOMAIN = Domain([Nominal("ward", [f"w{v}" for v in range(ROWS)]), Ordinal("hour", range(COLUMNS))])
MARGINALS = Marginals(
    tables=((0,), (1,), (0, 1)),
    shares=(Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)),
    estimator="weighed",
)


def _leaning() -> np.ndarray:
    """Every other row leans to the left, the others to the right: neighbours together lean nowhere."""
    lean = 0.4 * np.sin(2.0 * np.pi * np.arange(COLUMNS) / COLUMNS)
    return np.rint(20.0 * (1.0 + np.where(np.arange(ROWS) % 2, 1.0, -1.0)[:, None] * lean)).astype(np.int64)


def _held(errors: Any, published: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    """Which part of the boxes' intervals held, and the root mean squared error."""
    boxes = Workload.random(DOMAIN, 300, seed=4)
    truth = np.asarray(boxes.answer(counts), dtype=np.float64)
    answers = errors.answer(boxes, np.asarray(boxes.answer(published), dtype=np.float64))
    found = errors.interval(boxes, answers, 0.95)
    return float(((found.low <= truth) & (truth <= found.high)).mean()), float(
        np.sqrt(((answers - truth) ** 2).mean())
    )


def test_rows_that_lean_each_their_own_way_are_found_and_held():
    counts = _leaning()
    both = []
    for seed in range(3):
        estimate: Any = run(MARGINALS, Histogram(DOMAIN, counts), "0.1", seed=seed)
        measured = estimate.errors.residuals
        cube, shrunk = shrunk_cube(measured)
        in_blocks = TableNoise(measured, cube, shrunk)
        both.append([_held(in_blocks, cube, counts), _held(estimate.errors, estimate.counts, counts)])
    before, after = np.mean(both, axis=0)
    assert before[0] < 0.85
    assert after[0] > 0.93
    assert after[1] < 0.85 * before[1]
