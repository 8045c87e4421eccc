"""The arithmetic of the noise measurement is right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphist_bench.measurements.speed import noise


@pytest.mark.parametrize("scale", [1, 10, 100])
def test_entropy_is_the_sum_over_the_law(scale):
    a = math.exp(-1 / scale)
    p = (1 - a) / (1 + a) * a ** np.abs(np.arange(-60 * scale, 60 * scale + 1))
    assert noise.entropy(scale) == pytest.approx(-(p * np.log2(p)).sum(), rel=1e-9)
    assert noise.bits_taken(scale) > noise.entropy(scale)
