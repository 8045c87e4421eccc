"""Replicates: sums over draws of a table spread as its model says of every kind, and are the same for everybody."""

from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.inference import models
from dphist.inference.estimate import Estimate, IndependentNoise, NoiseErrors, NoisyCells, PieceNoise
from dphist.inference.linear import (
    BucketNoise,
    CellBound,
    Cuts,
    DenseNoise,
    LeafNoise,
    PrefixNoise,
    WaveletNoise,
    WaveNoise,
)
from dphist.inference.measured import MeasuredTree
from dphist.inference.pieces import PartErrors, PartNoise
from dphist.inference.predictive.errors import MeasuredBlocks, MeasuredCells, PredictiveErrors
from dphist.inference.predictive.law import BinaryTree, Law
from dphist.inference.replicates import replicate
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.errors import ResidualNoise, StagedNoise
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import AxisNoise, Measured, TableResiduals
from dphist.inference.tables.shrunk import TableNoise
from dphist.inference.trees import RunNoise, TreeNoise
from dphist.kernels.hashing import Normals
from dphist.kernels.wavelets.axes import PlainAxis
from dphist.kernels.wavelets.haar import HaarAxis
from dphist.kernels.wavelets.nominal import NominalAxis
from dphist.mechanisms.marginals import shrunk_cube
from dphist.model.contrasts import contrasts_of
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.pieces import ByValues
from dphist.model.workload import Workload

LINE = Domain([Ordinal("x", range(8))])
PLANE = Domain([Ordinal("x", range(4)), Ordinal("y", range(3))])
COUNTS = np.array([9.0, 4.0, 0.0, 7.0, 30.0, 31.0, 2.0, 5.0])
LAW, WIDE = NoiseLaw("laplace", Fraction(20)), NoiseLaw("gaussian", Fraction(700))
TREE = MeasuredTree.of(
    (8,),
    [-1, 0, 0, 1, 1, 1, 1],
    [[0], [0], [4], [0], [1], [2], [3]],
    [[8], [4], [8], [1], [2], [3], [4]],
    [88, 20, 68, 9, 4, 0, 7],
    [np.inf, 700.0, 400.0, 800.0, 800.0, 90.0, 800.0],
)
CUTS = Cuts(
    np.array([1, -1, -1]),
    np.array([-1, 0, 0]),
    np.array([[0], [0], [5]]),
    np.array([[8], [5], [8]]),
    np.array([0, 0, 0, 0, 0, 1, 1, 1]),
)
ROOT = np.tril(np.ones((8, 8))) * np.arange(1.0, 9.0)
EVEN = np.full(12, 10.0)


def residuals():
    """A tree along the first axis, and a table of both."""
    tree = contrasts_of(PLANE.attributes[0])
    noise = {0: AxisNoise(tree, np.array([3.0, 5.0]), np.array([1.0, 1.0]))}
    total = Measured((), np.array(90.0), 300.0, 10.0)
    second = Measured((1,), np.array([30.0, 20.0, 40.0]), 200.0, 10.0)
    contrasts = Measured((0,), np.array([9.0, 1.0, 3.0]), 50.0, 5.0)
    both = Measured((0, 1), np.ones((3, 3)), 60.0, 5.0)
    return TableResiduals((4, 3), [total, second, contrasts, both], noise)


