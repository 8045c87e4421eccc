"""Mechanisms side by side on counts that are public or made up: error on a workload, and time.

The errors are computed from the true counts, so they are not private. Never do this with data you protect.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dphist.arguments import explained
from dphist.errors import DphistError, InputError
from dphist.mechanisms.options import parse, show
from dphist.mechanisms.protocol import Mechanism
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.waiting import steps

# Questions that are asked of every run; more are sampled.
MOST_QUESTIONS = 1 << 20


@dataclass(frozen=True)
class Row:
    """One mechanism: its root mean squared error, that error over the best one's, and CPU seconds a run.

    Args:
        name: The mechanism.
        error: Its root mean squared error.
        ratio: That error over the best one's.
        seconds: CPU seconds a run.
        why_not: Why it could not run, if so.

    Example:
        >>> Row("laplace", 1.4, 1.0, 0.001).why_not
        ''
    """

    name: str
    error: float
    ratio: float
    seconds: float
    why_not: str = ""


@explained
def compare(
    histogram: Histogram,
    epsilon: Number,
    workload: Workload,
    mechanisms: Iterable[Mechanism | str],
    trials: int = 3,
    *,
    seed: int | None = None,
    most: int = MOST_QUESTIONS,
) -> list[Row]:
    """Run every mechanism on the counts and give its error on the workload, best first.

    ``seed`` makes the noise reproducible. A mechanism that does not take this domain comes last, with the reason.

    Args:
        histogram: Counts that are public or made up.
        epsilon: What each run spends.
        workload: What is asked.
        mechanisms: Names or mechanisms.
        trials: How often each runs.
        seed: Makes the noise the same again.
        most: Of more questions than this, a sample is asked; mechanisms are told of all of them.

    Returns:
        A row for each mechanism, best first.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(8))])
        >>> made_up = dphist.Histogram(domain, [9, 9, 0, 0, 0, 0, 5, 5])
        >>> rows = dphist.planning.compare(made_up, 1, dphist.Workload.cells(domain), ["laplace", "uniform"], seed=1)
        >>> rows[0].ratio
        1.0
    """
    if trials < 1 or most < 1:
        raise InputError(f"{'trials' if trials < 1 else 'most'}: at least one")
    if not len(workload):
        raise InputError("workload: it asks nothing, so there is no error to compare")
    named = {
        each if isinstance(each, str) else show(each): parse(each) if isinstance(each, str) else each
        for each in mechanisms
    }
    if not all(hasattr(each, "estimate") for each in named.values()):
        raise InputError("mechanisms: give names or mechanisms")
    asked = sampled(workload, most)
    exact = np.asarray(asked.answer(histogram.counts), dtype=np.float64)
    errors: dict[str, tuple[float, float, str]] = {}
    for _, (name, mechanism) in zip(steps("comparing mechanisms", len(named)), named.items(), strict=True):
        squared, spent = 0.0, 0.0
        try:
            for trial in range(trials):
                noise = None if seed is None else Noise(Keystream.for_tests(seed * 1_000_003 + trial))
                right, _ = open_gate(histogram, epsilon, Unit(), workload=workload, noise=noise)
                started = time.process_time()
                counts = mechanism.estimate(right).counts.reshape(histogram.counts.shape)
                spent += time.process_time() - started
                squared += float(np.mean((np.asarray(asked.answer(counts)) - exact) ** 2)) / trials
            errors[name] = (math.sqrt(squared), spent / trials, "")
        except DphistError as reason:
            errors[name] = (math.inf, 0.0, str(reason))
    best = min((error for error, _, _ in errors.values()), default=math.inf)
    rows = [
        Row(name, error, error / best if 0.0 < best < math.inf else math.nan, seconds, reason)
        for name, (error, seconds, reason) in errors.items()
    ]
    return sorted(rows, key=lambda row: row.error)


def skyline(rows: Iterable[tuple[str, *tuple[float, ...]]]) -> list[str]:
    """Names of the rows that no other row dominates, in the order given.

    A row is a name and its costs, such as ``("h", seconds, error)``; less is better. Row a dominates row b if it is
    nowhere worse and somewhere better, so equal rows stay together.
    """
    listed = [(name, np.array(costs)) for name, *costs in rows]
    return [
        name
        for name, mine in listed
        if not any((other <= mine).all() and (other < mine).any() for _, other in listed)
    ]


def sampled(workload: Workload, most: int = MOST_QUESTIONS) -> Workload:
    """The workload or, where it asks more than memory holds, at most ``most`` of its questions, evenly picked."""
    return workload if len(workload) <= most or workload.query is not None else workload.spread(most)
