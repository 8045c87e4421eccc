"""What people do with a release: read it as a cube, learn from it, link records by it.

All of it reads published numbers, but `private_id3`, which is a door.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphist.extras import later

if TYPE_CHECKING:
    from dphist.release.cube import Cube
    from dphist.release.exporting import export
    from dphist.uses.classify import ReleaseID3, weighted_cells
    from dphist.uses.linkage import Blocking

__all__ = ["Blocking", "Cube", "ReleaseID3", "export", "weighted_cells"]
__getattr__ = later(
    {
        "Blocking": "uses.linkage", "Cube": "release.cube", "ReleaseID3": "uses.classify",
        "export": "release.exporting", "weighted_cells": "uses.classify",
    }
)  # fmt: skip
