"""What will be asked of a right, and about what: the public facts by which `rule` chooses, and its words for it.

A choice is told to somebody who has never read a paper: what is measured, why, and by how much that is better. Two
forecasts that are nearly the same are said to be about as good: what they differ by is less than what they leave
out. Names of mechanisms stand in parentheses, for those who look them up.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.choosing.asked import asked_kinds, long_axes
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Nominal
from dphist.model.phrases import counted
from dphist.model.workload import Kind, Workload
from dphist.private.facts import Facts

# What a tree measures, and one whose blocks do not depend on the data.
TREE = "blocks of all sizes are measured, small ones where records are (adaptivetree)"
FIXED_TREE = "blocks of all sizes are measured, the same whatever the data (tree)"
# What a tree is called beside others.
BLOCKS = "blocks of all sizes"
TABLES = "tables of few attributes"
ALONE = "every count is measured by itself (posterior)"
UNTOLD = "nobody said what will be asked"
# Why the first of two may be chosen though the other has the better forecast.
TOO_HOPEFUL = "this forecast is known to be too hopeful"
ADAPTS = "forecasts do not know how well blocks fit the data"
RISKS_LESS = "this way is expected to lose less where a forecast errs"
# Forecasts that differ by less than this factor are about as good.
ALIKE = 1.08
# From this factor on people say how many times as much.
_TIMES = 1.5
# Longer lists of tables are left to the mechanism's options, which name them all.
_LONG_LIST = re.compile(r" \([^()]{100,}\)")
# Ranges of up to this many cells are better added up from single cells than read off a tree.
_SMALL_RANGE = 32
# Cubes above this take too long to rake to their tables; tables of cubes above the second to move towards smaller ones.
LARGEST_TABULAR, _LARGEST_SHRUNK = 1 << 24, 1 << 20
# A plane in up to 2 copies is a space still.
_COPIES = 2
# Ranges looked at to tell how large they are; they are about a space if half of them are bounded on all its axes.
_SAMPLE, _MOSTLY = 4096, 0.5
# Lines of 9 to 128 cells are served by these whatever is asked, if they hold 4 noise scales of records each; below 9 a
# tree has no levels but the cells. On eleven made-up lines of 24 to 120 cells with 2 to 200
# noise scales each the mean over cells, prefixes and ranges has 0.83 of a tree's error.
_TINY, _BRIEF, _FULL = 9, 128, 4.0
# Noise is drawn as whole numbers, which at a large ε are mostly 0: where they have less than this part of continuous
# noise's variance (ε above 3; of several attributes of which more than cells is asked 4) every cell is measured, if
# that is expected to be off by at most half as much as a tree; of several by no more than anything else. From
# ε = 6 on these are published as they are. Without this errors on drawn lines are 1.5, on drawn cubes 4 times as large.
_WHOLE, _WHOLE_OF_SEVERAL, _THAN_A_TREE, _AS_THEY_ARE = 0.5, 0.35, 0.5, 0.12


@dataclass(frozen=True, eq=False)
class Request:
    """What was announced, about a right of which only public facts are read: shape, domain, law of noise."""

    data: Facts
    workload: Kind | None = None
    """What will be asked, where the right was not told."""
    guaranteed: bool = False
    again: Mechanism | None = None
    """Who chooses for pieces of it."""

    @cached_property
    def kind(self) -> Kind | None:
        """The one kind of questions that was announced, if it is one."""
        if self.workload is not None or self.data.workload is None or self.data.workload.parts:
            return self.workload
        return self.data.workload.kind

    @cached_property
    def parts(self) -> tuple[tuple[float, Workload], ...]:
        """The mixture that was announced, if it is one."""
        return () if self.workload is not None or self.data.workload is None else self.data.workload.parts

    @cached_property
    def ranges(self) -> Workload | None:
        """The ranges that were announced one by one."""
        told = self.data.workload
        return (
            told
            if self.kind == "ranges" and told is not None and told.kind == "ranges" and told.size
            else None
        )

    @cached_property
    def long(self) -> tuple[int, ...]:
        """Which attributes are ordered and long: ranges are asked of them."""
        return () if self.data.domain is None else long_axes(self.data.domain)

    @property
    def hides(self) -> bool:
        """Whether blocks may hide how attributes go together: a narrow diagonal, or habits of single categories."""
        return len(self.data.shape) == 2 or len(self.long) > 1

    @cached_property
    def space(self) -> bool:
        """Whether it is a space of points rather than a table: boxes are what people ask for.

        That is a plane of two long ordered attributes, in up to two copies; or more such attributes and no others, if
        ranges are announced that are bounded on them.
        """
        shape, domain, kind = self.data.shape, self.data.domain, self.kind
        if len(shape) < 2 or domain is None or kind in ("cells", "marginals") or self.parts:
            return False
        long = list(self.long)
        if len(long) < 2:
            return False
        plane = math.prod(sorted(shape[axis] for axis in long)[-2:])
        beside = kind is None or len(long) < len(shape)
        if beside and self.small and self.data.size > _COPIES * plane:
            return False
        if self.ranges is None:
            return True
        step = math.ceil(len(self.ranges.low) / _SAMPLE)
        length = (self.ranges.high - self.ranges.low)[::step]
        return bool((length < np.array(shape))[:, long].all(axis=1).mean() >= _MOSTLY)

    @property
    def small(self) -> bool:
        """Whether forecasts of tables and looks at the cube take no time to speak of."""
        return self.data.size <= _LARGEST_SHRUNK

    @property
    def massed(self) -> bool:
        """Whether a tree would serve a space, of which one value may have a large part of the records."""
        able = self.again is not None and self.space and not self.guaranteed and self.data.parts == 1
        able = able and self.data.size <= LARGEST_TABULAR
        return able and not self.why_cells and self.nearly_exact is None

    @property
    def forecast(self) -> bool:
        """Whether tables of few attributes are set against other ways by their forecasts."""
        return self.tabular and self.data.size <= LARGEST_TABULAR

    @cached_property
    def tabular(self) -> bool:
        """Whether there are several attributes that are no space, so that tables of few of them may be measured."""
        plane = len(self.data.shape) == 2 and self.kind == "cells"
        if plane and (self.data.domain is None or len(self.long) == 2):
            return False
        return len(self.data.shape) > 1 and not self.space

    @cached_property
    def typical(self) -> int | None:
        """The median number of cells of announced ranges, of a line or a space; of a table the forecast says more."""
        if self.ranges is None or self.tabular:
            return None
        low, high = self.ranges.low, self.ranges.high
        step = math.ceil(len(low) / _SAMPLE)
        return int(np.median(np.prod(np.maximum(high[::step] - low[::step], 0), axis=1)))

    @cached_property
    def why_cells(self) -> str | None:
        """Why single cells serve best whatever they hold, if they do."""
        data, several = self.data, len(self.data.shape) > 1
        if self.kind == "cells" or (self.kind == "marginals" and not several):
            return "single counts will be asked for"
        nominal, told = self._nominal, self.kind is not None or self.parts
        if nominal is not None and nominal.hierarchy.levels <= 2 and data.parts == 1 and not told:
            return f"{UNTOLD}, and categories have no order that sums would follow"
        if self.typical is not None and self.typical <= _SMALL_RANGE:
            return f"the ranges that will be asked for typically hold {counted(self.typical, 'count')}"
        balance = sum(w if part.kind == "cells" else -w for w, part in self.parts)
        if not several and balance > 0.0:
            return "single counts matter most"
        whole = tuple(range(len(data.shape)))
        return "a table of all attributes will be asked for" if whole in self.tables else None

    @property
    def _nominal(self) -> Nominal | None:
        domain = self.data.domain
        first = None if domain is None or len(self.data.shape) > 1 else domain.attributes[0]
        return first if isinstance(first, Nominal) else None

    @cached_property
    def brief(self) -> bool:
        """Whether nothing was announced, under ε, of a line so short that single cells may serve whatever is asked."""
        line = len(self.data.shape) == 1 and _TINY <= self.data.size <= _BRIEF and self.data.parts == 1
        told = self.kind is not None or self.parts or self.guaranteed or self._nominal
        return line and not told and not self.data.law().gaussian

    def full(self, records: float) -> bool:
        """Whether its cells are full if there are ``records``."""
        return records >= _FULL * self.data.size * float(self.data.law().scale)

    @cached_property
    def tables(self) -> tuple[Axes, ...]:
        """The tables that were announced."""
        from dphist.mechanisms.marginals import tables_of

        if self.kind != "marginals":
            return ()
        told = self.data.workload
        if told is not None and told.kind == "marginals":
            return tables_of(told)
        return tuple((axis,) for axis in range(len(self.data.shape)))

    @cached_property
    def along(self) -> tuple[int, ...]:
        """Axes whose ranges inside announced tables are better served by blocks than by cells added up."""
        workload, domain = self.data.workload, self.data.domain
        if workload is None or domain is None or not workload.ranges or self.kind != "marginals":
            return ()
        from dphist.mechanisms.wide.ranges import plan_axes

        return tuple(plan_axes(domain, workload.ranges, gaussian=self.data.law().gaussian))

    def forecaster(self, records: float | None = None) -> Forecaster:
        """Forecasts for what will be asked, of about ``records``, or where their number is not known."""
        data = self.data
        kind = "ranges" if self.kind is None and not self.parts and not self.tabular else self.kind
        asked = asked_kinds(data.shape, data.domain, data.workload, kind)
        return Forecaster(data.shape, asked, data.law(), records)

    @cached_property
    def nearly_exact(self) -> tuple[Mechanism, str] | None:
        """Every cell by itself and why, where a large budget makes its noise all but vanish; else nothing."""
        law = self.data.law()
        part = law.drawn_variance / law.variance
        if not self.small or part > (_WHOLE_OF_SEVERAL if self.tabular and self.kind != "cells" else _WHOLE):
            return None
        forecaster = self.forecaster()
        cells, others = forecaster.cells(), [(BLOCKS, forecaster.tree())]
        if self.tabular:
            plan = forecaster.tables()
            if any(len(axes) < len(self.data.shape) for axes in plan.tables):
                others.append((TABLES, plan.score))
        if cells > (1.0 if self.tabular else _THAN_A_TREE) * min(other for _, other in others):
            return None
        mechanism, name = as_noised(self.data) if self.tabular and part < _AS_THEY_ARE else by_neighbours()
        return mechanism, (
            "noise is drawn as whole numbers and so large a budget makes nearly all of them 0, so every count is "
            f"measured by itself ({name}): {beside(cells, *others)}"
        )


def as_noised(data: Facts) -> tuple[Mechanism, str]:
    """Every cell by itself, as noise left it, with its name."""
    from dphist.mechanisms.baseline import Gaussian, Laplace

    return (Gaussian(), "gaussian") if data.law().gaussian else (Laplace(), "laplace")


def by_neighbours() -> tuple[Mechanism, str]:
    """Every cell by itself, inferred from its neighbours, with its name."""
    from dphist.mechanisms.posterior import Posterior

    return Posterior(), "posterior"


def two_digits(records: float) -> int:
    """Two digits are enough for a reader, and more are noise: 20,000 for 19,731.2."""
    step = 10 ** max(0, math.floor(math.log10(max(records, 1.0))) - 1)
    return int(round(records / step) * step)


def rough(error: float) -> str:
    """An error with two digits: 10 for 9.97, 0.024 for 0.0237."""
    if error >= 10.0:
        return f"{two_digits(error):,}"
    return f"{error:.2g}"


def beside(
    off: float,
    *others: tuple[str, float],
    records: float | None = None,
    though: str = TOO_HOPEFUL,
) -> str:
    """How much worse what was not chosen is expected to be, and why not it if it is not (``though``).

    Scores compare ways of measuring on all kinds of questions; how far off an answer will be `dphist.planning` says.

    Example:
        >>> beside(6.8, ("waves", 12.1), records=5e3)
        'waves would be 1.8 times as far off (about 5,000 records in all, by a noisy count)'
    """
    alike = [name for name, other in others if max(off, other) <= ALIKE * min(off, other)]
    said = [f"{' and '.join(alike)} would be about as good"] if alike else []
    said += [f"{name} {_than(off, other, though)}" for name, other in others if name not in alike]
    counted = (
        ""
        if records is None
        else f" (about {max(two_digits(records), 0):,} records in all, by a noisy count)"
    )
    return "; ".join(said) + counted


def _than(off: float, other: float, though: str) -> str:
    if other < off:
        return f"are forecast to be off by {round(100.0 * (1.0 - other / off))}% less, but {though}"
    if off <= 0.0:
        return "would not be exact"
    if other >= _TIMES * off:
        return f"would be {rough(other / off)} times as far off"
    return f"would be off by {round(100.0 * (other / off - 1.0))}% more"


def in_detail(note: str) -> str:
    """The end of a reason: what the chosen mechanism says of its estimate, without a list that its options repeat."""
    return f". In detail: {_LONG_LIST.sub('', note)}." if note else "."
