"""Figures as Vega-Lite: bars with their intervals, a heat map of two attributes, how accuracy falls with size.

Figures carry sums of cells, at most a few hundred, whatever the size of the release. They set no background and no text
colour, so that a page can show them in light and in dark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dphist.arguments import explained
from dphist.errors import InputError, QueryError
from dphist.extras import need
from dphist.model.domain import Attribute, Nominal, Ordinal
from dphist.model.domain.scales import Dates, Steps
from dphist.model.domain.space import Span
from dphist.model.phrases import visible
from dphist.release import Release
from dphist.release.answers import bound
from dphist.report.cuts import Cuts, cut
from dphist.report.tables import FloatArray, Table, tabulate

if TYPE_CHECKING:
    import altair

Colour = Literal["estimate", "uncertainty"]

# Every day of a year.
MOST_BARS = 400
# Squares of a map along one axis, and in all where the other axis has few.
_MOST_SIDE = 60
_WIDEST = 100_000
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.1.0.json"
# What is said of a bar or square besides its name. Words, not two numbers: they say what was not measured.
_TOOLTIP = [
    {"field": "estimate", "format": ",.1f", "type": "quantitative"},
    {"field": "interval", "type": "nominal"},
]
# What nothing can be said of gets no line; bounds of what was not measured get a broken one.
_BOUNDED = [{"filter": "isValid(datum.low)"}]
_BROKEN = {"condition": {"test": "datum.guess", "value": [4, 3]}, "value": [1, 0]}
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
    numbers = table(release, names, chosen=chosen, confidence=confidence)
    drawn: altair.LayerChart | altair.Chart = need("altair", "report").Chart.from_dict(
        specification(numbers, width=width, colour=colour)
    )
    return drawn


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
    return 60 if named(attribute) else MOST_BARS


def most_squares(across: Attribute, up: Attribute) -> list[int]:
    """Say how many bars each side of a map may have: all days of a year beside few categories."""
    return [
        min(most_bars(one), max(_MOST_SIDE, 4_800 // min(other.size, _MOST_SIDE)))
        for one, other in ((across, up), (up, across))
    ]


def specification(
    numbers: Table,
    *,
    width: int | str = "container",
    selected: Sequence[Span] | None = None,
    brush: bool = False,
    colour: Colour = "estimate",
) -> dict[str, Any]:
    """Draw a table as Vega-Lite: of one attribute as bars, of two as a heat map.

    ``selected`` cells stand out from the rest; with ``brush`` a range can be dragged.
    """
    if len(numbers.cuts) == 2:
        rows, drawn = _square_rows(numbers), _squares(numbers, colour)
    else:
        rows = _bar_rows(numbers, selected)
        nominal = isinstance(numbers.cuts[0].attribute, Nominal)
        drawn = _lying_bars(numbers) if nominal else _standing_bars(numbers, brush)
    return _whole({"datasets": {"numbers": rows}, "data": {"name": "numbers"}, "width": width, **drawn})


def _whole(drawn: dict[str, Any]) -> dict[str, Any]:
    config = {"view": {"continuousWidth": 300, "continuousHeight": 300}}
    return {"$schema": _SCHEMA, "config": config, **drawn}


def _number(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, **more, "type": "quantitative"}


def _name(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, **more, "type": "nominal"}


def _bars_of(cuts: Cuts) -> dict[str, Any]:
    """What bars have alike, whichever way they go: a colour, and what is said of each."""
    return {
        "color": {"condition": {"test": "datum.chosen", "value": _BLUE}, "value": _GREY},
        "tooltip": [_name("label", title=drawn(cuts.attribute.name)), *_TOOLTIP],
    }


def _rule(encoding: dict[str, Any]) -> dict[str, Any]:
    mark = {"type": "rule", "strokeWidth": 1.6, "color": _ORANGE}
    return {"mark": mark, "encoding": encoding | {"strokeDash": _BROKEN}, "transform": _BOUNDED}


def _standing_bars(numbers: Table, brush: bool) -> dict[str, Any]:
    cuts = numbers.cuts[0]
    scale = {"domain": [cuts.spans[0][0], cuts.spans[-1][1]], "nice": False, "zero": False}
    shared = _bars_of(cuts)
    bars: dict[str, Any] = {
        "mark": {"type": "rect", "x2Offset": -1 if len(cuts) <= 120 else 0},
        "encoding": {
            "x": _number("start", scale=scale, title=drawn(cuts.title), axis=ticks(cuts)),
            "x2": {"field": "stop"},
            "y": _number("mean", title=f"records{per(cuts)}"),
            "y2": {"field": "zero"},
            **shared,
        },
    }
    if brush:
        # Keyboard users set the same bounds in the form beside the figure.
        bars["params"] = [{"name": "brush", "select": {"type": "interval", "encodings": ["x"]}}]
    interval = {"y": _number("low"), "y2": {"field": "high"}, "tooltip": shared["tooltip"]}
    # Above 120 bars single intervals run together, and a band reads better.
    if len(cuts) <= 120:
        return {"height": 280, "layer": [bars, _rule(interval | {"x": _number("middle")})]}
    faint = {"condition": {"test": "datum.guess", "value": 0.3}, "value": 0.7}
    interval |= {"x": _number("start"), "x2": {"field": "stop"}, "opacity": faint}
    band = {"mark": {"type": "rect", "color": _ORANGE}, "encoding": interval, "transform": _BOUNDED}
    return {"height": 280, "layer": [bars, band]}


def _lying_bars(numbers: Table) -> dict[str, Any]:
    cuts = numbers.cuts[0]
    # The caption names the attribute; a title beside long names would stand on them.
    names = _name("label", sort=None, title=None, axis={"labelLimit": 200})
    # By itself a wide chart has a number every forty pixels, each beside the next.
    # Bars that lie have about 8 numbers along them.
    along = _number("mean", title=f"records{per(cuts)}", axis={"tickCount": 8})
    shared = _bars_of(cuts)
    interval = {"x": _number("low"), "x2": {"field": "high"}, "y": names, "tooltip": shared["tooltip"]}
    bars = {"mark": {"type": "bar", "cursor": "pointer"}, "encoding": {"x": along, "y": names, **shared}}
    return {"height": {"step": 22}, "layer": [bars, _rule(interval)]}


def _magnitudes(numbers: Table) -> int:
    """How many powers of ten colours go by: none unless, in even steps, most squares would have one colour."""
    values = np.abs(numbers.answers.value / _shared(numbers))
    values = values[np.isfinite(values)]
    # A hump in the middle of a plane has some seven times the mean; a heap of one value has far more.
    if not values.size or values.max() <= max(10.0, 20 * values.mean()):
        return 0
    return int(np.log10(values.max()))


def _shared(numbers: Table) -> FloatArray:
    """How many cells share each number."""
    sizes = np.ones(1)
    for cuts in numbers.cuts:
        sizes = np.outer(sizes, cuts.sizes).ravel()
    return sizes


def _squares(numbers: Table, colour: Colour) -> dict[str, Any]:
    across, up = numbers.cuts
    each, magnitudes = per(across, up), _magnitudes(numbers)
    shade = _number("mean", title=f"records{each}", scale={"scheme": "viridis"})
    if colour == "uncertainty":
        scale = {"scheme": "magma", "reverse": True, "zero": True}
        half = _number("half", title=f"± records{each}", scale=scale)
        # What nothing can be said of has no width, and stays grey.
        shade = {"condition": {"test": "isValid(datum.half)", **half}, "value": _GREY}
    elif magnitudes:
        # In even steps near zero, where noise may have any sign.
        legend = {"values": [0, *(10**power for power in range(1, magnitudes + 1))]}
        scale = {"scheme": "viridis", "type": "symlog"}
        shade = _number("mean", title=f"records{each} (log)", scale=scale, legend=legend)

    def axis(field: str, cuts: Cuts, shown: dict[str, Any]) -> dict[str, Any]:
        lie = places(cuts)
        scale = {"domain": [lie[0][0], lie[-1][1]], "nice": False, "zero": False}
        return _number(field, scale=scale, title=drawn(cuts.title), axis=shown)

    return {
        "height": _height(up),
        "mark": {"type": "rect", "stroke": None},
        "encoding": {
            "x": axis("start", across, ticks(across)),
            "x2": {"field": "stop"},
            "y": axis("bottom", up, ticks(up, most=14, across=False)),
            "y2": {"field": "top"},
            "color": shade,
            "tooltip": [
                _name("label", title=drawn(across.attribute.name)),
                _name("other", title=drawn(up.attribute.name)),
                *_TOOLTIP,
            ],
        },
    }


def _height(up: Cuts) -> int:
    """As high as the squares need; higher where each of them has a name."""
    # A name on end takes 12 pixels.
    return min(max(380, 12 * len(up) * named(up.attribute)), max(120, 26 * len(up)))


def accuracy_figure(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Draw how wide intervals are against how many counts an answer adds up."""
    measured = [dict(row) for row in rows if row["half_width"] is not None]
    kinds = list(dict.fromkeys(row["about"] for row in measured))
    encoding = {
        "x": _number("cells", scale={"type": "log", "nice": False}, title="counts added up"),
        "y": _number("half_width", scale={"type": "symlog"}, title="± records"),
        "tooltip": [
            _number("cells", format=",", title="counts"),
            _number("half_width", format=",.1f", title="±"),
        ],
    }
    if len(kinds) > 1:
        encoding["color"] = _name("about", title="asked about", sort=kinds)
        encoding["tooltip"] = [_name("about", title="asked about"), *encoding["tooltip"]]
    mark = {"type": "line", "point": {"size": 60, "filled": True}, "color": _BLUE}
    size = {"width": "container", "height": 220}
    return _whole({"data": {"values": measured}, "mark": mark, "encoding": encoding, **size})


