"""How costs beside other libraries are shown: with the ratio to ours, and with the reason where there is no cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dphist_bench.results import Results
from dphist_bench.views import Table, short

OURS = "dphist, laplace"


@dataclass(frozen=True, kw_only=True)
class Beside(Table):
    """A table for each number of rows: a line a library, a column a number of cells, each figure with its ratio."""

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Give the tables one after another; a library that was nowhere measured has its reason under the versions."""
        lines = [f"**{self.title}** (in brackets: how many times ours)", ""]
        points = results.select(self.measure, **self.where)
        measured = {point.method for point in points}
        for data in dict.fromkeys(point.data for point in results.points):
            here = {(point.method, point.x): point.value for point in points if point.data == data}
            places = sorted(
                {point.x for point in results.points if point.data == data and point.x is not None}
            )
            lines.append(f"| {data} | " + " | ".join(f"{place:,.0f} cells" for place in places) + " |")
            lines.append("|---" + "|---:" * len(places) + "|")
            for name in dict.fromkeys(point.method for point in results.points if point.data == data):
                if name not in measured:
                    continue
                entries = []
                for place in places:
                    ours, value = here.get((OURS, place)), here.get((name, place))
                    if value is None:
                        entries.append(_reason(results, data, name, place))
                    elif name == OURS or not ours:
                        entries.append(short(value))
                    else:
                        entries.append(f"{short(value)} ({short(value / ours)} ×)")
                lines.append(f"| {name} | " + " | ".join(entries) + " |")
            lines.append("")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Versions(Table):
    """Which version of each library was measured, or why it was not."""

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Give a list."""
        lines = [f"**{self.title}**", ""]
        for name in dict.fromkeys(point.method for point in results.points):
            words = {
                point.measure.partition(": ")[2] if point.measure.startswith("version: ") else point.measure
                for point in results.points
                if point.method == name and point.measure.startswith(("version: ", "skipped: "))
            }
            lines.append(f"- {name}: {'; '.join(sorted(words))}")
        return "\n".join([*lines, ""])


def _reason(results: Results, data: str, name: str, place: float) -> str:
    for point in results.points:
        if (point.data, point.method, point.x) == (data, name, place) and point.measure.startswith(
            "skipped: "
        ):
            return point.measure
    return ""
