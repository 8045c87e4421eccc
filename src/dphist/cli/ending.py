"""How a command ends that somebody else ends: by a signal, or by leaving the pipe that it prints to.

SIGTERM (a scheduler, `docker stop`) and SIGHUP (the terminal went away) take the way of Ctrl+C, so that locks are let
go, temporary files removed, and a sentence says what stays spent; whoever asks a second time is not kept waiting. What
was told to be ignored, as `nohup` does, stays ignored.

What nobody reads is thrown away, and the command goes on: one that has paid must save what it paid for, whether or not
somebody looks at its screen.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dphist.errors import OutputError

# Seconds until an interrupt that came to nothing is raised again: some libraries drop one that meets them at work.
_AGAIN = 3.0
_last: list[int] = []


@contextmanager
def heeding_signals() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for Ctrl+C where nobody else has plans with them, and remember which it was."""
    _last.clear()
    before = {
        number: signal.getsignal(number)
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
        if (number := getattr(signal, name, None)) is not None  # Windows has two of them
    }
    free = (signal.SIG_DFL, signal.default_int_handler)
    taken = {number: handler for number, handler in before.items() if handler in free}
    for number in taken:
        signal.signal(number, _end)
    try:
        yield
    finally:
        _wait(0)
        for number, handler in taken.items():
            signal.signal(number, handler)


def _end(number: int, _: Any) -> None:
    if not _last or number != getattr(signal, "SIGALRM", None):
        _last.append(number)
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)
    _wait(_AGAIN)
    raise KeyboardInterrupt


def _wait(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def ended_by() -> signal.Signals | None:
    """The signal that asked for the end, if one did."""
    return signal.Signals(_last[-1]) if _last else None


def steady_streams() -> None:
    """Put something in the place of standard streams that are closed, or whose reader may leave."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            # In this order each takes the lowest number there is, its own: a file that is opened later must not, or
            # what some library prints would end up in it.
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115 -- for good
        elif number and os.name == "posix" and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _steady(stream, _Pipe if name == "stdout" else _Aside))


def _steady(stream: Any, kind: type[_Pipe]) -> io.TextIOWrapper:
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _Pipe(io.FileIO):
    """Where answers go, until nobody takes them."""

    _gone = False
    _wanted = True

    def write(self, letters: Any, /) -> int:
        """Write what somebody reads, and drop what nobody does."""
        if not self._gone:
            try:
                return super().write(letters)
            except BrokenPipeError:
                # The reader of our output left, as `head` does.
                self._gone = True
            except OSError as error:
                self._gone = True
                if self._wanted:
                    raise OutputError(f"what was to be printed cannot be written: {error.strerror}") from None
        return memoryview(letters).nbytes


class _Aside(_Pipe):
    """Where remarks go: no work is given up because one of them cannot be written."""

    _wanted = False
