"""The chart of `auto`, drawn from the lists that decide; ``python tests/mechanisms/chart.py --write`` draws it anew."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

from dphist.mechanisms.choosing.rule import PILOTS, STEPS

FILE = Path(__file__).parents[2] / "docs" / "mechanisms" / "auto-decides.svg"

WIDE = (
    "tables, or nothing said of five attributes and more, and more cells than can be held",
    "these tables, or all of two attributes",
    ("residuals", "mixture"),
)
_ROW, _HIGH, _LINE, _LETTERS = 74, 58, 17, 44
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" font-family="system-ui, sans-serif"
 font-size="13.5"><style>.q{{fill:#e8eaf0;stroke:#555}}.d{{fill:#dcebdc;stroke:#555}}.p{{fill:#f3e8cf;stroke:#555}}
.t{{font-weight:600;fill:#222}}.a{{stroke:#444;stroke-width:1.5;fill:none;marker-end:url(#m)}}.n{{fill:#444;font-size:12px}}</style>
<defs><marker id="m" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0 8 4 0 8z" fill="#444"/></marker></defs>
<rect width="800" height="{height}" fill="#fff"/>"""


def drawn() -> str:
    """The chart as SVG: first which pilot query is asked, then which mechanism is chosen."""
    parts, y = list[str](), 34

    def box(kind: str, x: int, lines: list[str]) -> None:
        first = y + _HIGH // 2 + 5 - _LINE * (len(lines) - 1) // 2
        said = "".join(
            f'<tspan x="{x + 12}" y="{first + _LINE * place}">{escape(line)}</tspan>'
            for place, line in enumerate(lines)
        )
        parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="340" height="{_HIGH}" rx="6"/><text>{said}</text>'
        )

    def row(kind: str, question: str, answer: list[str], *, last: bool) -> None:
        nonlocal y
        box("q", 20, wrap(question, _LETTERS))
        box(kind, 440, answer)
        middle = y + _HIGH // 2
        parts.append(
            f'<path class="a" d="M360 {middle}h78"/><text class="n" x="386" y="{middle - 5}">yes</text>'
        )
        if not last:
            below = y + _HIGH
            parts.append(
                f'<path class="a" d="M60 {below}v15"/><text class="n" x="68" y="{below + 11}">no</text>'
            )
        y += _ROW

    def title(words: str) -> None:
        parts.append(f'<text class="t" x="20" y="{y - 12}">{escape(words)}</text>')

    title("1. Tables or cells")
    row("d", WIDE[0], [*wrap(WIDE[1], _LETTERS), " or ".join(WIDE[2])], last=True)
    y += 30
    title("2. A pilot query: what a few per cent of the budget buy first")
    for pilot in PILOTS:
        row("p", pilot.when, wrap(pilot.asks, _LETTERS), last=pilot is PILOTS[-1])
    y += 30
    title("3. What is measured with the rest")
    for step in STEPS:
        row("d", step.when, [*wrap(step.then, _LETTERS), " or ".join(step.names)], last=step is STEPS[-1])
    return "\n".join([_HEAD.format(height=y + 4), *parts, "</svg>", ""])


if __name__ == "__main__" and "--write" in sys.argv:
    FILE.write_text(drawn(), encoding="utf-8")
