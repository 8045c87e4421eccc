"""The conformance suite: what every mechanism must do, ours and anyone's.

The privacy argument rests on the gate; these checks establish that a mechanism goes through it and nowhere else
(replay), spends what it was given (accounting), behaves as a value, and has intervals that hold where it calls them
exact or guaranteed. They do not replace the statistical audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError, RightUsed
from dphist.inference.estimate import Errors, Estimate
from dphist.inference.tables.published import TableEstimate
from dphist.mechanisms.options import from_json, parse, show, to_json
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.transcript import Transcript, same_answers
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate, open_replay
from dphist.private.noise import Keystream, Noise

_CERTAIN = 10**7
# Releases whose intervals are counted, on data where one question's errors do not hide behind another's. Of 40 95 %
# intervals of one question that hold as they say, 12 miss in one of a million such counts.
_RELEASES, _TOO_MANY_MISSES = 40, 12
_COUNTED = ("two cells", "hierarchy")


@dataclass(frozen=True, eq=False)
class Case:
    """A small data set with a name, made by rule so that failures can be repeated."""

    name: str
    histogram: Histogram


def cases() -> Iterator[Case]:
    """Give the shapes and values on which mechanisms have been seen to break."""
    bumpy = (np.arange(64) * 7919 % 97) * (np.arange(64) % 5 == 0)
    tree = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}
    flat = {
        "line of 64": bumpy,
        "line of 37, not a power of two": np.arange(37) % 11,
        "one cell": np.array([12]),
        "two cells": np.array([3, 900]),
        "all zero": np.zeros(16, dtype=np.int64),
        "one huge count": np.where(np.arange(16) == 11, 2**40, 0),
        "plane 8 × 8": bumpy.reshape(8, 8),
        "plane 5 × 1": np.array([[4], [0], [9], [9], [1]]),
        "cube 3 × 2 × 5": np.arange(30).reshape(3, 2, 5),
    }
    for name, counts in flat.items():
        axes = [Ordinal(f"x{i}", range(n)) for i, n in enumerate(counts.shape)]
        yield Case(name, Histogram(Domain(axes), counts.astype(np.int64)))
    yield Case("hierarchy", Histogram(Domain([Nominal("place", tree)]), np.array([5, 0, 70, 2, 2])))
    mixed = Domain([Ordinal("age", range(4)), Nominal("place", tree, other=True)])
    yield Case("age × hierarchy with other", Histogram(mixed, np.arange(24).reshape(4, 6)))


def check_mechanism(
    mechanism: Mechanism, *, epsilon: Number | Budget | None = None, rho: Number | None = None, bias: str = ""
) -> None:
    """Run every check; an `AssertionError` says which failed on which data.

    ``bias`` is the reason why the mechanism does not converge to the counts as ε grows, if it does not.

    Args:
        mechanism: What to check.
        epsilon: The budget of each run; 1 by default.
        rho: Or the budget of each run in ρ.
        bias: Why it does not converge to the counts as ε grows, if it does not.

    Example:
        >>> from dphist.mechanisms import Laplace
        >>> check_mechanism(Laplace())
    """
    check_value(mechanism)
    budget = Budget.of(1 if epsilon is None and rho is None else epsilon, rho=rho)
    for case in cases():
        check_run(mechanism, case, budget)
        if not bias:
            check_convergence(mechanism, case, replace(budget, amount=Fraction(_CERTAIN)))
        if case.name in _COUNTED:
            check_coverage(mechanism, case, budget)


def check_value(mechanism: Mechanism) -> None:
    """A mechanism is a frozen value: equal when written down and read back, as JSON and as text."""
    described = to_json(mechanism)
    if ":" not in described["name"]:
        assert from_json(described) == mechanism, "the JSON form must read back to an equal value"
        assert parse(show(mechanism)) == mechanism, "the text form must read back to an equal value"
    hash(mechanism)
    try:
        mechanism.not_an_option = 1  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        return
    raise AssertionError("a mechanism must be frozen")


def check_run(mechanism: Mechanism, case: Case, budget: Number | Budget) -> None:
    """Replay, accounting, reproducibility, shape: everything one data set can show."""
    insist = partial(_insist, f"{show(mechanism)} on {case.name}")
    budget = Budget.of(budget)
    counts = case.histogram.counts.copy()
    estimate, transcript = _run(mechanism, case.histogram, budget, seed=7)
    again, transcript_again = _run(mechanism, case.histogram, budget, seed=7)

    insist(np.array_equal(case.histogram.counts, counts), "must not change its input")
    insist(estimate.counts.dtype == np.float64, "must estimate in float64")
    insist(estimate.counts.size == counts.size, "must estimate every cell")
    insist(bool(np.isfinite(estimate.counts).all()), "must be finite")
    insist(np.array_equal(estimate.counts, again.counts), "the same entropy must give the same release")
    insist(same_answers(transcript, transcript_again), "the same entropy must give the same transcript")
    insist(len(transcript) > 0, "must ask something of the data")
    spent = transcript.spent()
    insist(spent <= budget.amount, f"spent {spent} of {budget.amount}")
    insist(spent == budget.amount, f"leaves budget unspent: {spent} of {budget.amount}")

    right, replay = open_replay(case.histogram.domain, budget, Unit(), transcript)
    replayed = mechanism.estimate(right)
    replay.finish()
    insist(np.array_equal(replayed.counts, estimate.counts), "replay without data must be bit-identical")
    try:
        right.split(1)
    except RightUsed:
        pass
    else:
        insist(False, "leaves its right unused")

    workload = Workload.random(case.histogram.domain, 20, seed=1)
    variance = estimate.errors.variance(workload)
    insist(variance.shape == (20,), "must give a variance for each question")
    # Not a number says that a question was not measured, and has bounds at most; anything else must be a variance.
    measured = ~np.isnan(variance)
    insist(bool((np.isfinite(variance) & (variance >= 0))[measured].all()), "variances must make sense")
    answers = np.asarray(
        workload.answer(estimate.counts.reshape(case.histogram.domain.shape)), dtype=np.float64
    )
    found = estimate.errors.interval(workload, answers, 0.95)
    insist(
        bool((found.low <= found.high)[measured].all()) and not bool((found.low > found.high).any()),
        "must give an interval for every question that was measured",
    )
    insist(bool(estimate.errors.words.short), "must say how its intervals are obtained")


def check_convergence(mechanism: Mechanism, case: Case, budget: Budget) -> None:
    """With all the budget in the world the estimate is the data."""
    estimate, _ = _run(mechanism, case.histogram, budget, seed=11)
    error = np.abs(estimate.counts.reshape(case.histogram.counts.shape) - case.histogram.counts).max()
    # Relative to the largest count: reconstruction in floating point rounds.
    allowed = 0.01 + 1e-9 * float(case.histogram.counts.max(initial=0))
    where = f"{show(mechanism)} on {case.name}"
    _insist(where, bool(error <= allowed), "must converge to the counts as ε grows")


def check_coverage(mechanism: Mechanism, case: Case, budget: Budget) -> None:
    """Intervals that are said to be exact hold, and so do guaranteed ones beside them: each question's, on any data.

    Calibrated ones hold on average over questions and data, which a few small cases cannot show.
    """
    domain, counts = case.histogram.domain, case.histogram.counts
    size = np.array(domain.shape)
    some, whole = Workload.random(domain, 20, seed=2), np.zeros((1, size.size), dtype=np.int64)
    asked = Workload(domain, np.vstack([some.low, whole]), np.vstack([some.high, whole + size]))
    truth = np.asarray(asked.answer(counts), dtype=np.float64)
    missed: dict[bool, NDArray[np.int64]] = {}
    for seed in range(_RELEASES):
        estimate, _ = _run(mechanism, case.histogram, budget, seed=seed)
        errors = estimate.errors
        if not errors.words.short.startswith("exact:"):
            return
        answers = errors.answer(asked, np.asarray(asked.answer(estimate.counts.reshape(counts.shape)), float))
        for guaranteed in (False, True) if _proves(errors, asked) else (False,):
            found = errors.interval(asked, answers, 0.95, guaranteed=guaranteed)
            misses = (truth < found.low - 1e-6) | (truth > found.high + 1e-6)
            missed[guaranteed] = missed.get(guaranteed, np.zeros(len(asked), dtype=np.int64)) + misses
    for guaranteed, times in missed.items():
        kind = "guaranteed" if guaranteed else "exact"
        _insist(
            f"{show(mechanism)} on {case.name}",
            int(times.max()) < _TOO_MANY_MISSES,
            f"its intervals are said to be {kind} at 95 %, and one missed in {times.max()} of {_RELEASES} releases",
        )


def _proves(errors: Errors, asked: Workload) -> bool:
    """Whether a guaranteed interval is known."""
    try:
        errors.interval(asked, np.zeros(len(asked)), 0.95, guaranteed=True)
    except QueryError:
        return False
    return True


def _run(
    mechanism: Mechanism, histogram: Histogram, budget: Budget, seed: int
) -> tuple[Estimate | TableEstimate, Transcript]:
    noise = Noise(Keystream.for_tests(seed))
    right, transcript = open_gate(histogram, budget, Unit(), noise=noise)
    return mechanism.estimate(right), transcript


def _insist(where: str, holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"{where}: {what}")
