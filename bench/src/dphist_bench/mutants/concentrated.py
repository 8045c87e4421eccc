"""Bugs planted where ρ is counted: prices, Gaussian noise, conversions, and ledgers that hold either currency."""

from __future__ import annotations

from typing import Any

_PRICING = "src/dphist/private/pricing.py"
_GAUSSIAN = "src/dphist/private/noise/gaussian.py"
_CONVERSION = "src/dphist/model/conversion.py"
_BUDGET = "src/dphist/model/budget.py"
_UNIT = "src/dphist/model/unit.py"
_LAW = "src/dphist/model/law.py"
_PREFIXES = "src/dphist/private/queries/prefixes.py"
_TOTALS = "src/dphist/private/ledger/totals.py"
_READING = "src/dphist/private/ledger/reading.py"
_JOURNAL = "src/dphist/private/ledger/journal.py"
_RHO = "tests/private/test_rho.py"
_SAMPLER = "tests/private/test_noise_gaussian.py"
_RATES = "tests/values/test_conversion.py"
_BUDGETS = "tests/values/test_budget.py"
_SUMS = "tests/private/test_ledger_totals.py"


def _bug(file: str, old: str, new: str, tests: str, why: str) -> dict[str, Any]:
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


MUTANTS = [
    # ---- prices ---------------------------------------------------------------------------------------
    _bug(
        _PRICING,
        "return self.source.add_gaussian(values, variance * self.factor, out)",
        "return self.source.add_gaussian(values, variance * self.factor * Fraction(16, 25), out)",
        _RHO,
        "0.8 of the Gaussian noise of every measurement",
    ),
    _bug(
        _PRICING,
        "return self.source.add_gaussian(values, variance * self.factor, out)",
        "return self.source.add_gaussian(values, variance * self.factor * Fraction(9409, 10000), out)",
        _RHO,
        "0.97 of the Gaussian noise of every measurement",
    ),
    _bug(
        _PRICING,
        'return Price("gaussian", promise(layout), self._variance(getattr(query, "moves", "any")))',
        'return Price("gaussian", query.scales(layout), self._variance(getattr(query, "moves", "any")))',
        f"{_RHO} tests/private/test_records.py",
        "the L1 scale is taken for a variance",
    ),
    _bug(
        _PRICING,
        "return Fraction(self.change.squared(moves)) / (2 * self.amount)",
        "return Fraction(self.change.squared(moves)) / (4 * self.amount)",
        _RHO,
        "twice the rho is spent",
    ),
    _bug(
        _PRICING,
        "return replace(self, amount=self.amount * part)",
        'return replace(self, amount=self.amount * (part if self.currency == "epsilon" else 1))',
        _RHO,
        "shares of a split each get all of the rho",
    ),
    _bug(
        _PRICING,
        "return Change(unit.steps, unit.squared, unit.rows**2 * (2 if unit.replace else 1))",
        "return Change(unit.steps, unit.squared, unit.rows * (2 if unit.replace else 1))",
        _RHO,
        "a group of L pays L and not L²: questions that meet alike",
    ),
    _bug(
        _PRICING,
        "return Change(unit.steps, unit.squared, unit.rows**2 * (2 if unit.replace else 1))",
        "return Change(unit.steps, unit.squared, unit.rows**2)",
        _RHO,
        "who is replaced moves questions that meet alike once",
    ),
    _bug(
        _PRICING,
        '"any": self.steps**2}[moves]',
        '"any": self.steps}[moves]',
        _RHO,
        "a group of L pays L and not L²: any question",
    ),
    _bug(
        _PRICING,
        'getattr(query, "moves", "any")',
        'getattr(query, "moves", "apart")',
        f"{_RHO} tests/private/test_records.py",
        "a question that promises nothing finer gets the finest factor",
    ),
    _bug(
        _PRICING,
        "return replace(self, apart=self.alike)",
        "return self",
        _RHO,
        "cells that were added up still count as apart",
    ),
    _bug(
        _PRICING,
        "return Change(self.steps, self.steps**2, self.steps**2)",
        "return Change(self.steps, self.apart, self.alike)",
        _RHO,
        "sorted cells still count as apart",
    ),
    _bug(
        _PRICING,
        "else epsilon_for_rho(self.amount)\n        return whole",
        "else choice_epsilon(self.amount)\n        return whole",
        _RHO,
        "Laplace noise under rho at the rate of choices",
    ),
    _bug(
        _PRICING,
        "else choice_epsilon(each)) / self.change.steps",
        "else choice_epsilon(each))",
        _RHO,
        "choices under rho forget the unit",
    ),
    _bug(
        _PRICING,
        'if self.kind != "laplace":',
        "if False:",
        _RHO,
        "a factor for variances is used for a scale",
    ),
    _bug(
        _PRICING,
        'if self.currency == "epsilon":\n            raise NotPrivate(',
        "if False:\n            raise NotPrivate(",
        _RHO,
        "Gaussian noise is sold for pure epsilon",
    ),
    _bug(
        _UNIT,
        "apart = self.rows**2 if self.cells is None else self.rows * (self.per_cell or 1)",
        "apart = self.rows if self.cells is None else self.rows * (self.per_cell or 1)",
        _RHO,
        "all rows of a person may lie in one cell, and are squared there",
    ),
    _bug(
        _UNIT,
        "else self.rows * (self.per_cell or 1)\n",
        "else self.rows\n",
        _RHO,
        "several rows in a cell of a person's are one",
    ),
    _bug(
        _LAW,
        "return size if self.gaussian else 2.0 * size * size",
        "return size * size if self.gaussian else 2.0 * size * size",
        f"{_RHO} tests/inference/test_gaussian_laws.py",
        "a variance is told as a deviation",
    ),
    # ---- the sampler ----------------------------------------------------------------------------------
    _bug(
        _GAUSSIAN,
        "self.rate = float(1 / (2 * variance))",
        "self.rate = float(1 / variance)",
        _SAMPLER,
        "coins in floating point fall at another rate",
    ),
    _bug(
        _GAUSSIAN,
        "power = Fraction(r * (2 * base + r)) / (2 * self.variance)",
        "power = Fraction(r * (2 * base + r)) / self.variance",
        _SAMPLER,
        "coins settled late fall at another rate",
    ),
    _bug(
        _GAUSSIAN,
        "base = magnitude - r + (1 if x < 0 else 0)",
        "base = magnitude - r",
        _SAMPLER,
        "the coins of negative draws are those of their neighbours",
    ),
    _bug(
        _GAUSSIAN,
        "chance = np.exp(-last * (2.0 * base + last) / (2.0 * float(self.variance)))",
        "chance = np.exp(-last * last / (2.0 * float(self.variance)))",
        _SAMPLER,
        "draws far out in their blocks stay too often",
    ),
    _bug(
        _GAUSSIAN,
        "rejected = open_draws[verdicts == 0]",
        "rejected = open_draws[:0]",
        _SAMPLER,
        "rejected draws stay",
    ),
    _bug(
        _GAUSSIAN,
        "            drawn[i] = self._placed(y, keystream)\n",
        "            drawn[i] = 0\n",
        _SAMPLER,
        "tails of Gaussian noise are cut off",
    ),
    _bug(
        _GAUSSIAN,
        "            while uniform.below(self._bounds(y - 1)):\n                y -= 1\n",
        "",
        _SAMPLER,
        "the lower tail ends with the table",
    ),
    _bug(
        _GAUSSIAN,
        "if not self.shift or self._stays(x, certified.Uniform(keystream)):",
        "if True:",
        _SAMPLER,
        "draws in the tails are never rejected",
    ),
    # ---- exchange rates -------------------------------------------------------------------------------
    _bug(
        _CONVERSION,
        "return min(Fraction(_UP.multiply(largest, tanh)), epsilon**2 / 2)",
        "return min(Fraction(_UP.multiply(largest, tanh)), epsilon**2 / 4)",
        _RATES,
        "pure epsilon costs half of its rho",
    ),
    _bug(
        _CONVERSION,
        'squared = 8 * _amount(rho, "rho")',
        'squared = 16 * _amount(rho, "rho")',
        f"{_RATES} {_RHO}",
        "choices cost half of their rho",
    ),
    _bug(
        _CONVERSION,
        "return _rounded(_pure(epsilon), up=True)",
        "return _rounded(_pure(epsilon), up=False)",
        _RATES,
        "the price of a pure epsilon is rounded down",
    ),
    _bug(
        _CONVERSION,
        "return _rounded(Fraction(_UP.divide(_UP.add(largest, _UP.divide(log, t)), _alpha(t))), up=True)",
        "return _rounded(Fraction(_UP.divide(_UP.add(largest, _UP.divide(log, t)), _alpha(_alpha(t)))), up=True)",
        f"{_RATES} {_SUMS}",
        "pure spends are priced at another order",
    ),
    _bug(
        _CONVERSION,
        "        other.multiply(t, _outward(other.ln(t), other)),\n",
        "        Decimal(0),\n",
        _RATES,
        "half of the entropy is forgotten in delta",
    ),
    _bug(
        _BUDGET,
        "if delta_of_rho(self.amount, self.epsilon) > self.delta:",
        "if False:",
        _BUDGETS,
        "a file may say that any rho implies its epsilon and delta",
    ),
    _bug(
        _BUDGET,
        "return Fraction(0 if self.amount <= asked else 1)",
        "return Fraction(0)",
        _BUDGETS,
        "pure epsilon is quoted for a smaller one",
    ),
    # ---- questions ------------------------------------------------------------------------------------
    _bug(
        _PREFIXES,
        "return Fraction(int(self._weights(layout).sum()))",
        "return Fraction(int(self._weights(layout).max()))",
        f"{_RHO} tests/private/test_laws.py",
        "prefix roots are noised as if one answer moved",
    ),
    _bug(
        _PREFIXES,
        "return Fraction(int((weights * weights).sum()))",
        "return Fraction(int((weights * weights).max()))",
        f"{_RHO} tests/private/test_laws.py",
        "prefix roots have the variance of one answer",
    ),
    _bug(
        _PREFIXES,
        "np.clip(counts, -ceiling, ceiling)",
        "counts",
        "tests/private/test_promises.py tests/private/test_laws.py tests/private/test_rho.py",
        "prefix roots overflow by the data",
    ),
    _bug(
        "src/dphist/kernels/toeplitz.py",
        "_FORGIVEN = 0.25",
        "_FORGIVEN = 1e6",
        "tests/kernels/test_toeplitz.py",
        "sums of counts are rounded from transforms that are too inexact for it",
    ),
    # ---- the ledger -----------------------------------------------------------------------------------
    _bug(
        _TOTALS,
        "if spend.epsilon is None:\n            return spend.amount\n",
        "if spend.epsilon is None:\n            return spend.amount / 2\n",
        _SUMS,
        "rho is charged at half of what it is",
    ),
    _bug(
        _TOTALS,
        "delta=added(self.delta, spend.delta),",
        "delta=max(self.delta, spend.delta),",
        _SUMS,
        "deltas of discovered keys do not add up",
    ),
    _bug(
        _TOTALS,
        "and all(a >= b for a, b in zip(mine, theirs, strict=True))",
        "and any(a >= b for a, b in zip(mine, theirs, strict=True))",
        f"{_SUMS} tests/private/test_ledger.py",
        "a total is raised in one part and lowered in another",
    ),
    _bug(
        _TOTALS,
        "if total.order is not None and sums.pure and total.epsilon is not None:",
        "if total.order is not None and total.epsilon is not None:",
        _SUMS,
        "what is left is told as if all spends were pure",
    ),
    _bug(
        _READING,
        "epsilon_at_delta=min(composed, sums.epsilon) if sums.pure else composed,",
        "epsilon_at_delta=min(composed, sums.epsilon),",
        _SUMS,
        "rho is left out of the epsilon that is quoted",
    ),
    _bug(
        _READING,
        "delta=delta + sums.delta,",
        "delta=delta,",
        _SUMS,
        "the delta of discovered keys is left out of the reading",
    ),
    _bug(
        _READING,
        "rho = sum((spend.rho_cost() for spend in spends), ZERO)",
        "rho = sum((spend.rho or ZERO for spend in spends), ZERO)",
        _SUMS,
        "pure spends are left out of the rho that is quoted",
    ),
    _bug(
        _JOURNAL,
        "            for head in heads:\n                self.require(run, head, lambda: older(self.store.place, None))\n",
        "",
        "tests/private/test_ledger_trust.py tests/private/test_ledger.py",
        "a ledger is verified against heads that it does not hold",
    ),
]
