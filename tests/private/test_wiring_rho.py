"""Under ρ: the exact variance, scale or rate that reaches the sampler, for every verb and every question, over splits,
parts, views and units; and drawn Gaussian noise that tells 0.97 of a deviation from the right one.

The factors by which people move answers are worked out here (see `dphist.private.pricing` for why they are right).
Seeds are fixed; with a new one a check of drawn noise would fail less than once in 10⁸ times.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphist import Domain, Histogram, Ordinal, Unit
from dphist.kernels.wavelets import standard
from dphist.model.budget import Budget
from dphist.model.conversion import choice_epsilon, epsilon_for_rho
from dphist.private.gate import open_gate
from dphist.private.queries import Identity, Totals
from dphist.private.queries.counting import Middles
from dphist.private.queries.prefixes import PrefixRoots, root_weights
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import Layout, Scales
from dphist.private.scores.counting import Medians
from dphist.private.segments import AbsoluteDeviation
from dphist.private.sparse import Above, Occupied
from dphist.testing import Draw, RecordingNoise, open_counts

sys.path += [str(Path(__file__).parent)]

from every_question import QUERIES
from test_wiring import COUNTS, WAVELETS, WAYS

RHO = Fraction(2, 7)
UNITS = [
    Unit(),
    Unit(replace=True),
    Unit(rows=3),
    Unit(rows=2, replace=True),
    Unit(cells=3, per_cell=2),
    Unit(cells=2, replace=True),
]


def opened(way: str, unit: Unit, seed: int = 1) -> tuple[Any, RecordingNoise]:
    noise = RecordingNoise(seed=seed)
    return WAYS[way][0](open_counts(COUNTS, Budget(RHO, "rho"), unit=unit, noise=noise)), noise


def factor(way: str, unit: Unit, moves: str) -> Fraction:
    """What a variance that is stated for one step and ρ = 1/2 is multiplied by."""
    sides = 2 if unit.replace else 1
    steps = (sides * unit.rows) ** 2
    cells, each = (unit.cells, unit.per_cell or 1) if unit.cells else (1, unit.rows)
    squared = {"disjoint": sides * cells * each**2, "nonnegative": sides * unit.rows**2, "any": steps}
    if way == "coarser":
        squared["disjoint"] = squared["nonnegative"]
    share: Fraction = WAYS[way][1]
    return Fraction(squared[moves]) / (2 * RHO * share)


def stated(question: Any, layout: Layout) -> Counter[Fraction]:
    """How many answers have which variance, for one step and ρ = 1/2."""
    variances = question.variances(layout)
    if isinstance(variances, Scales):
        return Counter(variances.values[i] for i in variances.index.reshape(-1).tolist())
    return Counter({variances: question.answer(np.zeros(layout.size, dtype=np.int64), layout).size})


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe())
@pytest.mark.parametrize("way", WAYS)
def test_measure(way: str, unit: Unit) -> None:
    for query, variance, moves in (
        (Identity(), 1, "disjoint"),
        (Totals(), 1, "nonnegative"),
        (Middles(), 1, "any"),
        (PrefixRoots(), None, "nonnegative"),
    ):
        right, noise = opened(way, unit)
        # The squares of a column; that no step moves further `test_promises` tries.
        variance = variance or int((root_weights(right.size) ** 2).sum())
        expected = variance * factor(way, unit, moves)
        noisy = right.measure(query)
        assert noise.drawn == [Draw("gaussian", (expected,), noisy.values.size)]
        assert noisy.law.size == expected
        exact = opened(way, unit)[0]
        answer = query.answer(exact._take(), exact._layout)
        assert (noisy.values - answer).reshape(-1).tolist() == noise.given[0].tolist()


EVERY = [
    (question, layout)
    for kind, cases in QUERIES.items()
    if kind not in (WaveletCells, Above)
    for question, layout in cases
    if layout.domain is None
]


@pytest.mark.parametrize("unit", UNITS[2:5], ids=lambda unit: unit.describe())
def test_every_question_gets_the_noise_of_its_own_promise(unit: Unit) -> None:
    kinds = set()
    for question, layout in EVERY:
        noise = RecordingNoise(seed=2)
        right = open_counts(
            np.arange(layout.size).reshape(layout.shape), Budget(RHO, "rho"), unit=unit, noise=noise
        ).split("1/3", "2/3")[1]
        if layout.labels is not None:
            right = right.partition(layout.labels, layout.parts)
        right.measure(question)
        got: Counter[tuple[str, Fraction]] = Counter()
        for draw in noise.drawn:
            got[draw.sampler, draw.amounts[0]] += draw.size
        share = RHO * Fraction(2, 3)
        if hasattr(question, "variances"):
            squared = factor("whole", unit, getattr(question, "moves", "any")) * RHO / share
            expected = {("gaussian", v * squared): n for v, n in stated(question, layout).items()}
        else:
            # What has a proof for Laplace noise only is paid for with ε·tanh(ε/2).
            assert {sampler for sampler, _ in got} == {"laplace"}
            scale = question.scales(layout) * unit.steps / epsilon_for_rho(share)
            expected = {("laplace", scale): sum(got.values())}
        assert dict(got) == expected, question
        kinds.add(type(question))
    assert len(kinds) >= 8


@pytest.mark.parametrize("query", WAVELETS)
@pytest.mark.parametrize("unit", UNITS[2:4], ids=lambda unit: unit.describe())
def test_measure_fused(query: Any, unit: Unit) -> None:
    own = Wavelet(query.plain, query.calibration)
    for way in ("whole", "split twice"):
        right, noise = opened(way, unit)
        right.measure(query)
        got: Counter[Fraction] = Counter()
        for draw in noise.drawn:
            assert draw.sampler == "gaussian"
            got[draw.amounts[0] / factor(way, unit, getattr(query, "moves", "any"))] += draw.size
        assert got == stated(own, Layout((3, 4)))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe())
@pytest.mark.parametrize("way", WAYS)
def test_choose_and_segment(way: str, unit: Unit) -> None:
    share = RHO * WAYS[way][1]
    right, noise = opened(way, unit)
    parts = right.parts
    right.choose(Medians(np.zeros(right.size, int), np.full(parts, 2)))
    assert noise.drawn == [Draw("select", (choice_epsilon(share) / unit.steps / 2,), parts)]
    if parts > 1:
        return
    right, noise = opened(way, unit)
    right.segment(AbsoluteDeviation())
    got = {draw.amounts[0] * epsilon_for_rho(share) / unit.steps for draw in noise.drawn}
    pure = RecordingNoise(seed=1)
    WAYS[way][0](open_counts(COUNTS, 1, noise=pure)).segment(AbsoluteDeviation())
    assert got == {draw.amounts[0] * WAYS[way][1] for draw in pure.drawn}
    assert {draw.sampler for draw in noise.drawn} == {"laplace"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.describe())
def test_sparse_and_laplace(unit: Unit) -> None:
    domain = Domain([Ordinal("x", range(1000))])
    held = Occupied.of(domain, np.array([3, 500]), np.array([40, 1]))
    noise = RecordingNoise(seed=4)
    right, transcript = open_gate(held, Budget(RHO, "rho"), unit, noise=noise)
    right.split("1/2", "1/2")[0].measure(Above(9))
    scale = unit.steps / epsilon_for_rho(RHO / 2)
    assert {draw.amounts[0] for draw in noise.drawn} == {scale}
    assert transcript[0].cost == RHO / 2
    right, noise = opened("split", unit)
    assert right.measure(Identity(), "laplace").scale == unit.steps / epsilon_for_rho(RHO * Fraction(2, 3))
    assert {draw.sampler for draw in noise.drawn} == {"laplace"}


def test_the_transcript_charges_what_was_spent() -> None:
    nobody = Histogram(Domain([Ordinal("x", range(4))]), np.arange(4))
    right, transcript = open_gate(nobody, Budget(RHO, "rho"), Unit(rows=3), noise=RecordingNoise(seed=1))
    a, b, c = right.split("1/2", "1/3", "1/6")
    a.measure(Identity())
    b.choose(Medians(np.arange(4), np.array([4])))
    c.segment(AbsoluteDeviation())
    assert [entry.cost for entry in transcript] == [RHO / 2, RHO / 3, RHO / 6]
    assert transcript.spent() == RHO


# ---- what is drawn ------------------------------------------------------------------------------------------

N = 120_000
TALL = np.arange(N, dtype=np.int64) % 17


def assert_drawn(draws: Any, variance: Any) -> None:
    """The mean of Z² ÷ σ² over N draws is one; its deviation is √(2/N), and 0.97 of σ is off by 6 %."""
    flat = np.asarray(draws, dtype=np.float64).reshape(-1)
    sizes = np.broadcast_to(np.asarray(variance, dtype=np.float64), np.asarray(draws).shape).reshape(-1)
    deviation = math.sqrt(2 / flat.size)
    mean = float(np.mean(flat**2 / sizes))
    assert abs(mean - 1) < 6 * deviation
    assert mean / 0.97**2 - 1 > 7 * deviation
    assert 1 - mean * 0.97**2 > 7 * deviation
    # Normal tails, not Laplace's: E Z⁴ = 3σ⁴, with deviation √(96/N) of σ⁴.
    assert abs(float(np.mean((flat**2 / sizes) ** 2)) - 3) < 6 * math.sqrt(96 / flat.size)
    assert abs(int((flat > 0).sum()) - int((flat < 0).sum())) < 6 * math.sqrt(flat.size)


def half(counts: Any, seed: int) -> Any:
    """Half of ρ = 1/36, for two rows a person: a variance of 36 · 4 where rows meet."""
    return open_counts(counts, Budget.of(rho="1/36"), unit=Unit(rows=2), seed=seed).split("1/2", "1/2")[1]


def test_drawn_noise_of_cells_and_totals() -> None:
    labels, sums = np.arange(N) // 2, TALL.reshape(-1, 2).sum(axis=1)
    assert_drawn(half(TALL, 1).measure(Identity()).values - TALL, 144)
    assert_drawn(half(TALL, 2).partition(labels).measure(Totals()).values - sums, 144)
    assert_drawn(half(TALL, 3).partition(labels).measure(Middles()).values - sums, 144)
    assert_drawn(half(TALL, 5).coarsen(labels).measure(Identity()).values - sums, 144)
    few = [half(TALL[:600], seed).measure(Identity()).values - TALL[:600] for seed in range(120)]
    assert_drawn(np.concatenate(few), 144)


def test_drawn_noise_of_prefix_roots_and_wavelets() -> None:
    layout = Layout((4096,))
    line = TALL[:4096]
    exact = PrefixRoots().answer(line, layout)
    values = [half(line, seed).measure(PrefixRoots()).values - exact for seed in range(24)]
    assert_drawn(np.concatenate(values), 144 * float(PrefixRoots().variances(layout)))
    shape = (256, 512)
    counts = np.arange(256 * 512).reshape(shape) % 19
    variances = Wavelet().variances(Layout(shape))
    exact = Wavelet().answer(counts.reshape(-1), Layout(shape))
    each = (
        np.array([float(size) for size in variances.values])[variances.index]
        if isinstance(variances, Scales)
        else np.full(exact.shape, float(variances))
    )
    assert_drawn(half(counts, 7).measure(Wavelet()).values - exact, each * 144)
    # The Haar transform of a power of two can be undone: the coefficients behind published cells.
    flat = counts.reshape(-1)
    axes = Wavelet().axes(Layout(flat.shape))
    by = standard.denominator(axes)
    cells = half(flat, 8).measure(WaveletCells()).values
    noise = standard.forward(np.rint((cells - flat) * by).astype(np.int64), axes)
    sizes = Wavelet().variances(Layout(flat.shape))
    each = (
        np.array([float(size) for size in sizes.values])[sizes.index]
        if isinstance(sizes, Scales)
        else np.full(noise.shape, float(sizes))
    )
    assert_drawn(np.rint(noise / by), each * 144)
