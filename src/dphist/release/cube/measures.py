"""Sums, means, variances and ratios of measures, over any cells, each with an interval that holds.

A sum is that of the noised steps plus the centre times the count. A mean is every value that the sum and the count do
not rule out (Fieller), cut to the measure's public bounds: where the group may be empty it is all of them, and the
answer says so. A variance needs the squares, and its interval puts two others together, so it is wider than it need be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError
from dphist.inference.estimate import Errors, Words
from dphist.inference.intervals import read_confidence
from dphist.inference.ratios import NoisyNumbers, fieller, stand_on
from dphist.model.workload import Workload
from dphist.release.answers import Answer, Answers, spoken
from dphist.release.asking import Request, read_question
from dphist.release.cells import SparseCells
from dphist.release.contents import Contents, MeasuredSums, measured, possible_sums

FloatArray = NDArray[np.float64]

CLIPPED = "not covered: what values lost when they were clipped to the bounds"
_SUM = Words(
    "{percent} %: the noise of the sum has a known law",
    "independent draws of known weights: of the sum in steps and, where it is centred, of the count",
)
_MEAN = Words(
    "{percent} %: every mean that the noise of the sum and of the count leaves possible",
    "Fieller's intervals, cut to the measure's bounds, and all of these where a group may be empty; of groups that are "
    f"asked about together as many of those that are known hold; {CLIPPED}",
)
_RATIO = Words(
    "{percent} %: every ratio that the noise of both sums leaves possible",
    "Fieller's intervals; without an end where the denominator may be zero: then it is not known; of ratios that are "
    f"asked for together as many of those that are known hold; {CLIPPED}",
)
_SHARE = Words(
    "{percent} %: every share that the noise of both counts leaves possible",
    "Fieller's intervals between 0 and 1, and all of these where a group may be empty",
)
_VARIANCE = Words(
    "at least {percent} %: from the intervals of the mean and of the mean square together",
    f"each holds with half of the rest, so both do with this confidence; {CLIPPED}",
)


@dataclass(frozen=True, eq=False)
class _Part:
    """One set of released numbers, answered for a workload."""

    value: FloatArray
    stands: NoisyNumbers
    errors: Errors


def _answered(release: Contents, workload: Workload) -> _Part:
    errors, cells = release._estimate.errors, release.cells
    if isinstance(cells, SparseCells):
        raise QueryError("measures are asked of releases of every count")
    estimated = (release._unpolished if release.polish else cells).sums(release, workload)
    value = cells.sums(release, workload) if release.polish else errors.answer(workload, estimated)
    return _Part(value, stand_on(errors, workload, estimated), errors)


def is_measure(release: Contents, name: str) -> bool:
    """Whether the release has sums of this name."""
    return any(sums.measure.name == name for sums in release.sums)


def sums(release: Contents, name: str, workload: Workload, confidence: float = 0.95) -> Answers:
    """Add a measure up over the records of every question."""
    found = measured(release, name)
    count, steps = _answered(release, workload), _answered(found.release, workload)
    centre, step = found.quantity.centre, float(found.quantity.step)
    value = (steps.value + centre * count.value) * step
    whole = steps.stands.plus(count.stands, float(centre))
    middle, width = whole.centre * step, whole.width(confidence) * step
    # What was measured alike on all data has noise of a known law, and sums of it have.
    exact = centre == 0 or bool(getattr(count.errors, "theorem", False))
    short, details = spoken(_SUM if exact else count.errors.words, confidence)
    low, high = np.minimum(middle - width, value), np.maximum(middle + width, value)
    low, high = possible_sums(low, high, found.measure.lowest, found.measure.highest)
    value = np.where(np.isnan(low), np.nan, value)
    return Answers(value, low, high, confidence, short, f"{details}; {CLIPPED}")


def means(release: Contents, name: str, workload: Workload, confidence: float = 0.95) -> Answers:
    """Average a measure over the records of every question."""
    found = measured(release, name)
    value, low, high = _mean(release, found, workload, confidence)
    step, base = float(found.quantity.step), found.quantity.centre
    low, high = (low + base) * step, (high + base) * step
    return Answers((value + base) * step, low, high, confidence, *spoken(_MEAN, confidence))


def _mean(
    release: Contents, found: MeasuredSums, workload: Workload, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and interval of what was added up, less its centre, in steps."""
    quantity = found.quantity
    least, most = (float(bound - quantity.centre) for bound in quantity.bounds)
    count, steps = _answered(release, workload), _answered(found.release, workload)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = steps.stands.centre / count.stands.centre
    sure = count.stands.centre > 0
    value = np.where(sure, np.clip(plain, least, most), (least + most) / 2.0)
    low, high = fieller(steps.stands, count.stands, confidence, least=least, most=most, positive=True)
    # What was not measured has no number: halfway between the bounds would be taken for one.
    value = np.where(np.isnan(low), np.nan, value)
    return value, np.minimum(low, value), np.maximum(high, value)


