"""Who could measure sums of values, as others measure counts.

For the gate a cell of sums is a cell: every proof there is about one step, and steps of either sign are steps. What
assumes counts is what comes after: cutting at zero, handing down without going below zero, models of counts. Mechanisms
that are linear without it take sums by leaving it out; their errors are then noise of a known law, whatever the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster, Plan
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.matrix import Matrix
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.tree import Tree
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload


def signed(mechanism: Mechanism) -> Mechanism | None:
    """The form of a mechanism that takes sums; None if its model is one of counts."""
    match mechanism:
        case Laplace() | Gaussian():
            return mechanism
        case Tree() | Matrix() | Marginals():
            return replace(mechanism, nonnegative=False)
        case Privelet() if not mechanism.threshold:
            return mechanism
        case ByPart():
            inner = signed(mechanism.inner)
            return None if inner is None else replace(mechanism, inner=inner)
    return None


def candidates(shape: tuple[int, ...], workload: Workload | None) -> Iterator[Mechanism]:
    """Who could measure sums over this shape: what a forecast chooses among."""
    yield Laplace()
    yield Tree(fanout="auto", nonnegative=False)
    if len(shape) > 1:
        yield Privelet()
        if workload is not None and workload.kind == "marginals":
            yield Marginals(nonnegative=False)
        elif workload is None and len(shape) > 2:
            plan = plan_tables(shape)
            yield Marginals(tables=plan.tables, shares=plan.shares, nonnegative=False)


def plan_tables(shape: tuple[int, ...]) -> Plan:
    """The best tables and shares of a cube of which nobody said what will be asked, whatever it holds."""
    return Forecaster(shape, asked_kinds(shape, None, None, None), NoiseLaw("laplace", Fraction(1))).tables()
