"""From a promise and the budget that is charged to the noise that is drawn: the only place where they meet.

A `UnitBudget` is what a right may still spend: an exact amount of ε or of ρ *for one protected unit*, and how far that
unit moves the cells. Both gates, over cells and over records, calibrate here and nowhere else.

**What a right with budget B costs a person.** Write the person's change of the cells as v = a − b: rows that come and
rows that go, each of them one step (for a person who is added or removed b is zero; among sums, whose values have
either sign, every step counts in L, without replacement, and ‖a‖₁² + ‖b‖₁² ≤ L(‖a‖₁ + ‖b‖₁) all the same). Of a right
over some of the cells the person meets the part v_p; let s_p = (‖a_p‖₁ + ‖b_p‖₁) ÷ steps be the share of their steps
that lies there. The invariant is: *whatever is asked of a right costs the person at most B · s_p*. Over disjoint parts
the s_p add up to at most one, so every part may hold the whole budget, also where one person has rows in many parts;
along `split` budgets add up to B. It holds for every question:

* pure ε: a question of budget ε ÷ steps a step loses at most that for each of the s_p · steps steps;
* Gaussian noise under ρ. With noise of variance σᵢ² F ÷ 2ρ the cost is ρ · ‖Av‖² ÷ F, where A has rows divided by σᵢ
  and columns of norm at most 1 (the promise of `Query.variances`). ``moves`` says which bound of ‖Av_p‖² holds, and F
  is the largest that it can be for a whole person with at most c rows in each of k cells, L = kc rows in all (m is 2
  where people are replaced, else 1):
  - ``any``: ‖Av_p‖ ≤ ‖v_p‖₁, F = steps², and s_p² ≤ s_p;
  - ``nonnegative`` (no negative weights, so Aa·Ab ≥ 0): ‖Av_p‖² ≤ ‖a_p‖₁² + ‖b_p‖₁² ≤ L(‖a_p‖₁ + ‖b_p‖₁), F = mL²;
  - ``disjoint`` (columns that share no answer): ‖Av_p‖² ≤ ‖v_p‖² ≤ ‖a_p‖² + ‖b_p‖² ≤ c(‖a_p‖₁ + ‖b_p‖₁), F = mkc²;
  each time the bound over F is at most s_p. `coarsen` may bring all rows of a person together in one cell, which leaves
  ``disjoint`` no better than ``nonnegative``. Cutting counts at a public
  ceiling only shortens a and b, cell by cell;
* Laplace noise under ρ: with ε·tanh(ε/2) ≤ ρ and ε ÷ steps for each step, s_p · steps of them are s_pε-private and cost
  s_pε·tanh(s_pε/2) ≤ s_p · ρ, since tanh grows;
* a choice under ρ: with ε ÷ steps a step, the log-ratio has a range of at most s_pε, which costs (s_pε)²/8 ≤ s_p · ρ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError, NotPrivate
from dphist.kernels.compile import together
from dphist.model.budget import Budget, Currency
from dphist.model.conversion import choice_epsilon, epsilon_for_rho
from dphist.model.exact import Number
from dphist.model.law import Kind, NoiseLaw
from dphist.model.unit import Unit
from dphist.private.noise import Noise, check_scale, check_variance
from dphist.private.questions import Candidates, IntArray, Layout, Moves, Query, Scales

# Answers that are rounded at a time.
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Change:
    """How far one protected unit moves the cells of a right: in all, and squared for questions that move them so."""

    steps: int
    disjoint: int
    nonnegative: int

    @staticmethod
    def of(unit: Unit) -> Change:
        """The change of a unit whose rows are counted; sums bring a unit of steps (`Quantity.in_steps`)."""
        return Change(unit.steps, unit.squared, unit.rows**2 * (2 if unit.replace else 1))

    def squared(self, moves: Moves) -> int:
        """The largest squared L2 norm by which answers of this kind move, if one step moves them by one."""
        return {"disjoint": self.disjoint, "nonnegative": self.nonnegative, "any": self.steps**2}[moves]

    def merged(self) -> Change:
        """After cells were added up: all rows may now lie in one cell."""
        return replace(self, disjoint=self.nonnegative)


@dataclass(frozen=True)
class UnitBudget:
    """What a right may spend on one protected unit, and how far that unit moves its cells."""

    amount: Fraction
    currency: Currency
    change: Change

    @staticmethod
    def of(budget: Budget | Number, unit: Unit) -> UnitBudget:
        """The budget of a gate that is opened with a budget for a unit; a bare number is pure ε."""
        money = Budget.of(budget)
        return UnitBudget(money.amount, money.currency, Change.of(unit))

    def share(self, part: Fraction) -> UnitBudget:
        """Hold a share of it."""
        return replace(self, amount=self.amount * part)

    @property
    def pure(self) -> Fraction:
        """The ε a step of a question whose proof is tied to Laplace noise."""
        whole = self.amount if self.currency == "epsilon" else epsilon_for_rho(self.amount)
        return whole / self.change.steps

    def choice(self, draws: int) -> Fraction:
        """The ε that one of ``draws`` choices pays a step."""
        each = self.amount / draws
        return (each if self.currency == "epsilon" else choice_epsilon(each)) / self.change.steps

    def law(self, moves: Moves = "nonnegative") -> NoiseLaw:
        """The noise of a question of sensitivity one, in either norm."""
        if self.currency == "epsilon":
            return NoiseLaw("laplace", 1 / self.pure)
        return NoiseLaw("gaussian", self._variance(moves))

    def _variance(self, moves: Moves) -> Fraction:
        return Fraction(self.change.squared(moves)) / (2 * self.amount)

    def price(self, query: Query, layout: Layout, kind: Kind | None = None) -> Price:
        """Calibrate a query: its own promise of the wanted kind of noise, times what the budget makes of it."""
        promise: Any = getattr(query, "variances", None)
        if kind is None:
            kind = "laplace" if self.currency == "epsilon" or promise is None else "gaussian"
        if kind == "laplace":
            return Price("laplace", query.scales(layout), 1 / self.pure)
        if self.currency == "epsilon":
            raise NotPrivate(
                "Gaussian noise is not purely ε-private: publish with rho=, or with epsilon= and delta="
            )
        if promise is None:
            raise MechanismError(f"{type(query).__name__} has no promise for Gaussian noise")
        return Price("gaussian", promise(layout), self._variance(getattr(query, "moves", "any")))

    def laplace(self) -> Price:
        """Calibrate a question that draws Laplace noise of scales of its own."""
        return Price("laplace", Fraction(1), 1 / self.pure)


@dataclass(frozen=True, eq=False)
class Price:
    """The noise of one question: sizes as promised (scales, or variances) times one factor from the budget."""

    kind: Kind
    sizes: Fraction | Scales
    factor: Fraction

    def check(self, largest: Fraction | None = None) -> None:
        """Refuse, before anything is paid, noise that cannot be drawn: a public fact."""
        if largest is None:
            largest = self.sizes if isinstance(self.sizes, Fraction) else max(self.sizes.values)
        (check_variance if self.kind == "gaussian" else check_scale)(largest * self.factor)

    @property
    def law(self) -> NoiseLaw:
        """The law of every answer's noise."""
        if isinstance(self.sizes, Scales):
            each = np.array([float(size * self.factor) for size in self.sizes.values])[self.sizes.index]
            return NoiseLaw(self.kind, each)
        return NoiseLaw(self.kind, self.sizes * self.factor)

    def noise(self, source: Noise) -> Priced:
        """Noise that knows its price."""
        return Priced(source, self.kind, self.factor)


