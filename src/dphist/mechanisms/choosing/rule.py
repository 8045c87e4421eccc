"""Which mechanism fits what will be asked: from public facts, a look where these do not decide, and forecasts.

Cells by themselves, a tree of blocks, and tables of few attributes are forecast in closed form (`forecast`) for what
will be asked (`asked`); the least error wins. Tables of single attributes and their product are a further way where
attributes hardly depend on each other (`chance`). A line, and a plane of two long ordered attributes, has a tree unless
single cells are asked for: it adapts to where records are, which no forecast knows.

Whoever is not chosen is not loaded.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.choosing import heaps
from dphist.mechanisms.choosing.asked import in_words
from dphist.mechanisms.choosing.forecast import Known
from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.choosing.request import LARGEST_TABULAR, Request, as_noised, by_neighbours
from dphist.mechanisms.choosing.words import (
    ADAPTS,
    ALONE,
    BLOCKS,
    FIXED_TREE,
    RISKS_LESS,
    TABLES,
    TREE,
    UNTOLD,
    beside,
    two_digits,
)
from dphist.mechanisms.protocol import Mechanism
from dphist.model.phrases import UNPAIRED
from dphist.private.gate import PrivateCounts

# Residuals of announced tables must be expected to be off by less than 0.93 of what whole tables are, of which more is
# inferred: pairs of eight attributes of three values have 0.66 of their noise so, of drawn cubes 0.95 on average.
_RESIDUALS = 0.93
# What a total costs that says whether heaps are worth looking for.
_COUNT = Fraction(1, 256)


def first_look(request: Request) -> Look | None:
    """What is worth seeing before anything is chosen.

    Args:
        request: What was announced.

    Returns:
        What is asked, and for how much; None where nothing would be chosen otherwise.
    """
    if request.heaped:
        return Look(total=_COUNT, blocks=Fraction(0))
    if request.brief:
        return Look(blocks=Fraction(0))
    tables = request.tabular and request.small and not request.guaranteed and not request.along
    if not tables or (request.why_cells and request.kind != "cells") or request.nearly_exact:
        return None
    if request.kind == "marginals":
        # Tables of single attributes are measured whatever these hold; larger ones if chance does not say more.
        larger = any(sum(request.data.shape[axis] > 1 for axis in axes) > 1 for axes in request.tables)
        return Look(blocks=Fraction(0)) if larger and request.data.parts == 1 else None
    return Look(blocks=Fraction(0)) if request.hides else Look()


def look_on(request: Request, look: Look, seen: Glimpse) -> tuple[Look, Glimpse, PrivateCounts]:
    """See on which values records heap up, where what was seen says that it is worth it.

    Args:
        request: What was announced about what is left of the right.
        look: What was asked so far.
        seen: What that showed.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    data = request.data
    if not request.heaped or (seen.records or 0.0) < heaps.MANY * float(data.unit_scale):
        return look, seen, data
    look = replace(look, spread=heaps.SPREAD)
    seen, data = look.lower(data, seen)
    share = heaps.price(data, seen.spread or 0.0)
    if not share:
        return look, seen, data
    look = replace(look, heap=share)
    return look, *look.heaped(data, seen)


def choose(request: Request, seen: Glimpse) -> tuple[Mechanism, str]:
    """Say which mechanism fits, and why, from public facts and, where that was paid for, what was seen.

    Args:
        request: What was announced about what is left of the right.
        seen: What a look showed.

    Returns:
        The mechanism, and why.
    """
    if seen.heaps and request.again is not None:
        return _set_apart(request.data, request.again, seen.heaps)
    mechanism, reason = _fitting(request, seen)
    return _fixed(request, mechanism, reason) if request.guaranteed else (mechanism, reason)


def _set_apart(
    data: PrivateCounts, inner: Mechanism, found: tuple[tuple[int, int], ...]
) -> tuple[Mechanism, str]:
    """Publish values by themselves and the others beside them; and why."""
    from dphist.mechanisms.heap import Heap

    assert data.domain is not None  # noqa: S101 -- spaces have one
    mechanism = inner
    for axis, value in reversed(found):
        mechanism = Heap(of=data.domain.names[axis], value=value, inner=mechanism)
    names = " and of ".join(data.domain.names[axis] for axis, _ in found)
    return (
        mechanism,
        f"one value of {names} has a large part of the records, so it is published by itself and the others beside it "
        "(heap), each as is best there",
    )


def _fitting(request: Request, seen: Glimpse) -> tuple[Mechanism, str]:
    """The most accurate mechanism, and why."""
    data, records = request.data, seen.records
    if request.along:
        from dphist.mechanisms.residuals import Residuals

        names = ", ".join(data.domain.names[axis] for axis in request.along) if data.domain else ""
        return (
            Residuals(),
            "tables of few attributes and ranges inside them will be asked for, so these are measured with blocks of "
            f"all sizes along {names} (residuals)",
        )
    forecast = request.tabular and data.size <= LARGEST_TABULAR
    if request.why_cells and not (forecast and request.kind == "cells" and records is not None):
        exact = request.nearly_exact if forecast else None
        return exact or (by_neighbours()[0], f"{request.why_cells}, so {ALONE}")
    if request.nearly_exact is not None:
        return request.nearly_exact
    if request.brief and records is not None and request.full(records):
        return (
            by_neighbours()[0],
            f"{UNTOLD}, and {data.size:,} cells are few for about {two_digits(records):,} records, so {ALONE}",
        )
    if forecast:
        return _tables_or_tree(request, seen)
    if request.kind == "marginals":
        from dphist.mechanisms.marginals import Marginals

        return (
            Marginals(tables=request.tables),
            "tables of few attributes will be asked for, so these are measured (marginals)",
        )
    return _tree(), f"{_said(request)}, so {TREE}"


