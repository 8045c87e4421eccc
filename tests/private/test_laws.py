"""One test over every query, score and cost class: no step of small domains moves it further than it promises.

A class that is not in the tables fails the first test, so a new question cannot come without its law.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import ceil, isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.kernels.buckets.deviations import bucket_deviations
from dphist.model.domain import Domain, Ordinal
from dphist.model.measure import Sums
from dphist.model.unit import Unit
from dphist.private import questions
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Identity
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import Layout, Scales
from dphist.private.scores.bisections import Bisections, Configurations
from dphist.private.scores.boundaries import Boundaries
from dphist.private.scores.counting import BestAttributes, Disagreements, Heaps, Medians
from dphist.private.scores.tables import TableErrors
from dphist.private.sparse import Above
from dphist.private.spectrum import LowFrequencies

sys.path += [str(Path(__file__).parent)]

from every_question import COSTS, QUERIES, SCORES, found


def cases(table: dict[type, list[tuple[Any, Layout]]], *without: type) -> Any:
    rows = [(q, layout) for kind, each in table.items() if kind not in without for q, layout in each]
    return pytest.mark.parametrize(
        ("question", "layout"), rows, ids=[f"{type(q).__name__}-{i}" for i, (q, _) in enumerate(rows)]
    )


def data(size: int) -> Iterator[np.ndarray]:
    """All small counts, some large ones, and some of the fullest that pass the gate."""
    for counts in product(range(3 if size < 6 else 2), repeat=size):
        yield np.array(counts, dtype=np.int64)
    rng = np.random.default_rng(size)
    for most in (50, 10**6, 2**40, 2**62 // size):
        for _ in range(4):
            yield rng.integers(0, most, size)


def steps(counts: np.ndarray) -> Iterator[np.ndarray]:
    for cell in range(counts.size):
        yield counts + (np.arange(counts.size) == cell)


def test_every_class_of_question_is_listed_and_nothing_else_is_proven() -> None:
    assert found("answer", "scales") == set(QUERIES)
    assert found("draws", "stages") == set(SCORES)
    assert found("segment", "check") == set(COSTS)
    assert {*QUERIES, *SCORES, *COSTS} == questions._PROVEN


def furthest(question: Any, layout: Layout, all_data: Iterator[np.ndarray]) -> Fraction:
    """How far one step moves the answers, in scales."""
    scales, worst = question.scales(layout), Fraction(0)
    for counts in all_data:
        before = question.answer(counts, layout)
        for after in steps(counts):
            # Modulo 2⁶⁴, as noise is added to them.
            moved = np.abs(question.answer(after, layout) - before).reshape(-1)
            if isinstance(scales, Scales):
                index = scales.index.reshape(-1)
                lost = sum(
                    (Fraction(int(m)) / scales.values[int(index[i])] for i, m in enumerate(moved)),
                    Fraction(0),
                )
            else:
                lost = Fraction(int(moved.sum())) / scales
            worst = max(worst, lost)
    return worst


@cases(QUERIES, WaveletCells, Above)
def test_no_step_moves_a_query_further_than_its_scales(question: Any, layout: Layout) -> None:
    worst = furthest(question, layout, data(layout.size))
    assert worst <= 1
    # Nor is the noise more than is needed (axes of two hierarchies multiply their slack).
    assert worst > Fraction(1, 3)


def sums(size: int) -> Iterator[np.ndarray]:
    """Cells of either sign, many of which add up to next to nothing."""
    rng = np.random.default_rng(size)
    for most in (2, 50, 10**6, 2**40, 2**62 // size):
        for _ in range(6):
            yield (cells := rng.integers(-most, most, size))
            cells = cells.copy()
            # The total is −1, and one step on it is nothing.
            cells[-1] -= cells.sum() + 1
            if abs(int(cells[-1])) <= 2**62 // size:
                yield cells


@cases(QUERIES, WaveletCells, Above)
def test_of_sums_a_query_keeps_its_promise_or_is_refused_before_it_is_paid_for(
    question: Any, layout: Layout
) -> None:
    worst = furthest(question, layout, sums(layout.size))
    domain = layout.domain or Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(layout.shape)])
    nothing = Sums(domain, np.zeros(layout.shape, dtype=np.int64))
    right, asked = open_gate(nothing, 1, Unit(), noise=Noise(Keystream.for_tests(1)))
    if layout.labels is not None:
        right = right.partition(layout.labels)
    if getattr(question, "of_counts", False):
        assert worst > 1
        with pytest.raises(MechanismError, match="may be negative"):
            right.measure(question)
        assert len(asked) == 0
        right.measure(Identity())  # nothing was used up
    else:
        assert worst <= 1
        right.measure(question)


class Marked:
    """Noise that adds a number by which its scale can be told, or nothing."""

    def __init__(self, marks: bool) -> None:
        self.scales: list[Fraction] = []
        self.sizes: Counter[Fraction] = Counter()
        self.marks = marks

    def add(self, values: Any, scale: Fraction, variance: Fraction, out: Any = None) -> Any:
        return self.add_laplace(values, scale, out)

    def add_laplace(self, values: Any, scale: Fraction, out: Any = None) -> Any:
        if scale not in self.scales:
            self.scales.append(scale)
        self.sizes[scale] += values.size
        noisy = values + (10**9 * (1 + self.scales.index(scale)) if self.marks else 0)
        if out is None:
            return noisy
        out[...] = noisy
        return out

    def laplace(self, scale: Fraction, shape: Any) -> Any:
        return self.add_laplace(np.zeros(shape, dtype=np.int64), scale)


@cases({Wavelet: QUERIES[Wavelet]})
def test_fused_noise_has_the_scales_that_are_stated(question: Any, layout: Layout) -> None:
    noise = Marked(marks=True)
    counts = np.arange(layout.size, dtype=np.int64)
    exact = question.answer(counts, layout)
    which = (question.perturb(counts, layout, noise) - exact).reshape(-1)
    assert (which % 10**9 == 0).all()
    assert which.min() > 0
    stated = question.scales(layout)
    for i, mark in enumerate(which.tolist()):
        scale = stated if isinstance(stated, Fraction) else stated.values[int(stated.index.reshape(-1)[i])]
        assert noise.scales[mark // 10**9 - 1] == scale
    # Cells are rebuilt from the same draws: as many of every scale, and none of them left out.
    cells = Marked(marks=False)
    rebuilt = WaveletCells(question.plain, question.calibration).perturb(counts, layout, cells)
    assert cells.sizes == noise.sizes
    assert rebuilt.reshape(-1).tolist() == counts.tolist()


def chains(score: Any, counts: np.ndarray, layout: Layout, most: int = 30) -> Iterator[tuple[tuple, Any]]:  # type: ignore[type-arg]
    """Every chain of picks (of one part; of several, the first and the last candidate) and what it leads to."""

    def follow(path: tuple[tuple[int, ...], ...]) -> Any:
        stages = score.stages(counts, layout)
        candidates = next(stages)
        for pick in path:
            candidates = stages.send(np.array(pick))
        return candidates

    def extend(path: tuple[tuple[int, ...], ...]) -> Iterator[tuple[tuple, Any]]:  # type: ignore[type-arg]
        candidates = follow(path)
        yield path, candidates
        if len(path) + 1 < score.draws(layout):
            sizes = np.diff(candidates.starts).tolist()
            for pick in range(min(sizes)):
                yield from extend((*path, (pick,) * len(sizes)))

    yield from extend(())


def promised(score: Any, layout: Layout) -> int:
    """The range of every class, written down a second time, from its proof."""
    n = layout.size
    match score:
        case Medians() | Disagreements():
            return 2
        case TableErrors():
            return 2 if score.weights is None else sum(sorted(int(w) for w in score.weights)[-2:])
        case BestAttributes() | Heaps():
            return 1
        case Bisections() | Configurations():
            longest = n if layout.labels is None else int(np.bincount(layout.labels).max())
            return sum(ceil(1024 * (2 - Fraction(2, c))) for c in (longest, longest - 1))
        case Boundaries():
            if score.loss == "absolute":
                return 2
            ceiling, refine = score.lattice(n)
            assert ceiling <= score.ceiling  # type: ignore[operator]
            return 2 * ceiling * 4**refine  # type: ignore[no-any-return]
        case LowFrequencies():
            tilt = Fraction((4 if len(score.bases) > 1 else 2) * (n - 1), n)
            # √tilt · 1024, the least share of rounding, and one for the floors.
            return isqrt(int(tilt * 2**60)) * 1024 // 2**30 + 2
    raise AssertionError


@cases(SCORES)
def test_no_step_tilts_a_score_further_than_its_range(question: Any, layout: Layout) -> None:
    worst = Fraction(0)
    for counts in data(layout.size):
        before = dict(chains(question, counts, layout))
        for after in steps(counts):
            for path, candidates in chains(question, after, layout):
                was = before[path]
                assert np.array_equal(was.starts, candidates.starts)
                ranges = np.broadcast_to(was.ranges, was.starts.size - 1)
                assert np.array_equal(ranges, np.broadcast_to(candidates.ranges, ranges.shape))
                assert ranges.tolist() == [promised(question, layout)] * ranges.size
                change = candidates.scores - was.scores
                for p, (a, b) in enumerate(zip(was.starts[:-1], was.starts[1:], strict=True)):
                    tilt = int(change[a:b].max() - change[a:b].min())
                    worst = max(worst, Fraction(tilt, int(ranges[p])))
    assert worst <= 1
    assert worst > Fraction(1, 3)


def buckets(sizes: Any, n: int) -> list[tuple[int, int]]:
    if sizes == "all":
        return [(a, b) for a in range(n) for b in range(a + 1, n + 1)]
    if sizes == "powers":
        return [(a, a + m) for m in (1, 2, 4) for a in range(n - m + 1)]
    return sorted({(a, min(a + m, n)) for m in sizes for a in range(0, n, m)})


@cases(COSTS)
def test_no_step_moves_a_bucket_further_than_its_share_of_the_noise(question: Any, layout: Layout) -> None:
    n = layout.size
    edges = buckets(question.sizes, n)
    lows, highs = np.array(edges, dtype=np.int64).T.copy()
    median, grid = question.centre == "median", 1 if question.centre == "median" else question.grid
    reach = {b - a: question.sensitivity(b - a) for a, b in edges}
    worst = dict.fromkeys(reach, 0)
    for counts in data(n):
        cut = np.minimum(counts, 2**50 // n)
        before = bucket_deviations(cut, lows, highs, grid, 1, median)
        for (a, b), cost in zip(edges, before.tolist(), strict=True):
            cells = [int(x) for x in cut[a:b]]
            centre = Fraction(sorted(cells)[(b - a) // 2]) if median else Fraction(sum(cells), b - a)
            assert cost == (2 * grid * sum(abs(x - centre) for x in cells) + 1) // 2
        for after in steps(counts):
            moved = bucket_deviations(np.minimum(after, 2**50 // n), lows, highs, grid, 1, median) - before
            for (a, b), change in zip(edges, moved.tolist(), strict=True):
                worst[b - a] = max(worst[b - a], abs(change))
    assert all(worst[length] <= reach[length] for length in reach)
    assert all(worst[length] == reach[length] for length in reach if length < 4)
    # Every bucket is noised, singletons too, by its own reach and that of the longest.
    noise = Marked(marks=False)
    question.segment(np.arange(n), layout, noise)
    expected: Counter[Fraction] = Counter()
    longest = max(reach)
    for a, b in edges if longest > 1 else []:
        expected[Fraction(reach[b - a] + reach[longest])] += 1
    assert +noise.sizes == expected
