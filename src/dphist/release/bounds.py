"""The interval of every cell by itself: what the file's columns ``low`` and ``high`` hold.

They are arithmetic on released numbers: whoever has the file can compute them again, and `Release.verify` does.
"""

from __future__ import annotations

import numpy as np

from dphist.errors import VerificationError
from dphist.release.contents import Contents
from dphist.release.written import Pair
from dphist.version import __version__

_ROWS = 1 << 20
# Arithmetic differs in the last digits from one platform to the next; a forger gains nothing there.
_SLACK = 1e-9


def known_bounds(release: Contents, begin: int, end: int, confidence: float) -> Pair:
    """Lower and upper ends for some rows, from the file that the release was read from where it has them."""
    written = release._written
    if written is not None and written.confidence == confidence:
        return written.rows(begin, end)
    return release.cells.bounds(release, begin, end, confidence)


def check_written(release: Contents, *, exact: bool) -> None:
    """Insist that the bounds in the file which the release comes from are the release's own (``exact``: bit by bit)."""
    written = release._written
    if written is None:
        return
    size = int(release.cells.numbers.size)
    for begin in range(0, size, _ROWS):
        end = min(begin + _ROWS, size)
        found, wanted = (
            written.rows(begin, end),
            release.cells.bounds(release, begin, end, written.confidence),
        )
        for one, other in zip(found, wanted, strict=True):
            slack = 0.0 if exact else _SLACK
            if not np.allclose(one, other, rtol=slack, atol=slack, equal_nan=True):
                raise VerificationError(
                    "a bound in the file is not what this release's interval is, as dphist "
                    f"{__version__} computes it (the file was written by {written.software})"
                )


def every_bound(release: Contents, confidence: float) -> Pair:
    """Both ends for every row, kept: a release is asked again and again, and never changes."""
    kept = release._bounds
    if confidence not in kept:
        kept.clear()
        kept[confidence] = known_bounds(release, 0, int(release.cells.numbers.size), confidence)
        for ends in kept[confidence]:
            # Whoever gets them shares them with whoever asks next.
            ends.setflags(write=False)
    low, high = kept[confidence]
    return low, high
