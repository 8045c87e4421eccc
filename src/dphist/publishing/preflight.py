"""A dry run for a tiny ε: noise that 64-bit integers cannot hold is refused before anything is paid.

The gate looks at a scale before it pays for the first question. A mechanism that splits its budget may ask for more
noise later, when the budget is gone. So where ε is tiny the mechanism is run once on empty counts with a public seed:
that touches no record, and asks for the same scales except where a mechanism lets answers decide its shares.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dphist.errors import EpsilonError, InputError
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.noise import Keystream, Noise
from dphist.private.pricing import Purse

# No mechanism asks for noise of more than 2^53 · this, in units of its budget (tests measure them all).
_TINY = Fraction(1, 10**6)


def preflight(budget: Budget | Number, unit: Unit, run: Callable[[Noise], object]) -> None:
    """Refuse a budget whose noise cannot be drawn; ``run`` is the release on no records, given a noise source."""
    if Purse.of(budget, unit).pure >= _TINY:
        return
    try:
        run(Noise(Keystream.for_tests(0)))
    except InputError as error:
        raise EpsilonError(
            f"{Budget.of(budget).currency}: so little, for this unit, that no release can be made ({error}). "
            "Nothing was spent; give more, or protect fewer rows"
        ) from None


def empty(domain: Domain) -> Histogram:
    """No records at all."""
    return Histogram(domain, np.zeros(domain.shape, dtype=np.int64))
