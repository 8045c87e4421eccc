"""What people do with a release: read it as a cube, ask it in SQL, learn from it, link records by it.

All of it reads published numbers, but `private_id3` and `starting`, which are doors. The explorer and the command line
import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphist.release.cube import Cube
    from dphist.uses.classify import ReleaseID3, weighted_cells
    from dphist.uses.exporting import export
    from dphist.uses.keeping import records_keep
    from dphist.uses.linkage import Blocking
    from dphist.uses.sql import ask_sql

_HOMES = {
    "Blocking": "uses.linkage",
    "Cube": "release.cube",
    "ReleaseID3": "uses.classify",
    "ask_sql": "uses.sql",
    "export": "uses.exporting",
    "records_keep": "uses.keeping",
    "weighted_cells": "uses.classify",
}
__all__ = ["Blocking", "Cube", "ReleaseID3", "ask_sql", "export", "records_keep", "weighted_cells"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphist.uses' has no attribute {name!r}")
    return getattr(import_module(f"dphist.{_HOMES[name]}"), name)
