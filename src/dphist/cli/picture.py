"""A histogram as an SVG file, with its error bars, and nothing to install."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from math import floor, isnan, log10

import numpy as np

from dphist.model.phrases import visible
from dphist.release import Release
from dphist.release.answers import percent

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 860, 360, 70, 44, 46


def bars(release: Release, name: str, confidence: float = 0.95) -> str:
    """Draw one attribute of a release as bars with intervals."""
    table = release.project(name, confidence=confidence)
    labels = list(table.domain.attributes[0].labels)
    top = max(float(np.nanmax([*table.high, *table.counts], initial=1.0)), 1.0)
    step = (_WIDTH - _LEFT - 20) / len(labels)
    height = _HEIGHT - _BOTTOM - _TOP

    def y(value: float) -> float:
        return _TOP + height * (1 - max(0.0, value) / top)

    marks = [_axis(top, y)]
    every = int(_round(max(1.0, len(labels) / 16)))
    for i, label in enumerate(labels):
        x = _LEFT + i * step
        value, low, high = float(table.counts[i]), float(table.low[i]), float(table.high[i])
        middle = x + step / 2
        marks.append(
            f'<rect x="{x + step * 0.08:.1f}" y="{y(value):.1f}" width="{step * 0.84:.1f}" '
            f'height="{_TOP + height - y(value):.1f}" fill="#4c78a8">'
            f"<title>{escape(visible(label))}: {value:,.0f}</title></rect>"
        )
        # What nothing can be said of gets no line; bounds of what was not measured get a broken one.
        if not isnan(low):
            broken = "" if table.guessed is None or not table.guessed[i] else ' stroke-dasharray="4 3"'
            marks.append(
                f'<path d="M{middle:.1f} {y(low):.1f}V{y(high):.1f}" stroke="#222" stroke-width="1.2" '
                f'fill="none"{broken}/>'
            )
        if i % every == 0:
            marks.append(
                f'<text x="{middle:.1f}" y="{_TOP + height + 16}" text-anchor="middle">{escape(visible(label))}</text>'
            )
    kind = "intervals" if table.guessed is None else "bounds, not measured"
    title = escape(
        f"{visible(name)}: estimated records, {percent(confidence)}% {kind}; {release.guarantee.describe()}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="11" role="img">'
        f'<title>{title}</title><rect width="100%" height="100%" fill="white"/>'
        f'<text x="{_LEFT}" y="24" font-size="14">{title}</text>{"".join(marks)}'
        f'<text x="{(_LEFT + _WIDTH) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(visible(name))}</text>'
        "</svg>\n"
    )


def _axis(top: float, y: Callable[[float], float]) -> str:
    step = _round(top / 5)
    parts = []
    for i in range(int(top / step) + 1):
        height = y(i * step)
        parts.append(f'<path d="M{_LEFT} {height:.1f}H{_WIDTH - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{i * step:,.0f}</text>')
    return "".join(parts)


def _round(rough: float) -> float:
    """The next number that is 1, 2 or 5 times a power of ten: what people count by."""
    power = 10.0 ** floor(log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
