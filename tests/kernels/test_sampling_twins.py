"""The samplers' twins in NumPy give the same bits as the compiled loops, and spare small work the loading of numba."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from dphist.kernels import compile as compiling
from dphist.kernels.sampling import laplace as sampling
from dphist.kernels.sampling import twins as sampling_twins
from dphist.private.noise import Keystream, Noise


def compiled(name):
    return getattr(sampling, name).compiled()


@pytest.mark.parametrize("levels", [2, 3, 17, 40])
def test_binary_draws_are_the_same_and_so_are_those_left_open(levels):
    rng = np.random.default_rng(levels)
    n = 5000
    cells = rng.integers(0, 65536, levels, dtype=np.uint16)
    cells[-2] = 0
    words = rng.integers(0, 65536, levels * n, dtype=np.uint16)
    # Many ties, also several in one draw.
    ties = rng.random((levels, n)) < 0.05
    words[ties.reshape(-1)] = np.broadcast_to(cells[:, None], ties.shape)[ties]
    ours, theirs = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    left = sampling_twins.draw_binary(words, cells, ours)
    expected = compiled("draw_binary")(words, cells, theirs)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(left, expected)
    assert left.dtype == expected.dtype
    assert len(left) > n // 10


@pytest.mark.parametrize(("tailed", "first"), [(True, -40), (False, 0)])
def test_tabled_digits_are_the_same_and_so_are_those_left_open(tailed, first):
    rng = np.random.default_rng(7)
    # Floors crowd into few cells, so that binary searches have several steps, and some repeat.
    floors = np.sort(rng.integers(0, 1 << 63, 90, dtype=np.uint64))
    cells = np.sort(rng.choice(rng.integers(0, 65536, 12), 90)).astype(np.uint16)
    for cell in np.unique(cells):
        inside = cells == cell
        floors[inside] = np.sort(floors[inside])
    below = compiled("count_below")(cells)
    np.testing.assert_array_equal(sampling_twins.count_below(cells), below)
    assert sampling_twins.count_below(cells).dtype == below.dtype
    table = compiled("fill_table")(below, first)
    np.testing.assert_array_equal(sampling_twins.fill_table(below, first), table)
    assert sampling_twins.fill_table(below, first).dtype == table.dtype

    words = rng.integers(0, 1 << 64, 4000, dtype=np.uint64)
    words.view(np.uint16)[::7] = rng.choice(cells, len(words.view(np.uint16)[::7]))
    ours, theirs = np.empty(16000, dtype=np.int16), np.empty(16000, dtype=np.int16)
    positions = compiled("look_up")(words, table, theirs)
    found = sampling_twins.look_up(words, table, ours)
    np.testing.assert_array_equal(found, positions)
    np.testing.assert_array_equal(ours, theirs)
    assert found.dtype == positions.dtype
    assert len(positions) > 1000

    rests = rng.integers(0, 1 << 63, len(positions), dtype=np.uint64)
    rests[::5] = rng.choice(floors, len(rests[::5]))
    arguments = (words.view(np.uint16), positions, rests, below, floors, first, tailed)
    expected = compiled("settle_digits")(*arguments, theirs)
    np.testing.assert_array_equal(sampling_twins.settle_digits(*arguments, ours), expected)
    np.testing.assert_array_equal(ours, theirs)
    assert len(expected)


@pytest.mark.parametrize("lows", [0, 1, 3])
def test_digits_add_up_the_same(lows):
    rng = np.random.default_rng(lows)
    digits = rng.integers(0, 256, (lows + 1, 5004)).astype(np.int16)
    digits[lows] = rng.integers(-3000, 3000, 5004)
    values = rng.integers(-(1 << 40), 1 << 40, 5001)
    ours, theirs = np.empty_like(values), np.empty_like(values)
    sampling_twins.add_digits(digits, values, ours)
    compiled("add_digits")(digits, values, theirs)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("size", [1, 300, 70_000])
@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1), Fraction(700, 3), Fraction(10**9)])
def test_a_seed_means_the_same_noise_with_and_without_numba(size, scale, monkeypatch):
    from dphist.private.noise import laplace

    def draw():
        laplace.tabled.cache_clear()
        return Noise(Keystream.for_tests(3)).laplace(scale, size)

    with_numba = draw()
    for name in ("draw_binary", "count_below", "fill_table", "look_up", "settle_digits", "add_digits"):
        monkeypatch.setattr(sampling, name, getattr(sampling_twins, name))
    np.testing.assert_array_equal(draw(), with_numba)
    laplace.tabled.cache_clear()


_RELEASE = """
import json, sys
import numpy as np
import dphist
domain = dphist.Domain([dphist.Ordinal("x", range({cells}))])
release = dphist.publish(dphist.Histogram(domain, np.zeros({cells}, dtype=np.int64)), epsilon=1, mechanism="laplace")
from dphist.kernels import machine
print(json.dumps(["numba" in sys.modules or machine.loaded(), bool(np.any(release.counts))]))
"""


@pytest.mark.parametrize(("cells", "loaded"), [(1000, False), (100_000, False), (1 << 23, True)])
def test_machine_code_is_loaded_for_large_releases_only(cells, loaded):
    """By numba, or by a linker where an earlier process has compiled it."""
    run = subprocess.run(
        [sys.executable, "-c", _RELEASE.format(cells=cells)], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == [loaded, True]


def test_a_kernel_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(sampling.exp_neg)) is sampling.exp_neg  # noqa: S301 -- our own bytes


def test_patience_with_twins_ends(monkeypatch):
    monkeypatch.setattr(compiling, "_numba", None)
    monkeypatch.setattr(compiling, "_patience", 100)
    # Measurements in the same process may have asked for machine code at once.
    monkeypatch.setattr(compiling, "_eager", False)
    half = compiling.kernel_with_twin(np.negative, cost=1.0)(_negative)
    sixty = np.ones(60)
    for _ in range(2):
        np.testing.assert_array_equal(half(sixty), -sixty)
    assert compiling._patience == 40
    assert compiling._numba is not None


def _negative(values):
    return -values
