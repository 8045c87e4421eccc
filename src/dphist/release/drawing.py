"""Who draws a release. The release knows that it can be drawn, not by what: `dphist.report` registers when imported."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol

from dphist.extras import bring


class Drawer(Protocol):
    """What can show a release."""

    def figure(self, release: Any, names: Sequence[str] | None, *, confidence: float) -> Any:
        """Draw one or two attributes as a chart."""
        ...

    def card(self, release: Any) -> str:
        """Show the release as a piece of HTML."""
        ...

    def page(self, release: Any, output: str | PathLike[str] | None, *, title: str | None) -> str:
        """Give the page about a release, and write it where told."""
        ...


_registered: list[Drawer] = []


def register(drawer: Drawer) -> None:
    """Let releases be drawn by this from now on."""
    _registered[:] = [drawer]


def drawer() -> Drawer:
    """Give what draws; if nothing has registered yet, the package itself says how to bring what does."""
    if not _registered:
        bring("drawing")
    return _registered[0]
