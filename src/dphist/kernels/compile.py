"""How kernels are compiled: once per machine, kept on disk, and never in silence.

Loading numba takes longer than publishing a small histogram. So it is loaded when the first kernel is called, not when
one is imported, and the few kernels that every release needs have a twin in NumPy that serves small arrays meanwhile.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# Elements that twins may still work on in this process. Loading numba costs as much as they take for some tens of
# millions; who needs more is better served by the compiled kernels, and who has loaded numba anyway is at once.
_patience = 1 << 23
_numba: Any = None
# Whether machine code is kept on disk; no longer, once that failed (a full or foreign disk).
_keep = True


def kernel(function: Function) -> Function:
    """Compile a function on its first call and keep the machine code on disk.

    No ``fastmath``: kernels are exact where they claim to be, and reordered sums are not.
    """
    return cast(Function, _Kernel(function, None))


def kernel_with_twin(twin: Callable[..., Any]) -> Callable[[Function], Function]:
    """Compile a function as `kernel` does, but have its ``twin`` do small work while numba is not loaded.

    The twin must give the same bits for the same arguments: which of the two has run is nobody's business, and a test
    seed must mean the same noise either way.
    """

    def decorate(function: Function) -> Function:
        return cast(Function, _Kernel(function, twin))

    return decorate


class _Kernel:
    """A function that is compiled when first called; to numba it is the compiled function."""

    def __init__(self, function: Callable[..., Any], twin: Callable[..., Any] | None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.twin = twin
        self._compiled: Any = None
        self._kept = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        compiled = self._compiled
        if compiled is None:
            if self.twin is not None and _affordable(arguments):
                return self.twin(*arguments, **named)
            compiled = self.compiled()
        try:
            return compiled(*arguments, **named)
        except OSError:
            # Kernels touch no files: numba could not keep what it compiled, and has not run it yet.
            _stop_keeping()
            return self.compiled()(*arguments, **named)

    def compiled(self) -> Any:
        """Give numba's function; two threads that ask at once may make two, which do the same."""
        if self._compiled is None or (self._kept and not _keep):
            try:
                self._compiled, self._kept = started().njit(cache=_keep, nogil=True)(self.function), _keep
            except RuntimeError:
                # There is no folder that may be written.
                _stop_keeping()
                self._compiled, self._kept = started().njit(nogil=True)(self.function), False
        return self._compiled

    def __reduce__(self) -> str:
        # As a function is pickled: by its name.
        return self.function.__qualname__


def _stop_keeping() -> None:
    global _keep
    _keep = False


def _affordable(arguments: tuple[Any, ...]) -> bool:
    """Whether a twin may do this work: numba is not there yet, and there is patience left."""
    global _patience
    if _numba is not None:
        return False
    _patience -= max((getattr(each, "size", 1) for each in arguments), default=1)
    return _patience >= 0


def started() -> Any:
    """Load numba, and tell it what a kernel is, so that kernels can call each other; from now on no twin is asked."""
    global _numba
    if _numba is None:
        with _without_linear_algebra():
            import numba
            import numba.np.arraymath
        from numba.core import event
        from numba.extending import typeof_impl

        typeof_impl.register(_Kernel)(lambda value, context: typeof_impl(value.compiled(), context))
        for announcer in _announcers:
            event.register("numba:compile", _listener(event.Listener, announcer))
        _numba = numba
    return _numba


@contextmanager
def _without_linear_algebra() -> Iterator[None]:
    """Keep numba from looking for SciPy's linear algebra, which takes as long to load as numba: no kernel uses it.

    Only where the process is ours: a user's own compiled functions may want it.
    """
    if not _ours or "scipy.linalg" in sys.modules:
        yield
        return
    # What is None here cannot be imported; numba then goes on without.
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["scipy.linalg"]


_ours = False


def process_is_ours() -> None:
    """Say that nobody else's functions are compiled in this process: it is a command of dphist's."""
    global _ours
    _ours = True


def _listener(base: Any, announce: Callable[[], None]) -> Any:
    """A listener that calls back once, when the first compilation that the disk cache could not save begins."""
    waiting = [announce]

    def on_start(self: Any, event: Any) -> None:
        if waiting:
            waiting.pop()()

    return type("Announcer", (base,), {"on_start": on_start, "on_end": lambda self, event: None})()


_announcers: list[Callable[[], None]] = []


def announce_compilation(announce: Callable[[], None]) -> None:
    """Have ``announce`` called when compilation first takes a user's time; the first to ask is the one called."""
    if _announcers:
        return
    _announcers.append(announce)
    if _numba is not None:
        from numba.core import event

        event.register("numba:compile", _listener(event.Listener, announce))
