"""How releases are drawn when they are asked to show themselves: as charts, as a page, as a card in a notebook.

`dphist` says to the release, which stands below, that this is brought when it is first wanted.
"""

from __future__ import annotations

from html import escape
from os import PathLike
from pathlib import Path

import numpy as np

from dphist.release import Release
from dphist.release.atomic import atomic, check_page_name
from dphist.report.cuts import cut
from dphist.report.figures import figure as figure
from dphist.report.page import report_page
from dphist.report.tables import tabulate

# The small picture of a card, in pixels, and how many bars it has at most.
_WIDTH, _HEIGHT, _MOST = 480, 90, 120


def page(release: Release, output: str | PathLike[str] | None, *, title: str | None) -> str:
    """Give the page about a release, and write it where told."""
    if output is not None:
        check_page_name(Path(output))
    written = report_page(release, title=title or release.about.title or "release")
    if output is not None:
        with atomic(Path(output)) as temporary:
            temporary.write_text(written, encoding="utf-8")
    return written


def card(release: Release) -> str:
    """Write a small card: what is counted, what is promised, how it was made, and the first attribute as bars."""
    facts = {
        "cells": " × ".join(f"{a.name} ({a.size:,})" for a in release.domain.attributes),
        "promise": release.guarantee.describe(),
        "mechanism": release.maker.name,
    }
    facts["records of keys shown" if release.guarantee.threshold else "records"] = str(release.answer())
    rows = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><table>{rows}</table>{_bars(release)}</div>"


def _bars(release: Release) -> str:
    attribute = release.domain.attributes[0]
    numbers = tabulate(release, [cut(attribute, _MOST)])
    answers, labels = numbers.answers, numbers.cuts[0].labels
    top = max(float(np.nanmax([*answers.high, *answers.value], initial=1.0)), 1.0)
    step = _WIDTH / len(labels)
    marks = []
    for i, label in enumerate(labels):
        height = _HEIGHT * max(0.0, float(answers.value[i])) / top
        marks.append(
            f'<rect x="{i * step:.1f}" y="{_HEIGHT - height:.1f}" width="{max(0.5, step - 0.6):.1f}" '
            f'height="{height:.1f}" fill="#4c78a8"><title>{escape(label)}: {escape(str(answers[i]))}</title></rect>'
        )
    title = f"{escape(numbers.cuts[0].title)}: estimated records"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title>{"".join(marks)}</svg><div><small>{title}</small></div>'
    )
