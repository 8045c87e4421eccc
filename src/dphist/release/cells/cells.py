"""A number for every cell of the domain, and what all kinds of cells share: what they ask of their release."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError, VerificationError
from dphist.inference.estimate import How, around, cell_widths
from dphist.inference.topdown import integers_topdown, nonnegative_topdown
from dphist.model.domain import Domain
from dphist.model.transcript import OTHERWISE
from dphist.model.workload import Workload
from dphist.release.answers import Answers, Projection, answers_with
from dphist.release.guarantee import Guarantee

if TYPE_CHECKING:
    from dphist.mechanisms.protocol import Mechanism
    from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Pair = tuple[FloatArray, FloatArray]
Made = TypeVar("Made")

LARGEST_ARRAY = 1 << 27
"""Cells that an array is made for when somebody asks for one."""

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


class Estimated:
    """What cells share that stand on an estimate: its errors say how far any sum of cells is off."""

    at_once: ClassVar[int] = 1 << 18
    """Single cells that are asked about at a time: a hundred million need memory for a quarter of a million."""

    @property
    def numbers(self) -> FloatArray:
        """The published numbers, row after row."""
        raise NotImplementedError

    def places(self, rows: IntArray) -> Sequence[NDArray[np.signedinteger[Any]]]:
        """Where some rows lie on every axis: below zero where they add up over it."""
        raise NotImplementedError

    def sums(self, release: Holder, workload: Workload) -> FloatArray:
        """The published answers."""
        raise NotImplementedError

    def answers(self, release: Holder, workload: Workload, confidence: float, **how: Unpack[How]) -> Answers:
        """Sum the cells, or answer better where the estimate can, and ask its errors for intervals."""
        value, errors = self.sums(release, workload), release._estimate.errors
        if release.polish:
            how["estimated"] = release._unpolished.sums(release, workload)
        else:
            value = errors.answer(workload, value)
        found = errors.interval(workload, value, confidence, **how)
        return answers_with(value, found, confidence, errors.words, how)

    def as_questions(self, domain: Domain, begin: int, end: int) -> Workload:
        """Some rows, each as the question that it answers."""
        places = np.stack(list(self.places(np.arange(begin, end))), axis=1).astype(np.int64)
        return Workload(domain, np.maximum(places, 0), np.where(places < 0, domain.shape, places + 1))

    def bounds(self, release: Holder, begin: int, end: int, confidence: float) -> Pair:
        """Ask the estimate's errors about single rows."""
        numbers, how = self.numbers, How()
        low, high = [np.zeros(0)], [np.zeros(0)]
        for start in range(begin, end, self.at_once):
            stop = min(start + self.at_once, end)
            if release.polish:
                how["estimated"] = release._unpolished.numbers[start:stop]
            asked = self.as_questions(release.domain, start, stop)
            found = release._estimate.errors.interval(asked, numbers[start:stop], confidence, **how)
            low.append(found.low)
            high.append(found.high)
        return np.concatenate(low), np.concatenate(high)

    def project(self, release: Holder, names: Sequence[str], confidence: float) -> Projection:
        """Answer the questions that the marginal is made of."""
        domain, asked = release.domain.project(names), Workload.marginals(release.domain, [list(names)])
        parts = [
            self.answers(release, each, confidence)
            for each in (asked.chunks(self.at_once) if len(asked) > self.at_once else [asked])
        ]
        value, low, high = (
            np.concatenate([getattr(part, side) for part in parts]).reshape(domain.shape)
            for side in ("value", "low", "high")
        )
        first, guessed = parts[0], None
        if first.guessed is not None:
            guessed = np.concatenate([np.asarray(part.guessed) for part in parts]).reshape(domain.shape)
        return Projection(domain, value, low, high, confidence, first.method, first.details, guessed)


def places_in(rows: IntArray, shape: Sequence[int]) -> tuple[NDArray[np.signedinteger[Any]], ...]:
    """Where cells in C order lie on every axis; those of a run are written out in a third of the time."""
    if not rows.size or not (np.diff(rows) == 1).all():
        return np.unravel_index(rows, shape)
    found: list[NDArray[np.signedinteger[Any]]] = []
    begin, step = int(rows[0]), 1
    for size in reversed(shape):
        first = begin // step
        values = (np.arange(first, int(rows[-1]) // step + 1) % size).astype(np.int32)
        found.append(np.repeat(values, step)[begin - first * step :][: rows.size])
        step *= size
    return tuple(reversed(found))


@dataclass(frozen=True, eq=False)
class DenseCells(Estimated):
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

    def bounds(self, release: Holder, begin: int, end: int, confidence: float) -> Pair:
        """As of any questions, but that all cells are equally wide where their errors simply say how wide."""
        widths = cell_widths(release._estimate.errors, begin, end, confidence)
        if widths is None:
            return super().bounds(release, begin, end, confidence)
        stand = release._unpolished if release.polish else self
        found = around(stand.numbers[begin:end], widths, self.numbers[begin:end])
        return found.low, found.high

    def places(self, rows: IntArray) -> tuple[NDArray[np.signedinteger[Any]], ...]:
        """Where some rows, each a cell, lie on every axis."""
        return places_in(rows, self.counts.shape)

    def sums(self, release: Holder, workload: Workload) -> FloatArray:
        """Answer from running sums that are kept: a release is asked again and again, and never changes."""
        if workload.kind in ("cells", "prefixes"):
            return np.asarray(workload.answer(self.counts), dtype=np.float64)
        return np.asarray(workload.answer_from(self._running_sums), dtype=np.float64)

    @cached_property
    def _running_sums(self) -> FloatArray:
        from dphist.kernels.summed_area import running_sums

        return running_sums(self.counts)

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
