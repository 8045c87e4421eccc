import math

import numpy as np
import pytest

from dphist.errors import InputError
from dphist_bench import metrics


def test_cell_errors_on_numbers_worked_by_hand():
    truth, estimate = [10, 0, 4], [13, -1, 4]
    assert metrics.mean_squared_error(truth, estimate) == pytest.approx(10 / 3)
    assert metrics.mean_absolute_error(truth, estimate) == pytest.approx(4 / 3)
    assert metrics.mean_relative_error(truth, estimate, sanity=2) == pytest.approx((3 / 10 + 1 / 2) / 3)


def test_the_default_sanity_bound_is_a_thousandth_of_the_records_and_at_least_one():
    assert metrics.mean_relative_error([0, 10_000], [5, 10_000]) == pytest.approx(5 / 10 / 2)
    assert metrics.mean_relative_error([0, 3], [2, 3]) == pytest.approx(1.0)


@pytest.mark.parametrize("length", [1, 2, 5, 7])
def test_sliding_ranges_equal_the_loop(length):
    rng = np.random.default_rng(3)
    truth, estimate = rng.integers(0, 9, 7), rng.normal(size=7)
    loop = [
        (estimate[i : i + length].sum() - truth[i : i + length].sum()) ** 2 for i in range(7 - length + 1)
    ]
    assert metrics.sliding_range_error(truth, estimate, length) == pytest.approx(np.mean(loop))


def test_mean_error_of_all_intervals_against_writing_them_out():
    error = np.random.default_rng(1).normal(0, 3, 12)
    every = [error[i:j].sum() ** 2 for i in range(12) for j in range(i + 1, 13)]
    assert metrics.interval_error(np.zeros(12), error) == pytest.approx(np.mean(every))


def test_kl_by_hand():
    assert metrics.kl_divergence([1, 3], [2, 2]) == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))


def test_kl_treats_negative_and_zero_estimates_as_the_floor_where_there_are_records():
    # Cell 0 holds records and its estimate is raised to the floor; cell 2 is empty and only cut at zero.
    raised = metrics.kl_divergence([2, 2, 0], [-5, 3, -4], floor=0.5)
    assert raised == pytest.approx(0.5 * math.log(0.5 / (0.5 / 3.5)) + 0.5 * math.log(0.5 / (3 / 3.5)))
    assert metrics.kl_divergence([2, 2], [0, 3]) > metrics.kl_divergence([2, 2], [0, 3], floor=0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.mean_squared_error([1, 2], [1, 2, 3]),
        lambda: metrics.mean_squared_error([], []),
        lambda: metrics.kl_divergence([0, 0], [1, 1]),
        lambda: metrics.kl_divergence([1, 0], [1, 1], floor=0),
        lambda: metrics.sliding_range_error([1, 2], [1, 2], 3),
        lambda: metrics.mean_relative_error([1], [1], sanity=0),
    ],
)
def test_nonsense_is_refused_by_name(call):
    with pytest.raises(InputError):
        call()
