"""A view of planes of counts: one small map for each method, all with the same colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_bench.results import Results


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Square planes side by side: ``x`` of a reading is its cell's number, row after row, the first axis upwards.

    The picture is a PNG, since ten thousand rectangles each would make an SVG huge. Colours end at the value that all
    but ``cut`` of the first map's cells stay below.
    """

    title: str
    measure: str
    axes: tuple[str, str]
    where: Mapping[str, Any] = field(default_factory=dict)
    cut: float = 0.005

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Save the picture in ``folder`` and give the Markdown that shows it."""
        planes = self._planes(results)
        name = f"{stem}.png"
        folder.mkdir(parents=True, exist_ok=True)
        self._draw(planes, folder / name)
        return "\n".join([f"**{self.title}**", "", f"![{self.title}]({name})", ""])

    def _planes(self, results: Results) -> dict[str, NDArray[np.float64]]:
        points = results.select(self.measure, **self.where)
        planes = {}
        for method in dict.fromkeys(point.method for point in points):
            mine = sorted((p.x or 0.0, p.value) for p in points if p.method == method)
            planes[method] = np.array([value for _, value in mine]).reshape(math.isqrt(len(mine)), -1)
        return planes

    def _draw(self, planes: Mapping[str, NDArray[np.float64]], path: Path) -> None:
        import altair as alt

        top = max(1.0, float(np.quantile(next(iter(planes.values())), 1 - self.cut)))
        scale = alt.Scale(domain=[0, top], range=["#ffffff", "#08306b"], clamp=True, interpolate="rgb")
        alt.data_transformers.disable_max_rows()
        charts = [
            alt.Chart(alt.Data(values=[{"x": x, "y": y, "count": n} for (x, y), n in np.ndenumerate(plane)]))
            .mark_rect(stroke=None)
            .encode(
                x=alt.X("x:Q", bin=alt.Bin(step=1), title=self.axes[0]),
                y=alt.Y("y:Q", bin=alt.Bin(step=1), title=self.axes[1]),
                color=alt.Color("count:Q", title=self.measure, scale=scale),
            )
            .properties(width=240, height=240, title=name)
            for name, plane in planes.items()
        ]
        chart: Any = alt.concat(*charts, columns=3)
        chart.save(str(path), scale_factor=2)
