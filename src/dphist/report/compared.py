"""One page about a comparison of mechanisms: error against time, and the same as numbers. It works offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dphist.extras import need
from dphist.model.phrases import counted
from dphist.report.page import embed, inline, read, style
from dphist.report.pictures import vega_script

_BLUE = "#4c78a8"


def compared_page(
    rows: Sequence[Mapping[str, Any]],
    left_out: Sequence[tuple[str, str]],
    *,
    budget: str,
    workload: str,
    questions: int,
    sampled: bool,
) -> str:
    """Draw mechanisms by error and time; each row has ``mechanism``, ``error``, ``ratio``, ``seconds``, ``skyline``."""
    caption = f"Error on {workload} against time, {budget}"
    template = need("jinja2", "report").Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return str(
        template.from_string(read("compared.html")).render(
            rows=rows,
            left_out=left_out,
            budget=budget,
            caption=caption,
            questions=f"{counted(questions, 'question')} ({workload}{', a sample of them' if sampled else ''})",
            sampled=", over a sample of the questions" if sampled else "",
            spec=embed(_chart(rows).to_dict()),
            style=style(),
            script=inline(vega_script()),
            drawing=inline(read("drawing.js")),
        )
    )


def _chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    alt = need("altair", "report")
    values = [
        {**row, "error": max(float(row["error"]), 1e-9), "seconds": max(float(row["seconds"]), 1e-6)}
        for row in rows
    ]
    points = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="CPU seconds a release"),
        y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="error, in records"),
        tooltip=[
            alt.Tooltip("mechanism:N"),
            alt.Tooltip("error:Q", format=",.2f"),
            alt.Tooltip("seconds:Q", format=".3f", title="CPU seconds"),
        ],
    )
    marks = points.mark_point(size=70, color=_BLUE).encode(
        fill=alt.condition("datum.skyline", alt.value(_BLUE), alt.value("transparent"))
    )
    # Only the skyline is named in the figure, where names would run into each other; the table names all.
    names = (
        points.mark_text(align="left", dx=7, fontSize=11)
        .transform_filter("datum.skyline")
        .encode(text="mechanism:N")
    )
    return alt.layer(marks, names).properties(width="container", height=420)
