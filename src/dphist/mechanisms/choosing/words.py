"""A choice in words for somebody who has never read a paper: what is measured, why, and by how much that is better.

Two forecasts that are nearly the same are said to be about as good: what they differ by is less than what they leave
out. Names of mechanisms stand in parentheses, for those who look them up.
"""

from __future__ import annotations

import math
import re

# What a tree measures, and one whose blocks do not depend on the data.
TREE = "blocks of all sizes are measured, small ones where records are (adaptivetree)"
FIXED_TREE = "blocks of all sizes are measured, the same whatever the data (tree)"
# What a tree is called beside others.
BLOCKS = "blocks of all sizes"
TABLES = "tables of few attributes"
ALONE = "every count is measured by itself (posterior)"
UNTOLD = "nobody said what will be asked"
# Why the first of two may be chosen though the other has the better forecast.
TOO_HOPEFUL = "this forecast is known to be too hopeful"
ADAPTS = "forecasts do not know how well blocks fit the data"
RISKS_LESS = "this way is expected to lose less where a forecast errs"
# Forecasts that differ by less than this factor are about as good.
ALIKE = 1.08
# From this factor on people say how many times as much.
_TIMES = 1.5
# Longer lists of tables are left to the mechanism's options, which name them all.
_LONG_LIST = re.compile(r" \([^()]{100,}\)")


def two_digits(records: float) -> int:
    """Two digits are enough for a reader, and more are noise: 20,000 for 19,731.2."""
    step = 10 ** max(0, math.floor(math.log10(max(records, 1.0))) - 1)
    return int(round(records / step) * step)


def rough(error: float) -> str:
    """An error with two digits: 10 for 9.97, 0.024 for 0.0237."""
    if error >= 10.0:
        return f"{two_digits(error):,}"
    return f"{error:.2g}"


def beside(
    off: float,
    *others: tuple[str, float],
    records: float | None = None,
    though: str = TOO_HOPEFUL,
) -> str:
    """How much worse what was not chosen is expected to be, and why not it if it is not (``though``).

    Scores compare ways of measuring on all kinds of questions; how far off an answer will be `dphist.planning` says.

    Example:
        >>> beside(6.8, ("waves", 12.1), records=5e3)
        'waves would be 1.8 times as far off (about 5,000 records in all, by a noisy count)'
    """
    alike = [name for name, other in others if max(off, other) <= ALIKE * min(off, other)]
    said = [f"{' and '.join(alike)} would be about as good"] if alike else []
    said += [f"{name} {_than(off, other, though)}" for name, other in others if name not in alike]
    counted = (
        ""
        if records is None
        else f" (about {max(two_digits(records), 0):,} records in all, by a noisy count)"
    )
    return "; ".join(said) + counted


def _than(off: float, other: float, though: str) -> str:
    if other < off:
        return f"are forecast to be off by {round(100.0 * (1.0 - other / off))}% less, but {though}"
    if off <= 0.0:
        return "would not be exact"
    if other >= _TIMES * off:
        return f"would be {rough(other / off)} times as far off"
    return f"would be off by {round(100.0 * (other / off - 1.0))}% more"


def in_detail(note: str) -> str:
    """The end of a reason: what the chosen mechanism says of its estimate, without a list that its options repeat."""
    return f". In detail: {_LONG_LIST.sub('', note)}." if note else "."
