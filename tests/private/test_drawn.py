"""The noise that leaves the gate, every verb: its drawn size tells 0.97 of a scale or a rate from the right one.

Seeds are fixed, so there are no false alarms; with a new seed each check would fail less than once in 10⁸ times.
The mean of |Z| over N draws is within 6 deviations of its expectation under the exact discrete law, and N is such that
0.97 of the scale would be at least 7 deviations off, which is asserted too. Choices are compared by χ², which refuses
a rate of 1 ÷ 0.97 at 10⁻⁸.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dphist.kernels.wavelets import standard
from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Identity, Totals
from dphist.private.queries.counting import Middles
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import Layout, Scales
from dphist.private.scores.bisections import Bisections, Configurations, error_range
from dphist.private.scores.boundaries import Boundaries
from dphist.private.scores.counting import BestAttributes, Disagreements, Medians
from dphist.private.segments import AbsoluteDeviation
from dphist.private.sparse import Above, Occupied
from dphist.private.spectrum import Frequencies, LowFrequencies
from dphist.testing import open_counts

WRONG = 0.97


def deviations(draws: np.ndarray, scale: Any) -> float:
    """How many standard deviations the mean of |Z| ÷ scale is from its expectation; scales may differ."""
    scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), draws.shape)
    a = np.exp(-1 / scales)
    mean, square = 2 * a / (1 - a**2), 2 * a / (1 - a) ** 2
    off = (np.abs(draws) - mean) / scales
    return float(off.sum() / np.sqrt(((square - mean**2) / scales**2).sum()))


def assert_drawn(draws: np.ndarray, scale: Any) -> None:
    draws = np.asarray(draws).reshape(-1)
    right = np.asarray(scale, dtype=np.float64).reshape(-1)
    assert abs(deviations(draws, right)) < 6
    assert deviations(draws, right * WRONG) > 7
    assert deviations(draws, right / WRONG) < -7
    # And both signs are as likely, but for the law's symmetry about zero itself.
    assert abs(int((draws > 0).sum()) - int((draws < 0).sum())) < 6 * math.sqrt(draws.size)


N = 240_000
UNIT, STEPS = Unit(rows=2), 2
COUNTS = np.arange(N, dtype=np.int64) % 17


def half(counts: Any, seed: int) -> Any:
    """Half of ε = 1/3 for two steps a person: a budget of 1/12."""
    return open_counts(counts, "1/3", unit=UNIT, seed=seed).split("1/2", "1/2")[1]


def test_cells_and_totals_and_middles() -> None:
    assert_drawn(half(COUNTS, 1).measure(Identity()).values - COUNTS, 12)
    labels = np.arange(N) // 2
    sums = COUNTS.reshape(-1, 2).sum(axis=1)
    assert_drawn(half(COUNTS, 2).partition(labels).measure(Totals()).values - sums, 12)
    assert_drawn(half(COUNTS, 3).partition(labels).measure(Middles()).values - sums, 12)
    assert_drawn(half(COUNTS, 5).coarsen(labels).measure(Identity()).values - sums, 12)


def test_small_draws_use_the_other_sampler() -> None:
    parts = [
        open_counts(COUNTS[:600], 1, seed=s).measure(Identity()).values - COUNTS[:600] for s in range(200)
    ]
    assert_drawn(np.concatenate(parts), 1)


@pytest.mark.parametrize("basis", ["fourier", "cosine"])
def test_waves(basis: Any) -> None:
    shape, keep = (1 << 12,), (1 << 11,)
    query = Frequencies(shape, keep, basis)
    counts = COUNTS[: 1 << 12]
    exact = query.answer(counts, Layout(shape))
    drawn = [half(counts, seed).measure(query) for seed in range(32 if basis == "fourier" else 64)]
    scale = query.scales(Layout(shape)) * 12
    assert drawn[0].scale == scale
    assert_drawn(np.concatenate([noisy.values - exact for noisy in drawn]), float(scale))


def test_wavelet_coefficients_and_cells() -> None:
    shape = (256, 512)
    counts = np.arange(256 * 512).reshape(shape) % 19
    for query in (Wavelet(), Wavelet((0,))):
        exact = query.answer(counts.reshape(-1), Layout(shape))
        scales = query.scales(Layout(shape))
        each = (
            np.array([float(s) for s in scales.values])[scales.index]
            if isinstance(scales, Scales)
            else np.full(exact.shape, float(scales))
        )
        assert_drawn(half(counts, 7).measure(query).values - exact, each * 12)
    # The Haar transform of a power of two can be undone: the coefficients behind published cells.
    line = counts.reshape(-1)
    axes = Wavelet().axes(Layout(line.shape))
    by = standard.denominator(axes)
    cells = half(line, 8).measure(WaveletCells()).values
    numerators = np.rint((cells - line) * by).astype(np.int64)
    noise = standard.forward(numerators, axes)
    assert (noise % by == 0).mean() > 0.999
    scales = Wavelet().scales(Layout(line.shape))
    each = (
        np.array([float(s) for s in scales.values])[scales.index]
        if isinstance(scales, Scales)
        else np.full(noise.shape, float(scales))
    )
    assert_drawn(np.rint(noise / by).astype(np.int64), each * 12)


def test_sparse_cells_that_hold_records_and_cells_that_do_not() -> None:
    cells, threshold = 3 * N, 13
    domain = Domain([Ordinal("x", range(cells))])
    held = Occupied.of(domain, np.arange(0, cells, 3), np.full(N, 10**6))
    noise = Noise(Keystream.for_tests(9))
    right, _ = open_gate(held, "1/3", UNIT, noise=noise)
    pairs = right.split("1/2", "1/2")[0].measure(Above(threshold)).values
    occupied = pairs[pairs[:, 0] % 3 == 0]
    assert len(occupied) == N
    assert_drawn(occupied[:, 1] - 10**6, 12)
    shown = pairs[pairs[:, 0] % 3 != 0]
    a = math.exp(-1 / 12)
    p = a**threshold / (1 + a)
    assert abs(len(shown) - 2 * N * p) < 6 * math.sqrt(2 * N * p)
    wrong = math.exp(-threshold / (12 * WRONG)) / (1 + math.exp(-1 / (12 * WRONG)))
    assert 2 * N * (p - wrong) > 4 * math.sqrt(2 * N * p)
    excess, mean = shown[:, 1] - threshold, a / (1 - a)
    assert excess.min() == 0
    assert abs(excess.mean() - mean) < 6 * math.sqrt(a) / (1 - a) / math.sqrt(len(shown))


def test_every_cell_of_a_sparse_release_has_its_coin() -> None:
    """Blocks hold 8 ÷ p cells; the ones left over at the end are tossed like the rest."""
    cells, threshold, runs = 70, 1, 1500
    domain = Domain([Ordinal("x", range(cells))])
    nothing = Occupied.of(domain, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    noise = Noise(Keystream.for_tests(10))
    seen = np.zeros(cells)
    for _ in range(runs):
        right, _ = open_gate(nothing, 1, Unit(), noise=noise)
        seen[right.measure(Above(threshold)).values[:, 0]] += 1
    p = math.exp(-1) / (1 + math.exp(-1))
    assert int(8 / p) < cells - 5
    assert np.abs(seen - runs * p).max() < 6 * math.sqrt(runs * p * (1 - p))


class Many(Noise):
    """Chooses as it is asked, and a hundred thousand times more on the side, to be counted."""

    def __init__(self, seed: int, times: int) -> None:
        super().__init__(Keystream.for_tests(seed))
        self.times = times
        self.seen: list[list[np.ndarray]] = []

    def select(self, scores: Any, starts: Any, rates: Any, divisors: Any = None) -> Any:
        parts, size = len(starts) - 1, len(scores)
        tiles = (np.arange(self.times)[:, None] * size + starts[:-1][None, :]).reshape(-1)
        many = super().select(
            np.tile(scores, self.times), np.append(tiles, size * self.times), rates, divisors
        )
        table = many.reshape(self.times, parts)
        self.seen.append(
            [
                np.bincount(table[:, p], minlength=int(starts[p + 1] - starts[p])).astype(np.float64)
                for p in range(parts)
            ]
        )
        return table[0]


def chances(scores: np.ndarray, rate: Fraction) -> np.ndarray:
    """Exact probabilities: weights from the largest, in extended precision, with exact exponents."""
    best = int(scores.max())
    exponents = [float(rate * (int(s) - best)) for s in scores]
    weights = np.exp(np.array(exponents, dtype=np.longdouble))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


LINE = np.array([3, 0, 4, 9, 2, 2])
CUTS = np.array([[0, 3, 6], [0, 1, 3], [3, 4, 6]]).T.copy()
BOXES = np.array([[0], [2], [1]]), np.array([[2], [5], [6]])
CHOICES: list[tuple[str, Any, Any, int, Any]] = [
    ("medians", Medians(np.arange(6), np.array([6])), None, 2, 1),
    ("medians of parts", Medians(np.array([0, 1, 2] * 2), np.array([3, 3])), [0, 0, 0, 1, 1, 1], 2, 1),
    (
        "attributes",
        BestAttributes((np.arange(6) % 2, np.arange(6) // 3), (2, 2), np.array([0, 1, 1, 0, 1, 1]), 2),
        None,
        1,
        "1/2",
    ),
    ("disagreements", Disagreements(*BOXES, np.array([1, 12, 10])), None, 2, 1),
    ("bisections", Bisections(Fraction(1)), None, error_range(6), 2),
    ("bisections of parts", Bisections(Fraction(1)), [0, 0, 0, 0, 1, 1], error_range(4), 1),
    ("configurations", Configurations(*CUTS, Fraction(1)), None, error_range(6), 1),  # type: ignore[call-arg]
    ("boundaries", Boundaries(3, "absolute"), None, 2, 1),
    ("squared boundaries", Boundaries(3, "squared", 9), None, 2 * 9 * 64, 4),
    ("even boundaries", Boundaries(3, "absolute", None, Fraction(2)), None, 2, 2),
    ("frequencies", LowFrequencies((6,), Fraction(1)), None, 1324, 1),
    ("two bases", LowFrequencies((6,), Fraction(1), ("fourier", "cosine")), None, 1871, 1),
]


@pytest.mark.parametrize(
    ("score", "labels", "reach", "epsilon"), [c[1:] for c in CHOICES], ids=[c[0] for c in CHOICES]
)
def test_choices_have_exactly_their_probabilities(score: Any, labels: Any, reach: int, epsilon: Any) -> None:
    """χ² of what the gate chooses against exp(budget · score ÷ range), the range written down here once more."""
    times = 400_000
    noise = Many(11, times)
    right = open_counts(LINE, Fraction(epsilon) * 4, unit=UNIT, noise=noise)
    right = right.split("1/2", "1/2")[0]
    if labels is not None:
        right = right.partition(labels)
    layout = right._layout
    picks = right.choose(score)
    budget = Fraction(epsilon) / len(picks)
    stages = score.stages(LINE, layout)
    told = 1.0
    for i, seen in enumerate(noise.seen):
        candidates = next(stages) if i == 0 else stages.send(picks[i - 1])
        for p, counted in enumerate(seen):
            scores = candidates.scores[candidates.starts[p] : candidates.starts[p + 1]]
            expected = chances(scores, budget / reach) * times
            assert stats.chisquare(counted, expected).pvalue > 1e-8
            assert counted[picks[i][p]] > 0
            if len(scores) > 1:
                wrong = chances(scores, budget / reach / Fraction(97, 100)) * times
                told = min(told, stats.chisquare(counted, wrong).pvalue)
    assert told < 1e-8


def test_partitions_that_leave_the_gate_have_their_law() -> None:
    """Two cells, together or apart: Z₂ − Z₁ − Z₁′ against the gap, summed exactly over the discrete laws."""
    costs = AbsoluteDeviation(price=Fraction(3), grid=1)
    counts, runs, epsilon = [0, 1], 6_000, Fraction(1)
    noise = Noise(Keystream.for_tests(12))
    together = sum(open_counts(counts, epsilon, noise=noise).segment(costs).size == 1 for _ in range(runs))

    def chance(factor: float) -> float:
        # Together: |0 − ½| + |1 − ½| + 3 = 4, noise 2; apart: 2 · 3 = 6, noise 1 each. A tie goes to the first found.
        reach = np.arange(-400, 401)
        laws = []
        for scale in (2.0 * factor, 1.0 * factor, 1.0 * factor):
            weights = np.exp(-np.abs(reach) / scale)
            laws.append(weights / weights.sum())
        apart = np.convolve(laws[1], laws[2])
        at = np.arange(-800, 801)
        below = np.cumsum(apart[::-1])[::-1]  # Pr[apart ≥ at]
        # together wins when 4 + z₂ ≤ 6 + z: z ≥ z₂ − 2.
        return float(
            sum(law * below[np.searchsorted(at, z - 2)] for z, law in zip(reach, laws[0], strict=True))
        )

    p = chance(1)
    assert abs(together - runs * p) < 6 * math.sqrt(runs * p * (1 - p))
    assert abs(chance(0.5) - p) * runs > 6 * math.sqrt(runs * p * (1 - p))


def test_the_noise_of_partitions_is_drawn_as_it_is_asked() -> None:
    """One bucket more than the rest is worth: the cost of a long row, read off which of two wins, is not visible,
    so what reaches the costs is compared draw by draw."""
    from dphist.testing import RecordingNoise

    noise = RecordingNoise(seed=13)
    n = 500
    open_counts(np.zeros(n, dtype=int), "1/3", unit=UNIT, noise=noise).segment(AbsoluteDeviation(grid=2))
    given = np.concatenate(noise.given)
    each = np.concatenate([np.full(draw.size, float(draw.amounts[0])) for draw in noise.drawn])
    assert given.size == n * (n + 1) // 2
    assert_drawn(given, each)
    lengths = np.arange(1, n + 1)
    expected = ((4 - 4 // lengths + 4) * 6.0 * (n - lengths + 1)).sum()
    assert each.sum() == pytest.approx(expected)
