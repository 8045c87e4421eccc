"""Figures as Altair charts: bars with their intervals, a heat map of two attributes, how accuracy falls with size.

Charts carry sums of cells, at most a few hundred, whatever the size of the release. They set no background and no text
colour, so that a page can show them in light and in dark.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dphist.arguments import explained
from dphist.errors import InputError, QueryError
from dphist.extras import need
from dphist.model.domain import Attribute, Nominal
from dphist.model.domain.conditions import Span
from dphist.release import Answers, Release
from dphist.release.answers import bound, interval_words
from dphist.report.axes import ON_END, drawn, named, per, places, ticks
from dphist.report.cuts import Cuts, cut
from dphist.report.tables import FloatArray, Table, tabulate

if TYPE_CHECKING:
    import altair

Colour = Literal["estimate", "uncertainty"]

# Every day of a year, and 60 names.
MOST_BARS = 400
MOST_CATEGORIES = 60
# Squares of a map along one axis, and in all where the other axis has few.
_MOST_SIDE = 60
_MOST_SQUARES = 4_800
# Above 120 bars single intervals run together, and a band reads better.
_MOST_RULES = 120
_MOST_GAPS = 120
_WIDEST = 100_000
# Bars that lie have about 8 numbers along them.
_NUMBERS = 8
# A hump in the middle of a plane has some seven times the mean; a heap of one value has far more.
_STEEP = 20
# The first figures of many visitors are the same one; it is built for the first, and the others wait for that.
_building = threading.Lock()
# What nothing can be said of gets no line; bounds of what was not measured get a broken one.
_BOUNDED = "isValid(datum.low)"
_BLUE, _GREY, _ORANGE = "#4c78a8", "#98a2ad", "#d9720b"


@explained
def figure(
    release: Release,
    names: str | Sequence[str] | None = None,
    *,
    chosen: Mapping[str, Sequence[Span]] | None = None,
    confidence: float = 0.95,
    width: int | str = 680,
    colour: Colour = "estimate",
) -> altair.LayerChart | altair.Chart:
    """Draw one attribute as bars with intervals, or two as a heat map; the first one, or two, if none is named.

    Args:
        release: What is drawn.
        names: One attribute or two; the first, or first two, by default.
        chosen: Cells that the others are restricted to.
        confidence: How sure each interval is.
        width: In pixels, or "container".
        colour: What a heat map shows: the "estimate", or the "uncertainty", which is half the interval's width.

    Returns:
        An Altair chart.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> chart = dphist.report.figure(release, "sex")
        >>> "layer" in chart.to_dict()
        True
    """
    if width != "container" and not (isinstance(width, int) and 0 < width <= _WIDEST):
        raise InputError(f'width must be a number of pixels up to {_WIDEST:,}, or "container"')
    return draw(table(release, names, chosen=chosen, confidence=confidence), width=width, colour=colour)


def table(
    release: Release,
    names: str | Sequence[str] | None = None,
    *,
    chosen: Mapping[str, Sequence[Span]] | None = None,
    confidence: float = 0.95,
    guaranteed: bool = False,
) -> Table:
    """Give the numbers of the figure of one attribute or two."""
    shown = [names] if isinstance(names, str) else list(names or release.domain.names[:2])
    if not 1 <= len(shown) <= 2 or len(set(shown)) < len(shown):
        raise QueryError("a figure shows one attribute, or two different ones")
    attributes = [release.domain.attribute(name) for name in shown]
    most = most_squares(*attributes) if len(attributes) == 2 else [most_bars(*attributes)]
    cuts = [cut(attribute, count) for attribute, count in zip(attributes, most, strict=True)]
    return tabulate(release, cuts, chosen, confidence=confidence, guaranteed=guaranteed)


def most_bars(attribute: Attribute) -> int:
    """Say how many bars an attribute may take: categories need room for their names."""
    return MOST_CATEGORIES if named(attribute) else MOST_BARS


def most_squares(across: Attribute, up: Attribute) -> list[int]:
    """Say how many bars each side of a map may have: all days of a year beside few categories."""
    return [
        min(most_bars(one), max(_MOST_SIDE, _MOST_SQUARES // min(other.size, _MOST_SIDE)))
        for one, other in ((across, up), (up, across))
    ]


def draw(
    numbers: Table,
    *,
    width: int | str = 680,
    height: int | None = None,
    selected: Sequence[Span] | None = None,
    brush: bool = False,
    colour: Colour = "estimate",
    data: Any = None,
    magnitudes: int | None = None,
) -> altair.LayerChart | altair.Chart:
    """Draw a table: of one attribute as bars, of two as a heat map.

    ``selected`` cells stand out from the rest; with ``brush`` a range can be dragged. The chart carries its numbers,
    unless ``data`` says where they will come from. Colours of a map go by
    ``magnitudes`` powers of ten, in even steps if that is 0; the numbers decide by default.
    """
    if data is None:
        rows = _square_rows(numbers) if len(numbers.cuts) == 2 else _bar_rows(numbers, selected)
        data = _altair().Data(values=rows)
    if len(numbers.cuts) == 2:
        return _squares(
            numbers, width, data, colour, _magnitudes(numbers) if magnitudes is None else magnitudes
        )
    if isinstance(numbers.cuts[0].attribute, Nominal):
        return _lying_bars(numbers, width, data)
    return _standing_bars(numbers, width, height or 280, data, brush)


def specification(
    numbers: Table,
    *,
    selected: Sequence[Span] | None = None,
    brush: bool = False,
    colour: Colour = "estimate",
) -> dict[str, Any]:
    """Give the same figure as Vega-Lite, with the numbers put in last.

    Altair looks at every number of every chart; a page that is asked for a new figure at every drag cannot wait for
    that, and the numbers need no checking. Nor can it wait for the chart itself, which only changes with the bars.
    """
    rows = _square_rows(numbers) if len(numbers.cuts) == 2 else _bar_rows(numbers, selected)
    with _building:
        frame = _frame(numbers.cuts, brush, colour, _magnitudes(numbers) if len(numbers.cuts) == 2 else 0)
    return {**json.loads(frame), "datasets": {"numbers": rows}}


@lru_cache(maxsize=64)
def _frame(cuts: tuple[Cuts, ...], brush: bool, colour: Colour, magnitudes: int) -> str:
    """A figure without its numbers, as text so that nobody can change what others are shown."""
    nothing = np.empty(0)
    empty = Table(cuts, Answers(nothing, nothing, nothing, 0.0, ""))
    data = _altair().NamedData(name="numbers")
    chart = draw(empty, width="container", brush=brush, colour=colour, data=data, magnitudes=magnitudes)
    return json.dumps(chart.to_dict(validate=False))


def _standing_bars(
    numbers: Table, width: int | str, height: int, data: Any, brush: bool
) -> altair.LayerChart:
    alt = _altair()
    cuts = numbers.cuts[0]
    title = drawn(cuts.attribute.name)
    scale = alt.Scale(domain=[cuts.spans[0][0], cuts.spans[-1][1]], nice=False, zero=False)
    base = alt.Chart(data)
    bars = base.mark_rect(x2Offset=-1 if len(cuts) <= _MOST_GAPS else 0).encode(
        x=alt.X("start:Q", scale=scale, title=drawn(cuts.title), axis=ticks(cuts)),
        x2="stop:Q",
        y=alt.Y("mean:Q", title=f"records{per(cuts)}"),
        y2="zero:Q",
        color=alt.condition("datum.chosen", alt.value(_BLUE), alt.value(_GREY)),
        tooltip=_tooltip(title),
    )
    if brush:
        # Keyboard users set the same bounds in the form beside the figure.
        bars = bars.add_params(alt.selection_interval(name="brush", encodings=["x"]))
    if len(cuts) <= _MOST_RULES:
        interval = base.mark_rule(strokeWidth=1.6, color=_ORANGE).encode(
            x="middle:Q", y="low:Q", y2="high:Q", strokeDash=_broken()
        )
    else:
        interval = base.mark_rect(color=_ORANGE).encode(
            x="start:Q", x2="stop:Q", y="low:Q", y2="high:Q",
            opacity=alt.condition("datum.guess", alt.value(0.3), alt.value(0.7)),
        )  # fmt: skip
    interval = interval.transform_filter(_BOUNDED).encode(tooltip=_tooltip(title))
    return alt.layer(bars, interval).properties(width=width, height=height)


def _lying_bars(numbers: Table, width: int | str, data: Any) -> altair.LayerChart:
    alt = _altair()
    cuts = numbers.cuts[0]
    title = drawn(cuts.attribute.name)
    base = alt.Chart(data).encode(
        # The caption names the attribute; a title beside long names would stand on them.
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=200)),
        tooltip=_tooltip(title),
    )
    bars = base.mark_bar(cursor="pointer").encode(
        # By itself a wide chart has a number every forty pixels, each beside the next.
        x=alt.X("mean:Q", title=f"records{per(cuts)}", axis=alt.Axis(tickCount=_NUMBERS)),
        color=alt.condition("datum.chosen", alt.value(_BLUE), alt.value(_GREY)),
    )
    interval = (
        base.mark_rule(strokeWidth=1.6, color=_ORANGE)
        .transform_filter(_BOUNDED)
        .encode(x="low:Q", x2="high:Q", strokeDash=_broken())
    )
    return alt.layer(bars, interval).properties(width=width, height=alt.Step(22))


def _magnitudes(numbers: Table) -> int:
    """How many powers of ten colours go by: none unless, in even steps, most squares would have one colour."""
    values = np.abs(numbers.answers.value / _shared(numbers))
    values = values[np.isfinite(values)]
    if not values.size or values.max() <= max(10.0, _STEEP * values.mean()):
        return 0
    return int(np.log10(values.max()))


def _shared(numbers: Table) -> FloatArray:
    """How many cells share each number."""
    sizes = np.ones(1)
    for cuts in numbers.cuts:
        sizes = np.outer(sizes, cuts.sizes).ravel()
    return sizes


def _squares(numbers: Table, width: int | str, data: Any, colour: Colour, magnitudes: int) -> altair.Chart:
    alt = _altair()
    across, up = numbers.cuts
    each = per(across, up)
    counted = alt.Color("mean:Q", title=f"records{each}", scale=alt.Scale(scheme="viridis"))
    if magnitudes:
        # In even steps near zero, where noise may have any sign.
        counted = alt.Color(
            "mean:Q",
            title=f"records{each} (log)",
            scale=alt.Scale(scheme="viridis", type="symlog"),
            legend=alt.Legend(values=[0, *(10**power for power in range(1, magnitudes + 1))]),
        )
    shade = (
        counted
        if colour == "estimate"
        # What nothing can be said of has no width, and stays grey.
        else alt.condition(
            "isValid(datum.half)",
            alt.Color(
                "half:Q", title=f"± records{each}", scale=alt.Scale(scheme="magma", reverse=True, zero=True)
            ),
            alt.value(_GREY),
        )
    )
    domains = [
        alt.Scale(domain=[places(cuts)[0][0], places(cuts)[-1][1]], nice=False, zero=False)
        for cuts in (across, up)
    ]
    names = [drawn(cuts.attribute.name) for cuts in (across, up)]
    return (
        alt.Chart(data)
        .mark_rect(stroke=None)
        .encode(
            x=alt.X("start:Q", scale=domains[0], title=drawn(across.title), axis=ticks(across)),
            x2="stop:Q",
            y=alt.Y(
                "bottom:Q", scale=domains[1], title=drawn(up.title), axis=ticks(up, most=14, across=False)
            ),
            y2="top:Q",
            color=shade,
            tooltip=[
                alt.Tooltip("label:N", title=names[0]),
                alt.Tooltip("other:N", title=names[1]),
                *_tooltip("")[1:],
            ],
        )
        .properties(width=width, height=_height(up))
    )


def _height(up: Cuts) -> int:
    """As high as the squares need; higher where each of them has a name."""
    return min(max(380, ON_END * len(up) * named(up.attribute)), max(120, 26 * len(up)))


def accuracy_figure(rows: Sequence[Mapping[str, Any]]) -> altair.Chart:
    """Draw how wide intervals are against how many counts an answer adds up."""
    alt = _altair()
    measured = [dict(row) for row in rows if row["half_width"] is not None]
    kinds = list(dict.fromkeys(row["about"] for row in measured))
    base = alt.Chart(alt.Data(values=measured)).encode(
        x=alt.X("cells:Q", scale=alt.Scale(type="log", nice=False), title="counts added up"),
        y=alt.Y("half_width:Q", scale=alt.Scale(type="symlog"), title="± records"),
        tooltip=[
            *([alt.Tooltip("about:N", title="asked about")] if len(kinds) > 1 else []),
            alt.Tooltip("cells:Q", format=",", title="counts"),
            alt.Tooltip("half_width:Q", format=",.1f", title="±"),
        ],
    )
    if len(kinds) > 1:
        base = base.encode(color=alt.Color("about:N", sort=kinds, title="asked about"))
    return base.mark_line(point=alt.OverlayMarkDef(size=60, filled=True), color=_BLUE).properties(
        width="container", height=220
    )


def _bar_rows(numbers: Table, selected: Sequence[Span] | None) -> list[dict[str, Any]]:
    cuts = numbers.cuts[0]
    answers, measured, shared = numbers.answers, numbers.answers.measured.tolist(), _shared(numbers)
    values, low, high = (each / shared for each in (answers.value, answers.low, answers.high))
    return [
        {
            "start": start,
            "stop": stop,
            "middle": (start + stop) / 2,
            "zero": 0,
            "label": drawn(cuts.labels[i]),
            "node": cuts.nodes[i],
            "chosen": selected is None or any(a < stop and start < b for a, b in selected),
            "estimate": bound(answers.value[i]),
            "mean": bound(values[i]),
            "low": bound(low[i]),
            "high": bound(high[i]),
            "guess": not measured[i],
            "interval": interval_words(answers.low[i], answers.high[i], guess=not measured[i]),
        }
        for i, (start, stop) in enumerate(cuts.spans)
    ]


def _square_rows(numbers: Table) -> list[dict[str, Any]]:
    across, up = numbers.cuts
    answers = numbers.answers
    values, low, high, measured = (
        each.tolist() for each in (answers.value, answers.low, answers.high, answers.measured)
    )
    shared = _shared(numbers).tolist()
    rows = []
    for i, first in enumerate(places(across)):
        for j, second in enumerate(places(up)):
            k = i * len(up) + j
            rows.append(
                {
                    "start": first[0], "stop": first[1], "bottom": second[0], "top": second[1],
                    "label": drawn(across.labels[i]), "other": drawn(up.labels[j]),
                    "estimate": bound(values[k]), "interval": interval_words(low[k], high[k], guess=not measured[k]),
                    "mean": bound(values[k] / shared[k]), "half": bound(round((high[k] - low[k]) / 2 / shared[k], 3)),
                }
            )  # fmt: skip
    return rows


def _broken() -> Any:
    """A line that is broken where the number inside it is a guess."""
    alt = _altair()
    return alt.condition("datum.guess", alt.value([4, 3]), alt.value([1, 0]))


def _tooltip(title: str) -> list[altair.Tooltip]:
    alt = _altair()
    return [
        alt.Tooltip("label:N", title=title),
        alt.Tooltip("estimate:Q", format=",.1f"),
        # Words, not two numbers: they say what was not measured.
        alt.Tooltip("interval:N"),
    ]


def _altair() -> Any:
    return need("altair", "report")
