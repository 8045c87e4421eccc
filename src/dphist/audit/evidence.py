"""From many runs on each side to one event, and from the event to a lower bound on ε.

Three disjoint thirds of the runs keep the bound honest: the first learns how telling each released number is, the
second picks the event, and only the third, which nothing was fitted to, is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]
Shape = tuple[tuple[str, tuple[int, ...]], ...]

_BINS = 32


@dataclass(frozen=True, eq=False)
class Runs:
    """What a mechanism released, run by run: which questions it asked (its shape), and all numbers."""

    shapes: Sequence[Shape]
    numbers: Sequence[FloatArray]

    def part(self, third: int) -> Runs:
        """Give one third of the runs."""
        return Runs(self.shapes[third::3], self.numbers[third::3])

    def __len__(self) -> int:
        return len(self.shapes)


@dataclass(frozen=True)
class Event:
    """How often one event happened on each side, in runs that nothing was fitted to."""

    hits: int
    of: int
    misses: int
    of_other: int

    def bound(self, alpha: float) -> float:
        """Bound ln(p ÷ q) from below, wrongly with probability at most ``alpha``."""
        return float(
            _ratios(np.array([self.hits]), self.of, np.array([self.misses]), self.of_other, alpha)[0]
        )

    def chance(self, epsilon: float) -> float:
        """Give a p-value: how surprising these runs would be if the event told no more than ε.

        The smallest alpha at which the bound exceeds ε: conservative, with an interval for each side.
        """
        if self.bound(1.0) <= epsilon:
            return 1.0
        low, high = -300.0, 0.0
        if self.bound(10.0**low) > epsilon:
            return float(10.0**low)
        while high - low > 0.01:
            middle = (low + high) / 2
            low, high = (low, middle) if self.bound(10.0**middle) > epsilon else (middle, high)
        return float(10.0**high)


def events(one: Runs, other: Runs, alpha: float) -> tuple[Event, Event]:
    """Find the most telling event in each direction; ``alpha`` only says how sure it should be meant to be."""
    score = _learn(one.part(0), other.part(0))
    picks = score(one.part(1)), score(other.part(1))
    finals = score(one.part(2)), score(other.part(2))
    found = []
    for direction in (0, 1):
        sign = 1.0 if direction == 0 else -1.0
        threshold = _threshold(sign * picks[direction], sign * picks[1 - direction], alpha / 2)
        likely, rare = sign * finals[direction] >= threshold, sign * finals[1 - direction] >= threshold
        found.append(Event(int(likely.sum()), likely.size, int(rare.sum()), rare.size))
    return found[0], found[1]


def lower_bound(one: Runs, other: Runs, alpha: float) -> float:
    """Bound ε from below, wrongly with probability at most ``alpha``, trying both directions."""
    return max(event.bound(alpha / 2) for event in events(one, other, alpha))


def chance(found: tuple[Event, Event], epsilon: float) -> float:
    """Give the p-value of both directions together."""
    return min(1.0, 2 * min(event.chance(epsilon) for event in found))


def _threshold(likely: FloatArray, rare: FloatArray, alpha: float) -> float:
    """Pick the event {score ≥ t} whose own lower bound is best."""
    candidates = np.unique(
        np.quantile(np.concatenate([likely, rare]), np.linspace(0, 0.9995, 120), method="higher")
    )
    likely, rare = np.sort(likely), np.sort(rare)
    hits = likely.size - np.searchsorted(likely, candidates)
    misses = rare.size - np.searchsorted(rare, candidates)
    return float(candidates[int(np.argmax(_ratios(hits, likely.size, misses, rare.size, alpha)))])


def _ratios(
    hits: NDArray[np.int64], of: int, misses: NDArray[np.int64], of_other: int, alpha: float
) -> FloatArray:
    """Clopper–Pearson: ln(lowest plausible p ÷ highest plausible q), each at half of alpha."""
    low = special.betaincinv(np.maximum(hits, 1), of - hits + 1, alpha / 2)
    room = np.maximum(of_other - misses, 1)
    # The complement, because 1 − alpha would round to one.
    high = np.where(misses < of_other, special.betainccinv(misses + 1, room, alpha / 2), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(hits > 0, np.log(low) - np.log(high), -np.inf), dtype=np.float64)


def _learn(one: Runs, other: Runs) -> Callable[[Runs], FloatArray]:
    """Learn a score that grows with how much likelier a run is on the first side.

    Independent noise makes the log-likelihood ratio a sum over the released numbers; each term is read off two
    histograms, and numbers that tell nothing are left out, so that their sampling error does not drown the rest.
    """
    shapes = set(one.shapes) | set(other.shapes)
    models = {shape: _Model.fit(shape, one, other) for shape in shapes}

    def score(runs: Runs) -> FloatArray:
        result = np.zeros(len(runs))
        groups: dict[Shape, list[int]] = {}
        for i, shape in enumerate(runs.shapes):
            groups.setdefault(shape, []).append(i)
        for shape, places in groups.items():
            # A shape that was never seen in training tells nothing.
            if shape in models:
                result[places] = models[shape].score(np.array([runs.numbers[i] for i in places]))
        return result

    return score


@dataclass(frozen=True, eq=False)
class _Model:
    prior: float
    terms: Sequence[tuple[int, FloatArray, FloatArray]]
    # Where few outputs are possible at all, such as choices and partitions, each is counted as a whole.
    whole: Mapping[bytes, float] = field(default_factory=dict)

    @staticmethod
    def fit(shape: Shape, one: Runs, other: Runs) -> _Model:
        first = np.array([row for s, row in zip(one.shapes, one.numbers, strict=True) if s == shape])
        second = np.array([row for s, row in zip(other.shapes, other.numbers, strict=True) if s == shape])
        prior = float(np.log((len(first) + 1) / (len(second) + 1)))
        if len(first) < 2 * _BINS or len(second) < 2 * _BINS:
            return _Model(prior, ())
        one_each, other_each = (Counter(row.tobytes() for row in side) for side in (first, second))
        if len(one_each.keys() | other_each.keys()) <= _BINS:
            both = one_each.keys() | other_each.keys()
            ratios = {row: float(np.log((one_each[row] + 1) / (other_each[row] + 1))) for row in both}
            return _Model(0.0, (), ratios)
        terms: list[tuple[int, FloatArray, FloatArray]] = []
        seen: set[bytes] = set()
        for column in range(first.shape[1]):
            values = np.concatenate([first[:, column], second[:, column]])
            fingerprint = values[:64].tobytes()
            if fingerprint in seen:
                continue
            seen.add(fingerprint)
            edges = _edges(values)
            a = np.bincount(np.searchsorted(edges, first[:, column], side="right"), minlength=edges.size + 1)
            b = np.bincount(np.searchsorted(edges, second[:, column], side="right"), minlength=edges.size + 1)
            if _telling(a, b):
                terms.append((column, edges, np.log((a + 1) / (b + 1) * ((b.sum() + 1) / (a.sum() + 1)))))
        return _Model(prior, terms)

    def score(self, numbers: FloatArray) -> FloatArray:
        if self.whole:
            return np.array([self.whole.get(row.tobytes(), 0.0) for row in numbers])
        result = np.full(len(numbers), self.prior)
        for column, edges, ratio in self.terms:
            result += ratio[np.searchsorted(edges, numbers[:, column], side="right")]
        return result


def _edges(values: FloatArray) -> FloatArray:
    distinct = np.unique(values)
    if distinct.size <= _BINS:
        return (distinct[1:] + distinct[:-1]) / 2
    return np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)[1:-1], method="nearest"))


def _telling(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    total = a + b
    kept = total > 0
    expected = total[kept] * (a.sum() / total.sum())
    spread = expected * (1 - a.sum() / total.sum())
    chi = float(((a[kept] - expected) ** 2 / spread).sum())
    freedom = max(1, int(kept.sum()) - 1)
    return bool(chi > freedom + 3 * np.sqrt(2 * freedom))