MODELS: dict[str, Any] = {
    "independent": (LINE, IndependentNoise(LAW)),
    "noisy cells": (LINE, NoisyCells(COUNTS + 3.0, LAW)),
    "pieces": (LINE, PieceNoise((8,), np.array([0, 0, 1, 1, 1, 2, 2, 2]), np.array([9.0, 20.0, 5.0]))),
    "tree": (LINE, TreeNoise(TREE)),
    "tree, projected": (LINE, TreeNoise(TREE, projected=True)),
    "leaves": (LINE, LeafNoise(CUTS, np.array([0.1, 0.2]), 20.0, 30.0, False, "", COUNTS)),
    "dense": (LINE, DenseNoise(ROOT @ ROOT.T)),
    "prefix sums": (LINE, PrefixNoise(np.power(0.8, np.arange(8.0)), WIDE)),
    "runs": (LINE, RunNoise((8,), TreeNoise(TREE), COUNTS, np.ones(8))),
    "wavelets": (LINE, WaveletNoise((HaarAxis(8),), WIDE)),
    "wavelets, groups": (
        PLANE,
        WaveletNoise(
            (NominalAxis(np.array([-1, 0, 0, 1, 1, 2, 2]), np.array([3, 4, 5, 6]), "paper"), PlainAxis(3)),
            WIDE,
        ),
    ),
    "waves": (LINE, WaveNoise((8,), (3,), "cosine", 20.0)),
    "waves, fourier": (PLANE, WaveNoise((4, 3), (2, 2), "fourier", 20.0)),
    "noise of parts": (
        PLANE,
        PartNoise(
            ByValues(PLANE, ("y",)), tuple(IndependentNoise(NoiseLaw("laplace", 5.0 * n)) for n in (1, 2, 3))
        ),
    ),
    "tables": (
        PLANE,
        TableNoise(
            MeasuredTables((4, 3), ((0,), (0, 1)), (np.full(4, 30.0), np.full((4, 3), 9.0)), (4.0, 9.0))
        ),
    ),
    "residuals": (PLANE, ResidualNoise(residuals())),
    "stages": (PLANE, StagedNoise(residuals(), (residuals(), residuals()))),
}
ONLY = TableNoise(MeasuredTables((4, 3), ((0,),), (np.full(4, 30.0),), (4.0,)))
BOUNDS: dict[str, Any] = {
    "groups": (LINE, BucketNoise(np.array([3, 5]), IndependentNoise(LAW))),
    "group bound": (
        LINE,
        CellBound((8,), np.array([0, 1, 0, 1, 0, 1, 1, 1]), np.array([3, 5]), IndependentNoise(LAW)),
    ),
}
"""Kinds whose variances are bounds."""
HALVED = BinaryTree.of_tree(TREE)
GIVEN = Law(
    HALVED,
    np.linspace(-3.0, 3.0, HALVED.splits.size + 1),
    np.linspace(1.0, 0.2, HALVED.splits.size + 1),
    np.linspace(300.0, 90.0, HALVED.splits.size + 1),
    np.array([0.5, 0.4, 0.3, 0.2]),
    0.0,
    np.ones(4),
    *(0.0, 0.0, 1.3),
)
"""A law by numbers of its own, so that nothing is learned."""
LAWS: dict[str, Any] = {
    "predictive": (LINE, PredictiveErrors(MeasuredBlocks(TREE), law=GIVEN)),
    "predictive, cells": (
        LINE,
        PredictiveErrors(MeasuredCells(COUNTS.astype(int), LAW), COUNTS),
    ),
    "parts": (
        PLANE,
        PartErrors(
            ByValues(PLANE, ("y",)),
            tuple(PredictiveErrors(MeasuredCells(np.arange(4) * 9, LAW)) for _ in range(3)),
            (np.arange(4.0) * 9,) * 3,
        ),
    ),
}
"""Kinds that draw the truth and not noise."""


def sums(domain, errors, draws=2000, counts=None):
    """The questions, and what they come to for every draw."""
    asked = Workload.all_ranges(domain) if len(domain.shape) == 1 else Workload.random(domain, 40, seed=4)
    counts = (COUNTS if domain is LINE else EVEN) if counts is None else counts
    draw = replicate(Estimate(counts.reshape(domain.shape), errors), None, domain.shape)
    every = [draw(Normals(b"a test", number)).reshape(domain.shape) for number in range(draws)]
    return asked, np.stack([np.asarray(asked.answer(each), dtype=np.float64) for each in every])


@pytest.mark.parametrize("name", MODELS)
def test_sums_of_replicates_spread_as_the_model_says(name):
    domain, errors = MODELS[name]
    asked, found = sums(domain, errors)
    variance = errors.variance(asked)
    known = variance > 1e-6
    assert np.abs(found.var(axis=0)[known] / variance[known] - 1.0).max() < 0.14
    assert found.var(axis=0)[~known].max(initial=0.0) < 1e-6
    summed = np.asarray(asked.answer((COUNTS if domain is LINE else EVEN).reshape(domain.shape)))
    stand = errors.stand(asked, summed)[0]
    off = np.abs(found.mean(axis=0) - stand) / np.sqrt(np.maximum(variance, 1e-6) / len(found))
    assert off.max() < 4.0


@pytest.mark.parametrize("name", BOUNDS)
def test_where_variances_are_bounds_replicates_keep_within(name):
    domain, errors = BOUNDS[name]
    asked, found = sums(domain, errors)
    ratio = found.var(axis=0) / errors.variance(asked)
    assert ratio.max() < 1.1
    # Whole groups have their own noise.
    assert ratio.max() > 0.9


@pytest.mark.parametrize("name", LAWS)
def test_draws_of_a_law_are_off_by_what_intervals_say(name):
    domain, errors = LAWS[name]
    asked, found = sums(domain, errors)
    summed = np.asarray(asked.answer((COUNTS if domain is LINE else EVEN).reshape(domain.shape)))
    if isinstance(errors, PartErrors):
        ends = errors.interval(asked, found.mean(axis=0), 0.95)
        wanted = ((ends.high - errors.answer(asked, summed)) / 1.96) ** 2
        summed = errors.answer(asked, summed)
    else:
        wanted = errors.squares(asked.low, asked.high, None, summed)
    ratio = ((found - summed) ** 2).mean(axis=0) / wanted
    # Least squares, where it promises less of one question, is no law of all cells.
    assert 0.8 < np.median(ratio) < 1.25
    assert ratio.min() > 0.5


@pytest.mark.parametrize("alike", [0.0, 0.7])
def test_a_given_law_is_drawn_with_its_own_means_and_variances(alike):
    law = replace(GIVEN, alike=alike)
    asked, found = sums(LINE, PredictiveErrors(MeasuredBlocks(TREE), law=law))
    said = law.ask(asked.low, asked.high)
    variance = law.overlap * (said.known + said.inner)
    assert np.abs(found.var(axis=0) / variance - 1.0).max() < 0.14
    assert (np.abs(found.mean(axis=0) - said.mean) / np.sqrt(variance / len(found))).max() < 4.0


