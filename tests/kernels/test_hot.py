"""Kernels that are not compiled yet: Python or a twin does the same, bit for bit, until there is much to do."""

import itertools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dphist
from dphist.inference.predictive import law as law_module
from dphist.kernels import compile as compiling
from dphist.kernels.predictive import halving, twins, visits
from dphist.kernels.trees import pruning, shares


def _shapes():
    yield (700,), ("auto", "tree", "adaptivetree"), 1
    yield (60,), ("auto",), 0.05
    yield (20, 9, 4), ("auto", "adaptivetree"), 1
    yield (16, 16), ("quadtree",), 0.3


def _same(one, other):
    if isinstance(one, tuple):
        return all(map(_same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
    return one is None or one == other


def test_twins_give_the_same_bits(monkeypatch):
    """Every twin that releases of several kinds call is held against its kernel."""
    compiling.started()
    called, tried = compiling._Kernel.__call__, set()

    def both(self, *arguments):
        if self.twin is None or compiling._running.inside:
            return called(self, *arguments)
        copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        name, expected, found = self.__name__, self.compiled()(*arguments), self.twin(*copies)
        if name == "ask_boxes":
            # A question's parts are added in another order.
            for one, other in zip(expected, found, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        elif name == "side_by_side" and not expected[0]:
            assert not found[0]
        else:
            assert _same(expected, found), name
            assert _same(arguments, tuple(copies)), name
        tried.add(name)
        return expected

    monkeypatch.setattr(compiling._Kernel, "__call__", both)
    # Few splits are worked out for few questions, however small the tree.
    monkeypatch.setattr(law_module, "_ALL_AT_ONCE", 0)
    rng = np.random.default_rng(5)
    for shape, mechanisms, epsilon in _shapes():
        domain = dphist.Domain([dphist.Ordinal(f"x{i}", range(size)) for i, size in enumerate(shape)])
        for kind in range(2):
            counts = rng.poisson(5 * np.exp(rng.normal(0, 2, shape))) * (rng.random(shape) < (0.1, 1)[kind])
            for mechanism in mechanisms:
                histogram = dphist.Histogram(domain, counts.astype(np.int64))
                release = dphist.publish(histogram, epsilon=epsilon, mechanism=mechanism)
                release.answer(dphist.Workload.random(domain, 20, 1))
                several = dphist.Workload.where(domain, x0=[1, 2, 5, 9, 12])
                release.answer(several)
                release.project("x0")
    assert {
        "side_by_side", "breadth_first", "gather_up", "hand_down", "divide_pools", "paint_boxes", "add_box_sums",
        "halve_families", "best_totals", "learn_ways", "infer_splits", "least_squares_splits", "path_variances",
        "ask_boxes", "infer_for_boxes", "largest_label", "part_sums", "two_ways", "cut", "prune", "level_cuts",
        "best_shares", "range_error",
    } <= tried  # fmt: skip


def test_guarantees_are_the_same_from_python_and_machine_code(monkeypatch):
    """What they stand on is worked out by Python as long as there is little to do."""
    compiling.started()
    called, tried = compiling._Kernel.__call__, []

    def both(self, *arguments):
        if self.__name__ not in ("whole_nodes", "cut_boxes") or compiling._running.inside:
            return called(self, *arguments)
        expected = self.compiled()(*arguments)
        assert _same(expected, self._uncompiled(*arguments)), self.__name__
        tried.append(self.__name__)
        return expected

    monkeypatch.setattr(compiling._Kernel, "__call__", both)
    rng = np.random.default_rng(6)
    for shape in ((300,), (20, 30)):
        domain = dphist.Domain([dphist.Ordinal(f"x{i}", range(size)) for i, size in enumerate(shape)])
        counts = rng.poisson(5 * np.exp(rng.normal(0, 2, shape)))
        release = dphist.publish(dphist.Histogram(domain, counts), epsilon=1, mechanism="adaptivetree")
        release.answer(dphist.Workload.random(domain, 15, 1), interval="guaranteed")
    assert {"whole_nodes", "cut_boxes"} <= set(tried)


def _both(kernel: Any, *arguments: Any) -> tuple[Any, list[Any]]:
    """What a kernel makes of its arguments, compiled and not: the same bits."""
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    given = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
    expected = kernel.compiled()(*given)
    assert _same(expected, kernel._uncompiled(*copies)), kernel.__name__
    assert all(map(_same, given, copies)), kernel.__name__
    return expected, given


@pytest.mark.parametrize(
    ("scatter", "ratio", "clump", "normal"),
    [(0.1, 1.15, 0.0, 0.0), (1.0, 1.35, 2.0, 0.0), (0.1, 1.15, 2.0, 3.0), (1.0, 1.35, 0.0, 0.3)],
)
def test_hidden_levels_are_the_same_before_they_are_compiled(scatter, ratio, clump, normal):
    from dphist.kernels.levels import chain, likelihood, packing

    rng = np.random.default_rng(7)
    values = np.concatenate([np.arange(-12, 40), [90, 333, 900]])
    grid = likelihood.level_grid(values, 0.7, ratio, normal)
    blank = np.zeros((values.size, grid.size))
    if normal:
        _, (*_, table) = _both(likelihood._normal_logs, values, grid, scatter, clump, normal, 0, blank)
        _, (table,) = _both(likelihood._rescaled, table)
    else:
        _, (*_, table) = _both(likelihood._laplace_likelihoods, values, grid, scatter, clump, 0.7, 0, blank)
    known: tuple[Any, ...] = likelihood._laplace_moments, values, grid, scatter, clump, 0.7, table
    if normal:
        known = likelihood._normal_moments, values, grid, scatter, clump, normal
    _, (*_, first, second) = _both(*known, blank, blank)
    size, (_, spans, told) = _both(
        packing._pack, table, np.zeros((values.size, 3), dtype=np.int64), np.zeros(table.size)
    )
    assert size == (spans[:, 1] - spans[:, 0]).sum()
    assert normal or (spans[:, 0] > 0).any()
    jump, weights = rng.dirichlet(np.ones(grid.size)), rng.dirichlet([90.0, 7.0, 3.0], grid.size)
    weights = np.ascontiguousarray(weights.T)
    none, empty = np.empty(0), np.empty((0, 0))
    for cells in (1, 2, 60):
        rows, forward = rng.integers(0, values.size, cells), np.zeros(cells * grid.size)
        asked = told, spans, rows, jump, weights, 0.6, forward
        _both(
            chain._stretch,
            *asked,
            np.ones(grid.size),
            np.ones((4, grid.size)),
            empty,
            empty,
            none,
            none,
            none,
        )
        means = (np.zeros(cells) for _ in range(3))
        _both(chain._stretch, *asked, none, np.zeros((4, grid.size)), first, second, *means)
        _both(chain._stretch, *asked, none, empty, empty, empty, none, none, none)


def test_tables_are_counted_alike_before_that_is_compiled():
    from dphist.kernels import tables

    rng = np.random.default_rng(8)
    sizes = np.array([3, 5, 2, 7])
    codes = np.stack([rng.integers(0, size, 1000) for size in sizes]).astype(np.uint8)
    # Of the last three two begin alike, and the one between them with one column more.
    axes = np.array([1, 0, 3, 0, 1, 2, 0, 1, 2, 3, 0, 1, 3])
    starts = np.array([0, 0, 1, 3, 6, 10, 13])
    cells = [int(np.prod(sizes[axes[a:b]])) for a, b in itertools.pairwise(starts)]
    offsets = np.cumsum([0, *cells])[:-1]
    out = np.zeros(sum(cells), dtype=np.int64)
    _, given = _both(tables.count_tables, codes, sizes, axes, starts, offsets, out, 128)
    assert given[5].sum() == 1000 * len(cells)


def test_what_is_foreseen_to_take_long_is_compiled_first(monkeypatch):
    """Twins do not begin what machine code would have to finish."""
    from dphist.kernels.levels import chain

    kernel: Any = chain._stretch
    monkeypatch.setattr(kernel, "foreseen", 0.0)
    monkeypatch.setattr(kernel, "spent", 0.0)
    monkeypatch.setattr(compiling, "_numba", None)
    monkeypatch.setattr(compiling, "_patience", 1e6)
    # Other tests may have asked for machine code from the first call on.
    monkeypatch.setattr(compiling, "_eager", False)
    arguments = np.zeros(36), np.zeros((4, 3)), np.zeros(10)
    assert not kernel._is_hot(arguments)
    chain.foresee_passes(10, 30)
    assert not kernel._is_hot(arguments)
    chain.foresee_passes(5_000, 30)
    assert kernel._is_hot(arguments)


def test_boxes_of_one_question_share_what_they_cut():
    from dphist.inference.predictive.engine import Engine

    ask_boxes: Any = visits.ask_boxes
    engine = Engine.of_cells(np.random.default_rng(1).poisson(9, (7, 11)), 2.0)
    low = np.array([[0, 0], [3, 2], [0, 0], [2, 5], [6, 0]])
    high = np.array([[3, 5], [7, 11], [7, 11], [3, 6], [7, 1]])
    weight, starts = np.array([1.0, -2.0, 0.5, 1.0, 1.0]), np.array([0, 3, 3, 5])
    # Leaves of many cells: every node above a certain size forgets its children.
    left = np.where(engine.size > 12, engine.left, -1)
    mean, slope, rest, variance, unevenness = engine._posterior
    plain = engine._plain
    # Two laws at once are each what it is alone.
    both = [np.stack(pair, axis=1) for pair in zip((mean, slope, rest), plain[:3], strict=True)]
    tops = np.array([variance[0], plain[3][0]])
    apart = np.array([0.0, 0.0, 0.0])
    for alike in (0.0, 0.7):
        shared: tuple[Any, ...] = (variance, unevenness, alike, low, high, weight, starts)
        arguments: tuple[Any, ...] = (left, engine.low, engine.high, *both, tops, *shared)
        expected = ask_boxes.compiled()(*arguments)
        for one, other in zip(expected, twins.ask_boxes(*arguments), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        for law in range(2):
            columns = [np.ascontiguousarray(each[:, law : law + 1]) for each in both]
            alone = ask_boxes.compiled()(*arguments[:3], *columns, tops[law : law + 1], *shared)
            assert _same(alone[0][:, 0], np.ascontiguousarray(expected[0][:, law]))
            assert _same(alone[1][:, 0], np.ascontiguousarray(expected[1][:, law]))
        assert (expected[2] >= apart).all()
        apart = expected[2]
    assert apart[0] > 1.5 * ask_boxes.compiled()(*arguments[:9], 0.0, *arguments[10:])[2][0]


def test_equal_scores_come_in_the_order_of_every_version():
    """numba's own quicksort made all releases so far; ours must part equal values as it did."""
    from numba import njit

    @njit
    def theirs(values):
        return np.argsort(values)

    rng = np.random.default_rng(1)
    for size, rounded in itertools.product((0, 1, 2, 15, 16, 17, 40, 333), (0, 1, 9)):
        values = np.abs(rng.normal(size=size).round(rounded))
        np.testing.assert_array_equal(pruning.quicksorted(values), theirs(values))


def test_plain_numbers_and_machine_code_agree():
    """What is shared and pruned with Python's own numbers while it is cold."""
    best_shares: Any = shares.best_shares
    rng = np.random.default_rng(2)
    for size, rounded in itertools.product((0, 9, 16, 40, 333, 2000), (0, 1, 9)):
        # Equal values have an order of their own.
        scores = rng.normal(rng.choice([0.0, 0.6]), 1, size=size).round(rounded)
        for name, given in (("mirror_threshold", scores), ("quicksorted", np.abs(scores))):
            kernel: Any = getattr(pruning, name)
            assert _same(kernel.compiled()(given), kernel.twin(given)), name
    arguments = (
        np.array([0.1, 0.5, 2.0, 9.0]), np.array([64.0, 16.0, 4.0, 1.0]), np.zeros(4), 0.9, 1, 1.0,
        np.array([0.1, 3.0]), np.array([0.5, 0.5]), 0.1,
    )  # fmt: skip
    # Without densities, by one descent: many levels, in both currencies.
    descents = [
        (rng.exponential(size=levels), 2.0 ** np.arange(levels)[::-1], np.zeros(levels), left, 0, 1.7,
         np.zeros(0), np.zeros(0), 1.0, power)
        for levels, left, power in itertools.product((3, 9, 13, 21), (1.0, 0.3), (1, 2))
    ]  # fmt: skip
    for case in [arguments, (*arguments, 1), *descents]:
        assert _same(best_shares.compiled()(*case), best_shares.twin(*case))
    halve_cells: Any = halving.halve_cells
    for shape in ((1,), (7,), (5, 8), (3, 1, 6)):
        assert _same(halve_cells.compiled()(np.array(shape)), halve_cells.twin(np.array(shape)))


def _count(values):
    total = 0
    for value in values:
        total += value
    return total


def test_a_kernel_is_compiled_once_it_is_hot(monkeypatch):
    compiling.started()
    monkeypatch.setattr(compiling, "_keep", False)
    monkeypatch.setattr(compiling, "_COLD", 100)
    monkeypatch.setattr(compiling, "_eager", False)
    warm: Any = compiling.kernel_once_hot(10.0)(_count)
    five = np.arange(5)
    results = [int(warm(five)) for _ in range(4)]
    assert results == [10] * 4
    # The first two were Python's: 50 and 100 microseconds.
    assert len(warm.compiled().signatures) == 1
    assert warm.spent == 150


_COLD_START = """
import json, sys
import numpy as np, dphist
domain = dphist.Domain([dphist.Ordinal("x", range(500))])
release = dphist.publish(dphist.Histogram(domain, np.full(500, 30)), epsilon=1)
release.answer("x between 3 and 40")
release.verify()
print(json.dumps("numba" in sys.modules))
"""


def test_a_small_release_needs_no_compiler(tmp_path):
    """Made, asked and verified with the default mechanism, and not even numba was loaded."""
    run = subprocess.run(
        [sys.executable, "-c", _COLD_START],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert json.loads(run.stdout) is False


_READ_ONLY = """
from dphist.inference.predictive import engine
from dphist.kernels import compile as compiling, machine
from dphist.cli import screen
compiling.announce_compilation(screen._compiling)
from numba.core import caching
# As on an installation that may only be read: nothing can be kept beside the package.
caching.CacheImpl._locator_classes.remove(caching.InTreeCacheLocator)
machine._folders = lambda: iter([machine.kept_folder()])
from dphist.kernels.normal import scaled_tail
print(scaled_tail(1.0))
"""


@pytest.mark.parametrize("home", [True, False])
def test_a_read_only_installation_works_and_says_where_its_cache_is(tmp_path, home):
    folder = tmp_path / "home"
    folder.mkdir()
    # Where there is no home either, machine code is made anew.
    place = str(folder) if home else "/proc/nowhere"
    run = subprocess.run(
        [sys.executable, "-c", _READ_ONLY],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
        | {"HOME": place, "XDG_CACHE_HOME": f"{place}/.cache"},
    )
    assert float(run.stdout) == pytest.approx(0.2615, abs=1e-3)
    if home:
        assert f"then kept in {folder}" in run.stderr
        assert list(folder.rglob("*.nbi"))
    else:
        assert "no folder to keep them in" in run.stderr


def test_periods_are_heard_alike_before_that_is_compiled():
    from dphist.kernels.trend import likeliest_period

    rng = np.random.default_rng(10)
    priors = np.array([0.0009, 0.01, 0.09, 1.0])
    for size, repeats in ((16, 1), (365, 7), (365, 1), (1000, 24), (1003, 60)):
        weight = rng.uniform(0.2, 3.0, size)
        departs = np.tile(rng.normal(0.0, 0.5, repeats), size // repeats + 1)[:size] if repeats > 1 else 0.0
        pull = weight * departs + np.sqrt(weight) * rng.standard_normal(size)
        found, _ = _both(likeliest_period, weight, pull, min(400, size // 4), 2, priors, 3.0)
        assert found[0] == repeats
        # None is tried.
        assert _both(likeliest_period, weight, pull, 1, 2, priors, 3.0)[0] == (1, 0)


def test_the_period_that_is_heard_has_the_most_evidence():
    from dphist.kernels.trend import likeliest_period

    rng = np.random.default_rng(11)
    weight = rng.uniform(0.2, 3.0, 700)
    pull = weight * np.tile(rng.normal(0.0, 0.2, 7), 100) + np.sqrt(weight) * rng.standard_normal(700)
    priors = np.array([0.0009, 0.01, 0.09, 1.0])
    nats = {}
    for period in range(2, 176):
        place = np.arange(700) % period
        told, pulled = (np.bincount(place, each) for each in (weight, pull))
        for which, prior in enumerate(priors):
            heard = prior * pulled**2 / (1 + prior * told) - np.log1p(prior * told)
            nats[period, which] = 0.5 * heard.sum() - 2 * np.log(period) - 3.0
    best = max(nats, key=nats.__getitem__)
    assert nats[best] > 0
    assert likeliest_period(weight, pull, 175, 2, priors, 3.0) == best