def variances(
    release: Contents, name: str, workload: Workload, confidence: float = 0.95, *, root: bool = False
) -> Answers:
    """Give the variance of a measure, or its root, over the records of every question."""
    first, second = measured(release, name), measured(release, name, squared=True)
    each = 1 - (1 - read_confidence(confidence)) / 2
    # Squares are of distances from the measure's middle; the mean must be one of these, too.
    shift = first.quantity.centre - first.measure.middle
    mean = [end + shift for end in _mean(release, first, workload, each)]
    square = [end + second.quantity.centre for end in _mean(release, second, workload, each)]
    step, most = float(first.measure.size), float(first.measure.half) ** 2
    value = np.clip(square[0] - mean[0] ** 2, 0.0, most)
    nearest = np.where((mean[1] <= 0) & (mean[2] >= 0), 0.0, np.minimum(mean[1] ** 2, mean[2] ** 2))
    furthest = np.maximum(mean[1] ** 2, mean[2] ** 2)
    low, high = np.clip(square[1] - furthest, 0.0, most), np.clip(square[2] - nearest, 0.0, most)
    low, high = np.minimum(low, value), np.maximum(high, value)
    value, low, high = ((np.sqrt(end) if root else end * step) * step for end in (value, low, high))
    return Answers(value, low, high, confidence, *spoken(_VARIANCE, confidence))


def clipped(release: Contents, name: str, workload: Workload, confidence: float = 0.95) -> Answers:
    """Say what share of the records of every question had values beyond a measure's bounds."""
    found = measured(release, name, clipped=True)
    value, low, high = _mean(release, found, workload, confidence)
    return Answers(value, low, high, confidence, *spoken(_SHARE, confidence))


def ratios(
    release: Contents, above: str, below: str, workload: Workload, confidence: float = 0.95
) -> Answers:
    """Divide the sum of one measure by that of another, over the records of every question."""
    one, other = measured(release, above), measured(release, below)
    if one is other:
        raise QueryError("a ratio is of two measures; the mean of one is its ratio to the count")
    count = _answered(release, workload)
    parts = [_answered(each.release, workload) for each in (one, other)]
    # A = S₁ + c₁N and B = S₂ + c₂N: the count's noise is in both, and goes into A − rB as (c₁ − r c₂)N.
    centres = [float(each.quantity.centre) for each in (one, other)]
    units = [float(each.quantity.step) for each in (one, other)]
    totals = [
        part.stands.plus(count.stands, centre).times(unit)
        for part, centre, unit in zip(parts, centres, units, strict=True)
    ]
    positive = other.measure.lowest >= 0
    least = 0.0 if positive and one.measure.lowest >= 0 else -np.inf
    shared = math.prod(centres) * math.prod(units) * count.stands.spread.variance
    upper, lower = (total.centre for total in totals)
    low, high = fieller(totals[0], totals[1], confidence, shared=shared, least=least, positive=positive)
    value = np.full(low.shape, np.nan)
    np.divide(upper, lower, out=value, where=lower > 0 if positive else lower != 0)
    value = np.where(np.isnan(low), np.nan, np.maximum(value, least))
    return Answers(value, np.fmin(low, value), np.fmax(high, value), confidence, *spoken(_RATIO, confidence))


def ask(release: Contents, request: Request, confidence: float = 0.95) -> Answer:
    """Answer what `dphist.release.asking.read_request` read: one number of one or two measures."""
    asked = read_question(request.where, release.domain)
    if request.kind == "ratio":
        above, below = request.names
        return ratios(release, above, below, asked, confidence)[0]
    (name,) = request.names
    if request.kind == "clipped":
        return clipped(release, name, asked, confidence)[0]
    if request.kind in ("sum", "mean"):
        return (sums if request.kind == "sum" else means)(release, name, asked, confidence)[0]
    return variances(release, name, asked, confidence, root=request.kind == "std")[0]
