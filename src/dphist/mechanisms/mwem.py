"""Learn the counts from their most surprising ranges (Hardt, Ligett and McSherry, 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.arrays import FloatArray, IntArray
from dphist.inference.estimate import Estimate, PieceNoise
from dphist.kernels.summed_area import box_sums
from dphist.mechanisms.options import Bounds, Share, checked
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals
from dphist.private.scores.counting import Disagreements

# Exact selection weighs every candidate in every round.
_MOST_BOXES = 1 << 21


@checked
@dataclass(frozen=True, kw_only=True)
class MWEM:
    """Start from even counts; each round, find the range that is furthest off and bend the counts to it.

    Ranges are those of the workload, or all dyadic boxes if there is none or it is too large to weigh. The
    bending multiplies cells inside the range by a factor (multiplicative weights), and every round goes
    over all measurements ``passes`` times.

    Private by composition: ``total`` of the budget for the number of records, the rest in equal halves for
    a choice (one step changes every |count − guess| by at most one) and a measurement in each round. The
    published algorithm takes the true number of records for granted; here it is measured and paid for, and
    sharpened by each round's count outside the range, which disjoint cells give for free.

    Args:
        rounds: How many ranges are asked.
        passes: How often every round goes over all measurements.
        total: The part of ε that counts records.

    Example:
        >>> from dphist.mechanisms import MWEM
        >>> from dphist.testing import run
        >>> run(MWEM(rounds=3), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    # More would never end, and be paid for all the same.
    rounds: Annotated[int, Bounds(1, 1000)] = 10
    passes: Annotated[int, Bounds(1, 1000)] = 10
    total: Share = Fraction(1, 20)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Measure the total, then choose and measure a range a round."""
        shape, n = data.shape, data.size
        if n == 1:
            noisy = data.measure(Totals())
            return _estimate(noisy.values.astype(np.float64), shape, float(noisy.scale))
        low, high = _boxes(data)
        each = (1 - self.total) / (2 * self.rounds)
        counting, *asking = data.split(self.total, *[each] * (2 * self.rounds))
        noisy = counting.measure(Totals())
        records, scale = float(noisy.values[0]), float(noisy.scale)
        weights = np.full(shape, 1.0 / n)
        measured: list[tuple[tuple[slice, ...], float]] = []
        for choosing, measuring in zip(asking[::2], asking[1::2], strict=True):
            guess = box_sums(weights, low, high) * max(1.0, records)
            score = Disagreements(low, high, np.rint(np.clip(guess, 0, 2.0**60)).astype(np.int64))
            box = int(choosing.choose(score)[0, 0])
            inside = tuple(slice(a, b) for a, b in zip(low[box].tolist(), high[box].tolist(), strict=True))
            labels = np.zeros(shape, dtype=np.int64)
            labels[inside] = 1
            noisy = measuring.partition(labels, 2).measure(Totals())
            measured.append((inside, float(noisy.values[1])))
            records, scale = _sharpen(records, scale, noisy.values, float(noisy.scale))
            _bend(weights, measured, max(1.0, records), self.passes)
        return _estimate(weights * max(0.0, records), shape, scale)


def _estimate(counts: FloatArray, shape: tuple[int, ...], scale: float) -> Estimate:
    errors = PieceNoise(
        shape,
        np.zeros(counts.size, dtype=np.int64),
        np.array([scale]),
        "noise of the number of records only; "
        "not covered: how they are spread, which is learnt from a few ranges",
    )
    return Estimate(counts.reshape(shape), errors)


def _sharpen(
    records: float, scale: float, parts: NDArray[np.int64], part_scale: float
) -> tuple[float, float]:
    """Average two estimates of the number of records by precision: inside plus outside is another one."""
    one, other = scale**-2, part_scale**-2 / 2
    return (one * records + other * float(parts.sum())) / (one + other), (one + other) ** -0.5


def _bend(
    weights: FloatArray, measured: list[tuple[tuple[slice, ...], float]], records: float, passes: int
) -> None:
    """Multiplicative weights over all measurements; weights sum to one again afterwards."""
    whole = float(weights.sum())
    for _ in range(passes):
        for inside, count in measured:
            part = float(weights[inside].sum())
            exponent = (count - records * part / whole) / (2 * records)
            factor = float(np.exp(np.clip(exponent, -20.0, 20.0)))
            weights[inside] *= factor
            whole += (factor - 1.0) * part
        # Running differences of the whole round; start each pass from the sum itself.
        weights /= float(weights.sum())
        whole = 1.0


def _boxes(data: PrivateCounts) -> tuple[IntArray, IntArray]:
    """The ranges that may be measured: the workload's, or every product of dyadic ranges of the axes."""
    workload = data.workload
    if (
        workload is not None
        and data.domain is not None
        and workload.query is None
        and 0 < len(workload) <= _MOST_BOXES
    ):
        return workload.low, workload.high
    axes = [_dyadic(n) for n in data.shape]
    while np.prod([len(axis) for axis in axes], dtype=np.float64) > _MOST_BOXES:
        # Too many products: give up the finest ranges of the axis that has most.
        longest = int(np.argmax([len(axis) for axis in axes]))
        axes[longest] = axes[longest][: len(axes[longest]) // 2]
    grid = np.indices([len(axis) for axis in axes]).reshape(len(axes), -1)
    chosen = np.stack([axis[places] for axis, places in zip(axes, grid, strict=True)], axis=1)
    return np.ascontiguousarray(chosen[..., 0]), np.ascontiguousarray(chosen[..., 1])


def _dyadic(n: int) -> IntArray:
    """All ranges [i·2^l, (i + 1)·2^l) that meet the axis, cut at its end, coarse ones first, none twice."""
    ranges: dict[tuple[int, int], None] = {}
    length = 1 << (n - 1).bit_length()
    while length:
        for start in range(0, n, length):
            ranges[(start, min(n, start + length))] = None
        length //= 2
    return np.array(list(ranges), dtype=np.int64)
