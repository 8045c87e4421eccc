"""Where to measure next in a tree of boxes, and for how much: worked out from what will be asked.

Nothing here asks anything. A plan is a public function of the shape, the workload and totals that are released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.kernels.trees.shares import best_shares, range_error
from dphist.mechanisms.trees.growing import Front
from dphist.mechanisms.trees.shares import halvings, level_gains, volumes
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

# Chosen on made-up planes and cubes; with 2/3 and 3/2 of one, rectangles on nine planes are off by 0 to 7 % more.
# The share of the total of everything, which decides how the rest is spent; planned for as if at least 1 deviation.
_TOTAL, _HOPE = Fraction(1, 30), 1.0
# Totals are planned together by their logarithm to the base 2, rounded to multiples of this.
_ALIKE = 2.0
# A box is not split below 4 noise scales of what it has left (the first one, which may well be, below a quarter), nor
# below 3.5 deviations of its own noise: those that are split were picked for being high, and the total of many empty
# ones would come out too high.
_NOTHING, _NOTHING_AT_ALL, _OUT_OF_NOISE = 4.0, 0.25, 3.5
SAMPLE = 1000
"""Ranges looked at to tell how large they are."""
# How much ranges of all sizes count beside those announced: coarse boxes also show where to look.
_ALL_SIZES = 0.5
DENSITIES, CHANCES = (0.2, 2.0, 20.0), (0.85, 0.12, 0.03)
"""Densities to reckon with below a box, beside its own, and how much of it has them: records never lie evenly."""
FIRST_GUESS, SMOOTHER = 0.7, 0.5
"""How uneven siblings are taken to be before any were seen, and finer levels, as a part of the level just seen."""
# The least and the most unevenness that is believed once siblings were seen.
_BELIEVED = (0.5, 3.0)
WASTE = 0.3
"""The part of the noise in contrasts that are not there which pruning and projecting leave."""
# A level is worth a question from this part of what is left on; all but the cells leave something for a next one.
_LEAST, _MOST = 0.04, Fraction(12, 16)
# Shares are rounded to this, so that the last bits of a float never decide what is asked.
_GRAIN = 32


def asked_ranges(workload: Workload | None, domain: Domain | None, shape: tuple[int, ...]) -> Workload:
    """Give a sample of the ranges that will be asked, or of all ranges if nobody said."""
    domain = domain or Domain([Ordinal(f"axis {axis}", range(n)) for axis, n in enumerate(shape)])
    some = Workload.random(domain, SAMPLE // 2)
    kind = None if workload is None else workload.kind
    if kind == "prefixes":
        return Workload(domain, np.zeros_like(some.low), some.high)
    if kind == "cells":
        return Workload(domain, some.low, some.low + 1)
    if workload is None or kind == "all_ranges":
        return some
    step = max(1, math.ceil(len(workload.low) / SAMPLE))
    low, high = workload.low[::step], workload.high[::step]
    filled = (high > low).all(axis=1)
    return Workload(domain, low[filled], high[filled]) if filled.any() else some


@dataclass(frozen=True)
class Step:
    """Measure boxes of ``level`` next, with ``share`` of what is left."""

    level: int
    share: Fraction


@dataclass(frozen=True, eq=False)
class Planner:
    """Choose levels and shares for boxes by the error they leave in the ranges that will be asked.

    A box is measured once more with all it has left if no split is expected to do better. Otherwise its budget is laid
    out over the levels below it; only the first of them is measured, and then every box is planned anew with what
    its own total says. So a crowded place is followed down to its cells, and an empty one is left alone.
    """

    sides: tuple[tuple[int, ...], ...]
    cells: FloatArray
    weight: FloatArray
    law: NoiseLaw
    """The noise of a question that would spend the whole budget."""

    @classmethod
    def for_ranges(
        cls, shape: tuple[int, ...], workload: Workload | None, domain: Domain | None, law: NoiseLaw
    ) -> Planner:
        """Look at the ranges that will be asked; ranges of all sizes count a little, as they show where to look."""
        sides = halvings(shape)
        weight = np.zeros(len(sides))
        for goal, part in ((workload, 1.0), (None, _ALL_SIZES)):
            asked = asked_ranges(goal, domain, shape)
            # Errors are parts of what plain noise on every cell makes: none counts more because its sums are longer.
            gains = level_gains(shape, sides, asked.low, asked.high)
            weight += part * gains / gains.sum()
        return cls(sides, volumes(shape, sides), weight, law)

    def step(
        self, level: int, left: Fraction, known: FloatArray, total: float, roughness: float
    ) -> Step | None:
        """Say what to measure below boxes with about this total, or None to measure them again and be done."""
        last = len(self.sides) - 1
        if level == last or total <= 0.0:
            return None
        densities = roughness * total / self.cells[level] * np.array(DENSITIES)
        law = (
            *(float(self.law.scale), densities, np.array(CHANCES)),
            *(WASTE, self.law.exponent),
        )
        budget = float(left)
        stay = np.zeros(last + 1)
        stay[level] = budget
        whole = range_error(self.weight, self.cells, known, stay, *law)
        error, shares = best_shares(self.weight, self.cells, known, budget, level + 1, *law)
        if error >= whole:
            return None
        worth = np.flatnonzero(shares > _LEAST * budget)
        target = int(worth[0])
        share = Fraction(round(float(shares[target] / shares[worth].sum()) * _GRAIN), _GRAIN)
        if target < last:
            share = min(share, _MOST)
        return Step(target, max(share, Fraction(1, _GRAIN)))


def roughness_of(
    totals: FloatArray,
    sizes: FloatArray,
    family: IntArray,
    families: int,
    variance: float,
    kurtosis: float = 3.0,
) -> float:
    """How uneven siblings are, as a part of their mean: learned from their noisy totals, with a prior.

    The excess of their squared departures over the noise, over the squared means. The prior weighs as much as the
    departures are uncertain: noise Z of unit variance has Var Z² = 2 + its excess kurtosis, 5 for Laplace noise.
    """
    members = np.bincount(family, minlength=families)
    density = np.bincount(family, totals, minlength=families) / np.bincount(family, sizes, minlength=families)
    even = sizes * density[family]
    free = float((members - 1).sum())
    departures = max(float(((totals - even) ** 2).sum()) - free * variance, 0.0)
    means = max(float((even**2).sum()) - families * variance, 0.0)
    doubt = math.sqrt((2.0 + kurtosis) * max(free, 1.0)) * variance
    square = (departures + FIRST_GUESS**2 * doubt) / (means + doubt)
    return SMOOTHER * float(np.clip(math.sqrt(square), *_BELIEVED))


@dataclass(frozen=True, eq=False)
class PlannedBoxes:
    """The rule of a tree of boxes that is planned while it is measured (see `dphist.mechanisms.trees.growing`).

    A noisy total of everything comes first. Then boxes with similar totals are planned together: they are either
    measured again with all they have left, or boxes of some finer level inside them are measured with a share of it,
    and each of those is planned anew, with its own total, what it has left, and how uneven siblings turned out to be.
    """

    planner: Planner

    def __call__(self, front: Front) -> list[Front]:
        """Do what was decided for some boxes, and decide for the boxes that come of it."""
        sides = self.planner.sides
        if front.level < 0:
            front = replace(front, level=0).measure(_TOTAL, gradual=True)
            known = np.zeros(len(sides))
            known[0] = 1.0 / front.variance
            # A total lost in its noise may be as large as the noise.
            hoped = np.maximum(front.records, _HOPE * math.sqrt(front.variance))
            return self._plan(front, known, hoped, FIRST_GUESS)
        step, known = front.plan
        if step is None:
            return [front.finish(np.ones(len(front), dtype=bool))]
        after = front.grid(sides[front.level], sides[step.level], step.level)
        after = after.measure(front.left * step.share, gradual=True)
        if step.share == 1:
            return []
        known = known.copy()
        known[step.level] += 1.0 / after.variance
        roughness = roughness_of(
            *(after.records, after.sizes, after.family, len(front), after.variance),
            self.planner.law.kurtosis,
        )
        return self._plan(after, known, after.records, roughness)

    def _plan(self, front: Front, known: FloatArray, totals: FloatArray, roughness: float) -> list[Front]:
        """Part boxes by what is best done with them next; each part keeps the whole of what is left."""
        scale = float(self.planner.law.of_share(front.left).scale)
        least = _NOTHING_AT_ALL
        if front.level:
            least = max(_NOTHING, _OUT_OF_NOISE / math.sqrt(known[front.level]) / scale)
        bits = np.log2(np.maximum(totals / scale, least))
        kind = np.where(totals / scale <= least, -100, np.round(bits / _ALIKE)).astype(np.int64)
        plans: list[Step | None] = []
        choice = np.zeros(totals.size, dtype=np.int64)
        # As np.unique gives them, which would load masked arrays.
        for some in sorted(set(kind.tolist())):
            mine = kind == some
            typical = 0.0 if some == -100 else scale * 2.0 ** float(bits[mine].mean())
            step = self.planner.step(front.level, front.left, known, typical, roughness)
            if step not in plans:
                plans.append(step)
            choice[mine] = plans.index(step)
        return [
            replace(each, plan=(step, known)) for each, step in zip(front.part(choice), plans, strict=True)
        ]
