"""Which mechanism fits what will be asked: what is looked at first, what further, and who is chosen then.

Whoever is not chosen is not loaded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.choosing.request import LARGEST_SHRUNK, LARGEST_TABULAR, Request
from dphist.mechanisms.choosing.words import (
    ALONE,
    BLOCKS,
    FIXED_TREE,
    TREE,
    UNTOLD,
    WORSE_FOR_CELLS,
    beside,
    two_digits,
)
from dphist.mechanisms.protocol import Mechanism
from dphist.model.phrases import so_many
from dphist.private.gate import PrivateCounts

if TYPE_CHECKING:
    from dphist.mechanisms.posterior import Posterior

# What a noisy total costs, where candidates part company by how many records there are: under two percent.
_TOTAL = Fraction(1, 64)
# How much boxes count on a plane of which nothing was announced. On drawn planes 700 to 739 with ε up to 3
# (`dphist_bench.data.drawn`, two draws) a tree's error beside that of a tree for boxes alone is 0.93 on cells, 0.93 on
# tables and 0.98 on boxes; with 3 instead 0.81, 0.89 and 1.07, and the mean error of rectangles on planes of ``bench
# run coverage`` was a quarter larger: what is asked of a plane most should not pay for it.
_BOXES = 20.0


def first_look(request: Request) -> Look | None:
    """What is worth seeing before anything is chosen.

    Args:
        request: What was announced.

    Returns:
        What is asked, and for how much; None where nothing would be chosen otherwise.
    """
    if request.looks_first:
        return Look()
    if request.doubted_tables:
        return Look(blocks=Fraction(0))
    if request.waves and not request.guaranteed:
        from dphist.mechanisms.choosing.planes import crowded_look

        return crowded_look(request.data.shape)
    if request.few or request.heaped:
        from dphist.mechanisms.choosing.tall import counted_look

        return counted_look()
    return Look(total=_TOTAL, blocks=Fraction(0)) if request.pays_for_total else None


def look_on(request: Request, look: Look, seen: Glimpse) -> tuple[Look, Glimpse, PrivateCounts]:
    """See more, where what was seen says that it is worth it.

    Args:
        request: What was announced about what is left of the right.
        look: What was asked so far.
        seen: What that showed.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    data = request.data
    if request.few:
        from dphist.mechanisms.choosing.tall import cells_if_few, look_higher

        look, seen, data = look_higher(look, seen, data, request.kind)
        if cells_if_few(data, request.kind, seen):
            return look, seen, data
    if request.heaped:
        from dphist.mechanisms.choosing.walls import look_for_heaps

        return look_for_heaps(look, seen, data)
    if look.blocks or request.doubted_tables:
        from dphist.mechanisms.choosing.chance import look_at_pairs
        from dphist.mechanisms.choosing.cubes import chance_of, may_hide

        found = chance_of(data, request.kind, seen)
        if found is None:
            return look, seen, data
        hidden = bool(look.blocks) and not request.space and may_hide(data)
        return look_at_pairs(look, seen, data, found, hidden=hidden)
    return look, seen, data


def choose(request: Request, seen: Glimpse) -> tuple[Mechanism, str]:
    """Say which mechanism fits, and why, from public facts and, where that was paid for, what was seen.

    Args:
        request: What was announced about what is left of the right.
        seen: What looks showed.

    Returns:
        The mechanism, and why.
    """
    data, better = request.data, None
    if seen.heaps and request.again is not None:
        from dphist.mechanisms.choosing.walls import set_apart

        return set_apart(data, request.again, seen.heaps)
    if seen.low is not None:
        from dphist.mechanisms.choosing.tall import cells_if_few

        better = cells_if_few(data, request.kind, seen)
    elif request.waves:
        from dphist.mechanisms.choosing.planes import wavelets_if_better

        better = wavelets_if_better(data, request.kind, seen.crowd)
    mechanism, reason = better or _fitting(request, seen)
    return (mechanism, reason) if not request.guaranteed or better else _fixed(data, mechanism, reason)


def _fixed(data: PrivateCounts, mechanism: Mechanism, reason: str) -> tuple[Mechanism, str]:
    """What is asked decides as before; whoever adapts to noise gives way to whoever measures the same on all data."""
    from dphist.mechanisms.baseline import Gaussian, Laplace
    from dphist.mechanisms.marginals import Marginals
    from dphist.mechanisms.posterior import Posterior
    from dphist.mechanisms.prefixsums import PrefixSums
    from dphist.mechanisms.residuals import Residuals
    from dphist.mechanisms.tree import Tree

    if isinstance(mechanism, Marginals | Residuals | PrefixSums | Laplace | Gaussian):
        return mechanism, reason
    if isinstance(mechanism, Posterior):
        gaussian = data.law().gaussian
        fixed: Mechanism = Gaussian() if gaussian else Laplace()
        plain = "gaussian" if gaussian else "laplace"
        reason = reason.replace(ALONE, f"every cell is measured by itself and published as it is ({plain})")
    else:
        fixed = Tree(fanout="auto", nonnegative=False)
        reason = reason.replace(TREE, FIXED_TREE)
    return (
        fixed,
        f"{reason}; what is measured is the same for all data, which keeps guaranteed intervals narrow",
    )


