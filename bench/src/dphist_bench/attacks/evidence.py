"""What runs on both sides let out, and the statistics that tell the sides apart.

Two statistics compete for every bet. One is *known*: the loss that a `Twin` computed from the claimed laws (plus,
where partitions were chosen, how often each was chosen on either side before). The other is *learned* from earlier
runs and believes nothing: it looks at every released number, at differences of them (noise that was used twice
cancels), and at estimated counts where they were kept, so that it also sees what went past the gate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist.audit.attack import term
from dphist_bench.attacks.betting import Contest, Look, next_batch

FloatArray = NDArray[np.float64]
Shape = tuple[tuple[str, tuple[int, ...]], ...]
# What both neighbours' costs were computed from, and the partition that won.
Choice = tuple[bytes, bytes, bytes]

_BINS = 32
# Differences are looked at among this many numbers, the first that differ.
_RELATED = 12
# More runs than this teach the learner nothing that is worth its time.
_LESSON = 6_000
FIRST_BATCH = 60


@dataclass(frozen=True, eq=False)
class Run:
    """What a mechanism let out once, on one side."""

    shape: Shape
    """Which questions it asked, and how many numbers came back."""
    numbers: FloatArray
    loss: float = 0.0
    """ln(probability on the first side ÷ on the other) of the answers, by the claimed laws."""
    choices: tuple[Choice, ...] = ()
    covered: bool = True
    """Whether ``loss`` and ``choices`` are about everything that came out."""


Runs = list[Run]


class Evidence:
    """Collects runs of both sides, and bets on each batch with what the batches before it taught."""

    def __init__(self, epsilon: float) -> None:
        self.contest = Contest(epsilon)
        self.one: Runs = []
        self.other: Runs = []

    def add(self, one: Runs, other: Runs) -> None:
        """Bet on new runs, then learn from them."""
        if len(self.one):
            self.contest.bet([known_look(self, one, other), learned_look(self, one, other)])
        else:
            self.contest.watch(len(one))
        self.one.extend(one)
        self.other.extend(other)

    def largest_loss(self) -> float:
        """Give the largest loss of a run by formula, over both sides; partitions are not in it."""
        return max((abs(run.loss) for run in self.one + self.other), default=0.0)


def weigh(one: Runs, other: Runs, epsilon: float) -> Contest:
    """Bet on runs that are all there already, batch by batch."""
    evidence = Evidence(epsilon)
    made = min(len(one), len(other))
    while (first := len(evidence.one)) < made:
        last = first + next_batch(first, made, first=FIRST_BATCH)
        evidence.add(one[first:last], other[first:last])
    return evidence.contest


def known_look(earlier: Evidence, one: Runs, other: Runs) -> Look:
    """Rank runs by the loss that the claimed laws give them."""
    past_one, past_other = earlier.one, earlier.other
    if not any(run.choices for run in past_one):
        return Look(_rounded(past_one), _rounded(past_other), _rounded(one), _rounded(other))
    # Half of the past counts partitions, the other half picks the event, or it would trust its own luck.
    ratios = _count_choices(past_one[0::2], past_other[0::2])
    return Look(*(_rounded(runs, ratios) for runs in (past_one[1::2], past_other[1::2], one, other)))


def _rounded(runs: Runs, ratios: Mapping[Choice, float] | None = None) -> FloatArray:
    losses = np.array([run.loss for run in runs])
    if ratios is not None:
        losses += [sum(ratios.get(choice, 0.0) for choice in run.choices) for run in runs]
    # Equal losses must stay equal, whatever the order of their sums.
    return np.round(losses, 9)


def _count_choices(one: Runs, other: Runs) -> Mapping[Choice, float]:
    """How much likelier each partition is on the first side, given what the costs were computed from."""
    counts: dict[Choice, list[float]] = defaultdict(lambda: [0.5, 0.5])
    totals: dict[tuple[bytes, bytes], list[float]] = defaultdict(lambda: [1.0, 1.0])
    for side, runs in enumerate((one, other)):
        for choice in (choice for run in runs for choice in run.choices):
            counts[choice][side] += 1
            totals[choice[:2]][side] += 1
    return {
        choice: float(np.log(seen[0] / seen[1] * totals[choice[:2]][1] / totals[choice[:2]][0]))
        for choice, seen in counts.items()
    }


def learned_look(earlier: Evidence, one: Runs, other: Runs) -> Look:
    """Rank runs by what half of the earlier ones taught; the other half picks the event."""
    past_one, past_other = earlier.one, earlier.other
    score = _learn(past_one[0::2][-_LESSON:], past_other[0::2][-_LESSON:])
    return Look(*(score(runs) for runs in (past_one[1::2], past_other[1::2], one, other)))


def _learn(one: Runs, other: Runs) -> Callable[[Runs], FloatArray]:
    """Learn a score that grows with how much likelier a run is on the first side.

    Independent noise makes the log-likelihood ratio a sum over the released numbers; each term is read off two
    histograms, and numbers that tell nothing are left out, so that their sampling error does not drown the rest.
    """
    models = {shape: _Model.fit(shape, one, other) for shape in {run.shape for run in one + other}}

    def score(runs: Runs) -> FloatArray:
        result = np.zeros(len(runs))
        groups: dict[Shape, list[int]] = {}
        for i, run in enumerate(runs):
            groups.setdefault(run.shape, []).append(i)
        for shape, places in groups.items():
            # A shape that was never seen in training tells nothing.
            if shape in models:
                result[places] = models[shape].score(np.array([runs[i].numbers for i in places]))
        return result

    return score


@dataclass(frozen=True, eq=False)
class _Model:
    prior: float
    # Two columns (their difference) or one twice (itself), edges of bins, and how telling each bin is.
    terms: Sequence[tuple[int, int, FloatArray, FloatArray]]
    # Where few outputs are possible at all, such as choices and partitions, each is counted as a whole.
    whole: Mapping[bytes, float] = field(default_factory=dict)

    @staticmethod
    def fit(shape: Shape, one: Runs, other: Runs) -> _Model:
        first, second = (
            np.array([run.numbers for run in side if run.shape == shape]) for side in (one, other)
        )
        prior = float(np.log((len(first) + 1) / (len(second) + 1)))
        if min(len(first), len(second)) < _BINS:
            return _Model(prior, ())
        one_each, other_each = (Counter(row.tobytes() for row in side) for side in (first, second))
        if len(one_each.keys() | other_each.keys()) <= _BINS:
            both = one_each.keys() | other_each.keys()
            ratios = {row: float(np.log((one_each[row] + 1) / (other_each[row] + 1))) for row in both}
            return _Model(0.0, (), ratios)
        columns: list[int] = []
        seen: set[bytes] = set()
        for column in range(first.shape[1]):
            fingerprint = np.append(first[:32, column], second[:32, column]).tobytes()
            if fingerprint not in seen:
                seen.add(fingerprint)
                columns.append(column)
        places = [(column, column) for column in columns]
        places += [(a, b) for i, a in enumerate(columns[:_RELATED]) for b in columns[i + 1 : _RELATED]]
        terms: list[tuple[int, int, FloatArray, FloatArray]] = []
        for a, b in places:
            found = term(_feature(first, a, b), _feature(second, a, b))
            if found is not None:
                terms.append((a, b, *found))
        # Differences say again what their numbers say, and together they would drown a relation: if one of them
        # tells much more than any number, it speaks alone.
        loudest = max(terms, key=lambda one: _reach(one[3]), default=None)
        if loudest is not None and loudest[0] != loudest[1]:
            alone = max((_reach(one[3]) for one in terms if one[0] == one[1]), default=0.0)
            if _reach(loudest[3]) > alone + 0.5:
                return _Model(prior, [loudest])
        return _Model(prior, [one for one in terms if one[0] == one[1]])

    def score(self, numbers: FloatArray) -> FloatArray:
        if self.whole:
            return np.array([self.whole.get(row.tobytes(), 0.0) for row in numbers])
        result = np.full(len(numbers), self.prior)
        for a, b, edges, ratio in self.terms:
            result += ratio[np.searchsorted(edges, _feature(numbers, a, b), side="right")]
        return result


def _feature(numbers: FloatArray, a: int, b: int) -> FloatArray:
    return numbers[:, a] if a == b else numbers[:, a] - numbers[:, b]


def _reach(ratio: FloatArray) -> float:
    return float(np.abs(ratio).max())
