from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist.kernels.wavelets import standard
from dphist.kernels.wavelets.axes import PlainAxis
from dphist.kernels.wavelets.haar import HaarAxis
from dphist.kernels.wavelets.nominal import NominalAxis
from dphist.mechanisms.privelet import shrink_subbands, thresholds
from dphist.model.domain import Nominal

TREES: dict[str, Any] = {
    "figure 3": {"left": ["a", "b", "c"], "right": ["d", "e", "f"]},
    "pairs": {"x": {"y": ["a", "b"], "z": ["c", "d"]}, "w": {"v": ["e", "f"], "u": ["g", "h"]}},
    "ragged": {
        "north": ["a", "b"],
        "south": {"coast": ["c"], "hills": ["d", "e", "f"]},
        "sea": {"one": {"two": ["g"]}},
    },
    "flat": ["a", "b", "c", "d", "e"],
    "one": ["only"],
    "chain": {"a": {"b": {"c": ["only"]}}},
    "leaf beside groups": [{"p": ["a", "b", "c"]}, "d", {"q": [{"r": ["e"]}, "f"]}],
}


def nominal(name, calibration="tight"):
    tree = Nominal("n", TREES[name]).hierarchy
    return NominalAxis(tree.parent, tree.leaves, calibration)


def some_axes(rng, count):
    kinds = [
        lambda: PlainAxis(int(rng.integers(1, 5))),
        lambda: HaarAxis(int(rng.integers(1, 70))),
        lambda: nominal(str(rng.choice(list(TREES))), str(rng.choice(["tight", "paper"]))),
    ]
    return [kinds[int(rng.integers(3))]() for _ in range(count)]


# ---- worked examples of Xiao et al. 2011 --------------------------------------------------------------------------


def test_figure_2():
    axis = HaarAxis(8)
    differences = standard.forward(np.array([9, 3, 6, 2, 8, 4, 5, 7]), [axis])
    leaves = np.where(axis.depths == 0, 8, 2 ** (4 - axis.depths))
    coefficients = differences / leaves
    assert coefficients[0] == 5.5
    assert coefficients[axis.depths == 1].tolist() == [-0.5]
    assert coefficients[axis.depths == 2].tolist() == [1, 0]
    assert coefficients[axis.depths == 3].tolist() == [3, 2, 2, -1]
    # Example 2: the second leaf is left of c1 and c2 and right of c4.
    assert 3 == 5.5 - 0.5 + 1 - 3


def test_figure_3():
    axis = nominal("figure 3")
    cells = np.array([9, 3, 6, 2, 8, 2])
    sums = standard.forward(cells, [axis]).astype(np.float64).reshape(1, -1, 1)
    axis.centre(sums)
    leaves, (left, right, root) = sums[0, :6, 0], sums[0, 6:, 0]
    assert (root, left, right) == (30, 3, -3)
    assert leaves[0] == 3
    assert leaves[0] + root / 2 / 3 + left / 3 == 9
    assert axis.sensitivity == 3


def test_figure_4():
    cells = np.array([[1, 2], [30, 400]])
    sums = standard.forward(cells, [HaarAxis(2), HaarAxis(2)])
    assert sums.tolist() == [[433, 1 - 2 + 30 - 400], [3 - 430, 1 - 2 - 30 + 400]]
    # The paper's base coefficient is the mean, of weight 4 (its Example 5 prints reciprocals).
    assert sums[0, 0] / 4 == cells.mean()


# ---- the transforms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_inverse_undoes_forward(dimensions):
    rng = np.random.default_rng(dimensions)
    for _ in range(25):
        axes = some_axes(rng, dimensions)
        cells = rng.integers(0, 10**6, [axis.size for axis in axes])
        coefficients = standard.forward(cells, axes)
        denominator = standard.denominator(axes)
        floats = coefficients.astype(np.float64)
        assert np.array_equal(standard.inverse(coefficients, axes), cells * denominator)
        np.testing.assert_allclose(standard.inverse(floats, axes) / denominator, cells, rtol=1e-9, atol=1e-6)


def test_integers_are_exact_modulo_a_word():
    rng = np.random.default_rng(3)
    axes = [HaarAxis(13), nominal("ragged")]
    cells = rng.integers(-(2**62), 2**62, (13, 7))
    with np.errstate(over="ignore"):
        expected = cells * np.int64(standard.denominator(axes))
    assert np.array_equal(standard.inverse(standard.forward(cells, axes), axes), expected)


