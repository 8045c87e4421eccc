"""Which mechanism fits what will be asked: from public facts, pilot queries where these do not decide, and forecasts.

`PILOTS` and `STEPS` are the rule, from top to bottom: the first condition that holds decides. Most cubes come to
`_by_forecast`, where cells by themselves, a tree of blocks and tables of few attributes are forecast in closed form
(`forecast`) for what will be asked (`asked`); the least error wins. A line, and a plane of two long ordered attributes,
has a tree unless single cells are asked for: it adapts to where records are, which no forecast knows.

`docs/mechanisms/auto-decides.svg` is drawn from both lists, and a test holds it to them. Mechanisms are imported when
they are chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.choosing.asked import in_words
from dphist.mechanisms.choosing.forecast import Plan
from dphist.mechanisms.choosing.pilot import MANY, SPREAD, PilotAnswer, PilotQuery, price
from dphist.mechanisms.choosing.request import (
    ADAPTS,
    ALONE,
    BLOCKS,
    FIXED_TREE,
    RISKS_LESS,
    TABLES,
    TREE,
    UNTOLD,
    Request,
    as_noised,
    beside,
    by_neighbours,
    two_digits,
)
from dphist.mechanisms.protocol import Mechanism
from dphist.model.phrases import UNPAIRED
from dphist.private.gate import PrivateCounts

Choice = tuple[Mechanism, str]

# Residuals of announced tables must be expected to be off by less than 0.93 of what whole tables are, of which more is
# inferred: pairs of eight attributes of three values have 0.66 of their noise so, of drawn cubes 0.95 on average.
_RESIDUALS = 0.93
# What a total costs that says whether point masses are worth looking for.
_COUNT = Fraction(1, 256)
_TOTAL = PilotQuery(blocks=Fraction(0))


@dataclass(frozen=True)
class Pilot:
    """A pilot query, and when it is asked; ``when`` and ``asks`` are in the chart."""

    when: str
    asks: str
    holds: Callable[[Request], bool]
    query: PilotQuery | None


@dataclass(frozen=True)
class Step:
    """A step of the rule: a mechanism if its condition holds, else the next; ``when`` and ``then`` are in the chart."""

    when: str
    then: str
    names: tuple[str, ...]
    """The mechanisms that it may choose."""
    choose: Callable[[Request, PilotAnswer], Choice | None]


def first_look(request: Request) -> PilotQuery | None:
    """The pilot query that is worth its price before anything is chosen; None where it would change nothing."""
    return next(pilot.query for pilot in PILOTS if pilot.holds(request))


def look_on(
    request: Request, data: PrivateCounts, look: PilotQuery, seen: PilotAnswer
) -> tuple[PilotQuery, PilotAnswer, PrivateCounts]:
    """Look for point masses, where the total says that it is worth it.

    Gives all that was asked, what it showed, and what is left of the right.
    """
    if not request.massed or (seen.records or 0.0) < MANY * float(data.unit_scale):
        return look, seen, data
    look = replace(look, spread=SPREAD)
    seen, data = look.lower(data, seen)
    share = price(data, seen.spread or 0.0)
    if not share:
        return look, seen, data
    look = replace(look, heap=share)
    return look, *look.find(data, seen)


def choose(request: Request, seen: PilotAnswer) -> Choice:
    """Say which mechanism fits, and why, from public facts and, where that was paid for, what was seen."""
    for step in STEPS:
        found = step.choose(request, seen)
        if found is not None:
            return _fixed(request, *found) if request.guaranteed else found
    raise AssertionError("the last step always chooses")


def _set_aside(request: Request) -> bool:
    """Whether public facts decide: no pilot query would change the choice."""
    tables = request.tabular and request.small and not request.guaranteed and not request.along
    if not tables or (request.why_cells and request.kind != "cells") or request.nearly_exact:
        return True
    # Tables of single attributes are measured whatever these hold; larger ones if independence does not say more.
    larger = any(sum(request.data.shape[axis] > 1 for axis in axes) > 1 for axes in request.tables)
    return request.kind == "marginals" and not (larger and request.data.parts == 1)


PILOTS = (
    Pilot(
        "a tree would serve a plane or a space",
        "a total; of many records also which value is a point mass",
        lambda request: request.massed,
        PilotQuery(total=_COUNT, blocks=Fraction(0)),
    ),
    Pilot("9 to 128 cells of a line, nothing said, ε", "a total", lambda request: request.brief, _TOTAL),
    Pilot("a line, narrow guarantees, or a public fact that decides", "nothing", _set_aside, None),
    Pilot(
        "announced tables, two attributes, or two long ordered ones",
        "a total",
        lambda request: request.kind == "marginals" or request.hides,
        _TOTAL,
    ),
    Pilot("any other cube", "a total and a coarse cube", lambda request: True, PilotQuery()),
)


def _point_masses(request: Request, seen: PilotAnswer) -> Choice | None:
    domain = request.data.domain
    if not seen.point_masses or request.again is None or domain is None:
        return None
    from dphist.mechanisms.bypart import Heap

    mechanism = request.again
    for axis, value in reversed(seen.point_masses):
        mechanism = Heap(of=domain.names[axis], value=value, inner=mechanism)
    names = " and of ".join(domain.names[axis] for axis, _ in seen.point_masses)
    return (
        mechanism,
        f"one value of {names} has a large part of the records, so it is published by itself and the others beside it "
        "(heap), each as is best there",
    )


def _inside_tables(request: Request, seen: PilotAnswer) -> Choice | None:
    if not request.along:
        return None
    from dphist.mechanisms.residuals import Residuals

    domain = request.data.domain
    names = ", ".join(domain.names[axis] for axis in request.along) if domain else ""
    return (
        Residuals(),
        "tables of few attributes and ranges inside them will be asked for, so these are measured with blocks of "
        f"all sizes along {names} (residuals)",
    )


def _whole_numbers(request: Request, seen: PilotAnswer) -> Choice | None:
    return None if request.why_cells and not request.forecast else request.nearly_exact


def _cells(request: Request, seen: PilotAnswer) -> Choice | None:
    # Of a cube that was counted a forecast knows better.
    if not request.why_cells or (request.forecast and request.kind == "cells" and seen.records is not None):
        return None
    return by_neighbours()[0], f"{request.why_cells}, so {ALONE}"


def _full_line(request: Request, seen: PilotAnswer) -> Choice | None:
    if not request.brief or seen.records is None or not request.full(seen.records):
        return None
    return (
        by_neighbours()[0],
        f"{UNTOLD}, and {request.data.size:,} counts are few for about {two_digits(seen.records):,} records, "
        f"so {ALONE}",
    )


def _tree(request: Request, seen: PilotAnswer) -> Choice:
    return _averaged(), f"{_said(request)}, so {TREE}"


def _said(request: Request) -> str:
    """What will be asked, in words."""
    if request.parts:
        mixed = " + ".join(f"{weight:g} × {in_words(part)}" for weight, part in request.parts)
        return f"several kinds of questions will be asked, with the weights {mixed}"
    if request.kind is None:
        several = len(request.data.shape) > 1
        return f"{UNTOLD}, and {'single counts, tables and ranges all' if several else 'ranges of all sizes'} matter"
    return {
        "cells": "single counts will be asked for",
        "marginals": "tables of few attributes will be asked for",
        "prefixes": "running totals (prefixes) will be asked for",
    }.get(request.kind, "ranges over many counts will be asked for")


def _by_forecast(request: Request, seen: PilotAnswer) -> Choice | None:
    """Tables with the cube, a tree, or independent attributes, whichever is expected to be off by less."""
    if not request.forecast:
        return None
    from dphist.mechanisms.choosing.independence import independent_product
    from dphist.mechanisms.marginals import Marginals

    data, records, said = request.data, seen.records, _said(request)
    shrink = not request.guaranteed and request.small
    forecaster = request.forecaster(records)
    # What announced tables hold is not made light of: they are planned as if all of it were there.
    plan = (replace(forecaster, records=None) if request.kind == "marginals" else forecaster).tables()
    mean = plan.score
    tables: Plan | None = plan
    others: tuple[tuple[str, float], ...] = ()
    way: Choice | None = None
    if request.kind == "cells":
        others = (("counts by themselves", forecaster.cells()),)
    elif request.kind == "marginals":
        from dphist.mechanisms.residuals import Residuals
        from dphist.mechanisms.wide.plan import residual_error

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
        tree = replace(forecaster, records=None).tree()
        others = ((BLOCKS, tree),)
        if tree < mean:
            way = (
                _averaged(),
                f"{said}, so {TREE}: {beside(tree, (TABLES, mean), records=records, though=ADAPTS)}",
            )
            mean, tables = tree, None
    product = None
    if shrink and not request.hides:
        product = independent_product(forecaster, mean, tables, seen, request.tables)
    if product is not None:
        mechanism, off, instead = product
        larger = ("larger tables or blocks", instead)
        return mechanism, (
            f"{UNPAIRED} {said[0].upper()}{said[1:]}, and noise would hide how attributes depend on each other, so "
            "single attributes are measured (marginals) and put together as if they were independent: "
            f"{beside(off, larger, records=records or 0.0, though=RISKS_LESS)}"
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
        return "every count is measured by itself"
    return f"tables of few attributes {'and every single count ' * whole}are measured"


STEPS = (
    Step(
        "one value has a large part of the records",
        "that value by itself, the others beside it",
        ("heap",),
        _point_masses,
    ),
    Step("ranges inside announced tables", "these with blocks of all sizes", ("residuals",), _inside_tables),
    Step(
        "so large a budget that whole-number noise is mostly 0",
        "every cell by itself",
        ("posterior", "laplace", "gaussian"),
        _whole_numbers,
    ),
    Step("single cells or ranges of at most 32", "every cell by itself", ("posterior",), _cells),
    Step("9 to 128 full cells of a line, nothing said", "every cell by itself", ("posterior",), _full_line),
    Step(
        "several attributes that are no space",
        "the least forecast: tables, a tree, or attributes taken to be independent",
        ("marginals", "residuals", "adaptivetree"),
        _by_forecast,
    ),
    Step("anything else", "blocks of all sizes, small where records are", ("adaptivetree",), _tree),
)


def _fixed(request: Request, mechanism: Mechanism, reason: str) -> Choice:
    """What is asked decides as before; whoever adapts to noise gives way to whoever measures the same on all data."""
    from dphist.mechanisms.marginals import Marginals
    from dphist.mechanisms.posterior import Posterior
    from dphist.mechanisms.privelet import Privelet
    from dphist.mechanisms.residuals import Residuals
    from dphist.mechanisms.tree import Tree

    law = request.data.law()
    if isinstance(mechanism, Posterior):
        fixed, name = as_noised(request.data)
        reason = reason.replace(ALONE, f"every count is measured by itself and published as it is ({name})")
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


def _averaged() -> Mechanism:
    """A tree, whose counts are averaged with what the law of its intervals expects."""
    from dphist.mechanisms.adaptivetree import AdaptiveTree

    return AdaptiveTree(estimator="averaged")
