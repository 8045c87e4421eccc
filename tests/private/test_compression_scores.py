"""Scores of frequencies, cuts and boxes: computed right, and no step tilts a choice further than promised."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.private.questions import Layout
from dphist.private.scores.bisections import LATTICE, Bisections, Configurations, error_range
from dphist.private.scores.counting import Disagreements
from dphist.private.spectrum import LowFrequencies, bands, column_sum, corner, kept
from waves import waves


def candidates(score, counts, layout):
    score.draws(layout)  # refuses what is not there to be chosen, before anything is paid
    return next(score.stages(np.asarray(counts, dtype=np.int64), layout))


def tilts(score, counts, layout):
    """Largest minus smallest change over the candidates of the part that changes, for every step."""
    before = candidates(score, counts, layout)
    for cell in range(len(counts)):
        after = candidates(score, counts + (np.arange(len(counts)) == cell), layout)
        change = after.scores - before.scores
        for a, b in zip(before.starts[:-1], before.starts[1:], strict=True):
            yield int(change[a:b].max() - change[a:b].min()), before.ranges


@pytest.mark.parametrize("shape", [(1,), (2,), (9,), (16,), (4, 6), (5, 5), (2, 3, 4)])
def test_low_frequencies_weigh_tail_against_noise(shape):
    n = int(np.prod(shape))
    counts = np.random.default_rng(n).integers(0, 1000, n)
    score = LowFrequencies(shape, Fraction(5, 2), ("fourier", "cosine"))
    scores = candidates(score, counts, Layout(shape)).scores
    assert len(scores) == np.prod(bands(shape, "fourier")) + np.prod(bands(shape, "cosine"))
    for i, got in enumerate(scores):
        basis, keep = score.place(i)
        tail = np.delete(waves(shape, basis) @ counts, corner(shape, keep, basis))
        z = np.prod(kept(shape, keep, basis))
        column = float(column_sum(shape, keep, basis)) if z < n else 1.0
        expected = np.linalg.norm(tail) + np.sqrt(2 * z) * column * 2.5
        assert -got / 1024 == pytest.approx(expected, abs=0.004)
    with pytest.raises(MechanismError):
        score.place(len(scores))


@pytest.mark.parametrize("bases", [("fourier",), ("cosine",), ("fourier", "cosine")])
@pytest.mark.parametrize("shape", [(2,), (9,), (16,), (4, 5), (2, 3, 2)])
def test_no_step_tilts_low_frequencies_further_than_promised(shape, bases):
    rng = np.random.default_rng(3)
    n = int(np.prod(shape))
    score, worst = LowFrequencies(shape, Fraction(1), bases), 0.0
    for trial in range(12):
        largest = [1, 4, 100, 2**62 // n][trial % 4]
        counts = rng.integers(0, largest + 1, n)
        worst = max(worst, max(tilt / promised for tilt, promised in tilts(score, counts, Layout(shape))))
    # From nothing to one record: the norm of the whole tail appears at once.
    nothing = np.zeros(n, dtype=np.int64)
    worst = max(worst, max(tilt / promised for tilt, promised in tilts(score, nothing, Layout(shape))))
    assert 0.2 < worst <= 1


def test_the_range_of_low_frequencies_is_root_two_and_a_hair_up_to_millions_of_cells():
    for shape in [(10,), (65_536,), (65_535,), (2**20,), (10**6,), (1000, 1000)]:
        for bases, most in [(("fourier",), 2**0.5), (("cosine",), 2**0.5), (("fourier", "cosine"), 2)]:
            exact = most * (1 - 1 / np.prod(shape)) ** 0.5 * 1024
            assert exact + 1 <= LowFrequencies(shape, Fraction(1), bases).range() < exact + 18  # type: ignore[arg-type]


@pytest.mark.parametrize("basis", ["fourier", "cosine"])
@pytest.mark.parametrize("shape", [(64,), (63,), (8, 8)])
def test_the_range_of_low_frequencies_is_reached_and_not_passed(shape, basis):
    """The worst data of the proof: almost all energy just beyond a tail, and a step against what is in the tail."""
    n = int(np.prod(shape))
    rows, worst = waves(shape, basis), 0.0
    score = LowFrequencies(shape, Fraction(1), (basis,))
    grid = list(np.ndindex(*bands(shape, basis)))
    for keep in grid[len(grid) // 4 : -1 : max(1, len(grid) // 16)]:
        held = corner(shape, tuple(k + 1 for k in keep), basis)
        for cell in (0, n // 3, n - 1):
            wave = rows[:, cell].copy()
            wave[0] = 0.0
            tail = wave.copy()
            tail[held] = 0.0
            for near, far in ((10**6, 10**9), (30, 10**9), (10**6, 10**6)):
                for sign in (1, -1):
                    x = np.rint(rows.T @ (sign * (far * (wave - tail) - near * tail))).astype(np.int64)
                    x -= x.min()
                    before = candidates(score, x, Layout(shape))
                    after = candidates(score, x + (np.arange(n) == cell), Layout(shape))
                    change = after.scores - before.scores
                    assert change.max() - change.min() <= before.ranges
                    worst = max(worst, (change.max() - change.min()) / before.ranges)
    assert worst > 0.95


def test_bisections_score_whole_parts_and_cuts():
    layout = Layout((6,), np.array([0, 0, 0, 0, 1, 1]), 2)
    got = candidates(Bisections(Fraction(3)), [1, 1, 5, 5, 2, 4], layout)
    assert got.starts.tolist() == [0, 4, 6]
    unit = 2**LATTICE
    assert got.scores[0] == -8 * unit
    assert got.scores[2] == -3 * unit
    assert got.scores[4:].tolist() == [-2 * unit, -3 * unit]


def test_bisections_need_runs():
    with pytest.raises(MechanismError):
        candidates(Bisections(Fraction(1)), [1, 2, 3], Layout((3,), np.array([0, 1, 0]), 2))


@pytest.mark.parametrize("size", range(2, 13))
def test_no_step_tilts_bisections_further_than_promised(size):
    rng = np.random.default_rng(size)
    worst = 0.0
    for trial in range(60):
        counts = rng.integers(0, [2, 3, 12, 1000][trial % 4], size)
        if trial % 3 == 0:
            counts = np.sort(counts)
        worst = max(
            worst,
            max(t / promised for t, promised in tilts(Bisections(Fraction(1)), counts, Layout((size,)))),
        )
    assert 0.3 < worst <= 1


def test_the_range_of_a_pair_is_reached():
    """Two cells: whole changes by one, cut not at all, so the range is exactly one."""
    assert error_range(2) == 2**LATTICE
    assert max(t for t, _ in tilts(Bisections(Fraction(1)), np.array([3, 1]), Layout((2,)))) == 2**LATTICE


def test_the_range_approaches_four_and_is_nearly_reached():
    assert 3.99 * 2**LATTICE < error_range(10**6) <= 4 * 2**LATTICE
    # Cell 1 lies below the mean of most cells in one candidate, above it in another.
    size = 200
    counts = np.concatenate([[0] * (size - 1), [1], [1000] * (size - 1)])
    tilt = max(t for t, _ in tilts(Bisections(Fraction(1)), counts, Layout((counts.size,))))
    assert tilt > 2.4 * 2**LATTICE
    assert tilt <= error_range(counts.size)


def test_configurations_add_up_the_cuts():
    cuts = [np.array([0, 0]), np.array([3, 1]), np.array([5, 3])]
    got = candidates(Configurations(*cuts, Fraction(2)), [9, 1, 1, 4, 4], Layout((5,)))  # type: ignore[arg-type, call-arg]

    def error(*runs):
        return sum(np.abs(np.array(run) - np.mean(run)).sum() for run in runs)

    whole = error([9, 1, 1, 4, 4])
    expected = [0, whole - error([9, 1, 1], [4, 4]) - 2, whole - error([9], [1, 1], [4, 4]) - 4, whole - 8]
    np.testing.assert_allclose(got.scores / 2**LATTICE, expected, atol=0.005)


def test_no_step_tilts_configurations_further_than_promised():
    rng = np.random.default_rng(0)
    worst = 0.0
    for trial in range(60):
        n = int(rng.integers(3, 12))
        cuts, runs = [], [(0, n)]
        for _ in range(int(rng.integers(1, n))):
            splittable = [run for run in runs if run[1] - run[0] > 1]
            if not splittable:
                break
            first, last = splittable[int(rng.integers(len(splittable)))]
            middle = int(rng.integers(first + 1, last))
            cuts.append((first, middle, last))
            runs.remove((first, last))
            runs += [(first, middle), (middle, last)]
        score = Configurations(*np.array(cuts).T.copy(), Fraction(1))  # type: ignore[call-arg]
        counts = rng.integers(0, [2, 5, 300][trial % 3], n)
        worst = max(worst, max(t / promised for t, promised in tilts(score, counts, Layout((n,)))))
    assert 0.3 < worst <= 1


def test_enormous_counts_do_not_wrap():
    counts = np.full(64, 2**56)
    counts[::2] = 0
    scores = candidates(Bisections(Fraction(10**9)), counts, Layout((64,))).scores
    assert (scores < 0).all()


def test_disagreements_and_their_range():
    low, high = np.array([[0, 0], [1, 1], [0, 1]]), np.array([[2, 3], [2, 2], [2, 3]])
    score = Disagreements(low, high, np.array([10, 5, 3]))
    counts = np.array([1, 2, 3, 4, 5, 6])
    assert candidates(score, counts, Layout((2, 3))).scores.tolist() == [11, 0, 13]
    seen = [tilt for tilt, promised in tilts(score, counts, Layout((2, 3))) if tilt <= promised]
    assert len(seen) == 6
    opposite = Disagreements(low[:2], high[:2], np.array([100, 0]))
    assert max(tilt for tilt, _ in tilts(opposite, counts, Layout((2, 3)))) == 2
