"""Ratios of noisy numbers: what is said to be known holds, also where most denominators may be zero."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.inference.intervals import Spread
from dphist.inference.ratios import NoisyNumbers, fieller


def noisy(centre: np.ndarray, variance: float) -> NoisyNumbers:
    return NoisyNumbers(centre, Spread(np.full(centre.shape, variance), np.zeros(centre.shape)))


def known_and_right(filled: int, empty: int, draws: int) -> tuple[int, int]:
    """Means of 5 among groups of 12 records and groups of none, with noise of 2: how many are told, and are right."""
    random = np.random.default_rng(5)
    count = np.concatenate([np.full(filled, 12.0), np.zeros(empty)])
    told = right = 0
    for _ in range(draws):
        sums, counts = (truth + random.normal(0, 2, count.shape) for truth in (5 * count, count))
        low, high = fieller(noisy(sums, 4.0), noisy(counts, 4.0), 0.95, least=0.0, most=80.0, positive=True)
        known = (low > 0.0) | (high < 80.0)
        told += int(known.sum())
        right += int((known & (low <= 5) & (high >= 5) & (count > 0)).sum())
    return told, right


def test_groups_that_look_filled_by_luck_are_not_said_to_be_known() -> None:
    told, right = known_and_right(filled=20, empty=2_000, draws=40)
    # Some fifty of the empty groups look filled in each draw: told one by one, a quarter of what is known is right.
    assert told > 400
    assert right / told > 0.93


def test_what_is_known_everywhere_stands_as_it_did() -> None:
    sums, counts = noisy(np.array([500.0, 50.0]), 4.0), noisy(np.array([100.0, 90.0]), 4.0)
    together = fieller(sums, counts, 0.95)
    for place in range(2):
        one = fieller(sums[np.array([place])], counts[np.array([place])], 0.95)
        assert [end[place] for end in together] == [end[0] for end in one]


def test_unmeasured_groups_are_no_questions() -> None:
    variance = np.array([4.0, np.nan])
    numbers = NoisyNumbers(np.array([50.0, 50.0]), Spread(variance, np.zeros(2)))
    low, high = fieller(numbers, numbers, 0.95)
    assert low[0] < 1 < high[0]
    assert np.isnan(low[1])
    assert np.isnan(high[1])


@pytest.mark.parametrize("shared", [-5.0, 0.0, 5.0])
def test_at_both_ends_the_difference_is_as_large_as_its_noise_reaches(shared: float) -> None:
    a, b, va, vb = 50.0, 80.0, 9.0, 4.0
    above, below = (
        NoisyNumbers(np.array([n]), Spread(np.array([v]), np.zeros(1))) for n, v in ((a, va), (b, vb))
    )
    for end in fieller(above, below, 0.95, shared=np.array([shared])):
        assert (a - end[0] * b) ** 2 == pytest.approx(
            1.959964**2 * (va - 2 * end[0] * shared + end[0] ** 2 * vb), rel=1e-5
        )


def test_large_sums_with_little_noise_keep_their_width() -> None:
    above, below = noisy(np.array([3e14]), 1.0), noisy(np.array([1e14]), 1.0)
    low, high = fieller(above, below, 0.95)
    expected = 1.96 * np.sqrt(1 + 9) / 1e14
    assert (high[0] - low[0]) / 2 == pytest.approx(expected, rel=0.1)