def _bar_rows(numbers: Table, selected: Sequence[Span] | None) -> list[dict[str, Any]]:
    cuts, shared = numbers.cuts[0], _shared(numbers)
    mean, low, high = (
        each / shared for each in (numbers.answers.value, numbers.answers.low, numbers.answers.high)
    )
    return [
        {
            "start": start, "stop": stop, "middle": (start + stop) / 2, "zero": 0,
            "label": drawn(cuts.labels[i]), "node": cuts.nodes[i],
            "chosen": selected is None or any(a < stop and start < b for a, b in selected),
            "mean": bound(mean[i]), "low": bound(low[i]), "high": bound(high[i]), "guess": not row["measured"],
            "estimate": row["estimate"], "interval": row["interval"],
        }
        for i, ((start, stop), row) in enumerate(zip(cuts.spans, numbers.rows(), strict=True))
    ]  # fmt: skip


def _square_rows(numbers: Table) -> list[dict[str, Any]]:
    across, up = numbers.cuts
    answers, shared = numbers.answers, _shared(numbers)
    mean, half = answers.value / shared, np.round((answers.high - answers.low) / 2 / shared, 3)
    squares = product(
        zip(places(across), across.labels, strict=True), zip(places(up), up.labels, strict=True)
    )
    return [
        {
            "start": first[0], "stop": first[1], "bottom": second[0], "top": second[1],
            "label": drawn(label), "other": drawn(other), "mean": bound(mean[i]), "half": bound(half[i]),
            "estimate": row["estimate"], "interval": row["interval"],
        }
        for i, (((first, label), (second, other)), row) in enumerate(zip(squares, numbers.rows(), strict=True))
    ]  # fmt: skip


