"""Long work says how far it has come, to whoever waits for it: a terminal, never a release, a log or a ledger.

How long work takes may depend on the records; it is told to the process that holds them, and kept nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[str], None]] = []
# Nothing is foretold from less than this, in seconds.
_SOON = 1.0


@contextmanager
def listening(listener: Callable[[str], None]) -> Iterator[None]:
    """Have ``listener`` told what is worked at, in words.

    Example:
        >>> said = []
        >>> with listening(said.append):
        ...     for step in steps("counting sheep", 2):
        ...         pass
        >>> said
        ['counting sheep: 50 %']
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def steps(what: str, number: int, *, apart: int = 1) -> Iterator[int]:
    """Count steps of work from 0, and say how far it has come and how long the rest will take."""
    begun = time.monotonic()
    for step in range(number):
        if _listeners and step and step % apart == 0:
            spent = time.monotonic() - begun
            said = f"{what}: {100 * step // number} %"
            if spent > _SOON:
                said += f", about {_span(spent * (number - step) / step)} left in this part"
            for listener in _listeners:
                listener(said)
        yield step


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
