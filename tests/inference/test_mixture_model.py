"""A mixture of products, its fit, shrinking towards it, and records made from it."""

import itertools
from typing import Any

import numpy as np
import pytest

from dphist.errors import QueryError
from dphist.inference.tables.mixture import MixtureModel, NoisyTable, fit_mixture
from dphist.inference.tables.published import PublishedModel, deal, synthesise

SHAPE = (3, 4, 2)


def off(codes, table, axes):
    """The total variation distance between records' table and the published one."""
    cell = np.ravel_multi_index([codes[:, axis] for axis in axes], table.shape)
    found = np.bincount(cell, minlength=table.size).reshape(table.shape)
    return 0.5 * np.abs(found / len(codes) - table / table.sum()).sum()


def model(classes: int = 3, shape: tuple[int, ...] = SHAPE, seed: int = 1) -> MixtureModel:
    draw = np.random.default_rng(seed)
    rows = np.concatenate([draw.dirichlet(np.ones(size), classes).T for size in shape])
    return MixtureModel(shape, draw.dirichlet(np.ones(classes)), rows)


def test_tables_and_boxes_of_a_mixture_are_sums_of_its_cells():
    cube = model().table((0, 1, 2))
    assert cube.sum() == pytest.approx(1)
    assert np.allclose(model().table((2, 0)), cube.sum(axis=1).T)
    assert model().table(()) == pytest.approx(1)
    low, high = np.array([[0, 0, 0], [1, 1, 0], [2, 3, 1]]), np.array([[3, 4, 2], [3, 3, 2], [3, 4, 1]])
    wanted = [
        cube[tuple(slice(a, b) for a, b in zip(x, y, strict=True))].sum()
        for x, y in zip(low, high, strict=True)
    ]
    assert np.allclose(model().boxes(low, high), wanted)


def test_a_fit_finds_what_was_measured_and_is_the_same_again():
    truth = model(2, (4, 4, 4), 5)
    pairs = [NoisyTable(t, 1e5 * truth.table(t), 4.0) for t in itertools.combinations(range(3), 2)]
    found = fit_mixture((4, 4, 4), pairs, 1e5, components=12, steps=300, price=0.1)
    assert np.abs(found.table((0, 2)) - truth.table((0, 2))).sum() < 0.01
    assert np.abs(found.table((0, 1, 2)) - truth.table((0, 1, 2))).sum() < 0.1
    again = fit_mixture((4, 4, 4), pairs, 1e5, components=12, steps=300, price=0.1)
    assert np.array_equal(found.conditionals, again.conditionals)


def test_noise_without_dependence_is_not_fitted():
    draw = np.random.default_rng(3)
    pairs = [
        NoisyTable(t, 100.0 + draw.normal(0, 30, (8, 8)), 900.0) for t in itertools.combinations(range(4), 2)
    ]
    found = fit_mixture((8,) * 4, pairs, 6400.0, components=20, steps=300)
    raw = np.mean([np.abs(p.values / 6400 - 1 / 64).sum() for p in pairs])
    assert np.mean([np.abs(found.table(p.axes) - 1 / 64).sum() for p in pairs]) < 0.5 * raw


def test_records_keep_published_pairs_better_than_chance_would():
    truth = model(4, (6, 5, 4), 7)
    tables: dict[tuple[int, ...], Any] = {
        t: 3000 * truth.table(t) for t in itertools.combinations(range(3), 2)
    }
    made = synthesise(truth, tables, 3000, seed=4)
    dealt = deal(truth, 3000, seed=4)
    assert made.shape == (3000, 3)
    assert (made >= 0).all()
    assert (made.max(axis=0) < (6, 5, 4)).all()
    now, before = (np.mean([off(codes, table, t) for t, table in tables.items()]) for codes in (made, dealt))
    assert now < 0.004
    assert now < 0.5 * before
    assert np.array_equal(made, synthesise(truth, tables, 3000, seed=4))
    assert not np.array_equal(made, synthesise(truth, tables, 3000, seed=5))
    with pytest.raises(QueryError, match="negative"):
        deal(truth, -1)
    assert deal(truth, 0).shape == (0, 3)


def test_guesses_agree_with_published_pairs():
    guess = model(3, (3, 4, 2), 1)
    other = model(3, (3, 4, 2), 9)
    published = PublishedModel(guess, {t: 500 * other.table(t) for t in ((0, 1), (0, 2), (1, 2))})
    cube = published.table((1, 2, 0))
    assert np.allclose(cube.sum(axis=0).T, other.table((0, 2)), atol=2e-3)
    low, high = np.array([[0, 1, 0], [0, 0, 0]]), np.array([[2, 3, 1], [3, 4, 2]])
    assert np.allclose(published.boxes(low, high), [cube[1:3, 0:1, 0:2].sum(), 1.0], atol=1e-6)


def test_long_columns_are_fitted_against_the_others_alone_to_the_same_model(monkeypatch):
    """What a column would have said of itself was counted as nothing: leaving it out changes rounding alone."""
    shape, draw = (40, 5, 6, 30), np.random.default_rng(2)
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    tables = [NoisyTable((a, b), draw.uniform(0, 20, (shape[a], shape[b])), 4.0) for a, b in pairs]
    plain = fit_mixture(shape, tables, 3_000.0, components=8, steps=50)
    monkeypatch.setattr("dphist.inference.tables.mixture._LONG", 30)
    cut = fit_mixture(shape, tables, 3_000.0, components=8, steps=50)
    for axes in pairs:
        assert np.allclose(plain.table(axes), cut.table(axes), rtol=1e-3, atol=1e-6)
