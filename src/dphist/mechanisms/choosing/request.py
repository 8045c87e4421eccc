"""What will be asked of a right, and about what: the public facts by which `dphist.mechanisms.auto.Auto` chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.order import long_axes
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Nominal
from dphist.model.workload import Kind, Workload
from dphist.private.gate import PrivateCounts

# Ranges up to this many cells are better added up from single cells than read off a tree.
_SMALL_RANGE = 32
# A plane of two such, in up to so many copies, is a space still; in more of them it is a table, of which a look tells.
_COPIES = 2
# From so many attributes on a first look is paid for.
_CUBE = 3
# Cubes above this take too long to rake to their tables.
LARGEST_TABULAR = 1 << 24
# Tables of cubes up to this are moved towards smaller ones; beyond, that takes too long.
LARGEST_SHRUNK = 1 << 20
# Up to so many cells of a line the root of its prefixes is considered under ρ; up to so many for narrow guarantees. It
# could be asked of longer ones by now, but whether it is better there than a tree was not measured.
_LONGEST_CURVE = 1 << 14
_LONGEST_ROOT = 1 << 16
# Ranges looked at to tell how large they are.
_SAMPLE = 4096
# Ranges are about a space if so many of them are bounded on all its axes.
_MOSTLY = 0.5
# Lines up to so many cells may be served by single cells whatever is asked, if these hold so many noise scales of
# records on average; of fewer than the first a tree has no levels but the cells.
_TINY, _BRIEF, _FULL = 9, 128, 4.0
# Planes of up to so many cells may be served by these whatever is asked. They are compact if sums of cells are expected
# to be off by at most so many times what a tree's are: up to 32 × 32 cells, or 16 × 64.
_LARGEST_SMALL, _COMPACT = 1 << 12, 1.15
# Compact planes of so many cells are counted first, and served by these if they hold so many noise scales of records
# each, on average; other small planes if they hold as many as the last.
_COUNTED, _SETTLED, _CROWDED = 800, 0.2, 10.0


@dataclass(frozen=True, eq=False)
class Request:
    """What was announced, about a right of which only public facts are read: its shape, its domain, its law of noise.

    Args:
        data: The right.
        workload: What will be asked, where the right was not told.
        guaranteed: Whether guaranteed intervals should be narrow.
        again: Who chooses for pieces of it.

    Example:
        >>> from dphist.testing import open_counts
        >>> Request(open_counts([1, 2, 3], 1), "prefixes").kind
        'prefixes'
    """

    data: PrivateCounts
    workload: Kind | None = None
    guaranteed: bool = False
    again: Mechanism | None = None

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
    def space(self) -> bool:
        """Whether ranges are asked for, or nothing was announced, about a space of points rather than a table.

        Where two long ordered attributes or more make a space, boxes are what people ask for. A tree adapts to where
        the points are, which no forecast knows: boxes on made-up planes had 0.3 to 30 times its error from tables.

        Age, income and region are no such space, though two of them are long: a tree has to find every region's plane
        by itself. On 67 drawn ones (`dphist_bench.data.drawn.drawn_space` 0 to 109, a draw each, nothing announced)
        what looks and forecasts choose has 0.62 of its error over all kinds, 1.2 at worst, and 0.74 on twelve clouds of
        points in three long attributes; on planes in two copies it has 1.05 (on 32 others 1.02, and 1.18 if boxes are
        announced). Announced boxes of 39 others (200 to 259, two draws) have 0.87 of it, 5 times it at worst, where a
        tree has 12 times theirs; those of 24 clouds in long attributes alone 1.13, 17 times at worst, so these stay
        spaces. Under ρ announced ranges may have wavelets, and nothing else was tried.
        """
        kind = self.kind
        if kind in ("cells", "marginals") or self.data.domain is None or self.parts:
            return False
        long = long_axes(self.data.domain)
        beside = len(long) < len(self.data.shape) and not self.data.law().gaussian
        if len(long) < 2 or ((kind is None or beside) and self._tabular(long)):
            return False
        if self.data.workload is None or self.data.workload.kind != "ranges" or not self.data.workload.size:
            return True
        # Ranges that leave attributes alone are ranges of tables, and it is for the forecast to say who serves them.
        step = math.ceil(len(self.data.workload.low) / _SAMPLE)
        length = (self.data.workload.high - self.data.workload.low)[::step]
        bounded = (length < np.array(self.data.shape))[:, list(long)].all(axis=1)
        return bool(bounded.mean() >= _MOSTLY)

    @cached_property
    def plane(self) -> bool:
        """Whether there are two attributes, both ordered and long; or two of which nothing is known."""
        if len(self.data.shape) != 2 or self.data.domain is None:
            return len(self.data.shape) == 2
        return len(long_axes(self.data.domain)) == 2

    def _tabular(self, long: tuple[int, ...]) -> bool:
        """Whether more than a few planes of long attributes lie beside each other, and a look can tell what pays."""
        plane = math.prod(sorted(self.data.shape[axis] for axis in long)[-2:])
        return self.data.size > _COPIES * plane and self.data.size <= LARGEST_SHRUNK

    @cached_property
    def short(self) -> bool:
        """Whether the announced ranges are so short that single cells serve them best."""
        if self.kind != "ranges" or (len(self.data.shape) > 1 and not self.space):
            # Of several attributes small boxes may be better read off tables: the forecast says so.
            return False
        typical = self.typical
        return typical is not None and typical <= _SMALL_RANGE

    @cached_property
    def typical(self) -> int | None:
        """Give the median number of cells of the announced ranges."""
        if self.data.workload is None or self.data.workload.kind != "ranges" or self.data.workload.size == 0:
            return None
        low, high = self.data.workload.low, self.data.workload.high
        step = math.ceil(len(low) / _SAMPLE)
        return int(np.median(np.prod(np.maximum(high[::step] - low[::step], 0), axis=1)))

    @cached_property
    def flat(self) -> bool:
        """Whether there is one attribute, of categories without a hierarchy: whoever asks of it names some of them.

        Blocks of categories mean nothing, so a tree of them spends on what nobody asks: with nothing announced single
        categories had 0.28 to 0.53 of its error from 16 to 1,000 of them with three records each and more, sets of them
        0.27 to 1.1 (eleven made-up attributes a case, four draws, by a script).
        """
        return self.data.parts == 1 and self._nominal is not None and self._nominal.hierarchy.levels <= 2

    @cached_property
    def brief(self) -> bool:
        """Whether nothing was announced, under ε, of a line so short that single cells may serve whatever is asked."""
        line = len(self.data.shape) == 1 and _TINY <= self.data.size <= _BRIEF and self.data.parts == 1
        told = self.kind is not None or self.parts or self.guaranteed or self._nominal
        # Under ρ levels of a tree cost the root of their number, and it has 0.4 to 0.9 of the cells' error.
        return line and not told and not self.data.law().gaussian

    @cached_property
    def small_plane(self) -> tuple[float, float] | None:
        """What boxes are off by, from cells and from a tree, of a plane that its cells may serve whatever is asked.

        Nothing was announced, under ε. What a tree spends on blocks cells lack, and blocks of a plane spare less than
        those of a line: a box cuts many along its border. Under ρ blocks cost less, and boxes gain from them.

        Returns:
            Two expected errors on ranges of all sizes, by public facts; None for what is no such plane.
        """
        if not self.plane or not self.space or self.kind is not None or self.guaranteed:
            return None
        data = self.data
        if data.parts > 1 or data.law().gaussian or data.size > _LARGEST_SMALL:
            return None
        from dphist.mechanisms.choosing.asked import asked_kinds
        from dphist.mechanisms.choosing.forecast import Forecaster

        asked = asked_kinds(data.shape, data.domain, None, "ranges")
        forecaster = Forecaster(data.shape, asked, data.law())
        return forecaster.cells().score, forecaster.tree().score

    @cached_property
    def _compact(self) -> bool:
        """Whether even boxes of such a plane are hardly worse from cells, were it full."""
        return self.small_plane is not None and self.small_plane[0] <= _COMPACT * self.small_plane[1]

    def settled_by_cells(self, records: float | None) -> bool:
        """Whether cells serve whatever is asked of a plane with about so many records.

        Where next to no cell stands out of its noise sums of cells are noise, and a tree leaves alone what is empty: on
        made-up planes of 16 × 16, 32 × 32 and 48 × 48 cells with 0.1 noise scales of records each and fewer cells have
        1.2 to 1.5 times its error over all kinds (boxes 1.5 to 2.8 times), with 0.2 1.0 to 1.1, with 0.3 0.86 to 0.94.
        In a full plane there is nothing to leave alone: 64 × 64 cells with ten to 200 noise scales each have 0.78 to
        0.95 of its error over all kinds, though boxes 1.0 to 1.7 times; with three 0.82, with one 0.90 (boxes 1.5 and
        1.7 times), with 0.3 0.95; 96 × 96 with ten to 100 0.78 to 0.89 (boxes 1.3 to 1.6 times).
        """
        if self.small_plane is None or records is None:
            return self._compact
        least = _SETTLED if self._compact else _CROWDED
        return records >= least * self.data.size * float(self.data.law().scale)

    @property
    def _nominal(self) -> Nominal | None:
        """The attribute, where there is one and it is of categories."""
        domain = self.data.domain
        first = None if domain is None or len(self.data.shape) > 1 else domain.attributes[0]
        return first if isinstance(first, Nominal) else None

    def served_by_cells(self, records: float) -> bool:
        """Whether a short line with about so many records is better served by its cells than by a tree.

        A tree halves what cells get, and spares what long ranges gather. On eleven made-up lines a case of 24 to 120
        cells with 2 to 200 noise scales of records a cell (three draws of noise of their own, by a script, none of
        which chose this) the mean over cells, prefixes and ranges has 0.83 of a tree's error: cells 0.5, ranges 0.96,
        prefixes 1.24. Of 150 to 365 cells it would have 0.98, and prefixes up to twice. Beside a tree without a step of
        two it has 1.00 on 100 cells with 4 noise scales each, 0.89, 0.77 and 0.73 with 10, 40 and 200 (23 others, six
        draws of noise of their own): 4 stays.
        """
        return records >= _FULL * self.data.size * float(self.data.law().scale)

    @cached_property
    def long_ranges(self) -> bool:
        """Whether long ranges of a space are announced, and noise is not next to nothing."""
        told = self.kind in ("ranges", "all_ranges", "prefixes") and not self.short
        small = self.data.size <= LARGEST_TABULAR
        return small and told and self.space and self.nearly_exact is None

    @cached_property
    def waves(self) -> bool:
        """Whether long ranges of a space are announced under a law of noise for which wavelets may be better."""
        return len(self.data.shape) > 1 and self.data.law().gaussian and self.long_ranges

    @cached_property
    def few(self) -> bool:
        """Whether a tree would serve a plane, under a law of noise for which few tall cells may be."""
        plane = len(self.data.shape) == 2 and not self.data.law().gaussian and not self.guaranteed
        return plane and (self.long_ranges or self._untold_space)

    @cached_property
    def heaped(self) -> bool:
        """Whether a tree or wavelets would serve a space, of which one value may have a large part of the records."""
        able = self.again is not None and not self.guaranteed and self.data.parts == 1
        return able and (self.long_ranges or self._untold_space)

    @cached_property
    def _untold_space(self) -> bool:
        """Whether nothing was announced about a space that is too large to be served by its cells whatever is asked."""
        untold = self.kind is None and self.space and self.nearly_exact is None
        return untold and self.data.size <= LARGEST_TABULAR and not self._compact

    @cached_property
    def curve(self) -> bool:
        """Whether prefixes of a line are asked for, under a law of noise that makes their root the best question."""
        longest = _LONGEST_ROOT if self.guaranteed else _LONGEST_CURVE
        line = len(self.data.shape) == 1 and self.data.size <= longest
        return line and self.kind == "prefixes" and self.data.law().gaussian

    @cached_property
    def looks_first(self) -> bool:
        """Whether candidates part company by what a first look shows, and the choice may depend on that."""
        open_to = self.kind != "marginals" and not self.space
        # Of two attributes looks pay where single cells are announced, and planes have a way of their own.
        least = 2 if self.kind == "cells" and not self.plane else _CUBE
        return (
            len(self.data.shape) >= least
            and self.data.size <= LARGEST_SHRUNK
            and not self.guaranteed
            and open_to
            and self.nearly_exact is None
        )

    @cached_property
    def pays_for_total(self) -> bool:
        """Whether candidates part company by how many records there are, and the choice may depend on that."""
        # Tables that were announced are measured however few records there are, and cells one by one.
        told = self.kind in ("cells", "marginals") or self.short or self.space
        if self.brief or (self._compact and self.data.size >= _COUNTED):
            return True
        if self.curve:
            return not self.guaranteed
        return (
            len(self.data.shape) > 1
            and self.data.size <= LARGEST_SHRUNK
            and not self.guaranteed
            and not told
            and self.nearly_exact is None
        )

    @cached_property
    def along(self) -> tuple[int, ...]:
        """Axes whose ranges inside announced tables are better served by blocks than by cells added up."""
        workload, domain = self.data.workload, self.data.domain
        if workload is None or domain is None or not workload.ranges or self.kind != "marginals":
            return ()
        from dphist.mechanisms.wide.ranges import plan_axes

        return tuple(plan_axes(domain, workload.ranges, gaussian=self.data.law().gaussian))

    @cached_property
    def doubted_tables(self) -> tuple[Axes, ...]:
        """Announced tables of which chance may say more than noise leaves of them; none if that is out of question."""
        workload = self.data.workload
        told = workload is not None and workload.kind == "marginals" and self.kind == "marginals"
        small = self.data.domain is not None and self.data.parts == 1 and self.data.size <= LARGEST_SHRUNK
        if workload is None or not told or not small or self.guaranteed or len(self.data.shape) < _CUBE:
            return ()
        if self.along:
            return ()
        if self.nearly_exact is not None:
            return ()
        from dphist.mechanisms.choosing.chance import pairs_of
        from dphist.mechanisms.marginals import tables_of

        tables = tables_of(workload)
        # A table of all attributes is the cube: its cells are measured by themselves.
        whole = any(len(axes) == len(self.data.shape) for axes in tables)
        return () if whole or not pairs_of(self.data.shape, tables) else tables

    @cached_property
    def nearly_exact(self) -> tuple[Mechanism, str] | None:
        """Who measures every cell where a large budget makes its noise all but vanish, and why; else nothing."""
        if self.data.size > LARGEST_SHRUNK:
            return None
        from dphist.mechanisms.choosing.exact import nearly_exact

        workload = self.data.workload
        if workload is None and self.workload in ("prefixes", "all_ranges") and self.data.domain is not None:
            workload = getattr(Workload, self.workload)(self.data.domain)
        return nearly_exact(self.data, workload, self.kind, space=not self.tabular)

    @cached_property
    def tabular(self) -> bool:
        """Whether there are several attributes that are no space, so that tables of few of them may be measured."""
        return len(self.data.shape) > 1 and not self.space
