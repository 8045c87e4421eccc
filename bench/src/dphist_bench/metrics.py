"""How far an estimate is from the truth: the one home of every error measure.

These functions read true counts, so they are for benchmarks, tests and offline study. Their results are *not*
private: never publish one that was computed on data you protect.

Without a workload every function compares cell by cell; with one it compares the answers to its queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import InputError

FloatArray = NDArray[np.float64]


class Questions(Protocol):
    """Anything that turns counts into answers, such as a workload."""

    def answer(self, counts: Any, /) -> Any:
        """Answer every question on these counts."""


@dataclass(frozen=True)
class SlidingRanges:
    """Every range of ``length`` consecutive cells, as questions for the measures below, answered in one pass.

    Cells are taken in flat C-order, so rows of a two-dimensional histogram follow one another.
    """

    length: int

    def answer(self, counts: ArrayLike) -> FloatArray:
        """Sum the cells of every range."""
        flat = np.ravel(np.asarray(counts, dtype=np.float64))
        if not 1 <= self.length <= flat.size:
            raise InputError(
                f"length must be between 1 and the number of cells, {flat.size}, not {self.length}"
            )
        sums = np.concatenate(([0.0], np.cumsum(flat)))
        return np.asarray(sums[self.length :] - sums[: -self.length])


def mean_squared_error(truth: ArrayLike, estimate: ArrayLike, workload: Questions | None = None) -> float:
    """Average squared error over the cells, or over the queries of a workload."""
    return float(np.mean(_errors(truth, estimate, workload) ** 2))


def mean_absolute_error(truth: ArrayLike, estimate: ArrayLike, workload: Questions | None = None) -> float:
    """Average absolute error over the cells, or over the queries of a workload."""
    return float(np.mean(np.abs(_errors(truth, estimate, workload))))


def mean_relative_error(
    truth: ArrayLike, estimate: ArrayLike, workload: Questions | None = None, *, sanity: float | None = None
) -> float:
    """Average of absolute error / max(true answer, sanity).

    The sanity bound keeps near-empty answers from ruling the average. By default it is 0.1 % of all records,
    as Privelet's authors take it, and at least one record.
    """
    exact, _ = _pair(truth, estimate)
    bound = max(1.0, 0.001 * float(exact.sum())) if sanity is None else float(sanity)
    if not bound > 0:
        raise InputError(f"sanity must be a positive number of records, not {sanity!r}")
    answers = exact if workload is None else np.asarray(workload.answer(exact), dtype=np.float64)
    return float(np.mean(np.abs(_errors(truth, estimate, workload)) / np.maximum(answers, bound)))


def sliding_range_error(truth: ArrayLike, estimate: ArrayLike, length: int) -> float:
    """Mean squared error over every range of ``length`` consecutive cells, in one pass (`SlidingRanges`)."""
    return float(np.mean(SlidingRanges(length).answer(_errors(truth, estimate, None)) ** 2))


def interval_error(truth: ArrayLike, estimate: ArrayLike) -> float:
    """Mean squared error over all ranges of all lengths, in one pass over the cells in flat order.

    With running sums E₀ … Eₙ of the cells' errors, the ranges' errors are the differences of their pairs, and
    Σ_{i<j} (E_j − E_i)² = (n + 1) Σ (E − mean)².
    """
    error = np.ravel(_errors(truth, estimate, None))
    sums = np.concatenate(([0.0], np.cumsum(error)))
    return float(2.0 * np.sum((sums - sums.mean()) ** 2) / error.size)


def kl_divergence(truth: ArrayLike, estimate: ArrayLike, *, floor: float = 0.01) -> float:
    """Kullback-Leibler divergence Σ p log(p/q), in nats, of the estimate's distribution q from the true p.

    A noisy estimate can be zero or negative where the truth is not, which would make the divergence infinite or
    undefined, so negative ones count as zero, and one below ``floor`` records in a cell that does hold records as
    ``floor``. The papers do not say what they do; only compare values that were computed with the same floor.
    """
    exact, guess = _pair(truth, estimate)
    if not 0 < floor <= 1:
        raise InputError(f"floor must be above 0 and at most 1 record, not {floor!r}")
    occupied = exact > 0
    if not occupied.any():
        raise InputError("the true histogram is empty, so it has no distribution to diverge from")
    guess = np.where(occupied, np.maximum(guess, floor), np.maximum(guess, 0.0))
    p = exact[occupied] / exact.sum()
    q = guess[occupied] / guess.sum()
    return max(0.0, float(np.sum(p * np.log(p / q))))


def _pair(truth: ArrayLike, estimate: ArrayLike) -> tuple[FloatArray, FloatArray]:
    exact, guess = np.asarray(truth, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    if exact.shape != guess.shape:
        raise InputError(f"truth and estimate differ in shape: {exact.shape} and {guess.shape}")
    if exact.size == 0:
        raise InputError("there is nothing to compare: both arrays are empty")
    return exact, guess


def _errors(truth: ArrayLike, estimate: ArrayLike, workload: Questions | None) -> FloatArray:
    exact, guess = _pair(truth, estimate)
    if workload is None:
        return guess - exact
    # Answer both, not their difference: a workload may accept counts only.
    return np.asarray(workload.answer(guess), dtype=np.float64) - np.asarray(
        workload.answer(exact), dtype=np.float64
    )
