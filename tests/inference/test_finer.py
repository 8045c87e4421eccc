"""The inequality behind guaranteed intervals of finer answers, computed: integrals and sums of exponentials."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.inference import guaranteed

RATIOS = np.exp(np.linspace(np.log(1.01), np.log(20.0), 12))
FIRST = [sign * size for size in (0.0, 0.02, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88) for sign in (1, -1)]
SECOND = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.9)


def _theta(first, y, ratio):
    return max(abs(first) + y / ratio, y + abs(first) / ratio)


def _excess(square):
    return (-np.log1p(-square) - square) / square**2 if square > 1e-6 else 0.5


def _holds(first, y, ratio, weigh):
    """Whether the choice's cost covers what it may bring: ``weigh(k)`` gives log E[exp(xN₁)·max(1, exp(−k)·E[…])]."""
    theta = _theta(first, y, ratio)
    square = theta**2
    k = y**2 * (1 - 1 / ratio**2) + y**4 * _excess(square)
    most = first**2 + first**4 * _excess(square) + guaranteed._PICKED * y / (1 - square) ** 2
    return weigh(k) <= most


def _cases(ratio):
    for first in FIRST:
        for y in SECOND:
            if _theta(first, y, ratio) <= guaranteed._COMPUTED:
                yield first, y


def _given(n, y, ratio):
    """E[exp(yN₂) | N₁ = n] of continuous noise, s₂ = 1 and s₁ = ratio: N₂ is N₁ itself, or has a density of pieces."""
    far, q = np.abs(n), 1 / ratio
    along = np.where(n >= 0, y, -y)

    def mass(tilt):
        slope = tilt - 1 + q
        level = np.abs(slope) < 1e-9
        middle = np.where(level, far, np.expm1(slope * far) / np.where(level, 1.0, slope))
        return np.exp(-q * far) * (1 / (1 + q + tilt) + middle) + np.exp((tilt - 1) * far) / (1 + q - tilt)

    same = q * np.exp(-far * (1 - q))
    return same * np.exp(along * far) + (1 - same) * mass(along) / mass(np.zeros_like(far))


@pytest.mark.parametrize("ratio", RATIOS, ids=lambda r: f"{r:.2f}")
def test_choices_after_a_look_cost_no_more_than_is_charged(ratio):
    asked = 0
    for first, y in _cases(ratio):
        reach = min(30 * ratio / (1 - abs(first)), 300 * ratio)
        n = np.linspace(-reach, reach, 12_001)
        law = np.exp(-np.abs(n) / ratio + first / ratio * n)
        with np.errstate(over="ignore", invalid="ignore"):
            told = law * _given(n, y, ratio) * np.exp(-y * n / ratio**2)
        told = np.nan_to_num(told, nan=0.0, posinf=0.0)

        def weigh(k, law=law, told=told, first=first):
            # E[exp(xN₁)] is known, so the integral is taken beside it.
            return np.log(np.maximum(law, np.exp(-k) * told).sum() / law.sum()) - np.log1p(-(first**2))

        assert _holds(first, y, ratio, weigh), (first, y)
        asked += 1
    assert asked > 60


@pytest.mark.parametrize("fine", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("ratio", [1.02, 1.3, 1.7, 2.0, 3.0, 8.0])
def test_discrete_noise_obeys_it_too(fine, ratio):
    coarse, q = ratio * fine, 1 / ratio**2
    a, b = np.exp(-1 / coarse), np.exp(-1 / fine)
    n = np.arange(-int(45 * coarse) - 3, int(45 * coarse) + 4)
    m = np.arange(-int(40 * fine) - 3, int(40 * fine) + 4)
    same = b / a * ((1 - a) / (1 - b)) ** 2
    apart = n[:, None] - m
    joint = (
        (1 - b)
        / (1 + b)
        * b ** np.abs(m)
        * (same * (apart == 0) + (1 - same) * (1 - a) / (1 + a) * a ** np.abs(apart))
    )
    law = joint.sum(axis=1)
    for first, y in _cases(ratio):
        told = (joint * np.exp(y / fine * (m - q * n[:, None]))).sum(axis=1)

        def weigh(k, told=told, first=first):
            return np.log((np.exp(first / coarse * n) * np.maximum(law, np.exp(-k) * told)).sum())

        assert _holds(first, y, ratio, weigh), (first, y)


def test_the_charge_is_needed():
    """Without it, picking finer answers by the look would bias them further than the theorem allows."""
    ratio, y = 2.0, 0.03
    n = np.linspace(-60, 60, 12_001)
    law = np.exp(-np.abs(n) / ratio)
    told = law * _given(n, y, ratio) * np.exp(-y * n / ratio**2)
    k = y**2 * (1 - 1 / ratio**2)
    assert np.log(np.maximum(law, np.exp(-k) * told).sum() / law.sum()) > 0.75 * guaranteed._PICKED * y
