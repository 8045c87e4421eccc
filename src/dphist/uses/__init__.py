"""What people do with a release: read it as a cube, learn from it, link records by it.

All of it reads published numbers, but `private_id3`, which is a door.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphist.release.cube import Cube
    from dphist.release.exporting import export
    from dphist.uses.classify import ReleaseID3, weighted_cells
    from dphist.uses.linkage import Blocking

_HOMES = {
    "Blocking": "uses.linkage",
    "Cube": "release.cube",
    "ReleaseID3": "uses.classify",
    "export": "release.exporting",
    "weighted_cells": "uses.classify",
}
__all__ = ["Blocking", "Cube", "ReleaseID3", "export", "weighted_cells"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphist.uses' has no attribute {name!r}")
    return getattr(import_module(f"dphist.{_HOMES[name]}"), name)
