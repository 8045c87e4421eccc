"""How an attribute is cut into bars: few enough to draw, each a range of neighbouring cells.

A picture of a million cells shows a few hundred sums. Cutting first and asking the release for those sums keeps a
drawing as cheap as its bars, and every bar an answer with an interval of its own.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from dphist.errors import QueryError
from dphist.model.domain import Attribute, Nominal
from dphist.model.domain.scales import Bins, Dates
from dphist.model.domain.space import Span
from dphist.model.phrases import counted

_DATES = {"1d": "day", "7d": "week", "1w": "week", "1mo": "month", "12mo": "year", "1y": "year"}


@dataclass(frozen=True)
class Cuts:
    """Bars of one attribute: which cells each adds up, and what it is called.

    ``nodes`` says which node of a hierarchy a bar stands for (None where it is no node), so that a group can be
    opened.

    Args:
        attribute: What is drawn.
        spans: The cells of each bar.
        labels: What each bar is called.
        nodes: The node of a hierarchy each bar stands for.

    Example:
        >>> import dphist
        >>> from dphist.report.cuts import cut
        >>> cut(dphist.Ordinal("age", range(100)), most=4).spans
        ((0, 50), (50, 100))
    """

    attribute: Attribute
    spans: tuple[Span, ...]
    labels: tuple[str, ...]
    nodes: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells share each bar. A group of a hierarchy is one thing; the rest of a long list is not."""
        sizes = tuple(stop - start for start, stop in self.spans)
        if isinstance(self.attribute, Nominal) and (None not in self.nodes or set(sizes[:-1]) != {1}):
            return (1,) * len(sizes)
        return sizes

    @property
    def title(self) -> str:
        """What its axis is called: the attribute, and how many of its values share a bar."""
        sizes = self.sizes
        if isinstance(self.attribute, Nominal) or max(sizes) == 1:
            return self.attribute.name
        # What lies outside the bounds has a bar of its own, which is no shorter one.
        other = self.attribute.other_cell
        last = sizes[-1 if other is None or self.spans[-1][0] != other or len(sizes) == 1 else -2]
        shorter = "" if last == sizes[0] else f", the last of {last:,}"
        return f"{self.attribute.name} ({sizes[0]:,} {self.values}s to a bar{shorter})"

    @property
    def values(self) -> str:
        """What one cell is called."""
        if isinstance(self.attribute, Nominal):
            return self.attribute.name
        scale = self.attribute.scale
        if isinstance(scale, Dates):
            return _DATES.get(scale.step, "period")
        return "bin" if isinstance(scale, Bins) else "value"


def cut(attribute: Attribute, most: int, *, window: Span | None = None, node: int | None = None) -> Cuts:
    """Cut an attribute into at most ``most`` bars.

    An ordered attribute is cut evenly inside ``window`` (cells; all of them if not given). A nominal one shows the
    children of ``node`` in its hierarchy; if none is given, its categories where they fit, else its widest groups.
    """
    if isinstance(attribute, Nominal):
        if node is None and attribute.size <= most:
            leaves = attribute.hierarchy.leaves
            spans = tuple((cell, cell + 1) for cell in range(attribute.size))
            return Cuts(attribute, spans, tuple(attribute.labels), tuple(int(leaf) for leaf in leaves))
        return _children(attribute, node or 0, most)
    return _even(attribute, window or (0, attribute.size), most)


def name_span(attribute: Attribute, span: Span) -> str:
    """Name a range of neighbouring cells in the attribute's own values."""
    start, stop = span
    if stop - start == 1:
        return attribute.labels[start]
    if attribute.other_cell is not None and stop == attribute.size:
        return f"{name_span(attribute, (start, stop - 1))} and {attribute.labels[stop - 1]}"
    if isinstance(attribute, Nominal):
        return f"{attribute.labels[start]} to {attribute.labels[stop - 1]}"
    scale = attribute.scale
    if isinstance(scale, Bins):
        closing = "]" if stop == scale.size else ")"
        return f"[{scale.edges[start]:,}, {scale.edges[stop]:,}{closing}"
    if isinstance(scale, Dates):
        return f"{scale.begin(start)} to {scale.begin(stop) - dt.timedelta(days=1)}"
    return f"{attribute.labels[start]} to {attribute.labels[stop - 1]}"


def _even(attribute: Attribute, window: Span, most: int) -> Cuts:
    start, stop = window
    if not 0 <= start < stop <= attribute.size:
        raise QueryError(
            f"{attribute.name}: the window must lie inside its {counted(attribute.size, 'cell')}"
        )
    # Whatever lies outside the bounds is no neighbour of the last cell, and gets a bar of its own.
    other = attribute.other_cell
    last = stop if other is None or stop <= other else other
    step = _step(last - start, max(1, most))
    spans = [(at, min(at + step, last)) for at in range(start, last, step)]
    if last < stop:
        spans.append((last, stop))
    labels = tuple(name_span(attribute, span) for span in spans)
    return Cuts(attribute, tuple(spans), labels, (None,) * len(spans))


def _step(cells: int, most: int) -> int:
    """How many cells make a bar: all bars alike where that can be, for a shorter last one looks like a fall.

    Numbers people like (1, 2, 5, 10, 20, 50, …) come first, then any that divide the cells and leave a third as many
    bars or more.
    """
    least = max(1, -(-cells // most))
    liked = (factor * int(10**power) for power in itertools.count() for factor in (1, 2, 5))
    round_one = next(step for step in liked if step >= least)
    if cells % round_one == 0:
        return round_one
    return next((step for step in range(least, 3 * least + 1) if cells % step == 0), round_one)


def _children(attribute: Nominal, node: int, most: int) -> Cuts:
    tree = attribute.hierarchy
    if not 0 <= node < tree.size:
        raise QueryError(f"{attribute.name}: there is no such group")
    below = range(int(tree.children[node]), int(tree.children[node + 1])) or range(node, node + 1)
    shown: Sequence[int] = below if len(below) <= most else below[: most - 1]
    spans = [(int(tree.start[i]), int(tree.stop[i])) for i in shown]
    labels = [tree.names[i] for i in shown]
    nodes: list[int | None] = list(shown)
    if len(shown) < len(below):
        spans.append((spans[-1][1] if spans else int(tree.start[node]), int(tree.stop[node])))
        labels.append(f"{len(below) - len(shown):,} more" if shown else tree.names[node])
        nodes.append(None)
    return Cuts(attribute, tuple(spans), tuple(labels), tuple(nodes))
