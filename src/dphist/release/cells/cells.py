"""A number for every cell of the domain, and what all kinds of cells share: what they ask of their release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError, VerificationError
from dphist.inference.estimate import around, cell_widths
from dphist.inference.topdown import integers_topdown, nonnegative_topdown
from dphist.model.domain import Domain
from dphist.model.transcript import OTHERWISE
from dphist.model.workload import Workload
from dphist.release.answers import Answers, Projection, answers_with, spoken
from dphist.release.guarantee import Guarantee

if TYPE_CHECKING:
    from dphist.mechanisms.protocol import Mechanism
    from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Made = TypeVar("Made")

LARGEST_ARRAY = 1 << 27
"""Cells that an array is made for when somebody asks for one."""

# Single cells that are asked about at a time: a hundred million need memory for a quarter of a million questions.
_BLOCK = 1 << 18
# How far a replay on another kind of processor may be off: parts of a count, and of the largest one.
_DIGITS, _OF_LARGEST = 1e-9, 1e-12


class Holder(Protocol):
    """What cells ask of the release whose numbers they are; what must be worked out waits until it is asked."""

    @property
    def domain(self) -> Domain:
        """What is counted."""

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""

    @property
    def mechanism(self) -> Mechanism:
        """How it was made."""

    @property
    def polish(self) -> tuple[str, ...]:
        """The steps that made the counts nicer to read."""

    @property
    def _estimate(self) -> Any: ...

    @property
    def _unpolished(self) -> DenseCells: ...

    def _replay(self) -> Any: ...

    def _replayed(self, ask: Callable[[PrivateCounts], Made]) -> Made: ...


@dataclass(frozen=True, eq=False)
class DenseCells:
    """A number for every cell, as an array of the domain's shape.

    Args:
        counts: The estimates, in the domain's shape.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> release.cells.form, release.cells.numbers.size
        ('dense', 200)
    """

    counts: FloatArray
    form: ClassVar[str] = "dense"

    @property
    def numbers(self) -> FloatArray:
        """The published numbers in C order."""
        return self.counts.reshape(-1)

    def dense(self, release: Holder) -> FloatArray:
        """The array itself."""
        return self.counts

    def bounds(
        self, release: Holder, begin: int, end: int, confidence: float
    ) -> tuple[FloatArray, FloatArray]:
        """Ask the estimate's errors about single cells, some at a time where each of them is a question."""
        widths, numbers = (
            cell_widths(release._estimate.errors, begin, end, confidence),
            self.numbers[begin:end],
        )
        if widths is not None and not release.polish:
            # As `around`, which need not hold what it stands on.
            middle = np.maximum(numbers, 0.0)
            return np.maximum(middle - widths, 0.0), middle + widths
        if widths is not None:
            found = around(release._unpolished.numbers[begin:end], widths, numbers)
            return found.low, found.high
        parts = [
            self._asked(release, start, min(start + _BLOCK, end), confidence)
            for start in range(begin, end, _BLOCK)
        ]
        low, high = (np.concatenate([part[side] for part in parts] or [np.zeros(0)]) for side in (0, 1))
        return low, high

    def _asked(
        self, release: Holder, begin: int, end: int, confidence: float
    ) -> tuple[FloatArray, FloatArray]:
        errors = release._estimate.errors
        low = np.stack(np.unravel_index(np.arange(begin, end), release.domain.shape), axis=1)
        found = errors.interval(
            Workload(release.domain, low, low + 1),
            self.numbers[begin:end],
            confidence,
            estimated=release._unpolished.numbers[begin:end] if release.polish else None,
        )
        return found.low, found.high

    def places(self, rows: IntArray) -> tuple[IntArray, ...]:
        """Where some rows, each a cell, lie on every axis."""
        return np.unravel_index(rows, self.counts.shape)

    def answers(
        self,
        release: Holder,
        workload: Workload,
        confidence: float,
        *,
        guaranteed: bool = False,
        simultaneous: bool = False,
    ) -> Answers:
        """Sum the counts, or answer better where the estimate can, and ask its errors for intervals."""
        value, errors = self.sums(workload), release._estimate.errors
        if not release.polish:
            value = errors.answer(workload, value)
        found = errors.interval(
            workload,
            value,
            confidence,
            estimated=release._unpolished.sums(workload) if release.polish else None,
            guaranteed=guaranteed,
            simultaneous=simultaneous,
        )
        return answers_with(
            value, found, confidence, errors.words, guaranteed=guaranteed, simultaneous=simultaneous
        )

    def sums(self, workload: Workload) -> FloatArray:
        """Answer from running sums that are kept: a release is asked again and again, and never changes."""
        if workload.kind in ("cells", "prefixes"):
            return np.asarray(workload.answer(self.counts), dtype=np.float64)
        return np.asarray(workload.answer_from(self._running_sums), dtype=np.float64)

    @cached_property
    def _running_sums(self) -> FloatArray:
        from dphist.kernels.summed_area import running_sums

        return running_sums(self.counts)

    def project(self, release: Holder, names: Sequence[str], confidence: float) -> Projection:
        """Answer the questions that the marginal is made of."""
        domain = release.domain.project(names)
        answers = self.answers(release, Workload.marginals(release.domain, [list(names)]), confidence)
        value, low, high = (each.reshape(domain.shape) for each in (answers.value, answers.low, answers.high))
        guessed = None if answers.guessed is None else answers.guessed.reshape(domain.shape)
        return Projection(domain, value, low, high, confidence, answers.method, answers.details, guessed)

    def polish(self, step: str, release: Holder) -> DenseCells:
        """Raise negative counts, round to whole numbers, or move to a public total, all from the top down."""
        domain = release.domain
        if step == "integer":
            return DenseCells(integers_topdown(self.counts, domain))
        if step.startswith("nonnegative"):
            public = step.removeprefix("nonnegative total ") if " " in step else None
            total = None if public is None else float(public)
            return DenseCells(nonnegative_topdown(self.counts, domain, total))
        raise VerificationError(f"unknown polishing step {step!r}")

    def replayed(self, release: Holder) -> DenseCells:
        """The counts of the estimate that a replay gives."""
        estimate = release._replay()
        # Whoever read the release from a file and verifies it need not replay it once more to know its errors.
        # What it knew of them before may have been taken from the file.
        release.__dict__["_estimate"] = estimate
        return DenseCells(estimate.counts)

    def method(self, release: Holder, confidence: float) -> str:
        """How intervals are obtained, in a plain sentence: known without asking anything."""
        return spoken(release._estimate.errors.words, confidence)[0]

    def same(self, other: object, *, exact: bool = False) -> bool:
        """Whether every count is the same."""
        return isinstance(other, DenseCells) and alike(self.counts, other.counts, exact=exact)

    def describe(self) -> str:
        """Every cell: nothing to add."""
        return ""


def alike(one: FloatArray, other: FloatArray, *, exact: bool = False) -> bool:
    """Whether numbers of a release are those of its replay.

    Processors add long sums up in different orders, so that the last of sixteen digits differ: 10⁻¹⁵ to 10⁻¹⁴ of the
    largest count where tables were fitted. Numbers that agree to nine digits, or to twelve of the largest, are the
    same. Whole numbers are not rounded by anybody.
    """
    if exact or one.shape != other.shape or np.array_equal(one, other) or np.array_equal(one, np.rint(one)):
        return np.array_equal(one, other)
    largest = max(float(np.abs(one).max()), 1.0)
    return bool(np.allclose(one, other, rtol=_DIGITS, atol=max(_DIGITS, _OF_LARGEST * largest)))


@contextmanager
def fitting() -> Iterator[None]:
    """While something is made of a transcript: whatever stumbles over it says that it does not fit."""
    try:
        yield
    except DphistError:
        raise
    except Exception:
        # Only answers that no mechanism asked for can make one stumble; which line it was tells a reader nothing.
        raise VerificationError(f"the transcript does not fit the mechanism: {OTHERWISE}") from None
