"""Bugs planted where wide tables are planned: contrasts of a tree, forecasts of both ways, single columns and blocks.

Of these a contrast's reach and the range of weighted choices carry a promise of privacy; the others would make releases
worse in silence.
"""

from __future__ import annotations

from typing import Any

_CONTRASTS = "src/dphist/model/contrasts.py"
_OUTLOOK = "src/dphist/mechanisms/wide/outlook.py"
_SINGLES = "src/dphist/mechanisms/wide/singles.py"
_PLAN = "src/dphist/mechanisms/wide/plan.py"
_COVERING = "tests/mechanisms/test_covering_blocks.py"
_RANGED = "tests/private/test_ranged.py"
_TESTS = "tests/mechanisms/test_outlook.py"
_LOOKS, _LOOKED = "src/dphist/mechanisms/wide/looks.py", "tests/mechanisms/test_looks.py"
_DEPENDENCE, _LAWS = "src/dphist/private/queries/dependence.py", "tests/private/test_merging.py"


def _bug(file: str, tests: str, old: str, new: str, why: str) -> dict[str, Any]:
    return {"file": file, "old": old, "new": new, "tests": tests, "why": why}


MUTANTS = [
    _bug(
        _DEPENDENCE,
        _LAWS,
        "return Fraction(4 * pairs)\n",
        "return Fraction(4)\n",
        "many strong pairs are asked at the price of one",
    ),
    _bug(
        _DEPENDENCE,
        _LAWS,
        "sorted((one - less for one, less",
        "sorted((one for one, less",
        "what sampling makes of pairs counts as dependence",
    ),
    _bug(
        _LOOKS,
        _LOOKED,
        "return bool((likely * np.sqrt(every)).sum() <= (likely * np.sqrt(rest)).sum())",
        "return bool((likely * np.sqrt(every)).sum() >= (likely * np.sqrt(rest)).sum())",
        "the rest is spent the way that is expected to be worse",
    ),
    _bug(
        _CONTRASTS,
        _RANGED,
        "each = np.maximum(self.left, self.right)",
        "each = np.minimum(self.left, self.right)",
        "the smaller part of a node is taken for its reach",
    ),
    _bug(
        _CONTRASTS,
        _RANGED,
        "each[self.depth == depth].max()",
        "each[self.depth == depth].min()",
        "the narrowest node of a depth is taken for its widest",
    ),
    _bug(
        _CONTRASTS,
        _RANGED,
        "return self.left * self.right * (self.left + self.right)",
        "return self.left * self.right * (self.left - self.right + 1)",
        "contrasts are brought back at another size",
    ),
    _bug(
        _CONTRASTS,
        _RANGED,
        "self.right[wide] * left - self.left[wide] * right",
        "self.left[wide] * left - self.right[wide] * right",
        "contrasts are not orthogonal to the sum",
    ),
    _bug(
        _CONTRASTS,
        _RANGED,
        "return np.asarray(self.right * left - self.left * right, dtype=np.float64)",
        "return np.asarray(self.right * left + self.left * right, dtype=np.float64)",
        "intervals meet contrasts with the wrong sign",
    ),
    _bug(
        _OUTLOOK,
        _TESTS,
        "return self.given(self.like((dependence - self.sizes) / doubt))",
        "return self.given(-self.like((dependence - self.sizes) / doubt))",
        "a look makes what was seen less likely",
    ),
    _bug(
        _OUTLOOK,
        _TESTS,
        "log = -0.5 * (shown - mean) ** 2 / spread - 0.5 * np.log(spread)",
        "log = -0.5 * np.log(spread)",
        "what a trial shows is forgotten",
    ),
    _bug(
        _OUTLOOK,
        _TESTS,
        "if lost < least:\n                found, least = share, lost\n        return found, least\n\n    def deviation",
        "found, least = share, lost\n        return found, least\n\n    def deviation",
        "a look is paid for that changes nothing",
    ),
    _bug(
        _OUTLOOK,
        _TESTS,
        "everybody = whole[-1] / self.cells**2",
        "everybody = 0.0 * self.cells",
        "noise of the total counts as an error of shares",
    ),
    _bug(
        _SINGLES,
        _TESTS,
        "axes if axes and shape[axes[0]] == 2 else () for axes in errors",
        "() for axes in errors",
        "columns of two values are asked cell by cell",
    ),
    _bug(
        _SINGLES,
        _TESTS,
        "{(): _TOTAL * twos} if twos else {}",
        "{}",
        "differences are asked and nobody counts the records",
    ),
    _bug(
        _PLAN,
        _COVERING,
        "chosen, share = min(found, key=",
        "chosen, share = max(found, key=",
        "of all blocks the worst are measured",
    ),
    _bug(
        "src/dphist/inference/residuals.py",
        _COVERING,
        "if each.about is not None and subset not in each.about:",
        "if each.about is not None and subset not in (*each.about, subset):",
        "what nobody asked for is known from blocks",
    ),
    _bug(
        "src/dphist/private/scores/tables.py",
        "tests/private/test_laws.py",
        "int(np.sort(self.weights)[-2:].sum())",
        "int(self.weights.max())",
        "two candidates of different weights are said to differ by the larger alone",
    ),
    _bug(
        "src/dphist/inference/intervals.py",
        "tests/inference/test_residuals.py",
        "np.maximum(matched, normal_quantile(1.0 - beta))",
        "matched",
        "a bound on the heaviest draw is taken for the draw",
    ),
]
