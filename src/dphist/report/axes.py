"""Axes of figures: what stands on them, where bars lie along them, and what numbers are per where a bar has many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dphist.model.domain import Attribute, Nominal, Ordinal
from dphist.model.domain.conditions import Span
from dphist.model.domain.scales import Dates, Steps
from dphist.model.phrases import visible
from dphist.report.cuts import Cuts

# Letters that fit side by side under a figure on a telephone.
_ROOM = 40
_LETTER = 6.0
# Pixels that a name takes aslant, and on end.
_ASLANT, ON_END = 18, 12


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
    tight, tighter = round(_LETTER * (letters + 2 * len(names))), _ASLANT * len(names)
    aslant = {
        "labelAngle": {"expr": f"width < {tighter} ? -90 : width < {tight} ? -38 : 0"},
        "labelAlign": {"expr": f"width < {tight} ? 'right' : 'center'"},
        "labelBaseline": {"expr": f"width < {tighter} ? 'middle' : 'top'"},
        "labelFontSize": {"expr": f"min(10, max(4, width / {len(names)} - 1))"},
    }
    long = across and every and (letters > _ROOM or len(names) > most)
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
