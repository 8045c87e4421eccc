"""Workloads by name: every way to say what will be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from dphist.arguments import explained
from dphist.errors import QueryError
from dphist.model.domain import Domain, Nominal
from dphist.model.domain.space import spans
from dphist.model.workload import reading
from dphist.model.workload.questions import STRUCTURED, Questions, check_size, fractions, unrank

# A mixture names at most 4,096 questions of each of its parts.
_SOME = 4096


@explained
class Workload(Questions):
    """Questions about a domain, each a sum over a half-open box of cells, ``low ≤ i < high``.

    A question may also be a union of disjoint boxes: ``query`` then says which question each box belongs to
    (None when box i is question i). Cells, prefixes, all ranges and tables follow a rule and are not written out
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
        >>> Workload(domain, low=[[30, 0]], high=[[41, 1]]).answer(np.ones((100, 2), dtype=int)).tolist()
        [11]
        >>> Workload.where(domain, age=(30, 40), sex="F").answer(np.ones((100, 2))).tolist()
        [11.0]
        >>> Workload.prefixes(domain)
        Workload(prefixes: 200 questions over age[100] × sex[2])
        >>> len(Workload.all_ranges(domain)), len(Workload.marginals(domain)), len(Workload.marginals(domain, 2))
        (15150, 102, 200)
        >>> Workload.random(domain, 50, seed=3) == Workload.random(domain, 50, seed=3)
        True
        >>> mixed = Workload.mixture(domain, [(3, "cells"), (1, "marginals:1")])
        >>> {part.kind: weight for weight, part in mixed.parts}
        {'cells': 3.0, 'marginals': 1.0}
    """

    @classmethod
    def parse(cls, domain: Domain, text: str | Mapping[str, Any] | Workload) -> Workload:
        """Read what will be asked from what people write.

        ``"cells"``, ``"prefixes"``, ``"ranges"``, ``"marginals"`` (every attribute by itself), ``"marginals:2"`` (every
        table of two) or ``"marginals:age,sex;sex,region"`` (the tables that are named). A mapping says the same for
        names with commas in them: ``{"marginals": [["age", "sex"], ["sex", "region"]]}``. Tables may be followed by the
        attributes whose ranges, or groups of a hierarchy, will be asked inside them: ``"marginals:2 ranges:age"``,
        ``{"marginals": 2, "ranges": ["age"]}``, or ``ranges:*`` for all that have an order or a hierarchy. Several
        kinds with weights are a mixture (see `mixture`): ``"3 cells + marginals:2"``, or
        ``{"mixture": [[3, "cells"], [1, {"marginals": 2}]]}``.

        Args:
            domain: What is asked about.
            text: The text, such a mapping, or a workload over this domain, which is given back.

        Returns:
            The questions.

        Example:
            >>> import dphist
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
            >>> dphist.Workload.parse(domain, "marginals:2")
            Workload(marginals: 200 questions over age[100] × sex[2])
            >>> len(dphist.Workload.parse(domain, "marginals:age;sex"))
            102
        """
        if isinstance(text, Workload):
            if text.domain != domain:
                raise QueryError(
                    "workload is over another domain than the records; build it from the same domain"
                )
            return text
        if isinstance(text, Mapping):
            if set(text) == {"mixture"}:
                return cls.mixture(domain, text["mixture"])
            ways, ranges = reading.read_mapping(text)
            return cls.marginals(domain, ways, ranges)
        if not isinstance(text, str):
            raise QueryError(
                f"workload: expected a dphist.Workload or text, not a {type(text).__name__}: {reading.FORMS}"
            )
        parts = reading.read_mixture(text)
        if parts:
            return cls.mixture(domain, parts)
        before, named = reading.read_ranges(text)
        kind, ways = reading.read_text(domain, before)
        if named and kind != "marginals":
            raise QueryError("workload: ranges are named inside tables: marginals:2 ranges:age")
        if kind == "marginals":
            return cls.marginals(domain, ways, named)
        made: Workload = getattr(cls, kind)(domain)
        return made

    @classmethod
    def cells(cls, domain: Domain) -> Workload:
        """Every cell by itself, in C order.

        Args:
            domain: What is asked about.

        Returns:
            One question a cell.
        """
        return cls._rule(domain, "cells")

    @classmethod
    def prefixes(cls, domain: Domain) -> Workload:
        """Every box that starts at the first cell (cumulative counts), in C order of its last cell.

        Args:
            domain: What is asked about.

        Returns:
            One question a cell: the box that ends there.
        """
        return cls._rule(domain, "prefixes")

    @classmethod
    def all_ranges(cls, domain: Domain) -> Workload:
        """Every range, ordered by low then high bound; on several axes, every combination of them.

        Args:
            domain: What is asked about.

        Returns:
            Every range; nothing is written out until it is read.
        """
        return cls._rule(domain, "all_ranges")

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
        """
        if type(count) is not int or type(seed) is not int or count < 0:
            raise QueryError("workload: count and seed must be whole numbers, and count not negative")
        check_size(count * len(domain.shape), "the random ranges")
        low = np.empty((count, len(domain.shape)), dtype=np.int64)
        high = np.empty_like(low)
        for axis, attribute in enumerate(domain.attributes):
            spread = fractions(count, seed, axis)
            if isinstance(attribute, Nominal):
                tree = attribute.hierarchy
                node = (spread * tree.size).astype(np.int64)
                low[:, axis], high[:, axis] = tree.start[node], tree.stop[node]
            else:
                ranges = attribute.scale.size * (attribute.scale.size + 1) // 2
                if ranges >= 2**62:
                    raise QueryError(
                        f"workload: {attribute.name} has {attribute.scale.size:,} values, whose ranges are too many to "
                        "draw some of; use bins"
                    )
                rank = np.minimum((spread * ranges).astype(np.int64), ranges - 1)
                low[:, axis], high[:, axis] = unrank(rank, attribute.scale.size)
        return cls(domain, low, high)

    @classmethod
    def marginals(
        cls, domain: Domain, ways: int | Sequence[Sequence[str]] = 1, ranges: Sequence[str] = ()
    ) -> Workload:
        """Every cell of the tables of ``ways`` attributes each, or of the tables that are named.

        Args:
            domain: What is asked about.
            ways: How many attributes each table has, or the names of the attributes of every table.
            ranges: The attributes whose ranges or groups will be asked inside the tables, for mechanisms that serve
                them; ``["*"]`` for all that have an order or a hierarchy.

        Returns:
            Every cell of these tables, table after table.
        """
        return cls._rule(domain, "marginals", reading.tables(domain, ways), reading.ranges(domain, ranges))

    @classmethod
    def mixture(cls, domain: Domain, parts: Sequence[Any]) -> Workload:
        """Several kinds of questions, each with how much it counts, for mechanisms that weigh them (`auto`).

        A mixture says what will be asked; of a part with very many questions it names some, evenly. `parts` has every
        part as it was given.

        Args:
            domain: What is asked about.
            parts: Pairs of a weight above zero and what `parse` reads, or a workload that is no mixture itself.

        Returns:
            The questions of all parts, one part after the other.
        """
        read: list[tuple[float, Workload]] = []
        for weight, asked in reading.weighted(parts):
            one = cls.parse(domain, asked)
            if one.parts or one.query is not None or not len(one):
                raise QueryError(
                    "workload: a part of a mixture asks about single boxes, at least one, and is no mixture itself"
                )
            read.append((weight, one))
        some = [one if len(one) <= _SOME else one.spread(_SOME) for _, one in read]
        made = cls(
            domain, np.concatenate([one.low for one in some]), np.concatenate([one.high for one in some])
        )
        made.__dict__["parts"] = tuple(read)
        return made

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
        """
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
                reading.axis(domain, name)
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

    @classmethod
    def from_json(cls, domain: Domain, value: Mapping[str, Any]) -> Workload:
        """Read what `to_json` wrote.

        Args:
            domain: What is asked about.
            value: What `to_json` gave.

        Returns:
            An equal workload.
        """
        if not isinstance(value, Mapping) or "kind" not in value:
            raise QueryError("workload: the description names no kind")
        kind = value["kind"]
        if kind == "mixture":
            parts = reading.weighted(value.get("parts"))
            return cls.mixture(domain, [(each, cls.from_json(domain, part)) for each, part in parts])
        if kind in STRUCTURED:
            made: Workload = getattr(cls, kind)(domain)
            return made
        if kind == "marginals" and "tables" in value:
            (ranges,) = reading.axes_of(domain, [value.get("ranges", [])])
            return cls._rule(domain, "marginals", reading.axes_of(domain, value["tables"]), ranges)
        return cls(domain, value.get("low", ()), value.get("high", ()), value.get("query"), kind=kind)
