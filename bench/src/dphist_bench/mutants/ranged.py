"""Bugs planted where tables are asked by contrasts of a tree along an axis."""

from __future__ import annotations

from typing import Any

_QUERY = "src/dphist/private/queries/ranged.py"


def _bug(old: str, new: str, why: str) -> dict[str, Any]:
    return {"file": _QUERY, "old": old, "new": new, "tests": "tests/private/test_ranged.py", "why": why}


MUTANTS = [
    _bug("values, place = [1 / share],", "values, place = [Fraction(1)],", "every table spends the whole"),
    _bug("Fraction(reach) ** power / weight", "Fraction(reach) ** power", "every depth spends the whole"),
    _bug("Fraction(reach) ** power / weight", "power / weight", "a contrast moves by more than one"),
    _bug(
        "(size * (size - 1) if power == 2 else 2 * (size - 1))",
        "(size * (size - 1) if power == 2 else (size - 1))",
        "half of what a residual moves is forgotten",
    ),
    _bug(
        "        return self._sizes(layout, 2)",
        "        return self._sizes(layout, 1)",
        "a scale is taken for a variance",
    ),
    _bug(
        "            check_shares(weights, len(weights))",
        "            len(weights)",
        "depths may spend more than the whole",
    ),
    _bug(
        "found = np.minimum(table, _LARGEST_SUM // max(grows, 1))",
        "found = np.asarray(table)",
        "large counts overflow",
    ),
]
