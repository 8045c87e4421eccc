"""Who measures a cube of several attributes: tables of few of them, a tree of boxes, or every cell by itself.

Each is chosen by what it is expected to be off by (`forecast`), from public facts and a first look that was paid for
(`glimpse`). Where forecasts are known to be off in one direction, constants say so; all were chosen on made-up cubes:
those of ``dphist bench run matrix``, and numbers 100 to 119 of `dphist_bench.data.drawn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.choosing.asked import Asked, asked_kinds
from dphist.mechanisms.choosing.chance import ByChance, outlook, pairs_of, product_of
from dphist.mechanisms.choosing.forecast import Forecaster, Known
from dphist.mechanisms.choosing.glimpse import Glimpse
from dphist.mechanisms.choosing.words import ADAPTS, ALONE, BLOCKS, RISKS_LESS, TABLES, TREE, UNTOLD, beside
from dphist.mechanisms.marginals import Marginals, tables_of
from dphist.mechanisms.order import long_axes
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Ordinal
from dphist.model.phrases import UNPAIRED
from dphist.model.workload import Kind
from dphist.private.gate import PrivateCounts

# A tree adapts to what it finds, which its forecast does not know; it also fits boxes more than tables. It wins from
# this part of the tables' forecast on: where nothing is announced or seen, and where ranges are; and from so much more
# where attributes depend on each other by more than a limit, and so many times as much as they do: what hangs together
# lies in few places (`dphist_bench.data.drawn.drawn_space`, 2.3 times a tree's error at worst without, 1.2 with it; two
# to five times as much are as good). From so many attributes on it finds less than it is expected to, and is reckoned
# with all of its noise; and so it is where no attribute is ordered and has so many values: halves of a few categories
# are not alike. On boxes and ranges of two of eleven drawn cubes of that kind (`drawn_cube` 2000 to 2059 and
# `drawn_people` 2000 to 2039, three and four attributes, four draws) a tree was off by 0.9 to 6.5 times what was
# forecast, 1.9 in the median, on 15 others by 0.6 to 1.5 times.
_TREE, _TREE_RANGES, _TREE_DEPENDENT, _TREE_MANY, _TREE_LONG = 0.9, 1.05, 0.15, 5, 16
_DEPENDENT, _TREE_BY = 0.03, 3.0
# Attributes whose blocks depend on each other by more than this are not left to chance.
_NOT_BY_CHANCE = 0.04
# Single cells are moved towards tables unless attributes depend on each other by more than this and cells hold more
# than so many noise scales on average, or little is expected of it, as a part of plain noise.
_APART, _CROWDED, _LITTLE = 0.005, 0.1, 0.9
# Where neither a tree nor tables are expected to be better than plain cells by more than a tenth a tree has nothing to
# adapt to. Announced ranges of two attributes are then added up from cells, and so they are of more where noise that is
# drawn in whole numbers has less than this part of its variance, which shares would lose. Else tables are measured and
# read, the cube alone mostly: boxes of 13 made-up cubes (matrix, `drawn_cube` and `drawn_people` 7000 to 7039, five
# draws) have 0.92 [1.09] of plain cells' error.
_FULL, _WHOLE = 0.9, 0.75
# Why the cube is measured alone.
_MOVED = (
    "single cells will be asked for, so every cell is measured by itself (marginals), and moved towards what sums over "
    "several of them suggest if low cells hold any records"
)
# Residuals of announced tables must be expected to be off by so much less than whole tables are, which more is inferred
# from. Of 0.8 to 1 this is best on cubes of the matrix and on 39 drawn ones (`drawn_cube`, `drawn_people` 100 to 129,
# two draws), and 0.9 to 0.98 hardly differ.
_RESIDUALS = 0.93


def tables_or_tree(
    data: PrivateCounts,
    kind: Kind | None,
    seen: Glimpse,
    *,
    mixed: str,
    shrink: bool,
) -> tuple[Mechanism, str]:
    """Tables or a tree, whichever is expected to be off by less on what will be asked, and why.

    Args:
        data: A right, of which only public facts are read.
        kind: The one kind of questions that was announced, if it is one.
        seen: About how many records there are, and how far attributes depend on each other, if that was paid for.
        mixed: The mixture that was announced, in words, or nothing.
        shrink: Whether tables are moved towards smaller ones.

    Returns:
        The mechanism, and why.
    """
    asked = asked_kinds(data.shape, data.domain, data.workload, kind)
    if kind == "marginals" and any((each.high == 1).all(axis=1).any() for each in asked):
        return Posterior(), f"a table of all attributes will be asked for, so {ALONE}"
    other = _best_other(data, kind, asked, seen, mixed=mixed, shrink=shrink)
    found = _by_chance(other, seen) if shrink else None
    if found is not None and found.chosen:
        return _product(other, seen, found, _said(kind, mixed))
    return other.mechanism, other.reason


def chance_of(data: PrivateCounts, kind: Kind | None, seen: Glimpse) -> ByChance | None:
    """What leaving a cube to chance is expected to lose beside the best other way; None where that is out of question.

    Args:
        data: A right, of which only public facts are read.
        kind: The one kind of questions that was announced, if it is one.
        seen: What a first look showed.

    Returns:
        The outlook.
    """
    if kind == "cells":
        return _by_chance(_cells_of(data, seen), seen)
    asked = asked_kinds(data.shape, data.domain, data.workload, kind)
    return _by_chance(_best_other(data, kind, asked, seen, mixed="", shrink=True), seen)


def may_hide(data: PrivateCounts) -> bool:
    """Whether pairs may go together that blocks hide: of two attributes that are all there is, or long and ordered.

    Args:
        data: A right, of which only public facts are read.

    Returns:
        Whether it is so.
    """
    return len(data.shape) == 2 or len(_long(data)) > 1


def _long(data: PrivateCounts) -> tuple[int, ...]:
    return () if data.domain is None else long_axes(data.domain)


@dataclass(frozen=True, eq=False)
class _Way:
    """A mechanism, why it is the best of those that do not leave a cube to chance, and what it is off by."""

    mechanism: Mechanism
    reason: str
    expected: float
    forecaster: Forecaster
    known: Known | None = None
    """What its tables know, if it is tables that are moved towards smaller ones."""
    pairs: tuple[Axes, ...] = ()
    """Pairs of attributes that lie in announced tables."""


def _by_chance(other: _Way, seen: Glimpse) -> ByChance | None:
    """What chance is expected to lose; nothing where blocks or pairs were seen to depend, or nobody looked."""
    if seen.records is None or (seen.dependence is None and not other.pairs):
        return None
    if seen.dependence is not None and seen.dependence > _NOT_BY_CHANCE:
        return None
    if not other.pairs and seen.apart is not None and seen.doubt is not None and seen.apart > seen.doubt:
        # The mean over all pairs says little of a strong one.
        return None
    if sum(size > 1 for size in other.forecaster.shape) < 2:
        # An attribute of one value goes together with nothing.
        return None
    return outlook(other.forecaster, other.expected, seen, other.known, other.pairs)


def _product(other: _Way, seen: Glimpse, found: ByChance, said: str) -> tuple[Mechanism, str]:
    best_other, product = found.expected
    return (
        product_of(other.forecaster),
        f"{UNPAIRED} {said[0].upper()}{said[1:]}, and noise would hide how attributes depend on each other, so single "
        f"attributes are measured (marginals) and put together as if they were independent: "
        f"{beside(product, ('larger tables or blocks', best_other), records=seen.records or 0.0, though=RISKS_LESS)}",
    )


def _said(kind: Kind | None, mixed: str) -> str:
    return {
        None: f"several kinds of questions will be asked, which count as {mixed}"
        if mixed
        else f"{UNTOLD}, and cells, tables and ranges all count",
        "marginals": "tables of few attributes will be asked for",
    }.get(kind, "ranges of many cells will be asked for")


def _best_other(
    data: PrivateCounts,
    kind: Kind | None,
    asked: tuple[Asked, ...],
    seen: Glimpse,
    *,
    mixed: str,
    shrink: bool,
) -> _Way:
    """Tables, a tree or cells, whichever is expected to be off by less."""
    if kind == "marginals":
        return _announced(data, asked, seen, shrink=shrink)
    records, dependence = seen.records, seen.dependence
    forecaster = Forecaster(data.shape, asked, data.law(), records, dependence, seen.beyond, _long(data))
    plan = forecaster.tables()
    finds = _finds_its_way(data)
    reckoned = forecaster if finds and len(data.shape) < _TREE_MANY else replace(forecaster, records=None)
    tree, wins = reckoned.tree().score, _TREE
    if dependence is not None:
        wins = _TREE if kind is None else _TREE_RANGES
        wins += max(_TREE_DEPENDENT, _TREE_BY * dependence) if finds and dependence > _DEPENDENT else 0.0
    said = _said(kind, mixed)
    mean, few = plan.forecast.score, len(data.shape) == 2
    full = False
    if kind is not None and records is not None:
        alone, built = forecaster.cells().score, replace(forecaster, records=None).tree().score
        full = mean > _FULL * alone and built > _FULL * alone
        if full and (few or not shrink or data.law().drawn_variance < _WHOLE * data.law().variance):
            plain, name = _plainly(data, inferred=few and shrink)
            return _Way(
                plain,
                f"{said}, and cells are full, so every cell is measured by itself ({name}): "
                f"{beside(alone, (TABLES, mean), (BLOCKS, built), records=records)}",
                *(alone, forecaster),
            )
    if tree < wins * mean and not full:
        return _Way(
            AdaptiveTree(estimator="averaged"),
            f"{said}, so {TREE}: {beside(tree, (TABLES, mean), records=records, though=ADAPTS)}",
            *(min(tree, mean), forecaster),
        )
    if few and shrink and plan.tables == ((0, 1),):
        return _Way(
            Posterior(),
            f"{said}, so {ALONE}: {beside(mean, (BLOCKS, tree), records=records)}",
            *(mean, forecaster),
        )
    return _Way(
        Marginals(tables=plan.tables, shares=plan.shares, estimator="weighed" if shrink else "plain"),
        f"{said}, so {_measured(plan.tables, len(data.shape))} (marginals): "
        f"{beside(mean, (BLOCKS, tree), records=records)}",
        *(mean, forecaster, plan.known),
    )


def _measured(tables: Sequence[Axes], attributes: int) -> str:
    """Which tables a plan has, in words; the mechanism names them all."""
    smaller = any(len(axes) < attributes for axes in tables)
    whole = any(len(axes) == attributes for axes in tables)
    if not smaller:
        return "every cell is measured by itself"
    return f"tables of few attributes {'and every cell ' * whole}are measured"


def _plainly(data: PrivateCounts, *, inferred: bool) -> tuple[Mechanism, str]:
    """Every cell by itself, with its name: inferred from its neighbours, or as noise left it."""
    if inferred:
        return Posterior(), "posterior"
    return (Gaussian(), "gaussian") if data.law().gaussian else (Laplace(), "laplace")


def _finds_its_way(data: PrivateCounts) -> bool:
    """Whether a tree has a long attribute to adapt to, of values that follow one another."""
    attributes = () if data.domain is None else data.domain.attributes
    long = any(isinstance(each, Ordinal) and each.size >= _TREE_LONG for each in attributes)
    return long or (data.domain is None and max(data.shape) >= _TREE_LONG)


def _announced(data: PrivateCounts, asked: tuple[Asked, ...], seen: Glimpse, *, shrink: bool) -> _Way:
    """Announced tables, whole or residual by residual, planned as if nothing were known of what they hold."""
    forecaster = Forecaster(data.shape, asked, data.law(), seen.records)
    plan = replace(forecaster, records=None).tables()
    mean, said = plan.forecast.score, _said("marginals", "")
    others: list[tuple[str, float]] = []
    pairs: tuple[Axes, ...] = ()
    if data.workload is not None:
        from dphist.mechanisms.residuals import Residuals
        from dphist.mechanisms.wide.choice import residual_error
        from dphist.mechanisms.wide.noise import planned_precisions
        from dphist.mechanisms.wide.plan import wanted_tables

        tables = tables_of(data.workload)
        pairs = pairs_of(data.shape, tables)
        own = residual_error(data.law(), data.shape, tables)
        if own < _RESIDUALS * mean:
            precise = planned_precisions(
                data.law(), data.shape, wanted_tables(data.shape, tables), by_cells=True
            )
            return _Way(
                Residuals(tables=tables, shrink=shrink, by_cells=True),
                f"{said}, so these are measured together, what several of them share but once (residuals): "
                f"{beside(own, ('tables measured one by one', mean))}",
                *(own, forecaster, forecaster.knows(precise), pairs),
            )
        others = [("tables measured together, what they share but once,", own)]
    shares = plan.shares
    if all(len(axes) == 1 for axes in plan.tables):
        # Long tables are inferred from their neighbours, so noise counts less there: halfway to equal shares.
        shares = tuple((share + Fraction(1, len(shares))) / 2 for share in shares)
    return _Way(
        Marginals(tables=plan.tables, shares=shares, estimator="weighed" if shrink else "plain"),
        f"{said}, so {_measured_for(plan.tables, len(data.shape))} (marginals)"
        f"{': ' * bool(others)}{beside(mean, *others)}",
        *(mean, forecaster, plan.known, pairs),
    )


def _measured_for(tables: Sequence[Axes], attributes: int) -> str:
    """Which tables stand for announced ones, in words."""
    if any(len(axes) == attributes for axes in tables):
        return (
            "all cells are measured, which add up to these"
            if len(tables) == 1
            else "these and all cells are measured"
        )
    return "these are measured one by one"


def single_cells(data: PrivateCounts, seen: Glimpse) -> tuple[Mechanism, str]:
    """Single cells of a cube: moved towards tables of few attributes, or each by itself; and why.

    Args:
        data: A right, of which only public facts are read.
        seen: About how many records there are, and how far attributes depend on each other.

    Returns:
        The mechanism, and why.
    """
    other = _cells_of(data, seen)
    found = _by_chance(other, seen)
    if found is not None and found.chosen:
        return _product(other, seen, found, "single cells will be asked for")
    return other.mechanism, other.reason


def _cells_of(data: PrivateCounts, seen: Glimpse) -> _Way:
    """Single cells, by themselves or moved towards tables of several attributes."""
    records, dependence = seen.records or 0.0, seen.dependence or 0.0
    if may_hide(data):
        dependence = max(dependence, seen.beyond**2)
    asked = asked_kinds(data.shape, data.domain, None, "cells")
    forecaster = Forecaster(data.shape, asked, data.law(), records, dependence)
    plan, alone = forecaster.tables(), forecaster.cells().score
    mean = plan.forecast.score
    crowded = records > _CROWDED * data.size * float(data.law().scale)
    if (dependence > _APART and crowded) or mean > _LITTLE * alone:
        if dependence > _NOT_BY_CHANCE and len(data.shape) == 2:
            # Few tall cells among empty ones: sums say little of them. In larger cubes the cells themselves tell.
            return _Way(
                Posterior(),
                f"single cells will be asked for, so {ALONE}",
                *(min(mean, alone), forecaster),
            )
        # Sums of noisy cells are tables too: what these suggest of a cell costs nothing.
        every = tuple(range(len(data.shape)))
        return _Way(
            Marginals(tables=(every,), shares=(Fraction(1),), estimator="weighed"),
            _MOVED,
            *(min(mean, alone), forecaster),
        )
    return _Way(
        Marginals(tables=plan.tables, shares=plan.shares, estimator="weighed"),
        _MOVED
        if len(plan.tables) == 1
        else "single cells will be asked for, and tables of few attributes say much of them, so both are measured "
        f"(marginals): {beside(mean, ('cells by themselves', alone), records=records)}",
        *(mean, forecaster, plan.known),
    )
