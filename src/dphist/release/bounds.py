"""The interval of every cell by itself: what the file's columns ``low`` and ``high`` hold, in blocks of cells.

A block at a time, so that a release of a hundred million cells needs memory for a quarter of a million questions. The
bounds are arithmetic on released numbers: whoever has the file can compute them again, and `Release.verify` does.
"""

from __future__ import annotations

import math

import numpy as np

from dphist.errors import MechanismError, VerificationError
from dphist.inference.estimate import NoiseErrors, cell_widths
from dphist.release.contents import Contents
from dphist.release.written import Pair
from dphist.version import __version__

BLOCK = 1 << 18
COARSE = 1 << 24
"""From so many cells on, bounds are rounded where a number has many digits."""
# Arithmetic differs in the last digits from one platform to the next; a forger gains nothing there.
_SLACK = 1e-9


def block_bounds(release: Contents, begin: int, end: int, confidence: float) -> Pair:
    """Lower and upper ends for some rows, not a number where nothing can be said of a cell."""
    step = coarse_step(release, confidence)
    if step:
        return _rounded(release, begin, end, confidence, step)
    parts = [
        release.cells.bounds(release, start, min(start + BLOCK, end), confidence)
        for start in range(begin, end, BLOCK)
    ]
    low, high = (np.concatenate([part[side] for part in parts] or [np.zeros(0)]) for side in (0, 1))
    return low, high


def _rounded(release: Contents, begin: int, end: int, confidence: float, step: float) -> Pair:
    # Loaded here: few releases are so large.
    from dphist.kernels.coding import outward

    published = release.cells.numbers[begin:end]
    stand = (release._unpolished if release.polish else release.cells).numbers[begin:end]
    widths = cell_widths(release._estimate.errors, begin, end, confidence)
    low, high = np.empty(end - begin), np.empty(end - begin)
    outward(stand, np.atleast_1d(np.asarray(widths, dtype=np.float64)), published, step, low, high)
    return low, high


def coarse_step(release: Contents, confidence: float) -> float:
    """What bounds of very many cells are rounded outward to, so that their columns need a byte a cell instead of eight.

    A power of two, at most 1/64 of how far the narrowest interval reaches; zero where nothing is rounded. Wider bounds
    hold whatever the narrower held.
    """
    if release.cells.form != "dense" or release.cells.numbers.size < COARSE:
        return 0.0
    errors = release._estimate.errors
    width = errors.narrowest(confidence) if isinstance(errors, NoiseErrors) else None
    return 2.0 ** (math.frexp(width)[1] - 7) if width else 0.0


def known_bounds(release: Contents, begin: int, end: int, confidence: float) -> Pair:
    """The same, from the file that the release was read from where it has them.

    A mechanism that is not installed here cannot be replayed, so nothing is known of its errors.
    """
    written = release._written
    if written is not None and written.confidence == confidence:
        return written.rows(begin, end)
    try:
        return block_bounds(release, begin, end, confidence)
    except MechanismError:
        unknown = np.full(end - begin, np.nan)
        return unknown, unknown


def check_written(release: Contents, *, exact: bool) -> None:
    """Insist that the bounds in the file which the release comes from are the release's own (``exact``: bit by bit)."""
    written = release._written
    if written is None:
        return
    size = int(release.cells.numbers.size)
    for begin in range(0, size, 4 * BLOCK):
        end = min(begin + 4 * BLOCK, size)
        found, wanted = written.rows(begin, end), block_bounds(release, begin, end, written.confidence)
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
