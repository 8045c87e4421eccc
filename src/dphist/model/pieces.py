"""A domain cut into disjoint pieces, each a domain of its own: what is asked of each, and all put back.

Pieces hold every cell of the domain once. They are public: no count decides what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ByValues:
    """A piece for every combination of values of some attributes, over the others.

    Args:
        domain: What is cut.
        by: The attributes, by name; none leaves the domain in one piece.
    """

    domain: Domain
    by: tuple[str, ...]

    @property
    def words(self) -> str:
        """Name the attributes."""
        return ", ".join(self.by)

    @cached_property
    def _axes(self) -> tuple[list[int], list[int]]:
        axes = [self.domain.axis(name) for name in self.by]
        return axes, [axis for axis in range(len(self.domain.shape)) if axis not in axes]

    @cached_property
    def domains(self) -> Sequence[Domain]:
        """What each piece is about: the other attributes."""
        axes, kept = self._axes
        inner = self.domain.project([self.domain.names[axis] for axis in kept])
        return (inner,) * math.prod(self.domain.shape[axis] for axis in axes)

    def apart(self, counts: FloatArray) -> list[FloatArray]:
        """Take cells apart into those of the pieces, each in its domain's shape."""
        axes, kept = self._axes
        ordered = counts.reshape(self.domain.shape).transpose([*axes, *kept])
        return list(ordered.reshape(-1, *(self.domain.shape[axis] for axis in kept)))

    def joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Put the cells of the pieces back where they belong."""
        axes, kept = self._axes
        order = [*axes, *kept]
        stacked = np.stack([np.asarray(part, dtype=np.float64).reshape(-1) for part in parts])
        shaped = stacked.reshape([self.domain.shape[axis] for axis in order])
        return np.ascontiguousarray(shaped.transpose(np.argsort(order)))

    def meetings(self, workload: Workload) -> Iterator[tuple[int, IntArray, Workload]]:
        """The pieces that any question meets, which questions those are, and what they ask there."""
        axes, kept = self._axes
        low, high = workload.low, workload.high
        shape = tuple(self.domain.shape[axis] for axis in axes)
        for part in range(math.prod(shape)):
            place = np.unravel_index(part, shape) if shape else ()
            met = np.ones(len(low), dtype=bool)
            for axis, cell in zip(axes, place, strict=True):
                met &= (low[:, axis] <= cell) & (cell < high[:, axis])
            if met.any():
                yield part, *_asked(workload, met, self.domains[part], low[:, kept], high[:, kept])


@dataclass(frozen=True)
class OneApart:
    """Two pieces: one value of an attribute, over the other attributes; and all other values of it, as neighbours.

    A range of values less one in its middle is a range of those that are left, so a box stays a box in both pieces.

    Args:
        domain: What is cut: two attributes or more.
        axis: The attribute.
        value: Which of its values is set apart, by its place; there is another one.
    """

    domain: Domain
    axis: int
    value: int

    @property
    def words(self) -> str:
        """Name the attribute."""
        return f"one value of {self.domain.names[self.axis]} and the others"

    @cached_property
    def _kept(self) -> list[int]:
        return [axis for axis in range(len(self.domain.shape)) if axis != self.axis]

    @cached_property
    def domains(self) -> tuple[Domain, Domain]:
        """What either piece is about; values that are left are numbered, since their order is all that is read."""
        left = Ordinal(self.domain.names[self.axis], range(self.domain.shape[self.axis] - 1))
        others = [left if axis == self.axis else each for axis, each in enumerate(self.domain.attributes)]
        return self.domain.project([self.domain.names[axis] for axis in self._kept]), Domain(others)

    @property
    def labels(self) -> IntArray:
        """Which piece every cell lies in, in the order of the cells."""
        labels = np.ones(self.domain.shape, dtype=np.int64)
        labels[(slice(None),) * self.axis + (self.value,)] = 0
        return labels.reshape(-1)

    def apart(self, counts: FloatArray) -> list[FloatArray]:
        """Take cells apart into those of the pieces, each in its domain's shape."""
        cells = counts.reshape(self.domain.shape)
        return [
            np.take(cells, [self.value], axis=self.axis).reshape(self.domains[0].shape),
            np.delete(cells, self.value, axis=self.axis),
        ]

    def joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Put the cells of the pieces back where they belong."""
        apart, others = (
            np.asarray(part, dtype=np.float64).reshape(each.shape)
            for part, each in zip(parts, self.domains, strict=True)
        )
        return np.insert(others, self.value, apart, axis=self.axis)

    def asked(self, workload: Workload | None) -> tuple[Workload | None, Workload | None]:
        """What is asked of either piece; a kind of questions that has a name stays that kind."""
        if workload is None:
            return None, None
        if workload.kind in ("cells", "prefixes", "all_ranges"):
            one, other = (Workload.from_json(each, {"kind": workload.kind}) for each in self.domains)
            return one, other
        plain = Workload(self.domain, workload.low, workload.high)
        inside = {part: asked for part, _, asked in self.meetings(plain)}
        one, other = (inside.get(part, Workload(each, [], [])) for part, each in enumerate(self.domains))
        return one, other

    def meetings(self, workload: Workload) -> Iterator[tuple[int, IntArray, Workload]]:
        """The pieces that any question meets, which questions those are, and what they ask there."""
        low, high = workload.low, workload.high
        met = (low[:, self.axis] <= self.value) & (self.value < high[:, self.axis])
        if met.any():
            yield 0, *_asked(workload, met, self.domains[0], low[:, self._kept], high[:, self._kept])
        low, high = low.copy(), high.copy()
        low[:, self.axis] -= low[:, self.axis] > self.value
        high[:, self.axis] -= high[:, self.axis] > self.value
        met = low[:, self.axis] < high[:, self.axis]
        if met.any():
            yield 1, *_asked(workload, met, self.domains[1], low, high)


def _asked(
    workload: Workload, met: NDArray[np.bool_], inner: Domain, low: IntArray, high: IntArray
) -> tuple[IntArray, Workload]:
    """Which questions have boxes in a piece, and what they ask there."""
    if workload.query is None:
        asked, query = np.flatnonzero(met), None
    else:
        asked, query = np.unique(workload.query[met], return_inverse=True)
    return asked, Workload(inner, low[met], high[met], query)


Pieces = ByValues | OneApart
