"""Views of two costs at once: every method as a point, and how often each is beaten by no other on both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from dphist.planning.compare import skyline
from dphist_bench.results import Results
from dphist_bench.views import save_chart, short, ticks
from dphist_bench.views.labels import Box, Place, placed

# A panel's size in pixels, and how many are left free beyond its points.
_WIDTH, _HEIGHT, _SPARE = 400, 300, 24
# A data set, an ε and a measure.
Panel = tuple[str, str, str]


@dataclass(frozen=True)
class Costs:
    """What one method costs in one panel, and whether no other is better at both."""

    method: str
    across: float
    up: float
    free: bool


def panels(
    results: Results, measure: str, ups: Sequence[str], where: Mapping[str, Any]
) -> dict[Panel, list[Costs]]:
    """Put ``measure`` and each of ``ups`` together, method by method, for every data set and ε."""
    across = {(p.data, p.epsilon, p.method): p.value for p in results.select(measure, **where)}
    heights = {
        up: {(p.data, p.epsilon, p.method): p.value for p in results.select(up, **where)} for up in ups
    }
    found: dict[Panel, list[Costs]] = {}
    for data, epsilon in dict.fromkeys((data, epsilon) for data, epsilon, _ in across):
        for up in ups:
            rows = [
                (key[2], cost, heights[up][key])
                for key, cost in across.items()
                if key[:2] == (data, epsilon) and key in heights[up]
            ]
            best = set(skyline(rows))
            found[data, epsilon, up] = [Costs(*row, row[0] in best) for row in rows]
    return found


def appearances(
    results: Results, measure: str, ups: Sequence[str], where: Mapping[str, Any]
) -> tuple[dict[str, int], int]:
    """Count on how many skylines each method is, and how many skylines there are."""
    found = panels(results, measure, ups, where)
    times: dict[str, int] = {}
    for rows in found.values():
        for row in rows:
            times[row.method] = times.get(row.method, 0) + row.free
    return times, len(found)


@dataclass(frozen=True, kw_only=True)
class SkylineTable:
    """A line for each method, a tick where it is on a skyline, and the total beside the paper's."""

    title: str
    measure: str
    ups: Sequence[str]
    where: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, int] = field(default_factory=dict)

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Give the table; ``folder`` and ``stem`` are for views that need files."""
        found = panels(results, self.measure, self.ups, self.where)
        heads = [f"{data}, ε = {epsilon}, {up}" for data, epsilon, up in found]
        lines = [f"**{self.title}**", "", "| method | here | the paper | " + " | ".join(heads) + " |"]
        lines.append("|---" * (len(heads) + 3) + "|")
        for method in dict.fromkeys(row.method for rows in found.values() for row in rows):
            ticks = []
            for rows in found.values():
                mine = [row for row in rows if row.method == method]
                ticks.append("" if not mine else "✓" if mine[0].free else "·")
            printed = self.printed.get(method)
            lines.append(
                f"| {method} | {ticks.count('✓')} | {'' if printed is None else printed} | "
                + " | ".join(ticks)
                + " |"
            )
        return "\n".join(
            [*lines, "", "A dot: another is nowhere worse and somewhere better. Empty: not measured.", ""]
        )


@dataclass(frozen=True, kw_only=True)
class SkylinePlot:
    """A picture: every method as a labelled point, those on the skyline bold, a dashed line through them.

    ``groups`` says which methods share a colour.
    """

    title: str
    measure: str
    ups: Sequence[str]
    axis: str
    unit: str
    where: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    across: int = 2

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Save the picture in ``folder`` and give the Markdown that shows it, with its figures folded below."""
        found = panels(results, self.measure, self.ups, self.where)
        self._draw(found, folder / f"{stem}.svg")
        figures = ['<details markdown="1"><summary>The figures</summary>', ""]
        for data, epsilon in dict.fromkeys((data, epsilon) for data, epsilon, _ in found):
            figures += [f"{data}, ε = {epsilon}; bold: on the skyline", ""]
            figures.append(f"| method | {self.measure} | " + " | ".join(self.ups) + " |")
            figures.append("|---" * (len(self.ups) + 2) + "|")
            rows = {up: {row.method: row for row in found[data, epsilon, up]} for up in self.ups}
            for method, row in rows[self.ups[0]].items():
                heights = [rows[up][method] for up in self.ups if method in rows[up]]
                shown = [f"**{short(one.up)}**" if one.free else short(one.up) for one in heights]
                figures.append(f"| {method} | {short(row.across)} | " + " | ".join(shown) + " |")
            figures.append("")
        picture = f"![{self.title}]({stem}.svg)"
        return "\n".join([f"**{self.title}**", "", picture, "", *figures, "</details>", ""])

    def _draw(self, found: Mapping[Panel, Sequence[Costs]], path: Path) -> None:
        import altair as alt

        charts = []
        for (data, epsilon, up), rows in found.items():
            # Names of the skyline are placed first.
            shown = sorted(
                (row for row in rows if row.across > 0 and row.up > 0 and math.isfinite(row.up)),
                key=lambda row: not row.free,
            )
            across, upward = (
                _Logarithmic.of([getattr(row, which) for row in shown], size)
                for which, size in (("across", _WIDTH), ("up", _HEIGHT))
            )
            points = [(across.pixel(row.across), _HEIGHT - upward.pixel(row.up)) for row in shown]
            free = sorted(point for point, row in zip(points, shown, strict=True) if row.free)
            names = [row.method for row in shown]
            middles = placed(
                points, names, _WIDTH, _HEIGHT, [box for pair in pairwise(free) for box in _step(*pair)]
            )
            values: list[dict[str, Any]] = [
                {
                    "x": row.across,
                    "y": row.up,
                    "name x": across.number(x),
                    "name y": upward.number(_HEIGHT - y),
                    "who": row.method,
                    "group": self.groups.get(row.method, row.method),
                    "free": row.free,
                }
                for row, (x, y) in zip(shown, middles, strict=True)
            ]
            base = alt.Chart(alt.Data(values=values)).encode(
                x=alt.X(
                    "x:Q",
                    title=self.axis,
                    scale=across.scale(),
                    axis=ticks([v["x"] for v in values], log=True),
                ),
                y=alt.Y(
                    "y:Q",
                    title=self.unit,
                    scale=upward.scale(),
                    axis=ticks([v["y"] for v in values], log=True),
                ),
            )
            line = base.transform_filter("datum.free").mark_line(
                interpolate="step-after", color="#888", strokeDash=[4, 3]
            )
            leaders = base.mark_rule(color="#bbb", strokeWidth=0.6).encode(x2="name x:Q", y2="name y:Q")
            dots = base.mark_point(filled=True, size=60).encode(
                color=alt.Color("group:N", title=None, sort=list(dict.fromkeys(self.groups.values()))),
                opacity=alt.condition("datum.free", alt.value(1.0), alt.value(0.45)),
            )
            words = [
                base.transform_filter(which)
                .mark_text(fontSize=9, fontWeight=weight)
                .encode(x="name x:Q", y="name y:Q", text="who:N", opacity=alt.value(opacity))
                for which, weight, opacity in (("datum.free", "bold", 1.0), ("!datum.free", "normal", 0.8))
            ]
            charts.append(
                alt.layer(line, leaders, dots, *words).properties(
                    width=_WIDTH, height=_HEIGHT, title=f"{data}, ε = {epsilon}: {up}"
                )
            )
        save_chart(alt.concat(*charts, columns=min(self.across, len(charts))), path)


def _step(one: Place, other: Place) -> list[Box]:
    """The step that the line makes from a point of the skyline to the next: across, then down or up."""
    low, high = sorted((one[1], other[1]))
    return [(one[0], one[1] - 1, other[0], one[1] + 1), (other[0] - 1, low, other[0] + 1, high)]


@dataclass(frozen=True)
class _Logarithmic:
    """A logarithmic axis of so many pixels, with some left on either side of the numbers."""

    low: float
    high: float
    pixels: int

    @classmethod
    def of(cls, numbers: Sequence[float], pixels: int) -> _Logarithmic:
        low, high = math.log(min(numbers)), math.log(max(numbers))
        spare = max(high - low, 1.0) * _SPARE / (pixels - 2 * _SPARE)
        return cls(low - spare, high + spare, pixels)

    def pixel(self, number: float) -> float:
        return self.pixels * (math.log(number) - self.low) / (self.high - self.low)

    def number(self, pixel: float) -> float:
        return math.exp(self.low + pixel / self.pixels * (self.high - self.low))

    def scale(self) -> Any:
        import altair as alt

        return alt.Scale(type="log", nice=False, domain=[math.exp(self.low), math.exp(self.high)])
