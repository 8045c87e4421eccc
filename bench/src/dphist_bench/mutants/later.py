"""Bugs planted where tables are added to a release, where a currency is settled, and in intervals of shown keys."""

from __future__ import annotations

from typing import Any

_ADDING = "src/dphist/publishing/adding.py"
_CURRENCY = "src/dphist/mechanisms/choosing/currency.py"
_SELECTED = "src/dphist/inference/selected.py"
_REPLAYED = "src/dphist/release/replayed.py"


def _bug(file: str, old: str, new: str, tests: str, why: str) -> dict[str, Any]:
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


def _adding(old: str, new: str, why: str) -> dict[str, Any]:
    return _bug(_ADDING, old, new, "tests/door/test_adding.py", why)


def _selected(old: str, new: str, why: str) -> dict[str, Any]:
    return _bug(_SELECTED, old, new, "tests/inference/test_selected.py", why)


MUTANTS = [
    _adding("pay=payer.pay, noise=noise)", "noise=noise)", "further tables are not charged"),
    _adding(
        "    if budget.currency != release.budget.currency:",
        "    if budget is None:",
        "an ε is added to a ρ",
    ),
    _adding(
        "release.receipt is not None and dataset != release.receipt[0]",
        "release.receipt is not None and dataset is None",
        "another budget pays for what is added",
    ),
    _adding(
        "Budget(release.budget.amount + budget.amount, budget.currency)",
        "Budget(max(release.budget.amount, budget.amount) * 2, budget.currency)",
        "the guarantee is not the sum of both",
    ),
    _adding(
        "            payer.before = partial(refuse_dropped, source.tally, share)\n",
        "",
        "rows are dropped without a word",
    ),
    _adding(
        "test=release.test or (noise is not None and noise.keystream.test)",
        "test=release.test",
        "what was added with a test seed can be saved",
    ),
    _bug(
        _CURRENCY,
        "        return replace(mechanism, inner=chosen), spent",
        "        return replace(mechanism, inner=chosen), budget",
        "tests/mechanisms/test_currency.py",
        "parts draw other noise than is paid for",
    ),
    _bug(
        _CURRENCY,
        "return offers[errors.index(min(errors))]",
        "return offers[errors.index(max(errors))]",
        "tests/mechanisms/test_currency.py",
        "the worse promise is kept",
    ),
    _selected(
        "        shown = unique >= self.threshold",
        "        shown = unique > self.threshold + 1",
        "keys at the threshold are taken for declared ones",
    ),
    _selected(
        "log_tail(values - c) - log_tail(threshold - c) - math.log(beta / 2.0)",
        "log_tail(values - c) - log_tail(threshold - c) - math.log(beta)",
        "one side of the interval may miss twice as often",
    ),
    _selected(
        "        kept = -np.expm1(np.minimum(log_tail(values + 1.0 - c) - log_tail(threshold - c), 0.0))",
        "        kept = -np.expm1(np.minimum(log_tail(values + 1.0 - c), 0.0))",
        "the upper end forgets the threshold",
    ),
    _selected(
        "each = 1.0 - (1.0 - share) / int(terms_of)",
        "each = share",
        "a guaranteed sum of keys holds less often than each",
    ),
    _selected(
        "            if values.ndim > 1:\n",
        "            if values.ndim > 9:\n",
        "a cell shown because of its neighbour is taken to be cut",
    ),
    _bug(
        _REPLAYED,
        "if self.guarantee.threshold and isinstance(shaped.errors, IndependentNoise)",
        "if self.guarantee.threshold < 0 and isinstance(shaped.errors, IndependentNoise)",
        "tests/inference/test_selected.py",
        "discovered keys have the intervals of declared ones",
    ),
]