def _fitting(request: Request, seen: Glimpse) -> tuple[Mechanism, str]:
    """The most accurate mechanism, and why."""
    data, records, dependence = request.data, seen.records, seen.dependence
    kind, counts_for = request.kind, [(part.kind, weight) for weight, part in request.parts]
    several = len(data.shape) > 1
    if request.tabular and request.nearly_exact is not None:
        return request.nearly_exact
    if request.along:
        from dphist.mechanisms.residuals import Residuals

        names = ", ".join(data.domain.names[axis] for axis in request.along) if data.domain else ""
        return (
            Residuals(),
            "tables of few attributes and ranges inside them will be asked for, so these are measured with blocks of "
            f"all sizes along {names} (residuals)",
        )
    if kind == "cells" and dependence is not None and records is not None:
        from dphist.mechanisms.choosing.cubes import single_cells

        return single_cells(data, seen)
    if kind == "cells" or (kind == "marginals" and not several):
        return (
            _cells(),
            f"single cells will be asked for, so {ALONE}",
        )
    if request.flat and kind is None and not counts_for:
        return (
            _cells(),
            f"{UNTOLD}, and categories have no order that sums would follow, so {ALONE}",
        )
    if request.brief and records is not None and request.served_by_cells(records):
        return (
            _cells(),
            f"{UNTOLD}, and {data.size:,} cells are few for about {two_digits(records):,} records, so {ALONE}",
        )
    if request.short:
        return (
            _cells(),
            f"the ranges that will be asked for typically hold {so_many(request.typical or 0, 'cell')}, so {ALONE}",
        )
    if not several and sum(w if k == "cells" else -w for k, w in counts_for) > 0.0:
        return _cells(), f"single cells count most, so {ALONE}"
    tree_else = kind != "marginals" and (not several or (len(data.shape) == 2 and request.space))
    if tree_else and request.nearly_exact is not None:
        return request.nearly_exact
    if request.small_plane is not None and request.settled_by_cells(records):
        cells, tree = request.small_plane
        beside_them = "" if records is None else f" for about {two_digits(records):,} records"
        return (
            _cells(),
            f"{UNTOLD}, and {data.size:,} cells of two attributes are few{beside_them}, so {ALONE}: "
            f"{beside(cells, (BLOCKS, tree), though=WORSE_FOR_CELLS)}",
        )
    if request.tabular and data.size <= LARGEST_TABULAR:
        from dphist.mechanisms.choosing.asked import in_words
        from dphist.mechanisms.choosing.cubes import tables_or_tree

        mixed = " + ".join(f"{weight:g} {in_words(part)}" for weight, part in request.parts)
        return tables_or_tree(
            *(data, kind, seen),
            mixed=mixed,
            shrink=not request.guaranteed and data.size <= LARGEST_SHRUNK,
        )
    if kind == "ranges":
        return (
            _tree(data),
            f"ranges of many cells will be asked for, so {TREE}",
        )
    if kind is None:
        return (
            _tree(data, mixture=several),
            f"{'several kinds of questions will be asked' if counts_for else UNTOLD}, so {TREE}, which serve "
            f"{'cells, tables and ' * several}ranges of all sizes",
        )
    if kind == "marginals":
        from dphist.mechanisms.marginals import Marginals, tables_of

        tables: tuple[Axes, ...] = tuple((axis,) for axis in range(len(data.shape)))
        if data.workload is not None and data.workload.kind == "marginals":
            tables = tables_of(data.workload)
        return Marginals(
            tables=tables
        ), "tables of few attributes will be asked for, so these are measured (marginals)"
    if request.curve:
        return _prefixes(data, records)
    return _tree(data), f"sums of many cells will be asked for, so {TREE}"


def _prefixes(data: PrivateCounts, records: float | None) -> tuple[Mechanism, str]:
    """The root of all prefixes or a tree, whichever is expected to be off by less: few records favour the tree."""
    from dphist.mechanisms.choosing.asked import asked_kinds
    from dphist.mechanisms.choosing.forecast import Forecaster
    from dphist.mechanisms.prefixsums import PrefixSums, prefix_error

    law = data.law()
    asked = asked_kinds(data.shape, data.domain, data.workload, "prefixes")
    # At a small deviation most whole numbers drawn for a tree are 0; the root is asked in small parts of one.
    nearly_none = math.sqrt(float(law.drawn_variance) / float(law.variance))
    tree = nearly_none * Forecaster(data.shape, asked, law, records).tree().score
    root = prefix_error(data.size, law)
    if root < tree:
        return (
            PrefixSums(),
            "running totals (prefixes) will be asked for, so the sums that serve these best are measured (prefixsums): "
            f"{beside(root, (BLOCKS, tree), records=records)}",
        )
    return (
        _tree(data),
        f"running totals (prefixes) will be asked for, so {TREE}: "
        f"{beside(tree, ('the sums that serve these best on full data', root), records=records)}",
    )


def _cells() -> Posterior:
    """Every cell by itself."""
    from dphist.mechanisms.posterior import Posterior

    return Posterior()


def _tree(data: PrivateCounts, *, mixture: bool = False) -> AdaptiveTree:
    """A tree, whose counts are averaged with what the law of its intervals expects."""
    # In larger spaces planning for all kinds gains nothing (bench/results/tried.md).
    plane = len(data.shape) == 2
    return AdaptiveTree(
        estimator="averaged",
        boxes=_BOXES if mixture and plane else 0.0,
    )