def _said(request: Request) -> str:
    """What will be asked, in words."""
    if request.parts:
        mixed = " + ".join(f"{weight:g} {in_words(part)}" for weight, part in request.parts)
        return f"several kinds of questions will be asked, which count as {mixed}"
    if request.kind is None:
        sums = (
            "cells, tables and ranges all count"
            if len(request.data.shape) > 1
            else "ranges of all sizes count"
        )
        return f"{UNTOLD}, and {sums}"
    return {
        "cells": "single cells will be asked for",
        "marginals": "tables of few attributes will be asked for",
        "prefixes": "running totals (prefixes) will be asked for",
    }.get(request.kind, "ranges of many cells will be asked for")


def _tables_or_tree(request: Request, seen: Glimpse) -> tuple[Mechanism, str]:
    """Tables with the cube, a tree, or chance, whichever is expected to be off by less."""
    from dphist.mechanisms.choosing.chance import left_to_chance
    from dphist.mechanisms.marginals import Marginals

    data, records, said = request.data, seen.records, _said(request)
    shrink = not request.guaranteed and request.small
    forecaster = request.forecaster(records)
    # What announced tables hold is not made light of: they are planned as if all of it were there.
    plan = (replace(forecaster, records=None) if request.kind == "marginals" else forecaster).tables()
    mean = plan.forecast.score
    known: Known | None = plan.known
    others: tuple[tuple[str, float], ...] = ()
    way: tuple[Mechanism, str] | None = None
    if request.kind == "cells":
        others = (("cells by themselves", forecaster.cells().score),)
    elif request.kind == "marginals":
        from dphist.mechanisms.residuals import Residuals
        from dphist.mechanisms.wide.choice import residual_error

        own = residual_error(data.law(), data.shape, request.tables)
        if own < _RESIDUALS * mean:
            way = (
                Residuals(tables=request.tables, shrink=shrink, by_cells=True),
                f"{said}, so these are measured together, what several of them share but once (residuals): "
                f"{beside(own, ('tables measured one by one', mean))}",
            )
            mean = own
    else:
        # A tree is reckoned with all of its noise: that it adapts makes up for what else its forecast leaves out.
        tree = replace(forecaster, records=None).tree().score
        others = ((BLOCKS, tree),)
        if tree < mean:
            way = (
                _tree(),
                f"{said}, so {TREE}: {beside(tree, (TABLES, mean), records=records, though=ADAPTS)}",
            )
            mean, known = tree, None
    product = None
    if shrink and not request.hides:
        product = left_to_chance(forecaster, mean, known, seen, request.tables)
    if product is not None:
        larger = ("larger tables or blocks", product.instead)
        return product.mechanism, (
            f"{UNPAIRED} {said[0].upper()}{said[1:]}, and noise would hide how attributes depend on each other, so "
            "single attributes are measured (marginals) and put together as if they were independent: "
            f"{beside(product.off, larger, records=records or 0.0, though=RISKS_LESS)}"
        )
    if way is not None:
        return way
    shares = plan.shares
    if request.kind == "marginals" and all(len(axes) == 1 for axes in plan.tables):
        # Long tables are inferred from their neighbours, so noise counts less there: halfway to equal shares.
        shares = tuple((share + Fraction(1, len(shares))) / 2 for share in shares)
    how = beside(mean, *others, records=records)
    return (
        Marginals(tables=plan.tables, shares=shares, estimator="weighed" if shrink else "plain"),
        f"{said}, so {_measured(plan.tables, len(data.shape))} (marginals){': ' * bool(how)}{how.removeprefix(', ')}",
    )


def _measured(tables: tuple[Axes, ...], attributes: int) -> str:
    """Which tables a plan has, in words; the mechanism names them all."""
    smaller = any(len(axes) < attributes for axes in tables)
    whole = any(len(axes) == attributes for axes in tables)
    if not smaller:
        return "every cell is measured by itself"
    return f"tables of few attributes {'and every cell ' * whole}are measured"


def _fixed(request: Request, mechanism: Mechanism, reason: str) -> tuple[Mechanism, str]:
    """What is asked decides as before; whoever adapts to noise gives way to whoever measures the same on all data."""
    from dphist.mechanisms.marginals import Marginals
    from dphist.mechanisms.posterior import Posterior
    from dphist.mechanisms.privelet import Privelet
    from dphist.mechanisms.residuals import Residuals
    from dphist.mechanisms.tree import Tree

    law = request.data.law()
    if isinstance(mechanism, Posterior):
        fixed, name = as_noised(request.data)
        reason = reason.replace(ALONE, f"every cell is measured by itself and published as it is ({name})")
    elif isinstance(mechanism, Marginals | Residuals) or mechanism == as_noised(request.data)[0]:
        return mechanism, reason
    elif law.gaussian and request.space and request.kind is not None:
        # A rectangle ends in strips, which boxes of one form cut many times and products of halvings seldom: planes of
        # 64², 256² and 1,024² cells have 7.3, 12.4 and 18.6 deviations a range, of a tree with the best shares 9.8, 22
        # and 46.
        fixed = Privelet()
        reason = reason.replace(
            TREE, "differences between halves, quarters and so on (wavelets) are measured (privelet)"
        )
    else:
        fixed = Tree(fanout="auto", nonnegative=False)
        reason = reason.replace(TREE, FIXED_TREE)
    return (
        fixed,
        f"{reason}; what is measured is the same for all data, which keeps guaranteed intervals narrow",
    )


def _tree() -> Mechanism:
    """A tree, whose counts are averaged with what the law of its intervals expects."""
    from dphist.mechanisms.adaptivetree import AdaptiveTree

    return AdaptiveTree(estimator="averaged")
