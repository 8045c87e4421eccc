"""Views of two costs at once: every method as a point, and how often each is beaten by no other on both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dphist.planning.compare import skyline
from dphist_bench.results import Results
from dphist_bench.views import save_chart, short, table, ticks

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
        heads = [
            "method",
            "here",
            "the paper",
            *(f"{data}, ε = {epsilon}, {up}" for data, epsilon, up in found),
        ]
        lines = []
        for method in dict.fromkeys(row.method for rows in found.values() for row in rows):
            ticks = []
            for rows in found.values():
                mine = [row for row in rows if row.method == method]
                ticks.append("" if not mine else "✓" if mine[0].free else "·")
            lines.append([method, str(ticks.count("✓")), str(self.printed.get(method, "")), *ticks])
        note = "A dot: another is nowhere worse and somewhere better. Empty: not measured."
        return "\n".join([f"**{self.title}**", "", *table(heads, lines), "", note, ""])


@dataclass(frozen=True, kw_only=True)
class SkylinePlot:
    """A picture: every method as a point, those on the skyline by name, a dashed line through them.

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
            lines = []
            rows = {up: {row.method: row for row in found[data, epsilon, up]} for up in self.ups}
            for method, row in rows[self.ups[0]].items():
                heights = [rows[up][method] for up in self.ups if method in rows[up]]
                shown = [f"**{short(one.up)}**" if one.free else short(one.up) for one in heights]
                lines.append([method, short(row.across), *shown])
            figures += [*table(["method", self.measure, *self.ups], lines), ""]
        picture = f"![{self.title}]({stem}.svg)"
        return "\n".join([f"**{self.title}**", "", picture, "", *figures, "</details>", ""])

    def _draw(self, found: Mapping[Panel, Sequence[Costs]], path: Path) -> None:
        import altair as alt

        charts = []
        for (data, epsilon, up), rows in found.items():
            values: list[dict[str, Any]] = [
                {
                    "x": row.across,
                    "y": row.up,
                    "who": row.method,
                    "group": self.groups.get(row.method, row.method),
                    "free": row.free,
                }
                for row in rows
                if row.across > 0 and row.up > 0 and math.isfinite(row.up)
            ]
            log = alt.Scale(type="log", nice=False, padding=24)
            base = alt.Chart(alt.Data(values=values)).encode(
                x=alt.X("x:Q", title=self.axis, scale=log, axis=ticks([v["x"] for v in values], log=True)),
                y=alt.Y("y:Q", title=self.unit, scale=log, axis=ticks([v["y"] for v in values], log=True)),
            )
            free = base.transform_filter("datum.free")
            line = free.mark_line(interpolate="step-after", color="#888", strokeDash=[4, 3])
            dots = base.mark_point(filled=True, size=60).encode(
                color=alt.Color("group:N", title=None, sort=list(dict.fromkeys(self.groups.values()))),
                opacity=alt.condition("datum.free", alt.value(1.0), alt.value(0.45)),
            )
            names = free.mark_text(fontSize=9, fontWeight="bold", dy=-9).encode(text="who:N")
            title = f"{data}, ε = {epsilon}: {up}"
            charts.append(alt.layer(line, dots, names).properties(width=400, height=300, title=title))
        save_chart(alt.concat(*charts, columns=min(self.across, len(charts))), path)
