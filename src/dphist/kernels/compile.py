"""How kernels are compiled: once per machine, kept on disk, and never in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function on its first call and keep the machine code on disk.

    No ``fastmath``: kernels are exact where they claim to be, and reordered sums are not.
    """
    compiled: Function = numba.njit(cache=True, nogil=True)(function)
    return compiled


class _Announcer(event.Listener):  # type: ignore[misc]  # numba ships no types
    """Calls back once, when the first compilation that the disk cache could not save begins."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self.announce: Callable[[], None] | None = announce

    def on_start(self, event: Any) -> None:
        if self.announce is not None:
            announce, self.announce = self.announce, None
            announce()

    def on_end(self, event: Any) -> None:
        pass


_announcers: list[_Announcer] = []


def announce_compilation(announce: Callable[[], None]) -> None:
    """Have ``announce`` called when compilation first takes a user's time; the first to ask is the one called."""
    if not _announcers:
        _announcers.append(_Announcer(announce))
        event.register("numba:compile", _announcers[0])
