"""The questions people ask of a histogram: sums over ranges of cells, many at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from dphist.errors import QueryError, TooLargeError
from dphist.model.domain import Domain, Nominal
from dphist.model.domain.conditions import spans

IntArray = npt.NDArray[np.int64]
Boxes = tuple[IntArray, IntArray]
Kind = Literal["cells", "prefixes", "all_ranges", "marginals", "ranges"]

_STRUCTURED = ("cells", "prefixes", "all_ranges")
# Boxes handled at a time when a structured workload is never written out in full.
_CHUNK = 1 << 20
# Bounds of this many boxes or more are refused; walk `chunks` instead.
_LARGEST = 1 << 28


class Workload:
    """Questions about a domain, each a sum over a half-open box of cells, ``low ≤ i < high``.

    A question may also be a union of disjoint boxes: ``query`` then says which question each box belongs to
    (None when box i is question i). Cells, prefixes and all ranges follow a rule and are not written out
    until ``low`` or ``high`` is read, so all 537 million ranges of 32,768 cells are a few bytes. Workloads
    are public.

    Args:
        domain: What the questions are about.
        low: The first cell of every box on every axis.
        high: One past the last.
        query: Which question each box belongs to; None when box i is question i.
        kind: What the questions are, for mechanisms that serve some kinds best.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> workload = Workload(domain, low=[[30, 0]], high=[[41, 1]])
        >>> workload.answer(np.ones((100, 2), dtype=int)).tolist()
        [11]
    """

    domain: Domain
    kind: Kind
    size: int
    query: IntArray | None

    def __init__(
        self,
        domain: Domain,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        query: npt.ArrayLike | None = None,
        *,
        kind: Kind = "ranges",
    ) -> None:
        _domain(domain)
        bounds = [_integers(low, domain, "low"), _integers(high, domain, "high")]
        if bounds[0].shape != bounds[1].shape:
            raise QueryError("workload: low and high must have as many rows")
        if bool((bounds[0] < 0).any() or (bounds[0] > bounds[1]).any()) or bool(
            (bounds[1] > np.array(domain.shape, dtype=np.int64)).any()
        ):
            raise QueryError("workload: every box must have 0 ≤ low ≤ high ≤ the size of the axis")
        size, owner = len(bounds[0]), None
        if query is not None:
            owner = _array(query, "query")
            if owner.dtype.kind not in "iu" or owner.shape != (size,) or bool((owner < 0).any()):
                raise QueryError("workload: query must give each box the number of its question")
            size = int(owner.max()) + 1 if size else 0
            owner = np.array(owner, dtype=np.int64, order="C")
            owner.setflags(write=False)
        for array in bounds:
            array.setflags(write=False)
        self._set(domain, kind, size, owner)
        self.__dict__["_bounds"] = (bounds[0], bounds[1])

    def _set(self, domain: Domain, kind: Kind, size: int, query: IntArray | None) -> None:
        self.__dict__.update(domain=domain, kind=kind, size=size, query=query)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a workload does not change; make another one")

    @classmethod
    def _rule(cls, domain: Domain, kind: Kind, size: int) -> Workload:
        made = cls.__new__(cls)
        made._set(domain, kind, size, None)
        return made

    @classmethod
    def cells(cls, domain: Domain) -> Workload:
        """Every cell by itself, in C order.

        Args:
            domain: What is asked about.

        Returns:
            One question a cell.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> len(Workload.cells(domain))
            200
        """
        _domain(domain)
        return cls._rule(domain, "cells", domain.size)

    @classmethod
    def prefixes(cls, domain: Domain) -> Workload:
        """Every box that starts at the first cell (cumulative counts), in C order of its last cell.

        Args:
            domain: What is asked about.

        Returns:
            One question a cell: the box that ends there.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> Workload.prefixes(domain)
            Workload(prefixes: 200 questions over age[100] × sex[2])
        """
        _domain(domain)
        return cls._rule(domain, "prefixes", domain.size)

    @classmethod
    def all_ranges(cls, domain: Domain) -> Workload:
        """Every range, ordered by low then high bound; on several axes, every combination of them.

        Args:
            domain: What is asked about.

        Returns:
            Every range; nothing is written out until it is read.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> len(Workload.all_ranges(domain))
            15150
        """
        _domain(domain)
        return cls._rule(domain, "all_ranges", math.prod(n * (n + 1) // 2 for n in domain.shape))

    @classmethod
    def random(cls, domain: Domain, count: int, seed: int = 0) -> Workload:
        """Random ranges, the same for the same seed: public questions, so they need no entropy.

        An ordered attribute gets a range drawn evenly from all its ranges of values, a nominal one a node
        drawn evenly from its hierarchy.

        Args:
            domain: What is asked about.
            count: How many ranges.
            seed: Another seed, other ranges.

        Returns:
            The ranges.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> Workload.random(domain, 50, seed=3) == Workload.random(domain, 50, seed=3)
            True
        """
        _domain(domain)
        if type(count) is not int or type(seed) is not int or count < 0:
            raise QueryError("workload: count and seed must be whole numbers, and count not negative")
        _check(count, "the random ranges")
        low = np.empty((count, len(domain.shape)), dtype=np.int64)
        high = np.empty_like(low)
        for axis, attribute in enumerate(domain.attributes):
            spread = _fractions(count, seed, axis)
            if isinstance(attribute, Nominal):
                tree = attribute.hierarchy
                node = (spread * tree.size).astype(np.int64)
                low[:, axis], high[:, axis] = tree.start[node], tree.stop[node]
            else:
                ranges = attribute.scale.size * (attribute.scale.size + 1) // 2
                rank = np.minimum((spread * ranges).astype(np.int64), ranges - 1)
                low[:, axis], high[:, axis] = _unrank(rank, attribute.scale.size)
        return cls(domain, low, high)

    @classmethod
    def marginals(cls, domain: Domain, ways: int | Sequence[Sequence[str]] = 1) -> Workload:
        """Every cell of the tables of ``ways`` attributes each, or of the tables that are named.

        Args:
            domain: What is asked about.
            ways: How many attributes each table has, or the names of the attributes of every table.

        Returns:
            Every cell of these tables, table after table.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> len(Workload.marginals(domain)), len(Workload.marginals(domain, [["age", "sex"]]))
            (102, 200)
        """
        _domain(domain)
        if isinstance(ways, int):
            if not 0 <= ways <= len(domain.shape):
                raise QueryError("workload: ways must be between 0 and the number of attributes")
            tables = list(combinations(range(len(domain.shape)), ways))
        else:
            named = [(t,) if isinstance(t, str) else tuple(t) for t in ways]
            tables = [tuple(domain.axis(name) for name in names) for names in named]
        lows, highs = [], []
        for axes in tables:
            shape = tuple(domain.shape[axis] for axis in axes)
            cells = math.prod(shape)
            _check(cells, "the marginals")
            low = np.zeros((cells, len(domain.shape)), dtype=np.int64)
            high = np.tile(np.array(domain.shape, dtype=np.int64), (cells, 1))
            if axes:
                place = np.stack(np.unravel_index(np.arange(cells), shape), axis=1)
                low[:, list(axes)] = place
                high[:, list(axes)] = place + 1
            lows.append(low)
            highs.append(high)
        if not lows:
            raise QueryError("workload: name at least one table")
        return cls(domain, np.concatenate(lows), np.concatenate(highs), kind="marginals")

    @classmethod
    def where(
        cls,
        domain: Domain,
        conditions: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        /,
        **named: Any,
    ) -> Workload:
        """Questions in the attributes' own values, such as ``where(domain, age=(30, 40), sex="F")``.

        A pair bounds an ordered attribute, both ends included, None leaving a side open; a single value is
        its cell, or a whole group of a hierarchy; a list is any of its items. Attributes that are not named
        are not restricted. A list of mappings asks one question each.

        Args:
            domain: What is asked about.
            conditions: A mapping from attribute to condition, or a list of them.
            named: Conditions by the attribute's name.

        Returns:
            One question, or one for each mapping.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> Workload.where(domain, age=(30, 40), sex="F").answer(np.ones((100, 2))).tolist()
            [11.0]
        """
        _domain(domain)
        if conditions is None:
            asked: list[dict[str, Any]] = [dict(named)]
        elif isinstance(conditions, Mapping):
            asked = [{**conditions, **named}]
        elif isinstance(conditions, Sequence) and all(isinstance(each, Mapping) for each in conditions):
            asked = [{**each, **named} for each in conditions]
        else:
            raise QueryError(
                "workload: conditions must map attributes to what is asked of them, or list such"
            )
        lows, highs, owners = [], [], []
        for number, question in enumerate(asked):
            for name in question:
                if name not in domain.names:
                    raise QueryError(f"there is no attribute {name}; there are {', '.join(domain.names)}")
            allowed = [
                spans(attribute, question[attribute.name])
                if attribute.name in question
                else [(0, attribute.size)]
                for attribute in domain.attributes
            ]
            for box in product(*allowed):
                lows.append([start for start, _ in box])
                highs.append([stop for _, stop in box])
                owners.append(number)
        return cls(domain, lows, highs, None if owners == list(range(len(asked))) else owners)

    def __len__(self) -> int:
        return self.size

    @cached_property
    def _bounds(self) -> Boxes:
        _check(self.size, f"the bounds of {self.kind}")
        low, high = self._slice(0, self.size)
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

    def _slice(self, start: int, stop: int) -> Boxes:
        """Bounds of some questions of a workload that has one box per question."""
        if "_bounds" in self.__dict__:
            return self.low[start:stop], self.high[start:stop]
        rank = np.arange(start, stop, dtype=np.int64)
        low = np.zeros((len(rank), len(self.domain.shape)), dtype=np.int64)
        high = np.zeros_like(low)
        for axis in reversed(range(len(self.domain.shape))):
            n = self.domain.shape[axis]
            each = n * (n + 1) // 2 if self.kind == "all_ranges" else n
            rank, place = np.divmod(rank, each)
            if self.kind == "all_ranges":
                low[:, axis], high[:, axis] = _unrank(place, n)
            else:
                low[:, axis] = 0 if self.kind == "prefixes" else place
                high[:, axis] = place + 1
        return low, high

    def __getitem__(self, index: slice) -> Workload:
        if not isinstance(index, slice):
            raise QueryError("workload: take a slice of questions, such as workload[:100]")
        start, stop, step = index.indices(self.size)
        if self.query is None and step == 1:
            return Workload(self.domain, *self._slice(start, max(start, stop)))
        chosen = np.arange(start, stop, step)
        if self.query is None:
            return Workload(self.domain, self.low[chosen], self.high[chosen])
        renumbered = np.full(self.size, -1, dtype=np.int64)
        renumbered[chosen] = np.arange(len(chosen))
        kept = renumbered[self.query] >= 0
        made = Workload(self.domain, self.low[kept], self.high[kept], renumbered[self.query][kept])
        # The last questions may be empty unions, which no box speaks for.
        made.__dict__["size"] = len(chosen)
        return made

    def chunks(self, size: int = _CHUNK) -> Iterator[Workload]:
        """The same questions in order, a bounded number at a time.

        Args:
            size: How many at a time.

        Returns:
            Workloads of at most so many questions.
        """
        if type(size) is not int or size < 1:
            raise QueryError("workload: size must be a positive whole number")
        for start in range(0, self.size, size):
            yield self[start : start + size]

    def answer(self, counts: npt.ArrayLike) -> npt.NDArray[Any]:
        """The answer to every question, from counts of the domain's shape (or flat).

        A table of running sums is built once and each box takes 2^d look-ups. Integers are summed exactly as
        int64.

        Args:
            counts: A number for every cell.

        Returns:
            A number for every question.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> Workload.marginals(domain, [["sex"]]).answer(np.ones((100, 2))).tolist()
            [100.0, 100.0]
        """
        values = _array(counts, "counts")
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

        self._refuse_too_many()
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

        self._refuse_too_many()
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
        for start in range(0, self.size, _CHUNK):
            low, high = self._slice(start, min(start + _CHUNK, self.size))
            add_box_sums(flat, strides, low, high, np.arange(start, start + len(low)), out)
        return out

    def _refuse_too_many(self) -> None:
        if self.size >= _LARGEST:
            raise TooLargeError(
                f"{self.size:,} answers take {self.size * 8:,} bytes; ask them in parts: workload.chunks()"
            )

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
        if self.kind in _STRUCTURED:
            return {"kind": self.kind}
        return {
            "kind": self.kind,
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "query": None if self.query is None else self.query.tolist(),
        }

    @classmethod
    def from_json(cls, domain: Domain, value: Mapping[str, Any]) -> Workload:
        """Read what `to_json` wrote.

        Args:
            domain: What is asked about.
            value: What `to_json` gave.

        Returns:
            An equal workload.
        """
        _domain(domain)
        if not isinstance(value, Mapping) or "kind" not in value:
            raise QueryError("workload: the description names no kind")
        kind = value["kind"]
        if kind in _STRUCTURED:
            made: Workload = getattr(cls, kind)(domain)
            return made
        return cls(domain, value.get("low", ()), value.get("high", ()), value.get("query"), kind=kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        if (self.domain, self.size) != (other.domain, other.size):
            return False
        if self.kind == other.kind and self.kind in _STRUCTURED:
            return True
        if (self.query is None) != (other.query is None):
            return False
        same = np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)
        return same and (self.query is None or other.query is None or np.array_equal(self.query, other.query))

    def __hash__(self) -> int:
        return hash((self.domain, self.size))

    def __repr__(self) -> str:
        axes = " × ".join(f"{a.name}[{a.size}]" for a in self.domain.attributes)
        return f"Workload({self.kind}: {self.size:,} questions over {axes})"


def _integers(bounds: npt.ArrayLike, domain: Domain, name: str) -> IntArray:
    array = _array(bounds, name)
    if array.size == 0:
        array = array.reshape(0, len(domain.shape)).astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != len(domain.shape):
        raise QueryError(f"workload: {name} must be integers, a row per box and a column per attribute")
    # A copy, so that the caller's array is neither frozen nor able to change the questions later.
    return np.array(array, dtype=np.int64, order="C")


def _array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        # Rows of different lengths, and the like.
        raise QueryError(f"workload: {name} cannot be read as an array of numbers") from None


def _domain(domain: object) -> None:
    if not isinstance(domain, Domain):
        raise QueryError(f"workload: domain must be a dphist.Domain, not a {type(domain).__name__}")


def _check(boxes: int, what: str) -> None:
    if boxes >= _LARGEST:
        raise TooLargeError(
            f"{what} are {boxes:,} boxes, too many to write out; use the workload's rule, chunks() or a slice"
        )


def _unrank(rank: IntArray, n: int) -> Boxes:
    """The range at each place of the list (0,1), (0,2), …, (0,n), (1,2), …, (n-1,n).

    The float root can be off by one for large n; the exact integer comparison puts it right.
    """
    low = (((2 * n + 1) - np.sqrt((2.0 * n + 1) ** 2 - 8.0 * rank)) / 2).astype(np.int64)
    low = np.clip(low, 0, n - 1)
    for _ in range(2):
        low -= low * (2 * n - low + 1) // 2 > rank
        low += (low + 1) * (2 * n - low) // 2 <= rank
    return low, low + 1 + rank - low * (2 * n - low + 1) // 2


def _fractions(count: int, seed: int, axis: int) -> npt.NDArray[np.float64]:
    """Numbers spread evenly over [0, 1), by the splitmix64 hash of (seed, axis, place)."""
    mixed = np.arange(count, dtype=np.uint64) + np.uint64(1)
    for salt in (seed, axis):
        mixed = _mix(mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt % 2**64))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
