"""How readings are shown: a Markdown table or a picture of lines; `skylines` of two costs, `heatmap`s of planes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dphist_bench.results import Point, Results

# Labels of an axis: plain numbers while they are short, powers of ten otherwise.
LABEL = (
    "datum.value !== 0 && (abs(datum.value) >= 1e5 || abs(datum.value) < 1e-3)"
    " ? format(datum.value, '.0e') : format(datum.value, '~g')"
)


class View(Protocol):
    """Anything that shows the readings of a measure on a page."""

    @property
    def title(self) -> str:
        """What a reader sees above it."""

    @property
    def measure(self) -> str:
        """The measure it cannot do without."""

    @property
    def where(self) -> Mapping[str, Any]:
        """Which points of that measure it shows."""

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Give its Markdown; pictures go into ``folder`` under names that begin with ``stem``."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A line for each method, a column for each combination of ``columns``; the paper's own figures after a slash.

    ``printed`` maps (data, method, ε) to what the paper prints.
    """

    title: str
    measure: str
    columns: Sequence[str] = ("data", "epsilon")
    where: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[tuple[str, str, str], float] = field(default_factory=dict)

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Give the table; ``folder`` and ``stem`` are for views that need files."""
        points = results.select(self.measure, **self.where)
        heads = list(dict.fromkeys(self._head(point) for point in points))
        rows = by_method(points, heads, self._head, self._entry)
        note = ["", "Each entry is ours / the paper's, where the paper prints one."] if self.printed else []
        return "\n".join([f"**{self.title}**", "", *table(["method", *heads], rows), *note, ""])

    def _head(self, point: Point) -> str:
        words = []
        for name in self.columns:
            value = getattr(point, name)
            if value not in ("", None):
                words.append(f"ε = {value}" if name == "epsilon" else _plain(value))
        return ", ".join(words) or self.measure

    def _entry(self, point: Point) -> str:
        text = short(point.value)
        printed = self.printed.get((point.data, point.method, point.epsilon))
        return text if printed is None else f"{text} / {short(printed)}"


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A picture: one line for each method, one panel for each combination of ``panels``, and its figures as a table.

    ``x`` is "epsilon" or "x". Logarithmic axes where ``log`` names them.
    """

    title: str
    measure: str
    x: str = "x"
    axis: str = "x"
    unit: str = ""
    panels: Sequence[str] = ("data",)
    log: str = "xy"
    where: Mapping[str, Any] = field(default_factory=dict)
    across: int = 2

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Save the picture in ``folder`` and give the Markdown that shows it, with its figures folded below."""
        chosen = results.select(self.measure, **self.where)
        name = f"{stem}.svg"
        self._draw(chosen, folder / name)
        return "\n".join(
            [f"**{self.title}**", "", f"![{self.title}]({name})", "", *self._figures(chosen), ""]
        )

    def _panel(self, point: Point) -> str:
        words = [getattr(point, name) for name in self.panels]
        return ", ".join(
            f"ε = {word}" if name == "epsilon" else str(word)
            for name, word in zip(self.panels, words, strict=True)
            if word not in ("", None)
        )

    def _place(self, point: Point) -> float:
        place = getattr(point, self.x)
        return math.nan if place in (None, "") else float(place)

    def _figures(self, points: Sequence[Point]) -> list[str]:
        lines = ['<details markdown="1"><summary>The figures</summary>', ""]
        for panel in dict.fromkeys(self._panel(point) for point in points):
            here = [point for point in points if self._panel(point) == panel]
            places = sorted({self._place(point) for point in here})
            lines += [f"{panel}; columns are {self.axis}" if panel else f"Columns are {self.axis}", ""]
            rows = by_method(here, places, self._place, lambda point: short(point.value))
            lines += [*table(["", *(f"{place:g}" for place in places)], rows), ""]
        return [*lines, "</details>"]

    def _draw(self, points: Sequence[Point], path: Path) -> None:
        import altair as alt

        panels = list(dict.fromkeys(self._panel(point) for point in points))
        charts = []
        for panel in panels:
            values: list[dict[str, Any]] = [
                {"x": self._place(p), "y": p.value, "who": p.method}
                for p in points
                if self._panel(p) == panel and math.isfinite(p.value)
            ]
            # A logarithm has no place for zero, so such a panel is drawn linearly.
            flat_x = "x" not in self.log or any(value["x"] <= 0 for value in values)
            flat_y = "y" not in self.log or any(value["y"] <= 0 for value in values)
            charts.append(
                alt.Chart(alt.Data(values=values))
                .mark_line(point=True)
                .encode(
                    x=alt.X(
                        "x:Q",
                        title=self.axis,
                        scale=alt.Scale(type="linear" if flat_x else "log", zero=False, nice=False),
                        axis=ticks([value["x"] for value in values], log=not flat_x),
                    ),
                    y=alt.Y(
                        "y:Q",
                        title=self.unit or self.measure,
                        scale=alt.Scale(type="linear" if flat_y else "log", zero=False),
                        axis=ticks([value["y"] for value in values], log=not flat_y),
                    ),
                    color=alt.Color("who:N", title=None, sort=None, scale=alt.Scale(scheme="tableau20")),
                    shape=alt.Shape("who:N", sort=None, legend=None),
                )
                .properties(width=300, height=220, title=panel)
            )
        save_chart(alt.concat(*charts, columns=min(self.across, len(charts))), path)


def ticks(values: Sequence[float], *, log: bool) -> Any:
    """An axis with few labels; a logarithmic one has 1, 2 and 5 times powers of ten, or powers alone where many fit."""
    import altair as alt

    if not log or not values:
        return alt.Axis(labelExpr=LABEL, tickCount=5, gridOpacity=0.5)
    low, high = math.log10(min(values)), math.log10(max(values))
    steps = (1, 2, 5) if high - low < 2 else (1,)
    every = 1 if high - low < 7 else 2
    places = [
        step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1, every) for step in steps
    ]
    return alt.Axis(labelExpr=LABEL, values=places, gridOpacity=0.5)


def save_chart(chart: Any, path: Path) -> None:
    """Save a picture, small: its words stand on the page, as a table, and hundredths of a pixel are enough."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.configure(aria=False).save(str(path))
    drawn = path.read_text(encoding="utf-8")
    # Inside tags only: between them are the labels, which may well need more digits.
    path.write_text(re.sub(r"(\d\.\d\d)\d+(?=[^<>]*>)", r"\1", drawn), encoding="utf-8")


def short(value: float) -> str:
    """Write a number as a reader wants it in a table: three figures, thousands apart."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1e7 or (value != 0 and abs(value) < 1e-3):
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = (" | ".join(row) for row in (heads, *rows))
    first, *others = (f"| {line} |" for line in lines)
    return [first, "|---" * len(heads) + "|", *others]


def by_method(
    points: Sequence[Point], heads: Sequence[Any], head: Callable[[Point], Any], entry: Callable[[Point], str]
) -> Iterator[list[str]]:
    """A row for each method: its name, and what it has below each head."""
    for name in dict.fromkeys(point.method for point in points):
        mine = {head(point): entry(point) for point in points if point.method == name}
        yield [_plain(name), *(mine.get(each, "") for each in heads)]


def _plain(text: object) -> str:
    return f"{text:g}" if isinstance(text, float) else str(text).replace("|", "\\|")
