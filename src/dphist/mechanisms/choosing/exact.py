"""Where a large budget makes noise all but vanish: every cell by itself, beside whoever shares the budget.

Noise is drawn as whole numbers: at ε = 10 a cell gets 0 but once in ten thousand, while a tree shares ε among its
levels and tables share it among themselves, each of which is noisy. Public facts alone.
"""

from __future__ import annotations

from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.words import BLOCKS, beside
from dphist.mechanisms.marginals import tables_of
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.protocol import Mechanism
from dphist.model.workload import Kind, Workload
from dphist.private.gate import PrivateCounts

# Where whole numbers have less than this part of continuous noise's variance (ε above 3), cells are looked at first; of
# several attributes, of which more than cells is asked, from less on (ε of 4 and more), and from still less on (ε of 6)
# they are published as they are, since hardly one has noise that neighbours could take out.
_WHOLE, _WHOLE_OF_SEVERAL, _AS_THEY_ARE = 0.5, 0.35, 0.12
# A tree adapts to what it finds: cells must be expected to be off by this much less. On 13 drawn planes (numbers 0 to
# 49) at ε = 10 rectangles are then off by 0.001 to 0.5 of what they were; at ε = 5 the tree stays.
_NEARLY_EXACT = 0.5
# Tables of several attributes do not adapt: cells as good as they are will do, but for announced tables, of which more
# is inferred than noise leaves. On 22 drawn cubes (`dphist_bench.data.drawn` cubes 3400 to 3499 and people 3200 to 3229
# of up to 6,000 cells, three draws) cells by themselves have 0.9 of the error of whatever else was chosen at ε = 4 on
# two-way tables and ranges of two, 1.0 on boxes, 1.9 on tables of one attribute, at ε = 6 0.4 to 0.8 of all, at ε = 10
# less than 0.2; at ε = 3 0.9 on cells and 1.0 to 2.6 on all else.
_AS_GOOD, _THAN_TABLES = 1.02, 0.85


def nearly_exact(
    data: PrivateCounts, workload: Workload | None, kind: Kind | None, *, space: bool
) -> tuple[Mechanism, str] | None:
    """Who measures every cell by itself where a large budget makes its noise all but vanish, and why; else nothing.

    Args:
        data: A right, of which only public facts are read.
        workload: What was announced.
        kind: Its kind, if it is one.
        space: Whether it is a line or a space of points, which a tree would serve, rather than a table.

    Returns:
        The mechanism, and why; or nothing.

    Example:
        >>> from dphist.testing import open_counts
        >>> one, ten = (nearly_exact(open_counts([[3, 1]] * 8, e), None, None, space=False) for e in (1, 10))
        >>> one is None, "whole numbers" in ten[1]
        (True, True)
    """
    law = data.law()
    part = law.drawn_variance / law.variance
    if part > (_WHOLE if space or kind == "cells" else _WHOLE_OF_SEVERAL):
        return None
    asked = asked_kinds(data.shape, data.domain, workload, "ranges" if space else kind)
    forecaster = Forecaster(data.shape, asked, law)
    cells, tree = forecaster.cells().score, forecaster.tree().score
    better, others_said = cells <= _NEARLY_EXACT * tree, [(BLOCKS, tree)]
    if not space:
        plan, enough, others = forecaster.tables(), _AS_GOOD, [tree]
        if len(plan.tables) > 1 or len(plan.tables[0]) < len(data.shape):
            others.append(plan.forecast.score)
        if kind == "marginals" and workload is not None:
            from dphist.mechanisms.wide.choice import residual_error

            others.append(residual_error(law, data.shape, tables_of(workload)))
            enough = _THAN_TABLES
        better = cells <= enough * min(others)
        others_said += [("tables of few attributes", min(others[1:]))] if others[1:] else []
    if not better:
        return None
    chosen: tuple[Mechanism, str] = Posterior(), "posterior"
    if not space and part < _AS_THEY_ARE:
        chosen = (Gaussian(), "gaussian") if law.gaussian else (Laplace(), "laplace")
    return chosen[0], (
        "noise is drawn as whole numbers and so large a budget makes nearly all of them 0, so every cell is measured "
        f"by itself ({chosen[1]}): {beside(cells, *others_said)}"
    )
