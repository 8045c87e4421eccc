"""A view of planes of counts: one small map for each method, all with the same colours."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_bench.results import Results

# From an empty cell to a full one.
_PALE, _DARK = (255, 255, 255), (8, 48, 107)


@dataclass(frozen=True, kw_only=True)
class Maps:
    """Square planes side by side: ``x`` of a reading is its cell's number, row after row, the first axis upwards.

    Each map is one image inside the picture, since ten thousand rectangles each would make it huge. Colours end at
    the value that all but ``cut`` of the first map's cells stay below.
    """

    title: str
    measure: str
    axes: tuple[str, str]
    where: Mapping[str, Any] = field(default_factory=dict)
    cut: float = 0.005

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Save the picture in ``folder`` and give the Markdown that shows it."""
        planes = self._planes(results)
        name = f"{stem}.svg"
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
        charts = []
        for name, plane in planes.items():
            rows, columns = plane.shape
            corners = [{"x": 0, "y": 0, "count": 0}, {"x": rows, "y": columns, "count": top}]
            # The second axis goes upwards, and a picture's first line is its top.
            image = _png(np.flipud(plane.T) / top)
            base = alt.Chart(alt.Data(values=corners))
            scales = {
                "x": alt.X("x:Q", title=self.axes[0], scale=alt.Scale(domain=[0, rows], nice=False)),
                "y": alt.Y("y:Q", title=self.axes[1], scale=alt.Scale(domain=[0, columns], nice=False)),
            }
            frame = base.mark_point(opacity=0).encode(
                **scales,
                color=alt.Color(
                    "count:Q",
                    title=self.measure,
                    scale=alt.Scale(domain=[0, top], range=[_hex(_PALE), _hex(_DARK)], interpolate="rgb"),
                ),
            )
            shown: Any = (
                alt.Chart(alt.Data(values=[{"x": rows / 2, "y": columns / 2}]))
                .mark_image(url=image, width=240, height=240, aspect=False, smooth=False)
                .encode(x="x:Q", y="y:Q")
            )
            charts.append((shown + frame).properties(width=240, height=240, title=name))
        chart: Any = alt.concat(*charts, columns=3)
        chart.save(str(path))


def _hex(colour: Sequence[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in colour)


def _png(shares: NDArray[np.float64]) -> str:
    """Write shares between 0 and 1 (others are cut) as an image with a palette, as a ``data:`` address."""
    levels = np.rint(255 * np.clip(shares, 0.0, 1.0)).astype(np.uint8)
    height, width = levels.shape
    palette = np.rint(np.linspace(_PALE, _DARK, 256)).astype(np.uint8)
    # Each line starts with the number of its filter: none.
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), levels])
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    image = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )
    return "data:image/png;base64," + base64.b64encode(image).decode()
