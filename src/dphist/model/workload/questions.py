"""The questions people ask of a histogram: sums over ranges of cells, many at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn, Self

import numpy as np
import numpy.typing as npt

from dphist.arguments import explained
from dphist.errors import QueryError, TooLargeError
from dphist.kernels.hashing import GOLDEN, mixed
from dphist.model.domain import Domain
from dphist.model.phrases import counted

IntArray = npt.NDArray[np.int64]
Boxes = tuple[IntArray, IntArray]
Kind = Literal["cells", "prefixes", "all_ranges", "marginals", "ranges"]
Tables = tuple[tuple[int, ...], ...]

# Boxes handled at a time when a structured workload is never written out in full.
CHUNK = 1 << 20
# Bounds of this many boxes or more are refused; walk `chunks` instead.
LARGEST = 1 << 28

STRUCTURED = ("cells", "prefixes", "all_ranges")


@explained
class Questions:
    """Boxes of cells that are asked about, written out or by a rule: what `Workload` is underneath."""

    domain: Domain
    kind: Kind
    size: int
    query: IntArray | None
    tables: Tables | None
    """For marginals, the axes of every table, in order; None for other questions."""
    ranges: tuple[int, ...] = ()
    """For marginals, the axes whose ranges or groups will be asked inside the tables."""
    parts: tuple[tuple[float, Self], ...] = ()
    """For a mixture, how much each part counts, and what it asks."""

    def __init__(
        self,
        domain: Domain,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        query: npt.ArrayLike | None = None,
        *,
        kind: Kind = "ranges",
    ) -> None:
        bounds = [integers(low, domain, "low"), integers(high, domain, "high")]
        if bounds[0].shape != bounds[1].shape:
            raise QueryError("workload: low and high must have as many rows")
        if bool((bounds[0] < 0).any() or (bounds[0] > bounds[1]).any()) or bool(
            (bounds[1] > np.array(domain.shape, dtype=np.int64)).any()
        ):
            raise QueryError("workload: every box must have 0 ≤ low ≤ high ≤ the size of the axis")
        size, owner = len(bounds[0]), None
        if query is not None:
            owner = as_array(query, "query")
            if owner.dtype.kind not in "iu" or owner.shape != (size,) or bool((owner < 0).any()):
                raise QueryError("workload: query must give each box the number of its question")
            size = int(owner.max()) + 1 if size else 0
            owner = np.array(owner, dtype=np.int64, order="C")
            owner.setflags(write=False)
        for array in bounds:
            array.setflags(write=False)
        self.__dict__.update(domain=domain, kind=kind, size=size, query=owner, tables=None)
        self.__dict__["_bounds"] = (bounds[0], bounds[1])

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a workload does not change; make another one")

    @classmethod
    def _rule(
        cls, domain: Domain, kind: Kind, tables: Tables | None = None, ranges: tuple[int, ...] = ()
    ) -> Self:
        size = domain.size
        if tables is not None:
            size = sum(math.prod(domain.shape[axis] for axis in axes) for axes in tables)
        elif kind == "all_ranges":
            size = math.prod(n * (n + 1) // 2 for n in domain.shape)
        made = cls.__new__(cls)
        made.__dict__.update(domain=domain, kind=kind, size=size, query=None, tables=tables, ranges=ranges)
        return made

    def __len__(self) -> int:
        return self.size

    @cached_property
    def _bounds(self) -> Boxes:
        check_size(self.size, f"the bounds of {self.kind}")
        low, high = self._at(slice(None))
        low.setflags(write=False)
        high.setflags(write=False)
        return low, high

    @property
    def low(self) -> IntArray:
        """The first cell of every box on every axis: int64[boxes, axes]."""
        return self._bounds[0]

    @property
    def high(self) -> IntArray:
        """One past the last cell of every box on every axis: int64[boxes, axes]."""
        return self._bounds[1]

    def _at(self, chosen: slice | IntArray) -> Boxes:
        """Bounds of some questions of a workload that has one box per question; places are in order."""
        if "_bounds" in self.__dict__:
            return self.low[chosen], self.high[chosen]
        rank = np.arange(*chosen.indices(self.size)) if isinstance(chosen, slice) else chosen
        if self.tables is not None:
            return tabled(self.tables, self.domain.shape, rank)
        return ruled(self.kind, self.domain.shape, rank)

    def __getitem__(self, index: slice) -> Self:
        if not isinstance(index, slice):
            raise QueryError("workload: take a slice of questions, such as workload[:100]")
        if self.query is None:
            return type(self)(self.domain, *self._at(index))
        chosen = np.arange(*index.indices(self.size))
        renumbered = np.full(self.size, -1, dtype=np.int64)
        renumbered[chosen] = np.arange(len(chosen))
        kept = renumbered[self.query] >= 0
        made = type(self)(self.domain, self.low[kept], self.high[kept], renumbered[self.query][kept])
        # The last questions may be empty unions, which no box speaks for.
        made.__dict__["size"] = len(chosen)
        return made

    def chunks(self, size: int = CHUNK) -> Iterator[Self]:
        """The same questions in order, a bounded number at a time.

        Args:
            size: How many at a time.

        Returns:
            Workloads of at most ``size`` questions.
        """
        if type(size) is not int or size < 1:
            raise QueryError("workload: size must be a positive whole number")
        for start in range(0, self.size, size):
            yield self[start : start + size]

    def spread(self, count: int) -> Self:
        """Some of the questions, evenly over all of them: what a forecast asks of very many.

        Args:
            count: How many at most.

        Returns:
            At most ``count`` questions of a workload that has one box per question.
        """
        if type(count) is not int or count < 1 or self.query is not None:
            raise QueryError("workload: spread takes a positive whole number, and questions of one box each")
        if self.size >= 2**62:
            raise TooLargeError(
                "workload: the domain has too many combinations to number; ask for tables of few attributes"
            )
        chosen = np.unique(np.linspace(0, self.size - 1, min(self.size, count)).astype(np.int64))
        return type(self)(self.domain, *self._at(chosen))

    def answer(self, counts: npt.ArrayLike) -> npt.NDArray[Any]:
        """The answer to every question, from counts of the domain's shape (or flat).

        A table of running sums is built once and each box takes 2^d look-ups. Integers are summed exactly as
        int64.

        Args:
            counts: A number for every cell.

        Returns:
            A number for every question.
        """
        values = as_array(counts, "counts")
        if values.shape not in (self.domain.shape, (self.domain.size,)):
            raise QueryError(f"workload: counts have shape {values.shape}, the domain {self.domain.shape}")
        exact = values.dtype.kind in "iub"
        values = np.ascontiguousarray(values, dtype=np.int64 if exact else np.float64).reshape(
            self.domain.shape
        )
        if self.kind == "cells":
            return values.reshape(-1).copy()
        if self.kind == "prefixes":
            total = values.copy()
            for axis in range(values.ndim):
                np.cumsum(total, axis=axis, out=total)
            return total.reshape(-1)
        # Compiled code is loaded only when a question needs it.
        from dphist.kernels.summed_area import running_sums

        return self.answer_from(running_sums(values))

    def answer_from(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The answer to every question, from running sums that are kept (`kernels.summed_area.running_sums`).

        Who asks the same counts again and again, as an explorer does, builds the table once.

        Args:
            table: Running sums over every axis, one longer than the domain on each.

        Returns:
            A number for every question.
        """
        from dphist.kernels.summed_area import add_box_sums, all_range_sums

        if self.size >= LARGEST:
            raise TooLargeError(
                f"{self.size:,} answers take {self.size * 8:,} bytes; ask them in parts: workload.chunks()"
            )
        # Compiled code does not look where it reads: a table of another shape would be read past its end.
        shape = tuple(size + 1 for size in self.domain.shape)
        if not isinstance(table, np.ndarray) or table.shape != shape:
            raise QueryError(f"table: running sums of the domain have the shape {shape}")
        if table.dtype not in (np.int64, np.float64):
            raise QueryError("table: running sums are 64-bit integers or floats")
        table = np.ascontiguousarray(table)
        out = np.zeros(self.size, dtype=table.dtype)
        if self.kind == "all_ranges" and table.ndim == 1:
            all_range_sums(table, 0, out)
            return out
        strides = np.array(table.strides, dtype=np.int64) // table.itemsize
        flat = table.reshape(-1)
        if self.query is not None:
            add_box_sums(flat, strides, self.low, self.high, self.query, out)
            return out
        for start in range(0, self.size, CHUNK):
            low, high = self._at(slice(start, start + CHUNK))
            add_box_sums(flat, strides, low, high, np.arange(start, start + len(low)), out)
        return out

    @property
    def cells_in_each(self) -> IntArray:
        """How many cells each question adds up."""
        if self.kind == "cells":
            return np.ones(self.size, dtype=np.int64)
        volumes: IntArray = np.prod(self.high - self.low, axis=1, dtype=np.int64)
        if self.query is None:
            return volumes
        summed = np.zeros(self.size, dtype=np.int64)
        np.add.at(summed, self.query, volumes)
        return summed

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` turns back into an equal workload over the same domain.

        Returns:
            A mapping of plain values.
        """
        if self.kind in STRUCTURED:
            return {"kind": self.kind}
        if self.parts:
            return {"kind": "mixture", "parts": [[weight, part.to_json()] for weight, part in self.parts]}
        if self.tables is not None:
            told: dict[str, Any] = {"kind": self.kind, "tables": [list(axes) for axes in self.tables]}
            return {**told, "ranges": list(self.ranges)} if self.ranges else told
        return {
            "kind": self.kind,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "query": None if self.query is None else self.query.tolist(),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Questions):
            return NotImplemented
        if (self.domain, self.size, self.ranges) != (other.domain, other.size, other.ranges):
            return False
        if self.kind == other.kind and self.kind in STRUCTURED:
            return True
        if self.parts or other.parts:
            return self.parts == other.parts
        if self.tables is not None and self.tables == other.tables:
            return True
        if self.size >= LARGEST or (self.query is None) != (other.query is None):
            # Too many to be compared one by one, and by different rules.
            return False
        pairs: Any = (self.low, other.low), (self.high, other.high), (self.query, other.query)
        return all(one is other or np.array_equal(one, other) for one, other in pairs)

    def __hash__(self) -> int:
        return hash((self.domain, self.size))

    def __repr__(self) -> str:
        axes = " × ".join(f"{a.name}[{a.size}]" for a in self.domain.attributes)
        return f"Workload({self.kind}: {counted(self.size, 'question')} over {axes})"


def ruled(kind: Kind, shape: Sequence[int], rank: IntArray) -> Boxes:
    """The questions at some places of cells, prefixes or all ranges."""
    low = np.zeros((len(rank), len(shape)), dtype=np.int64)
    high = np.zeros_like(low)
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        each = n * (n + 1) // 2 if kind == "all_ranges" else n
        rank, place = np.divmod(rank, each)
        if kind == "all_ranges":
            low[:, axis], high[:, axis] = unrank(place, n)
        else:
            low[:, axis] = 0 if kind == "prefixes" else place
            high[:, axis] = place + 1
    return low, high


def tabled(tables: Tables, shape: Sequence[int], rank: IntArray) -> Boxes:
    """The cells at some places, in order, of tables, one table after the other."""
    low = np.zeros((len(rank), len(shape)), dtype=np.int64)
    high = np.tile(np.array(shape, dtype=np.int64), (len(rank), 1))
    begin = 0
    for axes in tables:
        sizes = tuple(shape[axis] for axis in axes)
        cells = math.prod(sizes)
        first, last = np.searchsorted(rank, (begin, begin + cells))
        if first < last and axes:
            place = np.stack(np.unravel_index(rank[first:last] - begin, sizes), axis=1)
            low[first:last, list(axes)] = place
            high[first:last, list(axes)] = place + 1
        begin += cells
    return low, high


def integers(bounds: npt.ArrayLike, domain: Domain, name: str) -> IntArray:
    """Bounds as integers, a row a box and a column an attribute."""
    array = as_array(bounds, name)
    if array.size == 0:
        array = array.reshape(0, len(domain.shape)).astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != len(domain.shape):
        raise QueryError(f"workload: {name} must be integers, a row per box and a column per attribute")
    # A copy, so that the caller's array is neither frozen nor able to change the questions later.
    return np.array(array, dtype=np.int64, order="C")


def as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Anything that looks like an array as one."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        # Rows of different lengths, and the like.
        raise QueryError(f"workload: {name} cannot be read as an array of numbers") from None


def overlapping(low: IntArray, high: IntArray, query: IntArray) -> bool:
    """Whether two boxes of one question share a cell, which would then count twice."""
    filled = (low < high).all(axis=1)
    low, high, query = low[filled], high[filled], query[filled]
    if not len(low):
        return False
    # Along the axis on which fewest meet, each box is set beside those that begin before it ends.
    found = [_meeting(low[:, axis], high[:, axis], query) for axis in range(low.shape[1])]
    order, others = min(found, key=lambda each: int(each[1].sum()))
    low, high = low[order], high[order]
    for step in range(1, int(others.max()) + 1):
        one = np.flatnonzero(others >= step)
        if bool(((low[one] < high[one + step]) & (low[one + step] < high[one])).all(axis=1).any()):
            return True
    return False


def _meeting(low: IntArray, high: IntArray, query: IntArray) -> Boxes:
    """An order of boxes by question and where they begin, and how many that follow each of them begin inside it."""
    order = np.lexsort((low, query))
    row = query[order] * (int(high.max()) + 1)
    begins, ends = row + low[order], row + high[order]
    return order, np.searchsorted(begins, ends) - np.arange(1, len(order) + 1)


def check_size(boxes: int, what: str) -> None:
    """Refuse to write out too many boxes."""
    if boxes >= LARGEST:
        raise TooLargeError(
            f"{what} are {boxes:,} boxes, too many to write out; use the workload's rule, chunks() or a slice"
        )


def unrank(rank: IntArray, n: int) -> Boxes:
    """The range at each place of the list (0,1), (0,2), …, (0,n), (1,2), …, (n-1,n).

    The float root can be off by one for large n; the exact integer comparison puts it right.
    """
    low = (((2 * n + 1) - np.sqrt((2.0 * n + 1) ** 2 - 8.0 * rank)) / 2).astype(np.int64)
    low = np.clip(low, 0, n - 1)
    for _ in range(2):
        low -= low * (2 * n - low + 1) // 2 > rank
        low += (low + 1) * (2 * n - low) // 2 <= rank
    return low, low + 1 + rank - low * (2 * n - low + 1) // 2


def fractions(count: int, seed: int, axis: int) -> npt.NDArray[np.float64]:
    """Numbers spread evenly over [0, 1), by the splitmix64 hash of (seed, axis, place)."""
    place = np.arange(count, dtype=np.uint64) + np.uint64(1)
    for salt in (seed, axis):
        place = mixed(place * np.uint64(GOLDEN) + np.uint64(salt % 2**64))
    return (place >> np.uint64(11)).astype(np.float64) * 2.0**-53
