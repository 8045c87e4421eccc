"""The segmentation kernels against brute force over every partition, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

import textbook
from dphist.kernels.buckets.segmentation import Rows, segment


def bucket_cost(values, loss):
    values = [int(v) for v in values]
    if loss == "squared":
        return sum(v * v for v in values) - Fraction(sum(values) ** 2, len(values))
    middle = sorted(values)[(len(values) - 1) // 2]
    return Fraction(sum(abs(v - middle) for v in values))


def cost_of(values, starts, loss):
    cuts = [*map(int, starts), len(values)]
    return sum(bucket_cost(values[a:b], loss) for a, b in pairwise(cuts))


def best_by_bins(values, loss):
    """The least cost for every number of buckets, by the recurrence in exact fractions."""
    n = len(values)
    costs = {(a, b): bucket_cost(values[a:b], loss) for a in range(n) for b in range(a + 1, n + 1)}
    rows = [{t: costs[0, t] for t in range(1, n + 1)}]
    for j in range(2, n + 1):
        rows.append({t: min(rows[-1][q] + costs[q, t] for q in range(j - 1, t)) for t in range(j, n + 1)})
    return [row[n] for row in rows], rows


def random_values(draw):
    """Small inputs of every kind: many ties, runs, negative values, spikes, huge counts."""
    n = int(draw.integers(1, 15))
    kind = draw.integers(6)
    if kind == 0:
        return draw.integers(0, 3, n)
    if kind == 1:
        return np.repeat(draw.integers(0, 6, n), draw.integers(1, 4, n))[:n]
    if kind == 2:
        return draw.integers(-50, 50, n)
    if kind == 3:
        return np.zeros(n, dtype=np.int64)
    if kind == 4:
        return np.where(draw.random(n) < 0.2, 2**40 + draw.integers(0, 5, n), draw.integers(-3, 4, n))
    return draw.integers(0, 10**7, n)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_penalised_equals_brute_force(loss):
    draw = np.random.default_rng(1)
    for _ in range(500):
        values = random_values(draw)
        by_bins, _ = best_by_bins(values, loss)
        price = Fraction(int(draw.integers(0, 400)), int(2 ** draw.integers(0, 9)))
        starts = segment(values, price=price, loss=loss)
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        best = min(cost + price * (k + 1) for k, cost in enumerate(by_bins))
        assert cost_of(values, starts, loss) + price * len(starts) == best


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_fixed_equals_brute_force(loss):
    draw = np.random.default_rng(2)
    for _ in range(250):
        values = random_values(draw)
        by_bins, _ = best_by_bins(values, loss)
        for bins in range(1, len(values) + 1):
            starts = segment(values, bins=bins, loss=loss)
            assert len(starts) == bins
            assert starts[0] == 0
            assert (np.diff(starts) > 0).all()
            assert cost_of(values, starts, loss) == by_bins[bins - 1]


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_ties_go_to_the_longest_last_bucket(loss):
    draw = np.random.default_rng(3)
    for _ in range(300):
        values = draw.integers(0, 3, int(draw.integers(2, 10)))
        bins = int(draw.integers(1, len(values) + 1))
        by_bins, _ = best_by_bins(values, loss)
        best = [
            (0, *cuts)
            for cuts in combinations(range(1, len(values)), bins - 1)
            if cost_of(values, (0, *cuts), loss) == by_bins[bins - 1]
        ]
        assert tuple(segment(values, bins=bins, loss=loss)) == min(best, key=lambda starts: starts[::-1])


def test_lattice_rows_are_exact_integers():
    draw = np.random.default_rng(4)
    for _ in range(600):
        n = int(draw.integers(2, 12))
        values = draw.integers(0, int(draw.choice([2, 5, 40, 3000])), n)
        costs = {(a, b): 0 for a in range(n) for b in range(a + 1, n + 1)}
        for a, b in costs:
            piece = values[a:b]
            near = int(piece.sum()) // len(piece)
            costs[a, b] = min(int(((piece - level) ** 2).sum()) for level in (near, near + 1))
        rows = {1: {t: costs[0, t] for t in range(1, n + 1)}}
        for j in range(2, n + 1):
            rows[j] = {t: min(rows[j - 1][q] + costs[q, t] for q in range(j - 1, t)) for t in range(j, n + 1)}
        top = int(draw.integers(1, n))
        walk = Rows(values.astype(np.int64), loss="squared", lattice=True).descend(top)
        j, found = next(walk)
        right = n
        while True:
            expected = [rows[j][q] + costs[q, right] for q in range(j, right)]
            assert found[j:right].tolist() == expected
            if j == 1:
                break
            right = int(draw.integers(j, right))
            j, found = walk.send(right)


@pytest.mark.parametrize("kind", ["noise", "spikes", "runs", "huge"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_longer_rows_agree_with_the_textbook(loss, kind):
    draw = np.random.default_rng(5)
    n = 600
    values = {
        "noise": np.round(draw.laplace(0, 30, n)),
        "spikes": np.where(draw.random(n) < 0.03, draw.pareto(1.0, n) * 100, 0),
        "runs": np.repeat(draw.integers(0, 9, n // 3), 3),
        "huge": np.where(draw.random(n) < 0.01, 2.0**40, draw.integers(0, 9, n)),
    }[kind].astype(np.int64)
    if loss == "squared" and kind == "huge":
        values %= 2**20  # beyond, the textbook loses every digit; fractions above do not
    cost = textbook.bucket_costs(values, loss)
    for price in (1, 60, 4000):
        found = segment(values, price=price, loss=loss)
        least = textbook.penalised(cost, price)
        assert float(cost_of(values, found, loss) + price * len(found)) == pytest.approx(least, rel=1e-9)
    found = segment(values, bins=37, loss=loss)
    assert float(cost_of(values, found, loss)) == pytest.approx(textbook.fixed(cost, 37)[-1, n], rel=1e-9)


def test_figure_3_of_the_paper():
    values = [1, 2, 1, 3, 5, 1, 1]
    best = textbook.fixed(textbook.bucket_costs(values, "squared"), 3)
    printed = [
        [0, 0.5, 0.67, 2.75, 11.2, 12.8, 14],
        [0, 0.5, 0.67, 2.67, 8.67, 11.2],
        [0, 0.5, 0.67, 2.67, 2.67],
    ]
    by_bins, rows = best_by_bins(values, "squared")
    for j, row in enumerate(printed):
        exact = [float(rows[j][t]) for t in range(j + 1, 8)]
        assert np.allclose(exact, best[j, j + 1 :], atol=1e-12)
        assert np.allclose(exact, row, atol=0.051)
    assert [round(float(cost), 2) for cost in by_bins[:3]] == [14.0, 11.2, 2.67]
    assert segment(values, bins=3).tolist() == [0, 3, 5]
    # A price between the gains of the third and the fourth bucket asks for the same three.
    assert segment(values, price=3).tolist() == [0, 3, 5]


def test_figure_5_of_the_paper():
    # "its 3-bin optimal histogram structure": any best structure costs as much as brute force says.
    values = [5, 7, 7, 6, 7, 5, 5]
    starts = segment(values, bins=3)
    assert starts.tolist() == [0, 1, 5]
    assert cost_of(values, starts, "squared") == best_by_bins(values, "squared")[0][2] == Fraction(3, 4)


def test_known_answers():
    assert segment([7], price=1).tolist() == [0]
    assert segment([3] * 50, price=0).tolist() == [0]
    assert segment([0, 9, 0, 9], price=0).tolist() == [0, 1, 2, 3]
    assert segment([0] * 10 + [50] * 10, price=5, loss="absolute").tolist() == [0, 10]
    assert segment([1, 2, 3], bins=10).tolist() == [0, 1, 2]
