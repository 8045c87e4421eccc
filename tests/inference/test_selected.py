"""Intervals of keys that are shown because they reached a threshold: their coverage, given that, by the exact law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist import Domain, Nominal, Workload, publish
from dphist.inference.estimate import IndependentNoise
from dphist.inference.selected import SelectedNoise
from dphist.model.law import NoiseLaw

LAWS = [
    (NoiseLaw("gaussian", Fraction(100, 3)), 38),
    (NoiseLaw("gaussian", Fraction(4)), 13),
    (NoiseLaw("laplace", Fraction(3)), 30),
    (NoiseLaw("laplace", Fraction(1, 2)), 6),
]


def chances(law: NoiseLaw, threshold: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Which noisy counts are shown of a count, and how likely each is given that one is."""
    reach = int(60 * float(law.deviation)) + 60
    shown = np.arange(threshold, max(threshold, count) + reach)
    moved = (shown - count).astype(float)
    size = float(law.size)
    logs = -(moved**2) / (2 * size) if law.gaussian else -np.abs(moved) / size
    weights = np.exp(logs - logs.max())
    return shown.astype(float), weights / weights.sum()


@pytest.mark.parametrize(("law", "threshold"), LAWS)
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_the_truth_is_held_as_often_as_said_given_that_the_key_is_shown(
    law: NoiseLaw, threshold: int, confidence: float
) -> None:
    plain, least = 1.0, 1.0
    for count in [1, 2, threshold // 2, *range(threshold - 5, threshold + 6), 2 * threshold, 5 * threshold]:
        shown, chance = chances(law, threshold, max(1, count))
        errors = SelectedNoise(law, exact=True, threshold=threshold, counts=shown)
        low, high = errors.bounds(shown, confidence)
        held = float(chance[(low <= max(1, count)) & (max(1, count) <= high)].sum())
        # The normal tail stands for the discrete one, to within a few parts in a thousand.
        assert held >= confidence - 0.004, (count, held)
        width = law.quantile(confidence)
        plain = min(plain, float(chance[np.abs(shown - max(1, count)) <= width].sum()))
        least = min(least, held)
    # Without conditioning hardly any interval of a rare key that is shown would hold it.
    assert plain < 0.05 < least


def test_sums_lean_less_and_guaranteed_ones_hold_every_part() -> None:
    law, threshold = LAWS[0]
    domain = Domain([Nominal("page", [f"p{i}" for i in range(6)])])
    counts = np.array([38.0, 39.0, 44.0, 60.0, 400.0, 38.0])
    selected = SelectedNoise(law, exact=True, threshold=threshold, counts=counts)
    everything = Workload(domain, [[0]], [[6]])
    total = np.array([counts.sum()])
    usual = IndependentNoise(law).interval(everything, total, 0.95)
    ours = selected.interval(everything, total, 0.95)
    sure = selected.interval(everything, total, 0.95, guaranteed=True)
    assert sure.low[0] < ours.low[0] < usual.low[0]
    assert sure.high[0] >= ours.high[0]
    each = selected.interval(Workload.cells(domain), counts, 1 - 0.05 / 6)
    assert sure.low[0] == pytest.approx(each.low.sum())
    together = selected.interval(Workload.cells(domain), counts, 0.95, simultaneous=True)
    assert together.low.tolist() == each.low.tolist()
    # A question of several boxes is a sum as well.
    parts = Workload(domain, [[0], [3]], [[1], [4]], [0, 0])
    assert selected.interval(parts, np.array([98.0]), 0.95).low[0] < 98 - 2 * 5.8


def test_a_discovered_release_has_them() -> None:
    import pandas as pd

    pages = ["common"] * 3000 + ["known"] * 300
    release = publish(
        pd.DataFrame({"page": pages}), Domain([Nominal("page", discover=True)]), rho="0.015", delta="1e-9"
    )
    answer = release.answer(where={"page": "common"})
    # Six deviations of 5.8.
    assert abs(answer.value - 3000) < 60
    assert answer.low <= answer.value <= answer.high
    assert answer.method.startswith("exact for single names: ")
    release.verify()


@pytest.mark.parametrize(("law", "threshold"), LAWS[2:])
def test_the_ends_are_the_least_and_the_largest_count_of_the_theorem(law: NoiseLaw, threshold: int) -> None:
    scale = float(law.scale)

    def tail(m: int) -> float:
        """Pr[Z ≥ m] for a whole m, summed up."""
        far = np.arange(m, m + 2000) if m > 0 else np.arange(m, 2000)
        return float(np.exp(-np.abs(far) / scale).sum() * np.tanh(0.5 / scale))

    for value in (threshold, threshold + 1, threshold + 4, 2 * threshold):
        for beta in (0.5, 0.05):
            kept = [
                count
                for count in range(1, value + 60)
                if tail(value - count) / tail(threshold - count) >= beta / 2
                and 1 - tail(value + 1 - count) / tail(threshold - count) >= beta / 2
            ]
            seen = np.array([float(value)])
            low, high = SelectedNoise(law, exact=True, threshold=threshold, counts=seen).bounds(
                seen, 1 - beta
            )
            assert (low[0], high[0]) == (min(kept), max(kept)), (value, beta)


def test_a_cell_of_a_key_shown_by_its_neighbour_keeps_the_plain_interval_as_well() -> None:
    law, threshold = LAWS[2]
    counts = np.array([[30.0, 90.0], [31.0, 2.0]])
    low, high = SelectedNoise(law, exact=True, threshold=threshold, counts=counts).bounds(counts, 0.95)
    width = float(law.quantile(0.95))
    assert (high >= counts + width - 1).all()
    assert (low <= counts - width + 1).all()
    alone = SelectedNoise(law, exact=True, threshold=threshold, counts=counts[:, 0]).bounds(
        counts[:, 0], 0.95
    )
    assert (alone[1] < high[:, 0]).any()
    assert (low[:, 0] <= alone[0]).all()
