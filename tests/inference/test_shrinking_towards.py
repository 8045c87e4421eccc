"""Moving a table towards a model: noise goes, what is there stays, and long sums are kept."""

import numpy as np
import pytest

from dphist.inference.tables.fitting import settle
from dphist.inference.tables.posterior import Observed, posterior


def _towards(measured, variance, model, **options):
    return posterior(Observed(measured, variance, model, **options))[0]


def _noise(shape, laplace, seed=3):
    draw = np.random.default_rng(seed)
    return draw.laplace(0, np.sqrt(0.5), shape) if laplace else draw.normal(0, 1, shape)


@pytest.mark.parametrize("laplace", [False, True])
def test_a_true_model_takes_nearly_all_noise_out(laplace):
    model = np.full((64, 32), 0.05)
    found = _towards(model + 5 * _noise(model.shape, laplace), 25.0, model)
    assert np.mean((found - model) ** 2) < 0.02 * 25


@pytest.mark.parametrize("laplace", [False, True])
def test_where_the_model_is_wrong_the_measurement_stands(laplace):
    truth = np.where(np.arange(1024).reshape(32, 32) % 7 == 0, 400.0, 3.0)
    noise = 5 * _noise(truth.shape, laplace)
    found = _towards(truth + noise, 25.0, np.full(truth.shape, truth.mean()))
    assert np.mean((found - truth) ** 2) < 1.2 * 25


def test_a_slope_that_no_single_cell_shows_is_kept_in_sums():
    truth = np.linspace(0.0, 4.0, 1024)
    found = _towards(truth + 10 * _noise(1024, True), 100.0, np.full(1024, 2.0))
    # Half of it lies a quarter of the total away from what the model says; noise of that sum is 226.
    assert abs(found[:512].sum() - truth[:512].sum()) < 2.5 * 226 < 0.6 * (1024 - truth[:512].sum()) + 400


def test_settled_tables_are_shown_their_model():
    seen = {}

    def better(axes, values, model):
        seen[axes] = model
        return values

    known = {(): np.array(8.0), (0,): np.array([6.0, 2.0]), (1,): np.array([4.0, 4.0])}
    known[(0, 1)] = np.array([[6.0, 0.0], [-2.0, 4.0]])
    settled = settle((2, 2), [(0, 1)], known.__getitem__, better)
    assert list(seen) == [(0, 1)]
    np.testing.assert_allclose(seen[(0, 1)], [[3.0, 3.0], [1.0, 1.0]])
    np.testing.assert_allclose(settled[(0, 1)].sum(axis=1), [6.0, 2.0], atol=1e-3)


def test_a_table_of_two_by_two_is_one_difference_and_not_four():
    # That one lies one deviation off is what noise does: each cell half of its own.
    model, apart = np.full((2, 2), 100.0), np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = _towards(model + 50.0 * apart, 100.0**2, model)
    assert np.abs(found - model).max() < 2.5
    # Six deviations are none of noise, though no cell lies off by more than three.
    found = _towards(10.0 * model + 300.0 * apart, 100.0**2, 10.0 * model)
    assert np.abs(found - 10.0 * model - 300.0 * apart).max() < 60.0
