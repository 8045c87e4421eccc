"""The figures of `paper002`, drawn with Altair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt


def _group(scheme: str) -> str:
    if scheme == "h":
        return "H"
    if scheme.startswith("o+"):
        return "O + S"
    return {"mm": "S + MM", "pmm": "S + PMM", "h": "S + H"}.get(scheme.rpartition("+")[2], "S")


def time_against_error(rows: list[dict[str, Any]], title: str, path: Path) -> None:
    """Every scheme as a labelled point, log against log, the skyline as a stepped line through its members."""
    for row in rows:
        row["group"] = _group(str(row["scheme"]))
    panels = []
    for kind in ("point", "interval"):
        here = [row for row in rows if row["queries"] == kind]
        base = alt.Chart(alt.Data(values=here)).encode(
            x=alt.X(
                "seconds:Q",
                scale=alt.Scale(type="log"),
                title="CPU seconds",
                axis=alt.Axis(format="~g", tickCount=4),
            ),
            y=alt.Y(
                "error:Q",
                scale=alt.Scale(type="log"),
                title="mean squared error",
                axis=alt.Axis(format="~e", tickCount=6),
            ),
        )
        line = base.transform_filter("datum.skyline").mark_line(
            interpolate="step-after", color="#888", strokeDash=[4, 3]
        )
        points = base.mark_point(filled=True, size=70).encode(
            color=alt.Color("group:N", title="blocks"),
            opacity=alt.condition("datum.skyline", alt.value(1.0), alt.value(0.45)),
        )
        labels = base.mark_text(align="left", dx=7, dy=-4, fontSize=10).encode(
            text="scheme:N", opacity=alt.condition("datum.skyline", alt.value(1.0), alt.value(0.55))
        )
        panels.append((line + points + labels).properties(width=380, height=320, title=f"{kind} queries"))
    _save(alt.hconcat(*panels).properties(title=f"{title}; dashed: the skyline"), path)


def against(rows: list[dict[str, Any]], axis: str, title: str, path: Path) -> None:
    """One line for each scheme, one panel for each kind of question."""
    panels = []
    for panel in dict.fromkeys(str(row["panel"]) for row in rows):
        here = [row for row in rows if row["panel"] == panel]
        chart = (
            alt.Chart(alt.Data(values=here))
            .mark_line(point=True)
            .encode(
                x=alt.X(
                    "x:Q", scale=alt.Scale(type="log"), title=axis, axis=alt.Axis(format="~g", tickCount=5)
                ),
                y=alt.Y(
                    "error:Q",
                    scale=alt.Scale(type="log"),
                    title="mean squared error",
                    axis=alt.Axis(format="~e", tickCount=6),
                ),
                color=alt.Color("scheme:N", title="scheme"),
            )
            .properties(width=340, height=280, title=panel)
        )
        panels.append(chart)
    _save(alt.hconcat(*panels).properties(title=title), path)


def _save(chart: Any, path: Path) -> None:
    chart.save(str(path), scale_factor=1.5)