def test_a_shrunk_cube_is_off_by_what_its_own_model_doubts():
    shape, place = (6, 5, 4), np.indices((6, 5, 4)).sum(axis=0)
    noise = 12.0 * Normals(b"noise", 0)(120).reshape(shape)
    tables = MeasuredTables(
        shape,
        ((0,), (1,), (0, 1, 2)),
        (
            noise.sum(axis=(1, 2)) / 5 + 60.0,
            noise.sum(axis=(0, 2)) / 5 + 70.0,
            3.0 + 20.0 * (place < 3) + noise,
        ),
        (9.0, 9.0, 9.0),
    )
    counts, shrunk = shrunk_cube(tables)
    domain = Domain([Ordinal(name, range(size)) for name, size in zip("xyz", shape, strict=True)])
    draw = replicate(Estimate(counts, TableNoise(tables, counts, shrunk)), None, shape)
    asked = Workload.random(domain, 60, seed=4)
    found = np.stack(
        [
            np.asarray(asked.answer(draw(Normals(b"s", n)).reshape(shape)), dtype=np.float64)
            for n in range(500)
        ]
    )
    # Its squares bound what a box takes of every block: the mean over boxes is near, and none is far above.
    ratio = found.var(axis=0) / shrunk.squares(asked.low, asked.high)
    assert 0.6 < np.median(ratio) < 1.2
    assert ratio.max() < 1.6


def test_keys_that_their_noise_was_kind_to_lean_down():
    counts = np.array([41.0, 90.0, 40.0, 300.0, 45.0, 44.0, 42.0, 43.0])
    errors = SelectedNoise(LAW, threshold=40, counts=counts)
    found = sums(LINE, errors, 200, counts)[1]
    cells = np.flatnonzero(Workload.all_ranges(LINE).cells_in_each == 1)
    assert (found[:, cells].mean(axis=0)[[0, 2]] < 25.0).all()


def test_every_kind_of_errors_is_drawn():
    known = {
        models._NAMES[type(errors)] for _, errors in (*MODELS.values(), *BOUNDS.values(), *LAWS.values())
    }
    assert set(models.KINDS) - known == {"selected", "mixture", "raked", "published"}


@pytest.mark.parametrize("name", ["tables", "residuals"])
def test_tables_of_one_draw_agree_with_each_other_and_spread_as_the_model_says(name):
    tables, errors = [(), (0,), (1,), (0, 1)], MODELS[name][1]
    published = {axes: errors.residuals.table(axes) for axes in tables}
    draw = replicate(TableEstimate(published, errors), tables, (4, 3))
    every = np.stack([draw(Normals(b"s", number)) for number in range(1000)])
    cells = every[:, 8:].reshape(-1, 4, 3)
    assert np.abs(every[:, 0] - cells.sum(axis=(1, 2))).max() < 1e-3
    assert np.abs(every[:, 1:5] - cells.sum(axis=2)).max() < 1e-3
    assert np.abs(every[:, 5:8] - cells.sum(axis=1)).max() < 1e-3
    variance = errors.variance(Workload.cells(PLANE))
    assert np.abs(every[:, 8:].var(axis=0) / variance - 1.0).max() < 0.17
    assert np.isnan(replicate(TableEstimate(published, ONLY), [(0, 1)], (4, 3))(Normals(b"s", 0))).all()


def test_what_nobody_said_how_to_draw_is_named():
    class Mine(NoiseErrors):
        method = ""

    mine: Any = Mine()
    with pytest.raises(MechanismError, match="nobody has said how Mine is drawn"):
        replicate(Estimate(COUNTS, mine), None, (8,))
    with pytest.raises(MechanismError, match="nobody has said how Mine is drawn"):
        replicate(TableEstimate({(): np.array(3.0)}, mine), [()], (8,))


GOLDEN = {
    "independent": "01597543cc3e7847",
    "tree": "254283910e9f23af",
    "predictive": "53961a5f183bae46",
    "wavelets": "000c10fd2957229d",
    "residuals": "a892db5518467a21",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_columns_are_the_same_for_ever(name):
    domain, errors = {**MODELS, **LAWS}[name]
    counts = COUNTS if domain is LINE else EVEN
    draw = replicate(Estimate(counts.reshape(domain.shape), errors), None, domain.shape)
    columns = np.stack([draw(Normals(b"for ever", number)) for number in range(3)])
    assert blake2b(columns.tobytes(), digest_size=8).hexdigest() == GOLDEN[name]


def test_numbers_are_nearly_normal_and_one_after_the_other_are_not_alike():
    normals = Normals(b"s", 7)
    one, other = normals(200_000), normals(200_000)
    assert abs(one.mean()) < 0.01
    assert abs(one.var() - 1.0) < 0.015
    assert abs((one**4).mean() - 2.85) < 0.08
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.01
    assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 0.01
    assert np.array_equal(Normals(b"s", 7)(300_000)[:200_000], one)