def named(attribute: Attribute) -> bool:
    """Whether cells have names of their own, none of which follows from those beside it."""
    return isinstance(attribute, Nominal) or isinstance(attribute.scale, Steps)


def per(*cuts: Cuts) -> str:
    """What the numbers of a figure are "per" where bars share cells: their mean is drawn.

    Sums would be higher the more of them share a bar, and the last bar, which may have fewer, would look like a fall.
    """
    shared = [each.values for each in cuts if max(each.sizes) > 1]
    return f" per {' and '.join(shared)}" if shared else ""


def places(cuts: Cuts) -> Sequence[Span]:
    """Where squares lie: categories side by side, so that whatever is left of many is no wider than one."""
    return [(i, i + 1) for i in range(len(cuts))] if isinstance(cuts.attribute, Nominal) else cuts.spans


def ticks(cuts: Cuts, most: int = 10, *, across: bool = True) -> dict[str, Any]:
    """Name bars, not numbers of cells, on an axis that counts cells.

    Every category is named: where room is short the names stand aslant or on end, and small. Of what is ordered those
    that are named say what lies between them.
    """
    every = named(cuts.attribute)
    names = {}
    for i, (start, stop) in list(enumerate(places(cuts)))[:: 1 if every else -(-len(cuts) // most)]:
        single = stop - start == 1
        place = (start + stop) / 2 if single or every else start
        label = cuts.labels[i] if single or every else cuts.attribute.labels[start]
        if isinstance(cuts.attribute, Ordinal) and isinstance(cuts.attribute.scale, Dates):
            # A week is named by its first day: of both days there is room for one and a half.
            label = label.partition(" to ")[0]
        names[str(int(place)) if place == int(place) else repr(place)] = drawn(label)
    letters = sum(map(len, names.values()))
    # Pixels that a letter takes, and a name aslant.
    tight, tighter = round(6.0 * (letters + 2 * len(names))), 18 * len(names)
    aslant = {
        "labelAngle": {"expr": f"width < {tighter} ? -90 : width < {tight} ? -38 : 0"},
        "labelAlign": {"expr": f"width < {tight} ? 'right' : 'center'"},
        "labelBaseline": {"expr": f"width < {tighter} ? 'middle' : 'top'"},
        "labelFontSize": {"expr": f"min(10, max(4, width / {len(names)} - 1))"},
    }
    # Letters that fit side by side under a figure on a telephone.
    long = across and every and (letters > 40 or len(names) > most)
    # Above the axis: beside it the title would stand on long names.
    above = {"titleAngle": 0, "titleAnchor": "end", "titleAlign": "left", "titleX": 0, "titleY": -12}
    return {
        **(aslant if long else {} if across else above),
        "values": [float(place) for place in names],
        "labelExpr": f"{json.dumps(names)}[datum.value]",
        "grid": False,
        "labelLimit": 110 if across else 170,
        "labelOverlap": not every,
        "labelSeparation": 8,
    }


def drawn(text: str) -> str:
    """A text that XML can hold, without a backslash, which Vega-Lite reads as JSON's in a tooltip."""
    shown = visible(text)
    return (text if shown == text else shown.replace("\\u", "U+")).replace("\\", "\N{SET MINUS}")
