"""What intervals were worked out of, kept in the file in few numbers: who asks a release need not learn it again.

How totals divide, how far that was too smooth, and how far published sums depart from measured ones are functions of
the transcript alone (`dphist.inference.predictive`), so they may be published as it may; of a large release they take
longer to learn than a question to answer. Asking believes them, as it believes the bounds of single cells;
`Release.verify` learns them anew, and refuses a file that says anything else. Files without them are asked as ever.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphist.errors import MechanismError, ReleaseError, VerificationError
from dphist.release.cells.cells import FloatArray, Learned
from dphist.release.contents import FEWEST, Contents
from dphist.version import __version__

NAMES = ("ways", "alike", "caution", "departures")
# Arithmetic differs in the last digits from one platform to the next, and sums of differences in a few more.
_SLACK = 1e-8


def worth_keeping(release: Contents) -> Learned | None:
    """What to write: nothing for few cells, and where errors are noise of a known law."""
    told = release._learned
    if told is not None or release._written is not None:
        return told
    if release.cells.form != "dense" or release.polish:
        return None
    try:
        own = _of(release)
    except MechanismError:
        # A mechanism that is not installed here cannot be replayed.
        return None
    return None if release.cells.numbers.size < FEWEST else own


def _of(release: Contents) -> Learned | None:
    known = getattr(type(release.mechanism), "reuses_counts", False) is True
    return getattr(release._estimate.errors, "learned", None) if known else None


def as_lists(told: Learned) -> dict[str, Any]:
    """As the description holds it."""
    return {name: values.tolist() for name, values in told.items()}


def read(story: Any) -> Learned:
    """Read it from a description: lists of numbers, and nothing else."""
    if not isinstance(story, dict) or not set(story) <= set(NAMES):
        raise ReleaseError("it says other things of its intervals than a release does")
    told = {}
    for name, values in story.items():
        found = np.array(values)
        if found.dtype.kind not in "fi" or not 1 <= found.ndim <= 2 or not np.isfinite(found).all():
            raise ReleaseError("what it says of its intervals are no numbers")
        told[name] = found.astype(np.float64)
    return told


def check_learned(release: Contents) -> None:
    """Insist that what the file says is what a replay, which believed none of it, has learned."""
    told = release._learned
    if told is None:
        return
    own = _of(release) or {}
    for name in {*told, *own}:
        one, other = told.get(name), own.get(name)
        if one is None or other is None or one.shape != other.shape or not _same(one, other):
            raise VerificationError(
                f"what the file says of its intervals ({name}) is not what dphist {__version__} learns from its "
                "transcript"
            )


def _same(one: FloatArray, other: FloatArray) -> bool:
    least = max(1e-3, math.sqrt(_SLACK))
    return bool(np.allclose(one, other, rtol=_SLACK, atol=_SLACK * least))
