"""What the constants of adaptive trees are worth: each made smaller and larger, and what that does to the error.

Rectangles on made-up planes and prefixes of made-up vectors. A row gives the change of the error (geometric mean over
cases) at 2/3 and at 3/2 of the constant, each with its standard error over cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms import adaptivetree
from dphist.mechanisms.trees import planning
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing import run
from dphist_bench import data
from dphist_bench.data.planes import planes
from dphist_bench.measuring import Line

Case = tuple[NDArray[np.int64], Workload]


def measure(*, quick: bool, runs: int = 6) -> Iterator[Line]:
    """Give a table for each record of constants."""
    for module, cases in ((planning, plane_cases), (adaptivetree, line_cases)):
        yield from _varied(module, cases()[:2] if quick else cases(), 1 if quick else runs, quick)


def plane_cases() -> list[Case]:
    """Nine made-up planes, coarsened to about 64 × 64 cells, with a thousand and a hundred thousand records."""
    cases = []
    for weights in [each for each in planes().values() if each.ndim == 2][:9]:
        step = max(1, weights.shape[0] // 64)
        if step > 1 and weights.shape[1] % step == 0:
            rows = weights.shape[0] // step
            weights = weights[: rows * step].reshape(rows, step, -1, step).sum(axis=(1, 3))
        domain = Domain([Ordinal(f"x{axis}", range(n)) for axis, n in enumerate(weights.shape)])
        asked = Workload.random(domain, 300, seed=1)
        cases += [(data.sample(weights, records, 5), asked) for records in (10**3, 10**5)]
    return cases


def line_cases() -> list[Case]:
    """Nine made-up vectors of 4,096 cells with a thousand and a hundred thousand records."""
    smooth = (data.search_timeline, data.bell, data.level, data.steps, data.road_traffic)
    sparse = (data.network_hosts, data.spikes, data.social_degrees, data.citations)
    asked = Workload.prefixes(Domain([Ordinal("x", range(4096))]))
    return [(make(4096, records, 5), asked) for make in (*smooth, *sparse) for records in (10**3, 10**5)]


def _varied(module: Any, cases: list[Case], runs: int, quick: bool) -> Iterator[Line]:
    """Vary every constant of a module's record by itself."""
    kept = module.CONSTANTS

    def errors() -> NDArray[np.float64]:
        return np.array([_error(counts, asked, runs) for counts, asked in cases])

    base = errors()
    yield f"{type(kept).__name__}: {len(cases)} cases, {runs} runs, ε = 0.2; change of the error in percent"
    for each in fields(kept)[: 1 if quick else None]:
        row: dict[str, object] = {"constant": each.name}
        for name, factor in (("2/3", Fraction(2, 3)), ("3/2", Fraction(3, 2))):
            module.CONSTANTS = replace(kept, **{each.name: _scaled(getattr(kept, each.name), factor)})
            try:
                change = errors() - base
            finally:
                module.CONSTANTS = kept
            row[f"× {name}"] = round(100 * float(np.expm1(change.mean())), 1)
            row[f"± at {name}"] = round(100 * float(change.std()) / len(change) ** 0.5, 1)
        yield row


def _error(counts: NDArray[np.int64], asked: Workload, runs: int) -> float:
    squares = [
        np.mean(asked.answer(run(adaptivetree.AdaptiveTree(), counts, "0.2", seed=seed).counts - counts) ** 2)
        for seed in range(runs)
    ]
    return float(0.5 * np.log(np.mean(squares)))


def _scaled(value: Any, factor: Fraction) -> Any:
    if isinstance(value, tuple):
        return tuple(each * float(factor) for each in value)
    if isinstance(value, Fraction):
        return min(value * factor, Fraction(99, 100))
    return max(1, round(value * factor)) if isinstance(value, int) else value * float(factor)
