"""Sums that were published beside the counts: for each measure a release of its own, over the same cells.

What was noised are sums in whole steps, perhaps centred: Σ (k − centre). The sum of a range is then that of the steps
plus centre times its count. Both parts are releases, so both have errors of a known law, both replay, and their budgets
add up to what the whole release promises (sequential composition).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError, VerificationError
from dphist.model.measure import Measure, Quantity
from dphist.release.columns import free

if TYPE_CHECKING:
    from dphist.release.release import Release

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeasuredSums:
    """The noised sums of one quantity.

    Args:
        quantity: What was added up, and what was taken from each value before.
        release: The sums, in steps; its unit is how many steps one protected unit can move them.

    Example:
        >>> import dphist, pandas as pd
        >>> frame = pd.DataFrame({"sex": ["F", "M"] * 50, "hours": [40, 38] * 50})
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> release = dphist.publish(frame, domain, 1, measures=[dphist.Measure("hours", 0, 80)])
        >>> release.sums[0].quantity.centre, release.sums[0].release.guarantee.unit.rows
        (40, 40)
    """

    quantity: Quantity
    release: Release

    @property
    def measure(self) -> Measure:
        """Whose sums they are."""
        return self.quantity.measure


def measured(release: Release, name: str, *, squared: bool = False, clipped: bool = False) -> MeasuredSums:
    """The sums of a measure by its name, or a refusal that says which there are."""
    for sums in release.sums:
        quantity = sums.quantity
        if sums.measure.name == name and (quantity.squared, quantity.clipped) == (squared, clipped):
            return sums
    if clipped and any(sums.measure.name == name for sums in release.sums):
        raise QueryError(f"{name}: clipped records were not counted; publish with clipped=True")
    if squared and any(sums.measure.name == name for sums in release.sums):
        raise QueryError(
            f"{name}: its squares were not published, which variances need; publish with squares=True"
        )
    known = ", ".join(dict.fromkeys(sums.measure.name for sums in release.sums))
    raise QueryError(
        f"there is no measure {name!r}; " + (f"there are {known}" if known else "there are none")
    )


def check_sums(release: Release, *, exact: bool = False) -> None:
    """Insist that the sums belong to this release, and that all of it together costs no more than it promises."""
    seen = set()
    for sums in release.sums:
        part = sums.release
        key = (sums.measure.name, sums.quantity.squared, sums.quantity.clipped)
        fits = part.domain == release.domain and not part.sums and part.polish == () and key not in seen
        seen.add(key)
        if not fits or part.guarantee.unit != sums.quantity.in_steps(release.guarantee.unit):
            raise VerificationError("the sums do not belong to this release")
        part.verify(exact=exact)


def sum_columns(release: Release, taken: set[str]) -> dict[str, FloatArray]:
    """The estimated sums of every cell in the measures' own values, by the name of their column."""
    columns: dict[str, FloatArray] = {}
    for sums in release.sums:
        if sums.quantity.plain:
            steps = sums.release.counts.reshape(-1) + sums.quantity.centre * release.counts.reshape(-1)
            columns[free(f"sum_{sums.measure.name}", taken | set(columns))] = steps * float(
                sums.quantity.step
            )
    return columns


def column_words(release: Release, taken: set[str]) -> dict[str, str]:
    """What these columns hold, for people."""
    plain = [sums.measure for sums in release.sums if sums.quantity.plain]
    return {
        name: f"the estimated sum of {measure.name} over the cell's records, each value clipped to "
        f"{float(Fraction(measure.low)):g} to {float(Fraction(measure.high)):g}; noise was added on purpose"
        for name, measure in zip(sum_columns(release, taken), plain, strict=True)
    }
