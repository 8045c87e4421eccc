"""The right mechanism by itself: chosen from public facts, explained in words.

Whoever is not chosen is not loaded: a release is asked and verified in less time than all of them take to import.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.published import TableEstimate
from dphist.inference.tables import Axes
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.choosing.glimpse import Crowd, Glimpse, Look
from dphist.mechanisms.options import checked
from dphist.mechanisms.protocol import Mechanism, TableMechanism, made_by
from dphist.model.domain import Domain, Ordinal
from dphist.model.phrases import mended
from dphist.model.workload import Kind, Workload
from dphist.private.gate import PrivateCounts
from dphist.private.records import PrivateRecords

# Ranges up to this many cells are better added up from single cells than read off a tree.
_SMALL_RANGE = 32
# An ordered attribute of so many values is asked for ranges.
_LONG = 16
# What a noisy total costs, where candidates part company by how many records there are: under two percent.
_TOTAL = Fraction(1, 64)
# From so many attributes on a first look is paid for.
_CUBE = 3
# Cubes above this take too long to rake to their tables.
_LARGEST_TABULAR = 1 << 24
# Tables of cubes up to this are moved towards smaller ones; beyond, that takes too long.
_LARGEST_SHRUNK = 1 << 20
# Cubes above this are not written out whatever will be asked.
_LARGEST_DENSE = 1 << 29
# Up to so many cells of a line the root of its prefixes is considered under ρ; up to so many for narrow guarantees. It
# could be asked of longer ones by now, but whether it is better there than a tree was not measured.
_LONGEST_CURVE = 1 << 14
_LONGEST_ROOT = 1 << 16
# Of so many attributes nobody asks for boxes in all of them.
_MANY = 5
# Ranges looked at to tell how large they are.
_SAMPLE = 4096
# Ranges are about a space if so many of them are bounded on all its axes.
_MOSTLY = 0.5
# Where whole numbers have less than this part of continuous noise's variance (ε above 3), cells are looked at first.
_WHOLE = 0.5
# What a release may say of its choice; ours are a third as long.
_LONGEST_REASON = 1000
# A tree adapts to what it finds: cells must be expected to be off by this much less. On 13 drawn planes (numbers 0 to
# 49) at ε = 10 rectangles are then off by 0.001 to 0.5 of what they were; at ε = 5 the tree stays.
_NEARLY_EXACT = 0.5


@checked
@dataclass(frozen=True, kw_only=True)
class Auto:
    """Choose what to measure from what will be asked, and what to infer from what was measured.

    Single cells are noised one by one and inferred from their neighbours (`Posterior`). Prefixes, ranges and questions
    nobody announced about one attribute get a tree measured where it is full (`AdaptiveTree`). Of several attributes
    tables, the cube among them (`Marginals`), or a tree of boxes are measured, whichever is expected to be off by less
    on what will be asked, or on a mixture of cells, tables, ranges and boxes if nobody said (see
    `dphist.mechanisms.choosing`). Of a domain with more cells than anybody can write out, tables of few attributes are
    published with a model fitted to them (`Mixture`). The choice reads public facts only, the shape of the domain and
    the workload, and in several dimensions a noisy total that is paid for. What else depends on the data is decided
    inside: by noisy totals, or among models by their evidence in values that are already released.

    Where (ε, δ) is allowed it is also chosen which promise to keep, that of the ρ it buys or that of pure ε
    (`dphist.mechanisms.choosing.currency`).

    Private because a part of the right buys the total, and the rest goes to one mechanism, chosen without looking at
    anything but that.

    ``workload`` names what will be asked if it is not handed over as a workload: "cells", "prefixes", "all_ranges",
    "marginals" or "ranges". With ``guaranteed`` only mechanisms are chosen whose guaranteed intervals are narrow,
    because what is measured does not depend on the data and its noise is known exactly: single cells by `Laplace`
    (or `Gaussian`), ranges by a `Tree` of fixed blocks, published as least squares has it, tables by `Marginals`.
    Answers are then less accurate on data that the others adapt to.

    A release fills in ``why``, the choice in words, ``look``, what was bought before it, and ``chosen``. With these the
    same look is bought and the chosen mechanism gets the rest: nothing is chosen, so a release can be replayed when the
    rules of choosing have long changed.

    Args:
        workload: What will be asked, where it is not handed over as a workload.
        guaranteed: Choose for narrow guaranteed intervals.
        why: Filled in by the release.
        look: Filled in by the release.
        chosen: Filled in by the release.

    Example:
        >>> from dphist.mechanisms import Auto
        >>> from dphist.testing import run
        >>> run(Auto(workload="cells"), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    reuses_counts: ClassVar[bool] = True
    """What it publishes is what the chosen mechanism made of its right."""

    workload: Kind | None = None
    guaranteed: bool = False
    why: str = field(default="", compare=False)
    look: Look | None = field(default=None, compare=False)
    chosen: Mechanism | None = field(default=None, compare=False)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose, then let the chosen mechanism use the right, or what a first look has left of it."""
        whole, seen = data, Glimpse()
        look = self._first_look(data) if self.chosen is None else self.look
        if look is not None:
            seen, data = look.at(data)
        mechanism, reason = self.chosen, None
        if mechanism is None:
            tables = self._doubted_tables(data)
            if tables and look is not None:
                from dphist.mechanisms.choosing.announced import look_further

                look, seen, data = look_further(look, seen, data, tables)
            elif look is not None and look.blocks:
                look, seen, data = self._look_at_pairs(look, seen, data)
            few = None
            if self._few(data) and look is not None:
                from dphist.mechanisms.choosing.planes import cells_if_few, look_higher

                look, seen, data = look_higher(look, seen, data)
                few = cells_if_few(data, self._kind(data), seen)
            mechanism, reason = few or self.choose(
                *(data, seen.records, seen.dependence, seen.doubt, seen.crowd, seen.apart)
            )
        # What it makes of what is left is what is published.
        estimate = mechanism.estimate(data.standing_for(whole))
        named = replace(self, look=look, chosen=made_by(mechanism, estimate))
        return replace(estimate, note=self._said(reason, estimate.note), made_by=named)

    def _said(self, reason: str | None, note: str) -> str:
        """The choice in words, and what was made of it: a release is believed the first, in few plain words."""
        end = f"; {note}." if note else "."
        if reason is not None:
            return reason + end
        plain = self.why.isprintable() and len(self.why) - len(end) <= _LONGEST_REASON
        return self.why if plain and mended(self.why).endswith(mended(end)) else note

    def choose(
        self,
        data: PrivateCounts,
        records: float | None = None,
        dependence: float | None = None,
        doubt: float | None = None,
        crowd: Crowd | None = None,
        apart: float | None = None,
    ) -> tuple[Mechanism, str]:
        """Say which mechanism fits, and why, from public facts and, where that was paid for, a first look.

        Args:
            data: A right, of which only public facts are read.
            records: A noisy total.
            dependence: How far attributes depend on each other (`dphist.mechanisms.choosing.glimpse`).
            doubt: How much noise is in what was seen of pairs (`dphist.mechanisms.choosing.announced`).
            crowd: How full blocks of a plane are.
            apart: What was seen of pairs, if blocks told the dependence (`dphist.mechanisms.choosing.chance`).

        Returns:
            The mechanism, and why.
        """
        if self._waves(data):
            from dphist.mechanisms.choosing.planes import wavelets_if_better

            waves = wavelets_if_better(data, self._kind(data), crowd)
            if waves is not None:
                return waves
        mechanism, reason = self._fitting(data, Glimpse(records, dependence, doubt, apart=apart))
        if not self.guaranteed:
            return mechanism, reason
        from dphist.mechanisms.baseline import Gaussian, Laplace
        from dphist.mechanisms.marginals import Marginals
        from dphist.mechanisms.posterior import Posterior
        from dphist.mechanisms.prefixsums import PrefixSums
        from dphist.mechanisms.residuals import Residuals
        from dphist.mechanisms.tree import Tree

        if isinstance(mechanism, Marginals | Residuals | PrefixSums):
            return mechanism, reason
        # What is asked decides as before; whoever adapts to noise gives way to whoever measures the same on all data.
        if isinstance(mechanism, Posterior):
            gaussian = data.law().gaussian
            fixed: Mechanism = Gaussian() if gaussian else Laplace()
            plain = "gaussian" if gaussian else "laplace"
            reason = reason.replace("(posterior)", f"and published as it is ({plain})")
        else:
            fixed = Tree(fanout="auto", nonnegative=False)
            reason = reason.replace("a tree is measured", "a tree of fixed blocks is measured")
            reason = reason.replace("(adaptivetree)", "(tree)")
        return fixed, f"{reason}, for narrow guaranteed intervals"

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables of few attributes are published rather than every cell: public facts decide."""
        if domain.size > _LARGEST_DENSE:
            return True
        if self.workload is None and workload is not None and workload.parts:
            # Tables answer for tables alone: whoever asks for cells as well needs the cells, as long as they fit.
            asked = {part.kind for _, part in workload.parts}
            return asked == {"marginals"} and domain.size > _LARGEST_TABULAR
        kind = self.workload or (None if workload is None else workload.kind)
        tabular = kind == "marginals" or (kind is None and len(domain.shape) >= _MANY)
        return tabular and domain.size > _LARGEST_TABULAR

    def estimate_tables(self, data: PrivateRecords) -> TableEstimate:
        """Publish tables of few attributes out of very many."""
        if self.chosen is not None:
            if not isinstance(self.chosen, TableMechanism):
                raise MechanismError("auto: of so many cells only who publishes tables can be chosen")
            rest = data if self.look is None else self.look.count(data)
            found = self.chosen.estimate_tables(rest)
            named = replace(self, chosen=made_by(self.chosen, found))
            return replace(found, note=self._said(None, found.note), made_by=named)
        told = [] if data.workload is None else [part for _, part in data.workload.parts] or [data.workload]
        asked = any(part.kind == "marginals" for part in told)
        reason = (
            f"{self._why_wide(data)}, so "
            f"{'the tables that will be asked for' if asked else 'all tables of two attributes'} are measured"
        )
        if self.guaranteed:
            from dphist.mechanisms.residuals import Residuals

            chosen: TableMechanism = Residuals()
            said, look, found = (
                "(residuals), for narrow guaranteed intervals",
                None,
                chosen.estimate_tables(data),
            )
        else:
            from dphist.mechanisms.wide.choice import publish_tables

            said, look, chosen, found = publish_tables(data)
        named = replace(self, look=look, chosen=made_by(chosen, found))
        return replace(found, note=self._said(f"{reason} {said}", found.note), made_by=named)

    def _why_wide(self, data: PrivateRecords) -> str:
        """Why tables are published and not every cell: there are too many; or tables are known better by themselves."""
        size, attributes = data.domain.size, len(data.shape)
        if size > _LARGEST_DENSE:
            return f"the domain has {attributes} attributes and more cells than anybody can write out"
        from dphist.mechanisms.residuals import announced
        from dphist.mechanisms.wide.choice import beside_cube

        own, cube = beside_cube(data.law(), data.shape, announced(data, None, 2))
        return (
            f"the domain has {attributes} attributes and {size:,} cells; every one could be written out, but tables "
            f"read off those of a cube are expected to be off by {cube:,.3g}, measured by themselves by {own:,.3g}"
        )

    def _kind(self, data: PrivateCounts) -> Kind | None:
        """The one kind of questions that was announced, if it is one."""
        if self.workload is not None or data.workload is None or data.workload.parts:
            return self.workload
        return data.workload.kind

    def _parts(self, data: PrivateCounts) -> tuple[tuple[float, Workload], ...]:
        """The mixture that was announced, if it is one."""
        return () if self.workload is not None or data.workload is None else data.workload.parts

    def _first_look(self, data: PrivateCounts) -> Look | None:
        """What is worth seeing before anything is chosen."""
        if self._looks_first(data):
            return Look()
        if self._doubted_tables(data):
            from dphist.mechanisms.choosing.announced import TOTAL

            return Look(total=TOTAL, blocks=Fraction(0))
        if self._few(data):
            from dphist.mechanisms.choosing.planes import counted_look

            return counted_look()
        if self._waves(data) and not self.guaranteed:
            from dphist.mechanisms.choosing.planes import crowded_look

            return crowded_look(data.shape)
        return Look(total=_TOTAL, blocks=Fraction(0)) if self._pays_for_total(data) else None

    def _looks_first(self, data: PrivateCounts) -> bool:
        """Whether candidates part company by what a first look shows, and the choice may depend on that."""
        open_to = self._kind(data) != "marginals" and not self._space(data)
        return len(data.shape) >= _CUBE and data.size <= _LARGEST_SHRUNK and not self.guaranteed and open_to

    def _doubted_tables(self, data: PrivateCounts) -> tuple[Axes, ...]:
        """Announced tables of which chance may say more than noise leaves of them; none if that is out of question."""
        workload = data.workload
        told = workload is not None and workload.kind == "marginals" and self._kind(data) == "marginals"
        small = data.domain is not None and data.parts == 1 and data.size <= _LARGEST_SHRUNK
        if workload is None or not told or not small or self.guaranteed or len(data.shape) < _CUBE:
            return ()
        from dphist.mechanisms.choosing.announced import pairs_of
        from dphist.mechanisms.marginals import tables_of

        tables = tables_of(workload)
        # A table of all attributes is the cube: its cells are measured by themselves.
        whole = any(len(axes) == len(data.shape) for axes in tables)
        return () if whole or not pairs_of(data.shape, tables) else tables

    def _pays_for_total(self, data: PrivateCounts) -> bool:
        """Whether candidates part company by how many records there are, and the choice may depend on that."""
        # Tables that were announced are measured however few records there are, and cells one by one.
        told = self._kind(data) in ("cells", "marginals") or self._short(data) or self._space(data)
        if self._curve(data):
            return not self.guaranteed
        return len(data.shape) > 1 and data.size <= _LARGEST_SHRUNK and not self.guaranteed and not told

    def _look_at_pairs(
        self, look: Look, seen: Glimpse, data: PrivateCounts
    ) -> tuple[Look, Glimpse, PrivateCounts]:
        """How far pairs are from chance, where that may change what is chosen."""
        from dphist.mechanisms.choosing.chance import look_at_pairs
        from dphist.mechanisms.choosing.cubes import chance_of

        found = chance_of(data, self._kind(data), seen)
        return (look, seen, data) if found is None else look_at_pairs(look, seen, data, found)

    def _fitting(self, data: PrivateCounts, seen: Glimpse) -> tuple[Mechanism, str]:
        """The most accurate mechanism, and why."""
        from dphist.mechanisms.posterior import Posterior

        records, dependence = seen.records, seen.dependence
        kind, counts_for = self._kind(data), [(part.kind, weight) for weight, part in self._parts(data)]
        several = len(data.shape) > 1
        if kind == "cells" and dependence is not None and records is not None:
            from dphist.mechanisms.choosing.cubes import single_cells

            return single_cells(data, seen)
        if kind == "cells" or (kind == "marginals" and not several):
            # How few records are few was tried under Laplace noise alone.
            counted = not several and not data.law().gaussian
            return (
                Posterior(fine=not several, counted=counted),
                "single cells will be asked for, so every cell is measured by itself (posterior)",
            )
        if self._short(data):
            return (
                Posterior(fine=not several),
                f"the ranges that will be asked for typically hold {self._typical(data)} cells, so every cell is "
                "measured (posterior)",
            )
        if not several and sum(w if k == "cells" else -w for k, w in counts_for) > 0.0:
            return Posterior(
                fine=True
            ), "single cells count most, so every cell is measured by itself (posterior)"
        if kind != "marginals" and (not several or (len(data.shape) == 2 and self._space(data))):
            exact = self._nearly_exact(data)
            if exact is not None:
                return Posterior(fine=not several), exact
        if several and data.size <= _LARGEST_TABULAR and not self._space(data):
            from dphist.mechanisms.choosing.asked import in_words
            from dphist.mechanisms.choosing.cubes import tables_or_tree

            mixed = " + ".join(f"{weight:g} {in_words(part)}" for weight, part in self._parts(data))
            return tables_or_tree(
                *(data, kind, records, dependence),
                mixed=mixed,
                shrink=not self.guaranteed and data.size <= _LARGEST_SHRUNK,
                doubt=seen.doubt,
                apart=seen.apart,
            )
        if kind == "ranges":
            return (
                _tree(data),
                "ranges of many cells will be asked for, so a tree is measured (adaptivetree)",
            )
        if kind is None:
            return (
                _tree(data, mixture=several),
                f"{'several kinds of questions' if counts_for else 'nobody said what'} will be asked, so a tree is "
                f"measured that serves {'cells, tables and ' * several}"
                "ranges of all sizes (adaptivetree)",
            )
        if kind == "marginals":
            from dphist.mechanisms.marginals import Marginals, tables_of

            tables: tuple[Axes, ...] = tuple((axis,) for axis in range(len(data.shape)))
            if data.workload is not None and data.workload.kind == "marginals":
                tables = tables_of(data.workload)
            return Marginals(tables=tables), "marginals will be asked for, so they are measured (marginals)"
        if self._curve(data):
            return self._prefixes(data, records)
        return _tree(data), "sums of many cells will be asked for, so a tree is measured (adaptivetree)"

    def _prefixes(self, data: PrivateCounts, records: float | None) -> tuple[Mechanism, str]:
        """The root of all prefixes or a tree, whichever is expected to be off by less: few records favour the tree."""
        from dphist.mechanisms.choosing.asked import asked_kinds
        from dphist.mechanisms.choosing.cubes import two_digits
        from dphist.mechanisms.choosing.forecast import Forecaster
        from dphist.mechanisms.prefixsums import PrefixSums, prefix_error

        law = data.law()
        asked = asked_kinds(data.shape, data.domain, data.workload, "prefixes")
        # At a small deviation most whole numbers drawn for a tree are 0; the root is asked in small parts of one.
        nearly_none = math.sqrt(float(law.drawn_variance) / float(law.variance))
        tree = nearly_none * Forecaster(data.shape, asked, law, records).tree().score
        root = prefix_error(data.size, law)
        of = "" if records is None else f" of about {two_digits(records):,} records"
        if root < tree:
            return (
                PrefixSums(),
                "prefixes will be asked for, so their root is measured (prefixsums): it is expected to be off by "
                f"{root:,.3g}, a tree by {tree:,.3g}{of}",
            )
        return (
            _tree(data),
            f"prefixes will be asked for, so a tree is measured (adaptivetree): it is expected to be off by {tree:,.3g}"
            f"{of}, their root by {root:,.3g}",
        )

    def _nearly_exact(self, data: PrivateCounts) -> str | None:
        """Why every cell is measured by itself where a large budget makes its noise all but vanish; else nothing.

        Noise is drawn as whole numbers: at ε = 10 a cell gets 0 but once in ten thousand, while a tree shares ε among
        its levels, each of which is noisy.
        """
        law = data.law()
        if data.size > _LARGEST_SHRUNK or law.drawn_variance > _WHOLE * law.variance:
            return None
        from dphist.mechanisms.choosing.forecast import cells_and_tree

        workload = data.workload
        if workload is None and self.workload in ("prefixes", "all_ranges") and data.domain is not None:
            workload = getattr(Workload, self.workload)(data.domain)
        cells, tree = cells_and_tree(data.shape, data.domain, workload, law)
        if cells > _NEARLY_EXACT * tree:
            return None
        return (
            f"noise is drawn as whole numbers and this budget makes nearly all of them 0, so every cell is measured "
            f"(posterior): sums are expected to be off by {cells:,.3g}, from a tree by {tree:,.3g}"
        )

    def _curve(self, data: PrivateCounts) -> bool:
        """Whether prefixes of a line are asked for, under a law of noise that makes their root the best question."""
        longest = _LONGEST_ROOT if self.guaranteed else _LONGEST_CURVE
        line = len(data.shape) == 1 and data.size <= longest
        return line and self._kind(data) == "prefixes" and data.law().gaussian

    def _waves(self, data: PrivateCounts) -> bool:
        """Whether long ranges of a space are announced under a law of noise for which wavelets may be better."""
        return len(data.shape) > 1 and data.law().gaussian and self._long_ranges(data)

    def _few(self, data: PrivateCounts) -> bool:
        """Whether long ranges of a plane are announced under a law of noise for which few tall cells may be."""
        plane = len(data.shape) == 2 and not data.law().gaussian and not self.guaranteed
        return plane and self._long_ranges(data)

    def _long_ranges(self, data: PrivateCounts) -> bool:
        told = self._kind(data) in ("ranges", "all_ranges", "prefixes") and not self._short(data)
        small = data.size <= _LARGEST_TABULAR
        return small and told and self._space(data) and self._nearly_exact(data) is None

    def _space(self, data: PrivateCounts) -> bool:
        """Whether ranges are asked for, or nothing was announced, about a space of points rather than a table.

        Where two long ordered attributes or more make a space, boxes are what people ask for. A tree adapts to where
        the points are, which no forecast knows: boxes on made-up planes had 0.3 to 30 times its error from tables.
        """
        kind = self._kind(data)
        if kind in ("cells", "marginals") or data.domain is None or self._parts(data):
            return False
        attributes = data.domain.attributes
        long = [k for k, a in enumerate(attributes) if isinstance(a, Ordinal) and a.size >= _LONG]
        if data.workload is None or data.workload.kind != "ranges" or not data.workload.size:
            return len(long) >= 2
        # Ranges that leave attributes alone are ranges of tables, and it is for the forecast to say who serves them.
        step = math.ceil(len(data.workload.low) / _SAMPLE)
        length = (data.workload.high - data.workload.low)[::step]
        bounded = (length < np.array(data.shape))[:, long].all(axis=1)
        return len(long) >= 2 and bool(bounded.mean() >= _MOSTLY)

    def _short(self, data: PrivateCounts) -> bool:
        """Whether the announced ranges are so short that single cells serve them best."""
        if self._kind(data) != "ranges" or (len(data.shape) > 1 and not self._space(data)):
            # Of several attributes small boxes may be better read off tables: the forecast says so.
            return False
        typical = self._typical(data)
        return typical is not None and typical <= _SMALL_RANGE

    def _typical(self, data: PrivateCounts) -> int | None:
        """Give the median number of cells of the announced ranges."""
        if data.workload is None or data.workload.kind != "ranges" or data.workload.size == 0:
            return None
        low, high = data.workload.low, data.workload.high
        step = math.ceil(len(low) / _SAMPLE)
        return int(np.median(np.prod(np.maximum(high[::step] - low[::step], 0), axis=1)))


def _tree(data: PrivateCounts, *, mixture: bool = False) -> AdaptiveTree:
    """A tree; on a line or a plane its counts are averaged with what the law of its intervals expects."""
    estimator: Literal["averaged", "totals"] = "averaged" if len(data.shape) <= 2 else "totals"
    # In larger spaces planning for all kinds, and step by step, was not tried.
    plane = len(data.shape) == 2
    return AdaptiveTree(estimator=estimator, mixture=mixture and plane, near=plane)
