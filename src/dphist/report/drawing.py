"""How releases are drawn when they are asked to show themselves."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from dphist.release import Release
from dphist.release.atomic import atomic
from dphist.report.figures import figure
from dphist.report.notebook import release_html
from dphist.report.page import report_page


class Charts:
    """Altair charts, and a card for notebooks."""

    def figure(self, release: Release, names: Sequence[str] | None, *, confidence: float) -> Any:
        """Draw one or two attributes."""
        return figure(release, names, confidence=confidence)

    def card(self, release: Release) -> str:
        """Show the release in a notebook."""
        return release_html(release)

    def page(self, release: Release, output: str | PathLike[str] | None, *, title: str | None) -> str:
        """Give the page about a release, and write it where told."""
        page = report_page(release, title=title or release.about.title or "release")
        if output is not None:
            with atomic(Path(output)) as temporary:
                temporary.write_text(page, encoding="utf-8")
        return page
