"""What is made of a transcript, which may come from anybody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dphist.errors import DphistError, VerificationError
from dphist.private.transcript import OTHERWISE


@contextmanager
def fitting() -> Iterator[None]:
    """While something is made of a transcript: whatever stumbles over it says that it does not fit."""
    try:
        yield
    except DphistError:
        raise
    except Exception:
        # Only answers that no mechanism asked for can make one stumble; which line it was tells a reader nothing.
        raise VerificationError(f"the transcript does not fit the mechanism: {OTHERWISE}") from None
