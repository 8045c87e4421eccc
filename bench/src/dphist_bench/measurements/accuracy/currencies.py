"""What the same questions cost in accuracy under pure ε, (ε, δ) and ρ: exact errors of unbiased answers.

For single cells, prefixes of a line, rectangles of a plane and all pairs of eight attributes the root mean squared
error of the best mechanism whose errors do not depend on the data: its variance is a theorem, so one run on no records
gives it. Budgets: ε = 1, (1, 10⁻⁹), (1, 10⁻⁶) and ρ = 1/2 (which ε = 1 does not imply, nor the other way round: a pure
ε of 1 costs ρ = 0.46). *limit* is what no unbiased linear answer can go below under Gaussian noise of ρ = 1/2
(`dphist.planning.limit`); for rectangles, of which a sample is asked, it is that of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dphist import Domain, Histogram, Ordinal, Workload
from dphist.errors import NotPrivate
from dphist.mechanisms import Gaussian, Laplace, Marginals, PrefixSums, Privelet, Tree
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.planning import limit
from dphist.testing import open_counts
from dphist_bench.measuring import Line

BUDGETS: dict[str, Budget] = {
    "ε = 1": Budget.of(1),
    "(1, 1e-9)": Budget.of(1, delta="1e-9"),
    "(1, 1e-6)": Budget.of(1, delta="1e-6"),
    "ρ = 1/2": Budget.of(rho="1/2"),
}


def measure(*, quick: bool) -> Iterator[Line]:
    """Give a row for every kind of question."""
    line = Domain([Ordinal("x", range(64 if quick else 4096))])
    side = 8 if quick else 64
    plane = Domain([Ordinal("x", range(side)), Ordinal("y", range(side))])
    several = Domain([Ordinal(f"a{i}", range(2 if quick else 3)) for i in range(8)])
    tree = Tree(fanout="auto", nonnegative=False)
    boxes: tuple[Mechanism, ...] = (Tree(fanout=4, nonnegative=False), Tree(nonnegative=False), Privelet())
    pairs = Marginals(tables=tuple(combinations(range(8), 2)), nonnegative=False)
    rows: tuple[tuple[str, Workload, tuple[Mechanism, ...]], ...] = (
        ("cells", Workload.cells(line), (Laplace(), Gaussian())),
        ("prefixes", Workload.prefixes(line), (tree, PrefixSums())),
        ("rectangles", Workload.random(plane, 2000, seed=1), boxes),
        ("all pairs of 8 attributes", Workload.marginals(several, 2), (pairs,)),
    )
    for name, asked, mechanisms in rows:
        found: dict[str, object] = {"questions": name, "cells": asked.domain.size}
        for budget, money in BUDGETS.items():
            errors = {type(m).__name__: error(m, asked, money) for m in mechanisms}
            best = min(errors, key=lambda each: errors[each])
            found[budget] = f"{errors[best]:.2f} ({best})"
        whole = Workload.all_ranges(asked.domain) if asked.kind == "ranges" else asked
        found["limit"] = limit(whole, rho="1/2")
        yield found


def error(mechanism: Mechanism, asked: Workload, budget: Budget) -> float:
    """The root mean squared error of unbiased answers, by their exact variances; infinite where it is refused."""
    nobody = Histogram(asked.domain, np.zeros(asked.domain.shape, dtype=np.int64))
    try:
        made = mechanism.estimate(open_counts(nobody, budget, seed=1, workload=asked))
    except NotPrivate:
        return math.inf
    return float(math.sqrt(np.mean(made.errors.variance(asked))))
