"""The right mechanism by itself: chosen from public facts, explained in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from dphist.inference.estimate import Estimate
from dphist.inference.published import TableEstimate
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.marginals import Marginals, tables_of
from dphist.mechanisms.mixture import Mixture
from dphist.mechanisms.options import checked
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.prefixsums import PrefixSums
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.residuals import Residuals
from dphist.mechanisms.tableplan import plan_tables
from dphist.mechanisms.tree import Tree
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Kind, Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.prefixes import LONGEST
from dphist.private.records import PrivateRecords

# Ranges up to this many cells are better added up from single cells than read off a tree.
_SMALL_RANGE = 32
# An ordered attribute of so many values is asked for ranges.
_LONG = 16
# Cubes above this take too long to rake to their tables.
_LARGEST_TABULAR = 1 << 24
# Cubes above this are not written out whatever will be asked.
_LARGEST_DENSE = 1 << 29
# Of so many attributes nobody asks for boxes in all of them.
_MANY = 5
# Ranges looked at to tell how large they are.
_SAMPLE = 4096


@checked
@dataclass(frozen=True, kw_only=True)
class Auto:
    """Choose what to measure from what will be asked, and what to infer from what was measured.

    Single cells are noised one by one and inferred from their neighbours (`Posterior`). Prefixes, ranges and questions
    nobody announced get a tree measured where it is full (`AdaptiveTree`); in several dimensions its levels and
    shares are worked out for these ranges, down to single cells if that is best. Marginals are measured directly
    (`Marginals`). Of a domain with more cells than anybody can write out, tables of few attributes are published with
    a model fitted to them (`Mixture`). The choice reads public facts only: the shape of the domain and the workload.
    What depends on the data is decided inside: by noisy totals that are paid for, or among models by their evidence
    in values that are already released.

    Where (ε, δ) is allowed it is also chosen which promise to keep, that of the ρ it buys or that of pure ε
    (`dphist.mechanisms.currency`).

    Private because it hands the whole right to one mechanism, chosen without looking at a count.

    ``workload`` names what will be asked if it is not handed over as a workload: "cells", "prefixes", "all_ranges",
    "marginals" or "ranges". With ``guaranteed`` only mechanisms are chosen whose guaranteed intervals are narrow,
    because what is measured does not depend on the data and its noise is known exactly: single cells by `Laplace`
    (or `Gaussian`), ranges by a `Tree` of fixed blocks, published as least squares has it, tables by `Marginals`.
    Answers are then less accurate on data that the others adapt to. ``why`` is filled in by the release: the
    choice, in words.

    Args:
        workload: What will be asked, where it is not handed over as a workload.
        guaranteed: Choose for narrow guaranteed intervals.
        why: Filled in by the release.

    Example:
        >>> from dphist.mechanisms import Auto
        >>> from dphist.testing import run
        >>> run(Auto(workload="cells"), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    workload: Kind | None = None
    guaranteed: bool = False
    why: str = field(default="", compare=False)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose, then let the chosen mechanism use the right."""
        mechanism, reason = self.choose(data)
        estimate = mechanism.estimate(data)
        return replace(estimate, note=f"{reason}; {estimate.note}." if estimate.note else f"{reason}.")

    def choose(self, data: PrivateCounts) -> tuple[Mechanism, str]:
        """Say which mechanism fits, and why, from public facts."""
        mechanism, reason = self._fitting(data)
        if not self.guaranteed or isinstance(mechanism, Marginals):
            return mechanism, reason
        # What is asked decides as before; whoever adapts to noise gives way to whoever measures the same on all data.
        if isinstance(mechanism, Posterior):
            gaussian = data.law().gaussian
            fixed: Mechanism = Gaussian() if gaussian else Laplace()
            plain = "gaussian" if gaussian else "laplace"
            reason = reason.replace("(posterior)", f"and published as it is ({plain})")
        elif self._curve(data):
            fixed = PrefixSums()
            reason = reason.replace(
                "so a tree is measured (adaptivetree)", "so their root is measured (prefixsums)"
            )
        else:
            fixed = Tree(fanout="auto", nonnegative=False)
            reason = reason.replace("a tree is measured", "a tree of fixed blocks is measured")
            reason = reason.replace("(adaptivetree)", "(tree)")
        return fixed, f"{reason}, for narrow guaranteed intervals"

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables of few attributes are published rather than every cell: public facts decide."""
        if domain.size > _LARGEST_DENSE:
            return True
        kind = self.workload or (None if workload is None else workload.kind)
        tabular = kind == "marginals" or (kind is None and len(domain.shape) >= _MANY)
        return tabular and domain.size > _LARGEST_TABULAR

    def estimate_tables(self, data: PrivateRecords) -> TableEstimate:
        """Publish tables of few attributes out of very many."""
        asked = data.workload is not None and data.workload.kind == "marginals"
        reason = (
            f"the domain has {len(data.shape)} attributes and more cells than anybody can write out, so "
            f"{'the tables that will be asked for' if asked else 'all tables of two attributes'} are measured"
        )
        if self.guaranteed:
            found = Residuals().estimate_tables(data)
            return replace(
                found, note=f"{reason} (residuals), for narrow guaranteed intervals; {found.note}."
            )
        # It publishes tables as they were measured where noise is small, and shrinks them to its model elsewhere.
        found = Mixture().estimate_tables(data)
        return replace(found, note=f"{reason} and a model fitted to them (mixture); {found.note}.")

    def _fitting(self, data: PrivateCounts) -> tuple[Mechanism, str]:
        """The most accurate mechanism, and why."""
        kind = self.workload or (None if data.workload is None else data.workload.kind)
        several = len(data.shape) > 1
        if kind == "cells" or (kind == "marginals" and not several):
            return (
                Posterior(),
                "single cells will be asked for, so every cell is measured by itself (posterior)",
            )
        if kind == "marginals":
            asked = None
            if data.workload is not None and data.workload.kind == "marginals":
                asked = tables_of(data.workload)
            tables = asked or tuple((axis,) for axis in range(len(data.shape)))
            if any(len(table) == len(data.shape) for table in tables):
                return (
                    Posterior(),
                    "a table of all attributes will be asked for: every cell is measured (posterior)",
                )
            return (
                Marginals(tables=tables),
                "marginals will be asked for, so these tables are measured (marginals)",
            )
        if kind == "ranges":
            typical = self._typical(data)
            if typical is not None and typical <= _SMALL_RANGE:
                return (
                    Posterior(),
                    f"the ranges that will be asked for typically hold {typical} cells, so every cell is measured "
                    "(posterior)",
                )
            return (
                AdaptiveTree(),
                "ranges of many cells will be asked for, so a tree is measured (adaptivetree)",
            )
        if kind is None and self._tabular(data):
            plan = plan_tables(data.shape)
            return (
                Marginals(tables=plan.tables, shares=plan.shares),
                "nobody said what will be asked, so tables of few attributes and the whole cube are measured, with "
                "shares that serve tables of one, two and three attributes and cells alike (marginals)",
            )
        if kind is None:
            return (
                AdaptiveTree(),
                "nobody said what will be asked, so a tree is measured that serves ranges of all sizes (adaptivetree)",
            )
        return AdaptiveTree(), "sums of many cells will be asked for, so a tree is measured (adaptivetree)"

    def _curve(self, data: PrivateCounts) -> bool:
        """Whether prefixes of a line are asked for, under a law of noise that makes their root the best question."""
        kind = self.workload or (None if data.workload is None else data.workload.kind)
        return kind == "prefixes" and len(data.shape) == 1 and data.size <= LONGEST and data.law().gaussian

    def _tabular(self, data: PrivateCounts) -> bool:
        """Whether a cube is rather a table of several attributes than a space of points.

        On made-up cubes tables of few attributes beat a tree of boxes on all sums unless two long ordered attributes or
        more made a space in which people ask for ranges.
        """
        if len(data.shape) < 3 or data.domain is None:
            return False
        long = [a for a in data.domain.attributes if isinstance(a, Ordinal) and a.size >= _LONG]
        return len(long) < 2 and data.size <= _LARGEST_TABULAR

    def _typical(self, data: PrivateCounts) -> int | None:
        """Give the median number of cells of the announced ranges."""
        if data.workload is None or data.workload.kind != "ranges" or data.workload.size == 0:
            return None
        low, high = data.workload.low, data.workload.high
        step = math.ceil(len(low) / _SAMPLE)
        return int(np.median(np.prod(np.maximum(high[::step] - low[::step], 0), axis=1)))