@pytest.mark.parametrize("n", [*range(1, 20), 31, 32, 33, 101, 1001, 5000, 8191])
def test_padding_is_never_stored(n):
    axis = HaarAxis(n)
    nodes = 1 + sum(-(-n // 2**level) for level in range(1, axis.levels + 1))
    assert axis.slots == nodes
    assert axis.padded >= n
    assert n == 1 or axis.padded < 2 * n
    assert np.bincount(axis.depths, minlength=axis.levels + 1).tolist() == [1] + [
        -(-n // 2**level) for level in range(axis.levels, 0, -1)
    ]
    cells = np.random.default_rng(n).integers(0, 99, (2, n))
    inner = standard.forward(cells, [PlainAxis(2), axis])
    assert inner[:, 0].tolist() == cells.sum(axis=1).tolist()
    outer = standard.forward(np.ascontiguousarray(cells.T), [axis, PlainAxis(2)])
    assert np.array_equal(inner, outer.T), "both orders of memory must agree"
    assert np.array_equal(standard.inverse(inner, [PlainAxis(2), axis]), cells * axis.padded)


def test_haar_coefficients_are_differences_of_halves():
    n = 11
    axis = HaarAxis(n)
    rows = dense(axis)
    padded = {tuple(row) for row in rows.T.tolist()}
    expected = {tuple([1] * n)}
    for level in range(1, 5):
        for start in range(0, n, 2**level):
            place = np.arange(n)
            left = (place >= start) & (place < start + 2 ** (level - 1))
            right = (place >= start + 2 ** (level - 1)) & (place < start + 2**level)
            expected.add(tuple((left.astype(int) - right).tolist()))
    # A node whose right half is padding repeats its left child's sum; both are measured, as the paper does.
    assert padded == expected


@pytest.mark.parametrize("name", TREES)
def test_nominal_slots_are_the_nodes_with_a_choice(name):
    axis, tree = nominal(name), Nominal("n", TREES[name]).hierarchy
    spans = {tuple(range(a, b)) for a, b in zip(tree.start, tree.stop, strict=True)}
    assert {tuple(np.flatnonzero(column).tolist()) for column in dense(axis).T} == spans
    assert axis.slots == len(spans)
    assert set(np.unique(dense(axis))) <= {0, 1}


def dense(axis):
    """The forward map: a row per cell, a column per slot."""
    return standard.forward(np.eye(axis.size, dtype=np.int64), [PlainAxis(axis.size), axis])


def dense_inverse(axis):
    """The inverse map: a row per slot, a column per cell."""
    identity = np.eye(axis.slots)
    return standard.inverse(identity, [PlainAxis(axis.slots), axis]) / axis.denominator


# ---- how noise gathers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axis",
    [HaarAxis(n) for n in (1, 2, 3, 8, 13, 32)]
    + [nominal(name, how) for name in TREES for how in ("tight", "paper")]
    + [PlainAxis(6)],
    ids=str,
)
def test_spread_is_that_of_the_inverse_map(axis):
    values, index = axis.classes
    scales = np.array([float(value) for value in values])[index]
    low, high = (a.astype(np.int64) for a in np.triu_indices(axis.size + 1))
    below = np.concatenate([np.zeros((axis.slots, 1)), np.cumsum(dense_inverse(axis), axis=1)], axis=1)
    weights = np.abs((below[:, high] - below[:, low]) * scales[:, None])
    squares, largest = axis.spread(low, high)
    np.testing.assert_allclose(squares, (weights**2).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(largest, weights.max(axis=0), atol=1e-12)
    nodes = (
        (low == 0) & (high == axis.size) if isinstance(axis, NominalAxis) else np.ones(low.size, dtype=bool)
    )
    assert (squares[nodes] <= axis.bound + 1e-9).all(), "Lemmas 3 and 5"


# ---- thresholds --------------------------------------------------------------------------------------------


def sorted_threshold(values, variance):
    """CompThresh as mended: sort |c| descending, take the smaller root that lies between two neighbours."""
    x = np.sort(np.abs(values))[::-1]
    wanted = (x**2).sum() - (x.size - 1) * variance
    if wanted <= 0:
        return x[0]
    for i in range(x.size, 0, -1):
        alpha, beta = (x[:i] ** 2).sum(), x[:i].sum()
        inside = beta**2 - i * (alpha - wanted)
        if inside < 0:
            continue
        theta = (beta - np.sqrt(inside)) / i
        if (x[i] if i < x.size else 0.0) - 1e-9 <= theta <= x[i - 1] + 1e-9:
            return theta
    raise AssertionError("there is always a root")


def test_threshold_is_the_root_comp_thresh_looks_for():
    rng = np.random.default_rng(2)
    for size in (2, 3, 10, 500):
        for spread in (0.0, 0.5, 3.0, 50.0):
            values = spread * rng.standard_t(2, size) + rng.laplace(size=size)
            (theta,) = thresholds(np.abs(values)[None], 2.0)
            np.testing.assert_allclose(theta, sorted_threshold(values, 2.0), rtol=1e-7, atol=1e-9)


def test_threshold_of_pure_noise_removes_everything_and_one_coefficient_stays():
    assert thresholds(np.array([[0.5, 0.1, 0.2]]), 2.0) == 0.5
    assert thresholds(np.array([[1000.0]]), 2.0) == 0.0
    assert thresholds(np.zeros((1, 4)), 2.0) == 0.0


def test_subbands_are_shrunk_by_themselves():
    values = np.array([[100.0, 0.1, 50.0, -50.0, 0.2, 40.0]])
    order, starts = np.array([0, 1, 4, 2, 3, 5]), np.array([0, 1, 3, 6])
    shrink_subbands(values, order, starts, np.array([1.0, 1, 2, 2, 1, 2]), 2.0)
    assert values[0, 0] == 100.0
    assert values[0, 1] == values[0, 4] == 0.0
    theta = 2 * sorted_threshold(np.array([25.0, -25.0, 20.0]), 2.0)
    np.testing.assert_allclose(values[0, [2, 3, 5]], [50 - theta, theta - 50, 40 - theta])


def test_classes_are_exact():
    values, _ = nominal("figure 3", "paper").classes
    assert set(values) == {Fraction(1), Fraction(4, 3)}
