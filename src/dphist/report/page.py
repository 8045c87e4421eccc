"""One page that says everything about a release and works offline.

Scripts, data and styles are inside the file, and its content policy forbids the browser to fetch anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from dphist.arguments import explained
from dphist.extras import need
from dphist.model.domain import Nominal
from dphist.model.workload import Workload
from dphist.release import Release
from dphist.release.asking import boxes
from dphist.release.cells.cells import TOTAL
from dphist.release.tables import largest_tables
from dphist.report import facts, figures
from dphist.report.accuracy import accuracy as accuracy_of
from dphist.report.accuracy import relative
from dphist.report.figures import Colour, specification, table
from dphist.report.pictures import vega_script
from dphist.report.tables import Table, can_guarantee, measure_lines
from dphist.report.wording import caveats, python, question, whole
from dphist.version import __version__

# A caption, numbers, the same with guaranteed intervals, and what a map shows.
Drawn = tuple[str, Table, Table | None, Colour]
_MOST_FIGURES = 8


@explained
def report_page(release: Release, *, title: str = "release", file: str = "release.parquet") -> str:
    """Write the page. ``title`` is its heading, ``file`` how the release is called in the examples.

    Args:
        release: What the page is about.
        title: Its heading.
        file: How the release is called in the examples.

    Returns:
        The page, as HTML.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> page = dphist.report.report_page(release, title="people")
        >>> page.startswith("<!doctype html>")
        True
    """
    proven = can_guarantee(release)
    together = _together(release)
    # All of one attribute, the map and both margins of two, the margins and the measured tables of two of more.
    singles = [[name] for name in release.domain.names[:_MOST_FIGURES]]
    pairs = [names for names in together if len(names) == 2][:_MOST_FIGURES]
    drawn = [*_plane(release, proven), *(_drawn(release, names, proven) for names in (*singles, *pairs))]
    shown = [_figure(number, *each) for number, each in enumerate(drawn)]
    rows = accuracy_of(release)
    accuracy = {
        "id": "accuracy",
        "caption": "Half the width of a 95% interval against how many counts an answer adds up",
        "spec": embed(figures.accuracy_figure(rows)),
        "rows": [{**row, "relative": relative(row["part"])} for row in rows],
    }
    asked = example(release)
    return str(
        _template().render(
            title=title,
            file=file,
            release=release,
            proven=proven,
            plain=facts.plain_words(release),
            caveats=caveats(release.answer(), release.guarantee),
            cells=" × ".join(f"{a.name} ({a.size:,})" for a in release.domain.attributes),
            whole=whole(release.guarantee),
            total=release.answer(),
            # Each way once: the plain sentence, and the details.
            intervals=list(dict.fromkeys(figure["said"] for figure in shown)),
            guarantee=release.guarantee.describe(),
            budget=facts.budget_tree(release),
            mechanism=release.maker,
            # Above stands the choice alone; how it was carried out comes with the mechanism.
            reason=release.note.partition(". In detail: ")[0],
            figures=shown,
            undrawn=release.domain.names[_MOST_FIGURES:],
            together=[" × ".join(names) or TOTAL for names in together],
            measures=measure_lines(release, Workload.where(release.domain, {}), 0.95),
            accuracy=accuracy,
            several=len(release.domain.shape) > 1,
            question=question(release.domain, asked),
            python=python(release.domain, asked),
            answer=release.answer(boxes(asked, release.domain))[0],
            style=style(),
            script=inline(vega_script()),
            drawing=inline(read("drawing.js")),
            version=__version__,
        )
    )


def _drawn(release: Release, names: Sequence[str], proven: bool) -> Drawn:
    """One attribute or two: a caption, numbers and, where that is proven, the same with guaranteed intervals."""
    numbers = table(release, names)
    # What nothing can be said of has no interval of either kind.
    bounded = not bool(np.isnan(numbers.answers.low).all())
    sure = table(release, names, guaranteed=True) if proven and bounded else None
    return f"Records by {' and '.join(names)}, {numbers.intervals}", numbers, sure, "estimate"


def _plane(release: Release, proven: bool) -> Iterator[Drawn]:
    """Two attributes as a map, and a second time for how far off its numbers may be."""
    names = release.domain.names
    if len(names) != 2 or min(release.domain.shape) <= 2:
        return
    _, numbers, sure, _ = _drawn(release, names, proven)
    missing = "" if numbers.answers.measured.all() else f", {numbers.intervals}"
    both, alike = f"{names[0]} and {names[1]}", _alike(numbers, sure)
    # A map of guesses alone would show what nobody measured.
    if numbers.answers.measured.any():
        yield f"Records by {both}{missing}{alike}", numbers, None, "estimate"
        if not alike:
            half = f"How far off they may be, by {both}: half the width of each {_percent(numbers)}% interval"
            yield half, numbers, sure, "uncertainty"


def _together(release: Release) -> list[tuple[str, ...]]:
    """The attributes of each table that was measured, where they were not all measured together."""
    names = release.domain.names
    tables = [tuple(names[axis] for axis in axes) for axes in largest_tables(release)]
    return [] if tables == [tuple(names)] else tables


def _alike(numbers: Table, sure: Table | None) -> str:
    """How far off all numbers of a map may be, if that is about the same: a map of it would show nothing."""
    told = f"; half the width of each {_percent(numbers)}% interval is about"
    for kind, each in (("", numbers), (", of a guaranteed one", sure)):
        if each is None:
            continue
        halves = ((each.answers.high - each.answers.low) / 2)[each.answers.measured]
        # Half-widths of a map are alike if nine of ten are within this of each other.
        if not halves.size or not 0 < np.quantile(halves, 0.95) <= 1.25 * np.quantile(halves, 0.05):
            return ""
        told += f"{kind} {np.median(halves):,.3g}"
    return f"{told} records"


def _percent(numbers: Table) -> str:
    return f"{100 * numbers.answers.confidence:g}"


def _figure(number: int, caption: str, numbers: Table, sure: Table | None, colour: Colour) -> dict[str, Any]:
    listed = len(numbers.answers) <= figures.MOST_BARS and colour == "estimate"
    return {
        "id": f"figure{number}",
        "caption": caption,
        "spec": embed(specification(numbers, colour=colour)),
        "sure": embed(specification(sure, colour=colour)) if sure is not None else None,
        "names": [cuts.attribute.name for cuts in numbers.cuts],
        "rows": numbers.rows() if listed else [],
        "sure_rows": sure.rows() if listed and sure is not None else [],
        "said": (numbers.answers.method, numbers.answers.details),
    }


def example(release: Release) -> dict[str, list[tuple[int, int]]]:
    """Pick a question worth showing: the middle half of the first ordered attribute that has one."""
    for attribute in release.domain.attributes:
        if not isinstance(attribute, Nominal) and attribute.scale.size >= 4:
            size = attribute.scale.size
            return {attribute.name: [(size // 4, size - size // 4)]}
    first = release.domain.attributes[0]
    return {first.name: [(0, 1)]} if first.size > 1 else {}


def embed(value: Any) -> str:
    """Write JSON that can stand inside a page: no text in it can end a script element."""
    return json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026")


def inline(script: str) -> str:
    """A script that can stand inside a page."""
    # Only a closing tag can end a script element, and in a script it can only stand inside a string.
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def read(name: str) -> str:
    """Read one of this folder's files."""
    return files("dphist.report").joinpath(name).read_text(encoding="utf-8")


def style() -> str:
    """Give the look that all our pages share."""
    return read("style.css")


@lru_cache(maxsize=1)
def _template() -> Any:
    made = need("jinja2", "report").Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return made.from_string(read("page.html"))
