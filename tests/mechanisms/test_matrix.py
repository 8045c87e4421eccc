"""Strategies for fixed questions."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.mechanisms.matrix import Matrix
from dphist.model.workload import Workload
from dphist.testing import run
from dphist.testing.gates import as_histogram


def test_hints_are_heeded() -> None:
    x = np.arange(64)
    cells = Workload.cells(as_histogram(x).domain)
    estimate = run(Matrix(nonnegative=False), x, 1, seed=1, workload=cells)
    # Measuring cells alone: whole numbers come out.
    assert estimate.counts == pytest.approx(np.rint(estimate.counts))