@dataclass(frozen=True, eq=False)
class Priced:
    """Noise for one right: questions state sizes for ε = 1 or ρ = 1/2, and the budget that is charged does the rest."""

    source: Noise
    kind: Literal["laplace", "gaussian"]
    factor: Fraction

    def add(
        self, values: IntArray, scale: Fraction, variance: Fraction, out: IntArray | None = None
    ) -> IntArray:
        """Add noise to every value: Laplace of that scale or Gaussian of that variance, times what the budget says."""
        if self.kind == "gaussian":
            return self.source.add_gaussian(values, variance * self.factor, out)
        return self.source.add_laplace(values, scale * self.factor, out)

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> IntArray:
        """Draw discrete Laplace noise of ``scale`` ÷ budget."""
        return self.source.laplace(self._tied(scale), shape)

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        """Add such noise to every value."""
        return self.source.add_laplace(values, self._tied(scale), out)

    def hits(self, cells: int, scale: Fraction, threshold: int) -> IntArray:
        """Say in which of ``cells`` cells such noise reaches a threshold."""
        return self.source.hits(cells, self._tied(scale), threshold)

    def _tied(self, scale: Fraction) -> Fraction:
        if self.kind != "laplace":
            # Its factor belongs to variances.
            raise MechanismError("a question that draws Laplace noise itself must be priced as one")
        return scale * self.factor


def add_noise(exact: IntArray, sizes: Fraction | Scales, noise: Priced) -> IntArray:
    """Add to every answer noise of its own size."""
    if isinstance(sizes, Fraction):
        return noise.add(exact, sizes, sizes)
    noisy = np.empty_like(exact)
    # Raises if there is not one index for each answer.
    index = sizes.index.reshape(exact.shape)
    for i, size in enumerate(sizes.values):
        here = index == i
        noisy[here] = noise.add(exact[here], size, size)
    return noisy


def floats_in_place(noisy: IntArray) -> NDArray[np.float64]:
    """Round noisy integers to floats in their own memory, a block at a time: no second array of their size."""
    flat = noisy.reshape(-1)
    rounded = flat.view(np.float64)

    def work(begin: int, end: int) -> None:
        for start in range(begin, end, _BLOCK):
            stop = min(start + _BLOCK, end)
            rounded[start:stop] = flat[start:stop].astype(np.float64)

    together(work, flat.size)
    return rounded.reshape(noisy.shape)


def select(candidates: Candidates, rate: Fraction, noise: Noise) -> IntArray:
    """Choose in every part by the exponential mechanism: at rate ÷ range."""
    ranges = candidates.ranges
    if isinstance(ranges, int):
        return noise.select(candidates.scores, candidates.starts, rate / ranges)
    return noise.select(candidates.scores, candidates.starts, rate, ranges)
