"""Single columns first, then pairs chosen where a model of them is furthest from the records, if there is anything.

Shares follow from public sizes, the noise law and noisy totals. Most constants were tried on made-up tables (5 and 15
columns of 2, 10 or mixed numbers of values, with and without dependence, 3,000 and 50,000 records, both currencies).
Those of single attributes' share under ε and of merging were set looking at the Adult records: figures on those are not
blind. Which way is gone is decided by forecast (`dphist.mechanisms.wide.outlook`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.estimate import nonnegative
from dphist.inference.tables.errors import ResidualNoise, noise_after
from dphist.inference.tables.mixture import MixtureModel, NoisyTable
from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import Axes, Measured, TableResiduals
from dphist.inference.tables.shrinking import shrink, shrink_column
from dphist.mechanisms.wide.fit import fit_model, publish_near
from dphist.mechanisms.wide.plan import Kinds, pair_weights
from dphist.mechanisms.wide.singles import plan_singles
from dphist.model.domain import Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.phrases import UNPAIRED
from dphist.private.gate import Noisy
from dphist.private.queries.dependence import TableDistances
from dphist.private.queries.tables import TableTotals
from dphist.private.records import PrivateRecords
from dphist.private.scores.tables import TableErrors, chosen_tables

# Under ρ few pairs tell a model of many: dependence costs 1.4 times what it does where all were measured. At 1.4
# pairs and triples of made-up tables (15 columns of 2 to 40 values, 32,000 records, (1, 10⁻⁹)) are off by 0.94 and 0.96
# (`hidden`), 0.97 and 0.98 (`classes`), 0.94 and 0.94 (`chain`) of what they are at 1; at 2, by 1.03 and 1.02 on the
# second, and less still on the third. One draw of each.
_DEARER = 1.4
# Rounds of choosing pairs; after the first the model knows what was measured.
_ROUNDS = 2
# Of what is left then, to see whether pairs are worth measuring, and to choose among them.
_DISTANCE_SHARE = Fraction(1, 50)
_CHOICE_SHARE = Fraction(1, 20)
# The strength of a budget is counted in records × ε: noise of deviation σ is worth ε = √2 ÷ σ, under ρ 5.77 ÷ σ.
_LAPLACE_WORTH, _GAUSSIAN_WORTH = math.sqrt(2.0), 5.77
_USUAL = 3e4
# Under ε a budget that is split is worth less than the whole: below this strength single attributes get all of it.
_WEAK = 2e4
# A value of an attribute is merged with others unless it is seen above 6 deviations of a pair's noise.
_VISIBLE = 6.0
# Pairs are measured if they are further from the model than noise would be, by 2 deviations of that look at them.
_SURE = 2.0
# How much of their noise pairs must exceed on average for some of them to exceed all of it: dependence is uneven.
_OWN, _TELLING = 0.5, 16
# A value is merged into its neighbours unless the group's last one could stand alone with this part of the threshold.
_NEARLY = 0.3


@dataclass(frozen=True)
class Strength:
    """How much a budget can see: records times the ε it is worth, and whether its noise is Gaussian."""

    law: NoiseLaw
    total: float

    @property
    def records(self) -> float:
        """Records × ε, or what ρ is worth."""
        worth = _GAUSSIAN_WORTH if self.law.gaussian else _LAPLACE_WORTH
        return worth * self.total / float(self.law.deviation)

    @property
    def singles(self) -> Fraction:
        """The share of tables of one attribute: the more, the less can be seen of pairs."""
        most = 0.3 if self.law.gaussian else 0.4
        return Fraction(round(1000 * float(np.clip(most * (self.records / _USUAL) ** -0.3, 0.15, 0.7))), 1000)

    def picks(self, columns: int, pairs: int) -> int:
        """How many pairs to measure."""
        wanted = (3.0 if self.law.gaussian else 2.0) * columns * (self.records / _USUAL) ** 0.4
        return int(min(pairs, max(1.0, wanted)))

    def visible(self, picks: int, share: float) -> float:
        """How many records a value must have to be measured by itself."""
        return _VISIBLE * self.law.deviation_of(share / picks)


def too_weak(strength: Strength) -> bool:
    """Whether single attributes should get the whole budget, without looking at pairs."""
    return not strength.law.gaussian and strength.records < _WEAK


def worth_from(strength: Strength, shape: Sequence[int], doubt: float, total: float) -> float:
    """What pairs must be away from a model, beyond their own noise, to be measured: sure of it, and of what it costs.

    Single attributes lose, in total variation of pairs, by not getting the whole budget.
    """
    noise = [
        0.18 * 0.4 * strength.law.deviation_of(1.0 / len(shape)) * min(size, 40) / total for size in shape
    ]
    worse = float(strength.singles) ** (-0.5 * strength.law.exponent) - 1.0
    return _SURE * doubt + float(math.sqrt(2.0) * float(np.mean(noise)) * worse)


def seen_from(
    strength: Strength, shape: Sequence[int], pairs: Sequence[tuple[int, ...]], total: float
) -> float:
    """The dependence below which pairs will not be found worth measuring, so that none is chosen.

    Their own noise would be in the way; of larger tables rare values are merged, and few cells hold what there is.
    """
    picks = strength.picks(len(shape), len(pairs))
    share = float(1 - strength.singles - _DISTANCE_SHARE - _CHOICE_SHARE)
    cells = [min(_TELLING, math.prod(shape[axis] for axis in axes)) for axes in pairs]
    noise = 0.4 * strength.law.deviation_of(share / picks) * float(np.mean(cells)) / total
    doubt = strength.law.deviation_of(float(_DISTANCE_SHARE)) / (2.0 * total)
    return _OWN * noise + worth_from(strength, shape, doubt, total)


@dataclass(frozen=True)
class ChosenPairs:
    """Measure single columns, look whether pairs are worth it, and measure those that a model gets most wrong."""

    asked: Sequence[Axes]
    """The tables to publish."""
    pairs: Sequence[Axes]
    """The pairs that may be measured."""
    classes: int
    steps: int
    kinds: Kinds = ()
    """What a pair is away from the model counts by its weight among these."""
    long: int = 0

    def estimate(self, data: PrivateRecords, strength: Strength) -> TableEstimate:
        """Use the right up."""
        pairs = self.pairs
        shape, columns = data.shape, len(data.shape)
        plan = plan_singles(data.law(), shape)
        if too_weak(strength):
            return self._singles(ResidualNoise(TableResiduals(shape, plan.measure(data))))
        one, look, rest = data.split(
            strength.singles, _DISTANCE_SHARE, 1 - strength.singles - _DISTANCE_SHARE
        )
        singles = plan.measure(one)
        known = TableResiduals(shape, singles)
        first = [
            NoisyTable((axis,), known.table((axis,)), known.cell_variance((axis,))) for axis in range(columns)
        ]
        total = max(1.0, float(known.table(())))
        single = [nonnegative(table.values, total) for table in first]
        picks = strength.picks(columns, len(pairs))
        share = float(1 - strength.singles - _DISTANCE_SHARE - _CHOICE_SHARE)
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
                2.0 * 0.4 * strength.law.deviation_of(share / picks) * coarse[a] * coarse[b]
                for a, b in open_pairs
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
            worth = gain > worth_from(strength, shape, doubt, total)
        if not worth:
            # If there was no pair to look at, that share is spent on single attributes as well.
            rights = [rest] if open_pairs else [look, rest]
            more = [table for right in rights for table in plan.measure(right)]
            return self._singles(noise_after(ResidualNoise(known), TableResiduals(shape, more)))
        measured = [_merged(table, groups) for table in first]
        model, rounds = self._rounds(rest.merge(groups), open_pairs, picks, measured, start, total)
        chosen = [table for tables in rounds for table in tables]
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
        errors = ResidualNoise(known)
        for tables in rounds:
            whole = [table for table in tables if all(coarse[axis] == shape[axis] for axis in table.axes)]
            if whole:
                here = TableResiduals(shape, [_as_measured(table, strength.law) for table in whole])
                errors = noise_after(errors, here)
        note = (
            f"tables of one attribute were measured, then {len(chosen)} of {len(pairs)} pairs, chosen where a model "
            "was furthest from the records, rare values merged; a mixture of products says the rest"
        )
        return publish_near(shape, self.asked, total, near, fine, errors, note)

    def _rounds(
        self,
        data: PrivateRecords,
        pairs: Sequence[Axes],
        picks: int,
        measured: list[NoisyTable],
        model: MixtureModel,
        total: float,
    ) -> tuple[MixtureModel, list[list[NoisyTable]]]:
        """Choose pairs and measure them, twice; all at once if all are to be measured. Gives each round's."""
        left, chosen = list(pairs), list[list[NoisyTable]]()
        rounds = _ROUNDS if 1 < picks < len(left) else 1
        for number, right in enumerate(data.split(*[Fraction(1, rounds)] * rounds)):
            take = min(len(left), picks // rounds + (picks % rounds if number == 0 else 0))
            if take < len(left):
                choose, right = right.split(_CHOICE_SHARE, 1 - _CHOICE_SHARE)
                weights = _whole(pair_weights(self.kinds, left)) if self.kinds else None
                none = np.zeros(len(left), np.int64)
                score = TableErrors(tuple(left), _rounded(model, left, total), none, take, weights)
                here = [left[place] for place in chosen_tables(choose.choose(score), len(left))]
            else:
                here = left
            here = sorted(here)
            left = [pair for pair in left if pair not in here]
            cells = [math.prod(data.shape[axis] for axis in pair) for pair in here]
            right_law = right.law()
            noisy = right.measure(TableTotals(tuple(here), tuple(pair_shares(right_law, cells))))
            chosen.append(_tables(noisy, here, data.shape))
            price = _DEARER if right_law.gaussian else 1.0
            model = self._fit(
                data.shape, [*measured, *(each for tables in chosen for each in tables)], total, price
            )
            if not left:
                break
        return model, chosen

    def _singles(self, errors: ResidualNoise) -> TableEstimate:
        """Publish what single attributes say: that they go together by chance alone is the guess."""
        known, shape = errors.residuals, errors.residuals.shape
        total = max(1.0, float(known.table(())))
        near: dict[Axes, FloatArray] = {
            axes: shrink_column(known.table(axes), known.cell_variance(axes), total)
            for axis in range(len(shape))
            for axes in [(axis,)]
        }
        rows = np.concatenate([near[(axis,)] / total for axis in range(len(shape))])
        model = MixtureModel(shape, np.ones(1), rows[:, None])
        note = f"{UNPAIRED} Tables of one attribute were measured with the whole budget"
        return publish_near(shape, self.asked, total, near, model, errors, note)

    def _fit(
        self, shape: Sequence[int], noisy: Sequence[NoisyTable], total: float, dearer: float = 1.0
    ) -> MixtureModel:
        return fit_model(shape, noisy, total, self.classes, self.steps, dearer, long=self.long)


def _whole(weights: FloatArray) -> IntArray:
    """Weights as whole numbers: the least that differs from nothing is a sixteenth of the largest."""
    return np.asarray(np.maximum(1, np.rint(16.0 * weights / weights.max())), dtype=np.int64)


def _tables(noisy: Noisy, tables: Sequence[Axes], shape: Sequence[int]) -> list[NoisyTable]:
    """Take an answer apart into its tables."""
    values, variance = np.asarray(noisy.values), np.asarray(noisy.variance)
    found, begin = [], 0
    for axes in tables:
        sides = [shape[axis] for axis in axes]
        end = begin + math.prod(sides)
        each = float(variance if variance.ndim == 0 else variance[begin])
        found.append(NoisyTable(axes, values[begin:end].astype(np.float64).reshape(sides), each))
        begin = end
    return found


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


def _as_measured(table: NoisyTable, law: NoiseLaw) -> Measured:
    variance = float(np.mean(table.variance))
    return Measured(table.axes, table.values, variance, 0.0 if law.gaussian else math.sqrt(variance / 2.0))


def pair_shares(law: NoiseLaw, cells: Sequence[int]) -> list[Fraction]:
    """Shares of chosen pairs: what each adds to the total variation counts, and large tables are mostly empty."""
    cost = np.array([min(float(size), 8.0 * math.sqrt(size)) for size in cells])
    wanted = cost ** (2.0 / 3.0 if law.gaussian else 0.5)
    # Rounded down to a grid, so that what a platform rounds otherwise changes no share.
    return [Fraction(max(1, int(4096 * part)), 4096 + len(cells)) for part in wanted / wanted.sum()]


def merge_values(counts: FloatArray, least: float, *, ordered: bool) -> IntArray:
    """Merge values of one attribute until each group holds ``least`` records or more, by their noisy counts.

    Cells of pairs are the thinner, the finer the values; a value that is too rare to be seen in any pair is measured
    together with its neighbours (of ordered attributes) or with the other rare ones.
    """
    groups = np.zeros(counts.size, dtype=np.int64)
    if not ordered:
        rare = counts < least
        groups[~rare] = np.arange(int((~rare).sum()))
        groups[rare] = counts.size
    else:
        group, held = 0, 0.0
        for value, count in enumerate(counts):
            if held >= least or (count >= least and held > _NEARLY * least):
                group, held = group + 1, 0.0
            groups[value] = group
            held += float(count)
        if group and held < 0.5 * least:
            groups[groups == group] = group - 1
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    # In the order in which groups first appear.
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[inverse.reshape(-1)], dtype=np.int64)


def shares_within(counts: FloatArray, groups: IntArray) -> FloatArray:
    """Give each value's part of its group; equal parts where a group holds nothing."""
    held, sizes = np.bincount(groups, counts), np.bincount(groups)
    within = np.divide(counts, held[groups], out=1.0 / sizes[groups], where=held[groups] > 0.0)
    return np.asarray(within, dtype=np.float64)
