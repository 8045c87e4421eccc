"""Who draws a release. The release knows that it can be drawn, not by what: `dphist.report` registers when imported."""

from __future__ import annotations

from typing import Any

from dphist.extras import bring

_registered: list[Any] = []


def register(drawer: Any) -> None:
    """Let releases be drawn by this from now on: it has ``figure``, ``card`` and ``page``."""
    _registered[:] = [drawer]


def drawer() -> Any:
    """Give what draws; if nothing has registered yet, the package itself says how to bring what does."""
    if not _registered:
        bring("drawing")
    return _registered[0]
