"""Read a release as a data cube: cut it, fold it, open it up, and have every number with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import QueryError
from dphist.inference.intervals import read_confidence
from dphist.model.domain import Domain, Nominal
from dphist.model.workload import Workload
from dphist.release.answers import Answers, Table
from dphist.release.asking import Asking
from dphist.release.cube.measures import clipped, is_measure, means, ratios, sums, variances
from dphist.release.cube.moments import Interval, Line, read_line
from dphist.release.cube.together import distributions, line_means, quantiles

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Cells (None), or a depth of the attribute's hierarchy.
Level = int | None
Groups = tuple[tuple[str, Level], ...]


def group_boxes(
    domain: Domain, where: Mapping[str, Any], groups: Groups
) -> tuple[dict[str, list[str]], IntArray, IntArray, IntArray]:
    """Labels of the groups, and the boxes of each: bounds, and which group they belong to.

    A group that a condition allows only parts of appears once, as several boxes.
    """
    names = [name for name, _ in groups]
    found = [_spans(domain, where, name, level) for name, level in groups]
    rest = Workload.where(domain, {n: value for n, value in where.items() if n not in names})
    if not found:
        return {}, rest.low, rest.high, np.zeros(len(rest.low), dtype=np.int64)
    pick = np.indices([len(labels) for labels, _ in found]).reshape(len(found), -1)
    boxes, combinations = len(rest.low), pick.shape[1]
    low, high = np.tile(rest.low, (combinations, 1)), np.tile(rest.high, (combinations, 1))
    for i, name in enumerate(names):
        spans = np.repeat(found[i][1][pick[i]], boxes, axis=0)
        low[:, domain.axis(name)], high[:, domain.axis(name)] = spans[:, 0], spans[:, 1]
    texts = list(zip(*([found[i][0][j] for j in pick[i]] for i in range(len(found))), strict=True))
    order = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    owner = np.repeat(np.array([order[text] for text in texts], dtype=np.int64), boxes)
    labels = {name: [text[i] for text in order] for i, name in enumerate(names)}
    return labels, low, high, owner


def _spans(domain: Domain, where: Mapping[str, Any], name: str, level: Level) -> tuple[list[str], IntArray]:
    """Labels and cells of an attribute's groups, as far as the condition on it allows: (start, stop) rows."""
    attribute = domain.attribute(name)
    if level is None or not isinstance(attribute, Nominal):
        start = np.arange(attribute.size)
        spans, labels = np.stack([start, start + 1], axis=1), list(attribute.labels)
    else:
        tree = attribute.hierarchy
        # A category that hangs higher up stands for itself further down.
        nodes = np.flatnonzero((tree.depth == level) | ((tree.depth < level) & (tree.fanout == 0)))
        nodes = nodes[np.argsort(tree.start[nodes])]
        spans = np.stack([tree.start[nodes], tree.stop[nodes]], axis=1)
        labels = [tree.names[node] for node in nodes]
    if name not in where:
        return labels, spans
    allowed = Workload.where(domain.project([name]), {name: where[name]})
    kept: list[tuple[str, int, int]] = []
    for label, (first, last) in zip(labels, spans, strict=True):
        for low, high in zip(allowed.low[:, 0], allowed.high[:, 0], strict=True):
            if max(first, low) < min(last, high):
                kept.append((label, max(first, low), min(last, high)))
    return [label for label, _, _ in kept], np.array([(a, b) for _, a, b in kept]).reshape(-1, 2)


