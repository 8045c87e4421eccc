"""Tables of very many columns: few are measured, a mixture of products fills in the rest, and nothing is negative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Annotated

import numpy as np

from dphist.inference.estimate import Estimate
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.published import LaterModel, TableEstimate, with_cube
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.choosing.request import ALIKE, rough
from dphist.mechanisms.options import Bounds, Share, checked
from dphist.mechanisms.residuals import (
    Residuals,
    announced,
    announced_kinds,
    asked_ranges,
    measure_residuals,
)
from dphist.mechanisms.wide.fit import fit_together, measure_chosen, measure_singles
from dphist.mechanisms.wide.outlook import COUNT_SHARE, WAYS, Outlook, Way
from dphist.mechanisms.wide.plan import wanted_tables
from dphist.mechanisms.wide.ranges import asked_squares, plan_axes
from dphist.model import phrases
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.tables import TableTotals, TopDependence

_SMALL_CUBE = 1 << 16


@checked
@dataclass(frozen=True, kw_only=True)
class Course:
    """How a mixture went: a value, so that a release can name what was decided on the way by noisy answers."""

    count: Share
    """The share of the right that counted the records."""
    look: Annotated[Fraction, Bounds(0, 1)] = Fraction(0)
    """What of the rest a look at the most dependent pairs cost."""
    way: Way = "together"
    """Whether all wanted tables were measured at once, single columns and then some pairs, or single columns alone."""


@checked
@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Measure tables of few attributes, fit a mixture of products to them, and publish what both say together.

    The model (`dphist.inference.tables.mixture`) borrows strength between tables: it costs nothing, since it reads
    released numbers only, and says something of every table, measured or not. Measured tables are shrunk towards it as
    far as their noise could explain the difference. What is measured is decided by how much the budget can see:

    * where noise is small (beside sampling error, or beside how far pairs are from independence), all wanted tables at
      once, residual by residual with the best shares (as `Residuals`);
    * else tables of one attribute first, then pairs chosen in two rounds where the model is furthest from the records;
    * else, where pairs would drown in noise, tables of one attribute alone.

    Synthetic records of all columns keep the published pairs. Tables that were measured have exact intervals, widened
    to hold what is published; what the model guessed has none.

    Private because every number it uses comes from a question that was paid for, with shares that sum to one: totals of
    tables, one number of how dependent pairs are, and choices by the exponential mechanism, each with its proof
    (`dphist.private.queries.tables`, `dphist.private.queries.tables`, `dphist.private.scores.tables`).

    Args:
        tables: The axes of each announced table; read off the workload by default, else all of ``ways`` attributes.
        ways: How many attributes the tables have when none are announced.
        classes: Hidden classes of the model, at most.
        steps: Of its fit, at most.
        course: Filled in by the release: what was decided on the way. With it nothing is forecast again.

    Example:
        >>> from dphist.mechanisms import Mixture
        >>> from dphist.testing import run
        >>> run(Mixture(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    tables: tuple[Axes, ...] | None = None
    ways: Annotated[int, Bounds(1, 16)] = 2
    classes: Annotated[int, Bounds(1, 1000)] = 120
    steps: Annotated[int, Bounds(1, 10_000)] = 700
    course: Course | None = field(default=None, compare=False)

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables are published rather than a cube."""
        return domain.size > _SMALL_CUBE

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Publish tables with their model; the cube where it is one of them."""
        return with_cube(self.estimate_tables(data), data.shape)

    def estimate_tables(self, data: PrivateCounts) -> TableEstimate:
        """Measure, fit and publish tables, whatever the size of the domain."""
        shape = data.shape
        every = [(axis,) for axis in range(len(shape))]
        asked = [tuple(sorted(set(axes))) for axes in announced(data, self.tables, self.ways)]
        wanted = wanted_tables(shape, [*asked, *every])
        pairs = sorted({pair for axes in wanted for pair in combinations(axes, 2)})
        if not pairs:
            return self._planned(data, asked, wanted)
        share = None if self.course is None else self.course.count
        rest, outlook = counted(data, self.tables, self.ways, share)
        return self.after_count(rest, outlook)

    def after_count(self, rest: PrivateCounts, outlook: Outlook) -> TableEstimate:
        """Go on with what is left of the right, once records were counted (`counted`)."""
        asked = [tuple(sorted(set(axes))) for axes in announced(rest, self.tables, self.ways)]
        course = self.course or Course(count=COUNT_SHARE[outlook.law.kind], look=outlook.look())
        if course.look:
            looking, rest = rest.split(course.look, 1 - course.look)
            top = outlook.strongest
            seen = looking.measure(TopDependence(outlook.pairs, top))
            unit = 2.0 * outlook.total * top
            doubt = math.sqrt(float(np.max(seen.variance))) / unit
            outlook = outlook.seen(float(seen.values[0]) / unit, doubt)
        if self.course is None:
            course = replace(course, way=WAYS[int(np.argmin(outlook.losses()))])
        kinds = () if self.tables else announced_kinds(rest)
        pairs = outlook.pairs
        if course.way == "together":
            found = self._planned(rest, asked, outlook.wanted)
        elif course.way == "apart":
            errors, many = measure_chosen(rest, pairs, outlook.total, kinds, self.classes, self.steps)
            note = (
                f"tables of one attribute were measured, then {many} of {len(pairs)} pairs, chosen where a model was "
                "furthest from the records; a mixture of products says the rest"
            )
            found = self.together(errors, asked, note)
        else:
            note = f"{phrases.UNPAIRED} Tables of one attribute were measured with the whole budget"
            found = self.together(measure_singles(rest), asked, note)
        return replace(found, made_by=replace(self, course=course))

    def _planned(self, data: PrivateCounts, asked: Sequence[Axes], wanted: Sequence[Axes]) -> TableEstimate:
        """Measure all wanted tables at once."""
        kinds = () if self.tables else announced_kinds(data)
        errors = ResidualNoise(measure_residuals(data, wanted, kinds=kinds))
        tables = phrases.counted(len(wanted), "table")
        were = "was" if len(wanted) == 1 else "were"
        note = f"{tables} {were} measured together, and a mixture of products fitted to them"
        return self.together(errors, asked, note)

    def together(self, errors: ResidualNoise, asked: Sequence[Axes], note: str) -> TableEstimate:
        """Fit a model to all that was measured, and publish tables between both, once they are read.

        Those of ``asked`` that are not covered are the model's guess.
        """
        later = LaterModel(partial(fit_together, errors.residuals, asked, self.classes, self.steps))
        return TableEstimate(later, errors, note, later)


def counted(
    data: PrivateCounts, tables: tuple[Axes, ...] | None, ways: int, share: Fraction | None = None
) -> tuple[PrivateCounts, Outlook]:
    """Count the records with a small part of a right: the rest of it, and what is expected of both ways."""
    shape, law = data.shape, data.law()
    every = [(axis,) for axis in range(len(shape))]
    wanted = wanted_tables(shape, [*announced(data, tables, ways), *every])
    pairs = sorted({pair for axes in wanted for pair in combinations(axes, 2)})
    share = share or COUNT_SHARE[law.kind]
    counting, rest = data.split(share, 1 - share)
    count = counting.measure(TableTotals(((),), (Fraction(1),)))
    # A count that is lost in its noise may be anything up to about that.
    doubt = math.sqrt(float(np.max(count.variance)))
    likely = max(float(count.values[0]), doubt / 2.0)
    kinds = () if tables else announced_kinds(data)
    return rest, Outlook(law, shape, wanted, tuple(pairs), kinds=kinds).counted(likely)


def publish_tables(data: PrivateCounts) -> tuple[str, Residuals | Mixture, TableEstimate]:
    """Use a right up for `auto`, by the way that is expected to be off by least: why, who was chosen, and the tables.

    A model is expected to leave no more error than plain tables have. Where ranges were announced, and a tree serves
    them better than cells added up, tables that have one are measured; it is no tree that a model is fitted to.
    """
    plain_tables, mixture = Residuals(), Mixture()
    trees = plan_axes(data.whole, asked_ranges(data, None), gaussian=data.law().gaussian)
    if trees:
        parts = [
            math.sqrt(tree.squares / asked_squares(data.whole.attributes[axis]))
            for axis, tree in trees.items()
        ]
        names = ", ".join(data.whole.names[axis] for axis in trees)
        said = f"and blocks of all sizes along {names} with them (residuals), whose ranges will typically be off by"
        said = f"{said} {float(np.mean(parts)):.0%} of what sums of single counts would be"
        return said, plain_tables, plain_tables.estimate_tables(data)
    pairs = {
        pair for axes in announced(data, None, mixture.ways) for pair in combinations(sorted(set(axes)), 2)
    }
    if not any(data.shape[a] > 1 and data.shape[b] > 1 for a, b in pairs):
        return "by themselves (residuals)", plain_tables, plain_tables.estimate_tables(data)
    rest, outlook = counted(data, mixture.tables, mixture.ways)
    # Tables that are moved towards a model are expected to be off by no more than they would be by themselves.
    off, other = float(outlook.likely @ outlook.ways.min(axis=0)), outlook.plain
    than = "about as many" if other <= ALIKE * off else f"{rough(100.0 * other)}%"
    said = (
        "and a model fitted to them (mixture): in tables of two attributes about "
        f"{rough(100.0 * off)}% of the records will typically be misplaced, without the model {than}"
    )
    # Counting records is the first thing that a mixture does by itself.
    return said, mixture, mixture.after_count(rest, outlook)
