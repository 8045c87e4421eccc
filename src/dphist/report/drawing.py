"""How releases are drawn when they are asked to show themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphist.release import Release
from dphist.report.figures import figure
from dphist.report.notebook import release_html


class Charts:
    """Altair charts, and a card for notebooks."""

    def figure(self, release: Release, names: Sequence[str] | None, *, confidence: float) -> Any:
        """Draw one or two attributes."""
        return figure(release, names, confidence=confidence)

    def card(self, release: Release) -> str:
        """Show the release in a notebook."""
        return release_html(release)
