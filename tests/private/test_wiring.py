"""The exact scale or rate that reaches the sampler, for every verb, over splits, parts, views and units."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.transcript import Entry, Transcript
from dphist.model.unit import Unit
from dphist.private.gate import open_gate, open_replay
from dphist.private.queries import Identity, Totals
from dphist.private.queries.counting import Middles
from dphist.private.queries.prefixes import PrefixRoots, root_weights
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import Candidates, Layout, Scales
from dphist.private.scores.bisections import Bisections
from dphist.private.scores.boundaries import Boundaries
from dphist.private.scores.counting import BestAttributes, Disagreements, Medians
from dphist.private.segments import AbsoluteDeviation
from dphist.private.sparse import Above, Occupied
from dphist.private.transcript import Replay
from dphist.testing import Draw, RecordingNoise, open_counts

sys.path += [str(Path(__file__).parent)]

from every_question import QUERIES

EPSILON = Fraction(3, 7)
COUNTS = np.arange(12, dtype=np.int64).reshape(3, 4)
UNITS = [Unit(), Unit(replace=True), Unit(rows=3), Unit(rows=5, replace=True)]
STEPS = [1, 2, 3, 10]

# Ways from the opened gate to a right, with the part of the budget that is left.
WAYS: dict[str, tuple[Any, Fraction]] = {
    "whole": (lambda d: d, Fraction(1)),
    "split": (lambda d: d.split("1/3", "2/3")[1], Fraction(2, 3)),
    "split twice": (lambda d: d.split("1/3", "2/3")[0].split("1/8", "7/8")[0], Fraction(1, 24)),
    "parts": (lambda d: d.partition(np.arange(12) % 3), Fraction(1)),
    "one side": (lambda d: d.partition(np.arange(12) % 3).select([True, True, False])[0], Fraction(1)),
    "other side, split": (
        lambda d: d.partition(np.arange(12) % 2).select([True, False])[1].split(0.25, 0.75)[0],
        Fraction(1, 4),
    ),
    "arranged": (lambda d: d.arrange([5, 3, 4, 0]), Fraction(1)),
    "coarser": (lambda d: d.coarsen(np.arange(12) // 2), Fraction(1)),
    "arranged, split": (lambda d: d.arrange(np.arange(12)[::-1]).split("9/10", "1/10")[1], Fraction(1, 10)),
    "separated": (lambda d: d.separate(["x0"])[1], Fraction(1)),
    "one part, called a line, split": (
        lambda d: (
            d.partition(np.arange(12) % 3)
            .select([True, False, False])[0]
            .of(Domain([Ordinal("x", range(4))]))
            .split("1/5", "4/5")[1]
        ),
        Fraction(4, 5),
    ),
}


@pytest.fixture(params=list(zip(UNITS, STEPS, strict=True)), ids=[f"{s}steps" for s in STEPS])
def unit(request: Any) -> Any:
    return request.param


def opened(way: str, unit: Unit) -> tuple[Any, RecordingNoise]:
    noise = RecordingNoise(seed=1)
    return WAYS[way][0](open_counts(COUNTS, EPSILON, unit=unit, noise=noise)), noise


def budget(way: str, steps: int) -> Fraction:
    return EPSILON * WAYS[way][1] / steps


@pytest.mark.parametrize("way", WAYS)
def test_measure(way: str, unit: Any) -> None:
    for query, sensitivity in (
        (Identity(), 1),
        (Totals(), 1),
        (Middles(), 1),
        (PrefixRoots(), None),
    ):
        right, noise = opened(way, unit[0])
        # The sum of a column; that no step moves further `test_laws` tries.
        sensitivity = sensitivity or int(root_weights(right.size).sum())
        scale = sensitivity / budget(way, unit[1])
        assert right.unit_scale * sensitivity == scale
        noisy = right.measure(query)
        assert noise.drawn == [Draw("laplace", (scale,), noisy.values.size)]
        assert noisy.scale == scale
        # What was drawn is what was added.
        exact = opened(way, unit[0])[0]
        answer = query.answer(exact._take(), exact._layout)
        assert (noisy.values - answer).reshape(-1).tolist() == noise.given[0].tolist()


# Those that fit the two attributes of COUNTS.
WAVELETS = [
    query
    for kind in (Wavelet, WaveletCells)
    for query, _ in QUERIES[kind]
    if max(query.plain, default=0) <= 1
]


@pytest.mark.parametrize("query", WAVELETS)
def test_measure_fused(query: Any, unit: Any) -> None:
    layout = Layout((3, 4))
    scales = Wavelet(query.plain, query.calibration).scales(layout)
    expected: Counter[Fraction] = Counter()
    if isinstance(scales, Scales):
        for i in scales.index.reshape(-1).tolist():
            expected[scales.values[i]] += 1
    else:
        expected[scales] = Wavelet(query.plain, query.calibration).answer(COUNTS, layout).size
    for way in ("whole", "split twice"):
        right, noise = opened(way, unit[0])
        values = right.measure(query).values
        assert values.shape[0] >= 3
        got: Counter[Fraction] = Counter()
        for draw in noise.drawn:
            got[draw.amounts[0] * budget(way, unit[1])] += draw.size
        assert got == expected


def test_measure_with_a_scale_for_each_answer(unit: Any) -> None:
    class Uneven(Identity):
        def scales(self, layout: Any) -> Any:
            return Scales((Fraction(1), Fraction(3)), np.array([0, 1, 1, 1]))

    noise = RecordingNoise(seed=1)
    noisy = open_counts(np.arange(4), EPSILON, unit=unit[0], noise=noise, unproven=True).measure(Uneven())
    assert noise.drawn == [
        Draw("laplace", (unit[1] / EPSILON,), 1),
        Draw("laplace", (3 * unit[1] / EPSILON,), 3),
    ]
    assert (noisy.values - np.arange(4)).tolist() == [*noise.given[0].tolist(), *noise.given[1].tolist()]
    assert noisy.scale.tolist() == [float(unit[1] / EPSILON)] + [float(3 * unit[1] / EPSILON)] * 3
    assert noisy.variance.tolist() == (2 * noisy.scale**2).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_choose(way: str, unit: Any) -> None:
    def scores(right: Any) -> list[tuple[Any, int, int]]:
        cells, parts = right.size, right.parts
        found = [
            (Medians(np.zeros(cells, int), np.full(parts, 2)), 2, 1),
            (BestAttributes((np.zeros(cells, int),) * 2, (1, 1), np.zeros(cells, int), 1), 1, 1),
        ]
        if parts == 1:
            found.append((Boundaries(3, "absolute"), 2, 2))
            found.append((Boundaries(4, "squared", 5), 2 * 5 * 64, 3))
            low, high = np.zeros((2, len(right.shape)), int), np.ones((2, len(right.shape)), int)
            found.append((Disagreements(low, high, np.array([1, 2])), 2, 1))
        return found

    for i in range(len(scores(opened(way, unit[0])[0]))):
        right, noise = opened(way, unit[0])
        score, reach, draws = scores(right)[i]
        parts = right.parts
        if draws > 1 and draws + 1 >= right.size:
            continue
        if isinstance(score, Boundaries) and score.loss == "squared":
            ceiling, refine = score.lattice(right.size)
            reach = 2 * ceiling * 4**refine
        picks = right.choose(score)
        rate = budget(way, unit[1]) / draws / reach
        assert noise.drawn == [Draw("select", (rate,), parts)] * draws
        assert [given.tolist() for given in noise.given] == picks.tolist()


def test_choose_with_a_range_for_each_part(unit: Any) -> None:
    class TwoRanges:
        def draws(self, layout: Any) -> int:
            return 1

        def stages(self, counts: Any, layout: Any) -> Any:
            yield Candidates(counts, np.array([0, 2, 4]), np.array([1, 5]))

    noise = RecordingNoise(seed=1)
    right = open_counts(np.arange(4), EPSILON, unit=unit[0], noise=noise, unproven=True)
    right.partition([0, 0, 1, 1]).choose(TwoRanges())
    rate = EPSILON / unit[1]
    assert noise.drawn == [Draw("select", (rate, rate / 5), 2)]


@pytest.mark.parametrize(
    "way", ["whole", "split twice", "arranged", "coarser", "arranged, split", "separated"]
)
def test_segment(way: str, unit: Any) -> None:
    for sizes, centre in (("all", "mean"), ("powers", "mean"), ((4, 2, 1), "mean"), ("all", "median")):
        right, noise = opened(way, unit[0])
        n = right.size
        costs = AbsoluteDeviation(Fraction(1), sizes, centre, 2)  # type: ignore[arg-type]
        right.segment(costs)
        if sizes == "all":
            lengths = Counter({m: n - m + 1 for m in range(1, n + 1)})
        elif sizes == "powers":
            lengths = Counter({m: n - m + 1 for m in (1, 2, 4, 8) if m <= n})
        else:
            edges = {(a, min(a + m, n)) for m in sizes for a in range(0, n, int(m))}  # type: ignore[operator]
            lengths = Counter(b - a for a, b in edges)
        reach = {m: int(m > 1) if centre == "median" else 4 - 4 // m for m in lengths}
        expected: Counter[Fraction] = Counter()
        for m, number in lengths.items():
            expected[(reach[m] + reach[max(lengths)]) / budget(way, unit[1])] += number
        got: Counter[Fraction] = Counter()
        for draw in noise.drawn:
            assert draw.sampler == "laplace"
            got[draw.amounts[0]] += draw.size
        assert +got == expected


@pytest.mark.parametrize("sparse", [False, True])
def test_sparse(sparse: bool, unit: Any) -> None:
    domain = Domain([Ordinal("x", range(1000))])
    counts = np.zeros(1000, dtype=np.int64)
    counts[[3, 500, 999]] = 40, 1, 7
    noise = RecordingNoise(seed=4)
    if sparse:
        held = Occupied.of(domain, np.flatnonzero(counts), counts[counts > 0])
        right, transcript = open_gate(held, EPSILON, unit[0], noise=noise)
    else:
        right, transcript = open_gate(Histogram(domain, counts), EPSILON, unit[0], noise=noise)
    pairs = right.split("1/2", "1/2")[0].measure(Above(9)).values
    scale = 2 * unit[1] / EPSILON
    hits = noise.given[1]
    empty = np.setdiff1d(hits, [3, 500, 999])
    assert noise.drawn == [
        Draw("laplace", (scale,), 3),
        Draw("hits", (scale, Fraction(9)), 1000),
        Draw("laplace", (scale,), empty.size),
    ]
    expected = {cell: counts[cell] + z for cell, z in zip((3, 500, 999), noise.given[0], strict=True)} | {
        int(cell): 9 + (z if z >= 0 else ~z) for cell, z in zip(empty, noise.given[2], strict=True)
    }
    assert pairs.tolist() == [[cell, expected[cell]] for cell in sorted(expected) if expected[cell] >= 9]
    assert transcript[0].epsilon == EPSILON / 2


def test_the_transcript_charges_what_was_spent(unit: Any) -> None:
    right, transcript = open_gate(
        Histogram(Domain([Ordinal("x", range(4))]), np.arange(4)),
        EPSILON,
        unit[0],
        noise=RecordingNoise(seed=1),
    )
    a, b, c = right.split("1/2", "1/3", "1/6")
    a.measure(Identity())
    b.choose(Medians(np.arange(4), np.array([4])))
    c.segment(AbsoluteDeviation())
    assert [entry.epsilon for entry in transcript] == [EPSILON / 2, EPSILON / 3, EPSILON / 6]
    assert transcript.spent() == EPSILON


def test_spent_adds_everything_up_whatever_a_transcript_holds() -> None:
    paths = {"root": 1, "root/s0": 2, "root/s1": 4, "root/d0": 8, "root/d1": 16, "root/d1/s0": 32}
    entries = [
        Entry(path, "measure", {"ask": "Identity"}, Fraction(cost), np.arange(1))
        for path, cost in paths.items()
    ]
    # Here, along both shares, and the dearer of two disjoint sides.
    assert Transcript(entries).spent() == 1 + 2 + 4 + (16 + 32)


def test_replay_insists_on_every_part_of_an_entry() -> None:
    from dphist.errors import VerificationError

    answer = np.arange(4)
    entry = Entry("root", "measure", {"ask": "Identity"}, EPSILON, answer)
    domain = Domain([Ordinal("x", range(4))])
    right, _ = open_replay(domain, EPSILON, Unit(), Transcript([entry]))
    assert right.measure(Identity()).values is answer
    for wrong in (
        Entry("root/s0", "measure", {"ask": "Identity"}, EPSILON, answer),
        Entry("root", "choose", {"ask": "Identity"}, EPSILON, answer),
        Entry("root", "measure", {"ask": "Totals"}, EPSILON, answer),
        Entry("root", "measure", {"ask": "Identity"}, EPSILON / 2, answer),
        Entry("root", "measure", {"ask": "Identity"}, EPSILON * 2, answer),
    ):
        right, _ = open_replay(domain, EPSILON, Unit(), Transcript([wrong]))
        with pytest.raises(VerificationError, match="another question"):
            right.measure(Identity())
    right, book = open_replay(domain, EPSILON, Unit(), Transcript([entry, entry]))
    right.measure(Identity())
    with pytest.raises(VerificationError, match="did not ask"):
        book.finish()
    with pytest.raises(VerificationError, match="more questions"):
        Replay(Transcript()).ask("root", "measure", {"ask": "Identity"}, EPSILON, None)
    # A replay of half of the budget asks the same questions at another price.
    right, _ = open_replay(domain, EPSILON / 2, Unit(), Transcript([entry]))
    with pytest.raises(VerificationError, match="another question"):
        right.measure(Identity())


@pytest.mark.parametrize("shape", [(5,), (8,), (70_000,), (3, 5), (6, 4), (300, 300), (2, 3, 5)])
@pytest.mark.parametrize("plain", [(), (0,)])
def test_nothing_stays_behind_an_answer(shape: tuple[int, ...], plain: tuple[int, ...]) -> None:
    """What an array is a view of would be published with it: it may hold the answer, and zeros."""
    size = int(np.prod(shape))
    counts = np.zeros(shape, dtype=np.int64)
    answers = [
        open_counts(counts, 1, seed=1).measure(query).values
        for query in (Identity(), Totals(), Wavelet(plain), WaveletCells(plain), Above(3))
    ]
    if size < 100:
        answers.append(open_counts(counts, 1, seed=1).segment(AbsoluteDeviation()))
        answers.append(open_counts(counts, 1, seed=1).segment(AbsoluteDeviation(sizes="powers")))
        answers.append(open_counts(counts, 1, seed=1).choose(Bisections(Fraction(1))))
    for answer in answers:
        memory: Any = answer
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
            assert not memory.flags.writeable
        assert memory.base is None
        beyond = np.frombuffer(memory.tobytes(), dtype=np.uint8)
        assert not beyond[answer.nbytes :].any()
