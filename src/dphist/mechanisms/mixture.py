"""Tables of very many columns: few are measured, a mixture of products fills in the rest, and nothing is negative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, nonnegative
from dphist.inference.fitting import rake, settle
from dphist.inference.mixture import MixtureModel, NoisyTable, fit_mixture
from dphist.inference.published import ResidualNoise, TableEstimate
from dphist.inference.residuals import Measured, TableResiduals
from dphist.inference.shrinking import disagreement, merge_values, shares_within, shrink, shrink_together
from dphist.inference.synthesis import PublishedModel
from dphist.inference.tables import Axes, subsets
from dphist.mechanisms.mixtureplan import (
    CHOICE_SHARE,
    COUNT_SHARE,
    DISTANCE_SHARE,
    SHOWN,
    Strength,
    all_pairs,
    first_part,
    looking_share,
    pair_shares,
    planned_deviations,
    too_weak,
)
from dphist.mechanisms.options import checked
from dphist.mechanisms.residualplan import wanted_tables
from dphist.mechanisms.residuals import announced, measure_residuals
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.dependence import Dependence, TableDistances
from dphist.private.queries.tables import TableTotals
from dphist.private.records import PrivateRecords
from dphist.private.scores.tables import TableErrors, chosen_tables

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SMALL_CUBE = 1 << 16
_RAKING_ROUNDS = 30
# Pairs are measured if they are further from the model than noise would be, by so many deviations of that look at them.
_SURE = 2.0
# A model nearer to measured pairs than this part of their noise follows it.
_FOLLOWS = 0.5
# Pairs this much further from independence than noise gain little by any model.
_CLEAR = 4.0
# Rounds of choosing pairs; after the first the model knows what was measured.
_ROUNDS = 2
# Tables of three and more attributes take part in the fit while they have so many cells together.
_MOST_FITTED = 20_000
# Dependence costs less where noise is small: this part at least, all of it from a tenth of total variation on.
_LEAST_PRICE, _FULL_PRICE = 0.15, 0.1


@checked
@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Measure tables of few attributes, fit a mixture of products to them, and publish what both say together.

    The model (`dphist.inference.mixture`) borrows strength between tables: it costs nothing, since it reads released
    numbers only, and says something of every table, measured or not. Measured tables are shrunk towards it as far as
    their noise could explain the difference. What is measured is decided by how much the budget can see:

    * where noise is small (beside sampling error, or beside how far pairs are from independence), all wanted tables at
      once, residual by residual with the best shares (as `Residuals`);
    * else tables of one attribute first; then, if pairs are further from independence than noise would be, pairs chosen
      in two rounds where the model is furthest from the records, rare values merged;
    * else tables of one attribute alone, with all that is left.

    Synthetic records of all columns keep the published pairs. Tables that were measured have exact intervals, widened
    to hold what is published; what the model guessed has none.

    Private because every number it uses comes from a question that was paid for, with shares that sum to one: totals of
    tables, one number of how dependent pairs are, and choices by the exponential mechanism, each with its proof
    (`dphist.private.queries.tables`, `dphist.private.queries.dependence`, `dphist.private.scores.tables`). Merging
    values by noisy counts leaves one step one step.

    Args:
        tables: The axes of each announced table; read off the workload unless told, else all of ``ways`` attributes.
        ways: How many attributes the tables have when none are announced.
        classes: Hidden classes of the model, at most.
        steps: Of its fit, at most.

    Example:
        >>> from dphist.mechanisms import Mixture
        >>> from dphist.testing import run
        >>> run(Mixture(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    tables: tuple[Axes, ...] | None = None
    ways: int = 2
    classes: int = 120
    steps: int = 500

    def __post_init__(self) -> None:
        if self.ways < 1 or self.classes < 1 or self.steps < 1:
            raise MechanismError("ways, classes and steps must be at least 1")

    def goes_wide(self, domain: Domain, workload: Workload | None) -> bool:
        """Whether tables are published rather than a cube."""
        return domain.size > _SMALL_CUBE

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Give a dense estimate, where one fits: the model's cube, raked to the published tables."""
        found = self.estimate_tables(PrivateRecords(data))
        shape = tuple(data.shape)
        assert found.model is not None  # noqa: S101 -- a mixture always has one
        start = found.total * found.model.table(tuple(range(len(shape))))
        trace = found.total / math.prod(shape) * 1e-9
        targets = {axes: table for axes, table in found.tables.items() if axes}
        return Estimate(rake(start + trace, targets, _RAKING_ROUNDS, 1e-3), found.errors, found.note)

    def estimate_tables(self, data: PrivateRecords) -> TableEstimate:
        """Measure, fit and publish tables, whatever the size of the domain."""
        shape = data.shape
        every = [(axis,) for axis in range(len(shape))]
        asked = [tuple(sorted(set(axes))) for axes in announced(data, self.tables, self.ways)]
        wanted = wanted_tables(shape, [*asked, *every])
        pairs = sorted({pair for axes in wanted for pair in combinations(axes, 2)})
        if not pairs:
            return self._planned(data, asked, wanted)
        cells = np.array([shape[a] * shape[b] for a, b in pairs], dtype=np.float64)
        noise = planned_deviations(data.law(), shape, wanted, pairs)
        look = looking_share(data.law(), noise, cells)
        counting, looking, rest = data.split(COUNT_SHARE, look, 1 - COUNT_SHARE - look)
        counted = counting.measure(TableTotals(((),), (Fraction(1),)))
        strength = Strength(rest.law(), max(1.0, float(counted.values[0])))
        seen = looking.measure(Dependence(tuple(pairs)))
        unit = 2.0 * strength.total * len(pairs)
        apart, doubt = float(seen.values[0]) / unit, math.sqrt(float(np.max(seen.variance))) / unit
        together = all_pairs(strength, noise, cells, apart, doubt)
        if together is None and data.law().gaussian:
            return self._tried(rest, asked, wanted, pairs, strength)
        if together:
            return self._planned(rest, asked, wanted)
        return self._chosen(rest, asked, pairs, strength)

    def _tried(
        self,
        data: PrivateRecords,
        asked: Sequence[Axes],
        wanted: Sequence[Axes],
        pairs: Sequence[Axes],
        strength: Strength,
    ) -> TableEstimate:
        """Measure all tables with a part of the budget, and go on with them if they show more than noise."""
        first = first_part(data.shape, pairs)
        trying, rest = data.split(first, 1 - first)
        part = measure_residuals(trying, wanted)
        total = max(1.0, float(part.table(())))
        ones: dict[Axes, FloatArray] = {
            axes: nonnegative(part.table(axes), total)
            for axis in range(len(data.shape))
            for axes in [(axis,)]
        }
        far, deviation = disagreement(part, pairs, partial(_by_chance, ones, total))
        if far < 1.0 + max(SHOWN * float(first), 2.0 * deviation):
            return self._chosen(rest, asked, pairs, replace(strength, law=rest.law()), part)
        return self._planned(rest, asked, wanted, part)

    # ---- all wanted tables ------------------------------------------------------------------------------

    def _planned(
        self,
        data: PrivateRecords,
        asked: Sequence[Axes],
        wanted: Sequence[Axes],
        before: TableResiduals | None = None,
    ) -> TableEstimate:
        residuals = measure_residuals(data, wanted)
        if before is not None:
            residuals = TableResiduals(data.shape, [*before.measured, *residuals.measured])
        note = f"{len(wanted)} tables were measured together, and a mixture of products fitted to them"
        return self.together(residuals, asked, note)

    def together(self, residuals: TableResiduals, asked: Sequence[Axes], note: str) -> TableEstimate:
        """Fit a model to all that was measured, and publish tables between both.

        Args:
            residuals: What was measured.
            asked: The tables to publish; those that are not covered are the model's guess.
            note: How it came about.

        Returns:
            The tables, with their errors and the model.
        """
        total = max(1.0, float(residuals.table(())))
        every = [*asked, *((axis,) for axis in range(len(residuals.shape)))]
        inside = {residuals.kept(inner) for axes in every for inner in subsets(axes)} - {()}
        known = sorted(
            (axes for axes in inside if residuals.covers(axes)), key=lambda axes: (len(axes), axes)
        )
        noisy = [NoisyTable(axes, residuals.table(axes), residuals.cell_variance(axes)) for axes in known]
        model = self._fit(residuals.shape, noisy, total)
        near: dict[Axes, FloatArray] = {
            axes: nonnegative(residuals.table(axes), total) for axes in known if len(axes) == 1
        }
        pairs = [axes for axes in known if len(axes) == 2]
        said, chance = partial(_said, model, total), partial(_by_chance, near, total)
        far, deviation = disagreement(residuals, pairs, chance)
        # A model that follows the noise, or could and need not help much, says nothing beyond the measurement; and none
        # is needed where noise alone explains how far pairs are from independence.
        cells = sum(math.prod(residuals.shape[axis] - 1 for axis in axes) for axes in pairs)
        able = 2 * cells < self.classes * (sum(residuals.shape) - len(residuals.shape))
        alone = (
            far < 1.0 + 2.0 * deviation
            or (able and far > _CLEAR)
            or disagreement(residuals, pairs, said)[0] < _FOLLOWS
        )
        if alone:
            near |= shrink_together(residuals, pairs, chance)
        near |= shrink_together(residuals, [axes for axes in known if len(axes) > 2 or not alone], said)
        return publish_near(residuals.shape, asked, total, near, model, residuals, note)

    def _fit(self, shape: Sequence[int], noisy: Sequence[NoisyTable], total: float) -> MixtureModel:
        large = sum(table.values.size for table in noisy if len(table.axes) > 2)
        used = [table for table in noisy if len(table.axes) <= 2 or large <= _MOST_FITTED]
        price = float(np.clip(_raw(used, total) / _FULL_PRICE, _LEAST_PRICE, 1.0))
        classes = min(self.classes, 4 * sum(shape)) if any(len(table.axes) > 1 for table in used) else 1
        return fit_mixture(shape, used, total, components=classes, steps=self.steps, price=price)

    # ---- chosen tables ----------------------------------------------------------------------------------

    def _chosen(
        self,
        data: PrivateRecords,
        asked: Sequence[Axes],
        pairs: Sequence[Axes],
        strength: Strength,
        before: TableResiduals | None = None,
    ) -> TableEstimate:
        shape, columns = data.shape, len(data.shape)
        ones = tuple((axis,) for axis in range(columns))
        even = (Fraction(1, columns),) * columns
        if too_weak(strength):
            return self._singles(
                data, asked, _tables(data.measure(TableTotals(ones, even)), ones, shape), before
            )
        one, look, rest = data.split(strength.singles, DISTANCE_SHARE, 1 - strength.singles - DISTANCE_SHARE)
        first = _tables(one.measure(TableTotals(ones, even)), ones, shape)
        total = _total(first)
        single = [nonnegative(table.values, total) for table in first]
        picks = strength.picks(columns, len(pairs))
        share = float(1 - strength.singles - DISTANCE_SHARE - CHOICE_SHARE)
        least = strength.visible(picks, share)
        groups = [
            merge_values(single[axis], least, ordered=isinstance(attribute, Ordinal))
            for axis, attribute in enumerate(data.domain.attributes)
        ]
        coarse = tuple(int(group.max()) + 1 for group in groups)
        open_pairs = [pair for pair in pairs if coarse[pair[0]] > 1 and coarse[pair[1]] > 1]
        start = self._fit(coarse, [_merged(table, groups) for table in first], total)
        worth = False
        if open_pairs:
            penalties = [
                2.0 * 0.4 * strength.deviation(share / picks) * coarse[a] * coarse[b] for a, b in open_pairs
            ]
            seen = look.merge(groups).measure(
                TableDistances(
                    tuple(open_pairs),
                    _rounded(start, open_pairs, total),
                    np.array(penalties).astype(np.int64),
                )
            )
            gain = float(seen.values[0]) / (2.0 * total * len(pairs))
            doubt = math.sqrt(float(np.max(seen.variance))) / (2.0 * total * len(pairs))
            worth = gain > _SURE * doubt + _loss(strength, shape, total)
        if not worth:
            # If there was no pair to look at, that share is spent on single attributes as well.
            rights = [rest] if open_pairs else [look, rest]
            for right in rights:
                first = [*first, *_tables(right.measure(TableTotals(ones, even)), ones, shape)]
            return self._singles(data, asked, first, before)
        measured = [_merged(table, groups) for table in first]
        model, chosen = self._rounds(rest.merge(groups), open_pairs, picks, measured, start, total)
        within = [shares_within(single[axis], groups[axis]) for axis in range(columns)]
        fine = model.spread(groups, within)
        near = {
            table.axes: shrink(table.values, table.variance, total * fine.table(table.axes))
            for table in first
        }
        for table in chosen:
            a, b = table.axes
            near_coarse = shrink(table.values, table.variance, total * model.table(table.axes))
            near[table.axes] = near_coarse[np.ix_(groups[a], groups[b])] * np.outer(within[a], within[b])
        # Intervals hold where cells were measured as they are published: single attributes, pairs that were not merged.
        whole = [t for t in chosen if all(coarse[axis] == shape[axis] for axis in t.axes)]
        told = [] if before is None else before.measured
        errors = TableResiduals(
            shape, [*told, *(_as_measured(table, strength.law) for table in [*first, *whole])]
        )
        note = (
            f"tables of one attribute were measured, then {len(chosen)} of {len(pairs)} pairs, chosen where a model "
            "was furthest from the records, rare values merged; a mixture of products says the rest"
        )
        return publish_near(shape, asked, total, near, fine, errors, note)

    def _rounds(
        self,
        data: PrivateRecords,
        pairs: Sequence[Axes],
        picks: int,
        measured: list[NoisyTable],
        model: MixtureModel,
        total: float,
    ) -> tuple[MixtureModel, list[NoisyTable]]:
        """Choose pairs and measure them, twice; all at once if all are to be measured."""
        left, chosen = list(pairs), list[NoisyTable]()
        rounds = _ROUNDS if 1 < picks < len(left) else 1
        for number, right in enumerate(data.split(*[Fraction(1, rounds)] * rounds)):
            take = min(len(left), picks // rounds + (picks % rounds if number == 0 else 0))
            if take < len(left):
                choose, right = right.split(CHOICE_SHARE, 1 - CHOICE_SHARE)
                score = TableErrors(
                    tuple(left), _rounded(model, left, total), np.zeros(len(left), np.int64), take
                )
                here = [left[place] for place in chosen_tables(choose.choose(score), len(left))]
            else:
                here = left
            here = sorted(here)
            left = [pair for pair in left if pair not in here]
            cells = [math.prod(data.shape[axis] for axis in pair) for pair in here]
            noisy = right.measure(TableTotals(tuple(here), tuple(pair_shares(right.law(), cells))))
            chosen += _tables(noisy, here, data.shape)
            model = self._fit(data.shape, [*measured, *chosen], total)
            if not left:
                break
        return model, chosen

    def _singles(
        self,
        data: PrivateRecords,
        asked: Sequence[Axes],
        tables: Sequence[NoisyTable],
        before: TableResiduals | None,
    ) -> TableEstimate:
        """Publish what single attributes say: that they go together by chance alone is the guess."""
        shape, law = data.shape, data.law()
        told = [] if before is None else before.measured
        errors = TableResiduals(shape, [*told, *(_as_measured(table, law) for table in tables)])
        total = max(1.0, float(errors.table(())))
        near: dict[Axes, FloatArray] = {
            axes: nonnegative(errors.table(axes), total) for axis in range(len(shape)) for axes in [(axis,)]
        }
        rows = np.concatenate([near[(axis,)] / total for axis in range(len(shape))])
        model = MixtureModel(shape, np.ones(1), rows[:, None])
        note = (
            "tables of one attribute were measured with the whole budget: it sees too little of pairs, or there was "
            "too little to see; that attributes go together by chance alone is a guess"
        )
        return publish_near(data.shape, asked, total, near, model, errors, note)


def publish_near(
    shape: Sequence[int],
    asked: Sequence[Axes],
    total: float,
    near: Mapping[Axes, FloatArray],
    model: MixtureModel,
    measured: TableResiduals,
    note: str,
) -> TableEstimate:
    """Settle the announced tables, and those of single attributes, so that all agree.

    Args:
        shape: How many values each attribute has.
        asked: The announced tables.
        total: The number of records.
        near: What was made of measured tables.
        model: What says something of all others.
        measured: What was measured.
        note: How it came about.

    Returns:
        The tables, with their errors and the model.
    """
    every = [*asked, *((axis,) for axis in range(len(shape)))]

    def table(axes: Axes) -> FloatArray:
        if not axes:
            return np.array(total)
        return near[axes] if axes in near else np.asarray(total * model.table(axes))

    settled = settle(shape, every, table)
    return TableEstimate(settled, ResidualNoise(measured), note, PublishedModel(model, settled))


def _said(model: MixtureModel, total: float, axes: Axes) -> FloatArray:
    """A table as the model has it."""
    return np.asarray(total * model.table(axes), dtype=np.float64)


def _by_chance(near: Mapping[Axes, FloatArray], total: float, axes: Axes) -> FloatArray:
    """A table whose attributes go together by chance alone."""
    parts = [near[(axis,)] / max(float(near[(axis,)].sum()), 1e-300) for axis in axes]
    return np.asarray(total * reduce(np.multiply.outer, parts), dtype=np.float64)


def _raw(tables: Sequence[NoisyTable], total: float) -> float:
    """The expected total variation between measured pairs and true ones."""
    pairs = [table for table in tables if len(table.axes) > 1]
    noise = [0.4 * math.sqrt(float(np.mean(t.variance))) * t.values.size / total for t in pairs]
    return float(np.mean(noise)) if noise else 0.0


def _tables(noisy: object, tables: Sequence[Axes], shape: Sequence[int]) -> list[NoisyTable]:
    """Take an answer apart into its tables."""
    values, variance = np.asarray(noisy.values), np.asarray(noisy.variance)  # type: ignore[attr-defined]
    found, begin = [], 0
    for axes in tables:
        sides = [shape[axis] for axis in axes]
        end = begin + math.prod(sides)
        each = float(variance if variance.ndim == 0 else variance[begin])
        found.append(NoisyTable(axes, values[begin:end].astype(np.float64).reshape(sides), each))
        begin = end
    return found


def _total(tables: Sequence[NoisyTable]) -> float:
    """How many records there are, from tables of one attribute: those of few values know it best."""
    sizes = np.array([table.values.size for table in tables], dtype=np.float64)
    totals = np.array([table.values.sum() for table in tables])
    return max(1.0, float((totals / sizes).sum() / (1.0 / sizes).sum()))


def _merged(table: NoisyTable, groups: Sequence[IntArray]) -> NoisyTable:
    """A table of one attribute, its values merged."""
    group = groups[table.axes[0]]
    variance = float(np.mean(table.variance)) * np.bincount(group)
    summed = np.asarray(np.bincount(group, table.values), dtype=np.float64)
    return NoisyTable(table.axes, summed, np.asarray(variance, dtype=np.float64))


def _rounded(model: MixtureModel, tables: Sequence[Axes], total: float) -> IntArray:
    """What a model says of some tables, in whole records."""
    parts = [np.rint(total * model.table(axes)).astype(np.int64).reshape(-1) for axes in tables]
    return np.concatenate(parts)


def _loss(strength: Strength, shape: Sequence[int], total: float) -> float:
    """What single attributes lose, in total variation of pairs, by not getting the whole budget."""
    noise = [0.18 * 0.4 * strength.deviation(1.0 / len(shape)) * min(size, 40) / total for size in shape]
    worse = float(strength.singles) ** (-0.5 * strength.law.exponent) - 1.0
    return float(math.sqrt(2.0) * float(np.mean(noise)) * worse)


def _as_measured(table: NoisyTable, law: NoiseLaw) -> Measured:
    variance = float(np.mean(table.variance))
    return Measured(table.axes, table.values, variance, 0.0 if law.gaussian else math.sqrt(variance / 2.0))