@explained
@dataclass(frozen=True, eq=False)
class Cube:
    """A release seen as a cube. Every step gives a new view; only released numbers are read, so nothing is spent.

    ``where`` holds the conditions and ``groups`` what is told apart: an attribute at its cells (None) or, if it has a
    hierarchy, at a depth of it (1 is right below the root).

    Args:
        release: What is looked at.
        where: The conditions so far.
        groups: What is told apart so far.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> from dphist.uses import Cube
        >>> table = Cube(release).dice(age=(0, 49)).by("sex").count()
        >>> table.labels["sex"], len(table.value)
        (['F', 'M'], 2)
    """

    release: Asking
    where: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[tuple[str, Level], ...] = ()

    # ---- moving through the cube ----

    def slice(self, fixed: Mapping[str, Any] | None = None, /, **values: Any) -> Cube:
        """Fix attributes at one value each; they are no longer told apart.

        Args:
            fixed: A value for each attribute.
            values: The same by the attributes' names.

        Returns:
            The view.
        """
        values = {**(fixed or {}), **values}
        for name, value in values.items():
            if isinstance(value, tuple | list | set):
                raise QueryError(f"{name}: a slice fixes one value; use dice for ranges and lists")
        made = self.dice(values)
        return replace(made, groups=tuple(group for group in self.groups if group[0] not in values))

    def dice(self, where: Mapping[str, Any] | None = None, /, **conditions: Any) -> Cube:
        """Keep only some values of attributes: a pair of bounds, a list, a value or a group's name.

        Args:
            where: A condition for each attribute.
            conditions: The same by the attributes' names.

        Returns:
            The view.
        """
        conditions = {**(where or {}), **conditions}
        for name in conditions:
            self.release.domain.axis(name)
            if name in self.where:
                raise QueryError(f"{name} is restricted already; start from the whole cube")
        Workload.where(self.release.domain, conditions)
        return replace(self, where=MappingProxyType({**self.where, **conditions}))

    def by(self, /, *names: str, **levels: int) -> Cube:
        """Tell these attributes apart: at their cells, or at a depth of their hierarchy (``by("age", place=1)``).

        Args:
            names: Attributes to tell apart at their cells.
            levels: Attributes to tell apart at a depth of their hierarchy.

        Returns:
            The view.
        """
        groups: list[tuple[str, Level]] = []
        for name in names:
            self.release.domain.axis(name)
            groups.append((name, None))
        for name, level in levels.items():
            depth = self._depth(name)
            if not 1 <= level <= depth:
                raise QueryError(f"{name}: levels go from 1 (coarsest) to {depth} (the categories)")
            groups.append((name, None if level == depth else level))
        if len({name for name, _ in groups}) != len(groups):
            raise QueryError("an attribute is named twice")
        return replace(self, groups=tuple(groups))

    def roll_up(self, name: str) -> Cube:
        """Fold an attribute one level up its hierarchy; at the top, or without one, stop telling it apart.

        Args:
            name: The attribute.

        Returns:
            The view.
        """
        level = self._level(name)
        top = self._depth(name) if level is None else level
        rest = [group for group in self.groups if group[0] != name]
        kept: list[tuple[str, Level]] = [(name, top - 1)] if top > 1 else []
        return replace(self, groups=tuple(rest + kept))

    def drill_down(self, name: str) -> Cube:
        """Open an attribute up: tell it apart, or one level further down its hierarchy.

        Args:
            name: The attribute.

        Returns:
            The view.
        """
        depth = self._depth(name)
        if name not in dict(self.groups):
            return replace(self, groups=(*self.groups, (name, None if depth == 1 else 1)))
        level = self._level(name)
        if level is None:
            raise QueryError(f"{name} is at its finest values already")
        below: Level = None if level + 1 == depth else level + 1
        return replace(self, groups=tuple((n, below if n == name else old) for n, old in self.groups))

    # ---- asking ----

    def count(self, *, confidence: float = 0.95) -> Table:
        """Count the records of every group.

        Args:
            confidence: How sure each interval is.

        Returns:
            A number for every group.
        """
        return self._asked(lambda asked: self.release.answer(asked, confidence=confidence))

    def sum(self, name: str, *, confidence: float = 0.95) -> Table:
        """Add an attribute's values up over the records of every group; bins count as their middles.

        Args:
            name: The attribute to add up.
            confidence: How sure each interval is.

        Returns:
            A number for every group.
        """
        if is_measure(self.release, name):
            return self._asked(lambda asked: sums(self.release, name, asked, confidence))
        return self._each(name, confidence, lambda lines: [line.sum(confidence) for line in lines])

    def mean(self, name: str, *, confidence: float = 0.95) -> Table:
        """Average an attribute over the records of every group; bins count as their middles.

        The interval holds every mean that the counts do not contradict (Fieller), cut to the attribute's own range:
        where a group may be empty it is that whole range. Of the others as many hold as are promised.

        Args:
            name: The attribute to average.
            confidence: How sure each interval is.

        Returns:
            A number for every group.
        """
        if is_measure(self.release, name):
            return self._asked(lambda asked: means(self.release, name, asked, confidence))
        return self._each(name, confidence, lambda lines: line_means(lines, confidence))

    def variance(self, name: str, *, confidence: float = 0.95) -> Table:
        """Give the variance of a measure over the records of every group; it must have been published with squares.

        Args:
            name: The measure.
            confidence: How sure each interval is, at least.

        Returns:
            A number for every group.
        """
        return self._asked(lambda asked: variances(self.release, name, asked, confidence))

    def std(self, name: str, *, confidence: float = 0.95) -> Table:
        """Give the standard deviation of a measure over the records of every group: the root of its variance.

        Args:
            name: The measure.
            confidence: How sure each interval is, at least.

        Returns:
            A number for every group.
        """
        return self._asked(lambda asked: variances(self.release, name, asked, confidence, root=True))

    def clipped(self, name: str, *, confidence: float = 0.95) -> Table:
        """Say what share of the records of every group lay beyond a measure's bounds; it must have been asked for.

        Args:
            name: The measure.
            confidence: How sure each interval is.

        Returns:
            A share for every group.
        """
        return self._asked(lambda asked: clipped(self.release, name, asked, confidence))

    def ratio(self, above: str, below: str, *, confidence: float = 0.95) -> Table:
        """Divide the sum of one measure by that of another in every group.

        Args:
            above: The measure of the numerator.
            below: The measure of the denominator.
            confidence: How sure each interval is.

        Returns:
            A number for every group; without an end (infinite) where the denominator may be zero.
        """
        return self._asked(lambda asked: ratios(self.release, above, below, asked, confidence))

    def quantiles(
        self, name: str, levels: Sequence[float], *, confidence: float = 0.95, simultaneous: bool = False
    ) -> Table:
        """Give quantiles of an ordered attribute, as cells; they never cross.

        A quantile is the first cell up to which at least that share of the records lies. Its interval is every cell
        that could be it; ``simultaneous`` widens all of a group so that these hold together. Of a group that may be
        empty that is any cell, and of what is said of the others as much holds as is promised.

        Args:
            name: The ordered attribute.
            levels: Shares between 0 and 1.
            confidence: How sure each interval is.
            simultaneous: Whether all hold together.

        Returns:
            A cell for every level.
        """
        wanted = np.asarray(levels, dtype=np.float64)
        if wanted.ndim != 1 or wanted.size == 0 or not bool(((wanted > 0) & (wanted < 1)).all()):
            raise QueryError("levels must lie strictly between 0 and 1, for example [0.25, 0.5, 0.75]")
        each = 1 - (1 - read_confidence(confidence)) / wanted.size if simultaneous else confidence
        return self._lines(name, lambda lines: quantiles(lines, name, wanted, each, confidence))

    def cdf(self, name: str, *, confidence: float = 0.95) -> Table:
        """Give the share of records up to each cell of an ordered attribute; it never falls, and ends at 1.

        Of a group that may be empty any share is possible; of the others as much holds as is promised.

        Args:
            name: The ordered attribute.
            confidence: How sure each interval is.

        Returns:
            A share for every cell.
        """
        return self._lines(name, lambda lines: distributions(lines, name, confidence))

    # ---- inside ----

    def _asked(self, ask: Callable[[Workload], Answers]) -> Table:
        """Ask one question for every group."""
        labels, low, high, owner = group_boxes(self.release.domain, self.where, self.groups)
        plain = bool((owner == np.arange(owner.size)).all())
        found = ask(Workload(self.release.domain, low, high, None if plain else owner))
        return Table(**vars(found), labels=labels)

    def _depth(self, name: str) -> int:
        attribute = self.release.domain.attribute(name)
        return attribute.hierarchy.levels - 1 if isinstance(attribute, Nominal) else 1

    def _level(self, name: str) -> Level:
        levels = dict(self.groups)
        if name not in levels:
            raise QueryError(f"{name} is not told apart; by({name!r}) or drill_down({name!r}) first")
        return levels[name]

    def _groups(self, name: str) -> tuple[dict[str, list[str]], Sequence[Line]]:
        """Labels of the groups, and the cells of an ordered attribute in each."""
        domain, span = self.release.domain, None
        labels, low, high, owner = group_boxes(domain, _without(self.where, name), self.groups)
        if name in self.where:
            allowed = Workload.where(domain.project([name]), {name: self.where[name]})
            if len(allowed.low) > 1:
                raise QueryError(f"{name}: give one range of it, not several")
            span = int(allowed.low[0, 0]), int(allowed.high[0, 0])
        groups = range(int(owner.max()) + 1)
        return labels, [
            read_line(self.release, name, span, low[owner == g], high[owner == g]) for g in groups
        ]

    def _lines(self, name: str, ask: Callable[[Sequence[Line]], list[Table]]) -> Table:
        """Ask all groups for tables that belong to an ordered attribute, one under the other."""
        if is_measure(self.release, name):
            raise QueryError(
                f"{name} is a measure: its sums are released, not how its values are spread. For quantiles and "
                f"shares publish it as an attribute too: Ordinal({name!r}, edges=[...])"
            )
        if name in dict(self.groups):
            raise QueryError(f"{name} is told apart, so there is nothing to order in each group")
        labels, lines = self._groups(name)
        parts = ask(lines)
        told: dict[str, list[str]] = {}
        for group, part in enumerate(parts):
            for column, texts in labels.items():
                told.setdefault(column, []).extend([texts[group]] * len(part))
            for column, texts in part.labels.items():
                told.setdefault(column, []).extend(texts)
        value, down, up = (
            np.concatenate([getattr(p, side) for p in parts]) for side in ("value", "low", "high")
        )
        guessed = _guessed([line.guessed for line in lines], [len(part) for part in parts])
        # What is said of intervals is that of the measured ones, if there are any.
        first = next((part for part in parts if part.guessed is None), parts[0])
        return Table(value, down, up, first.confidence, first.method, first.details, guessed, labels=told)

    def _each(
        self, name: str, confidence: float, ask: Callable[[Sequence[Line]], Sequence[Interval]]
    ) -> Table:
        """Ask every group for a number that belongs to an ordered attribute."""
        if name in dict(self.groups):
            raise QueryError(f"{name} is told apart, so there is nothing to add up in each group")
        labels, lines = self._groups(name)
        numbers = np.array(ask(lines))
        first = next((line for line in lines if line.measured), lines[0])
        guessed = _guessed([line.guessed for line in lines], [1] * len(lines))
        value, low, high = numbers.T
        return Table(value, low, high, confidence, *first.said(confidence), guessed, labels=labels)


def _guessed(lines: Sequence[bool], rows: Sequence[int]) -> BoolArray | None:
    """Which rows have bounds alone, of lines that have some; None if none has."""
    return np.repeat(np.array(lines, dtype=bool), rows) if any(lines) else None


def _without(where: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return MappingProxyType({key: value for key, value in where.items() if key != name})
