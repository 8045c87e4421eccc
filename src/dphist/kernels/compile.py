"""How loops are compiled that NumPy would take several times as long for: by numba, once such a loop is first called.

A loop is written once. Loading numba takes half a second, longer than publishing a small histogram; so what NumPy does
within about three times of machine code is NumPy's, and a process that calls nothing else never loads a compiler.

Compiling takes seconds, so numba keeps machine code: beside the package, in ``NUMBA_CACHE_DIR`` if that is set, or in
the user's cache where the installation is read-only. It runs with the rights of whoever loads it, as bytecode does.
Whoever may write there may run anything; so nothing is read from, nor kept in, a folder that belongs to another user
(but root) or that everybody may write, and kernels are then compiled anew in every process.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function on its first call and keep the machine code on disk.

    No ``fastmath``: kernels are exact where they claim to be, and reordered sums are not.
    """
    return cast(Function, _Kernel(function))


def only_read(array: Any) -> Any:
    """The same numbers, side by side, as a kernel may read and not write them.

    What may be written is another type to numba. Kernels that are asked with bounds of either kind would be compiled
    for both, which takes seconds.

    Args:
        array: What a kernel only reads.

    Returns:
        A view of it, of a copy where its numbers do not lie side by side.

    Example:
        >>> import numpy as np
        >>> only_read(np.zeros((2, 3)).T).flags.writeable
        False
    """
    found = np.ascontiguousarray(array).view()
    found.flags.writeable = False
    return found


class _Kernel:
    """A function that is compiled when first called; to numba it is the compiled function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._compiled: Any = None
        self._kept = False

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.compiled()(*arguments)
        except OSError:
            # Kernels touch no files: numba could not keep what it compiled, and has not run it yet.
            _stop_keeping()
            return self.compiled()(*arguments)

    def compiled(self) -> Any:
        """Give numba's function; two threads that ask at once may make two, which do the same."""
        if self._compiled is None or (self._kept and not _keep):
            njit, self._compiled = load().njit, None
            if _keep:
                self._compiled = _kept(njit, self.function)
            self._kept = self._compiled is not None
            if not self._kept:
                self._compiled = njit(nogil=True)(self.function)
        return self._compiled

    def __reduce__(self) -> str:
        # As a function is pickled: by its name.
        return self.function.__qualname__


# Whether machine code is kept on disk; no longer, once that failed (a full disk, a folder of others).
_keep = True


def _stop_keeping() -> None:
    global _keep
    _keep = False


def _kept(njit: Any, function: Callable[..., Any]) -> Any:
    """Numba's function with machine code of earlier processes; None where no folder may be written or trusted."""
    try:
        found = njit(cache=True, nogil=True)(function)
        # Without its compiler numba gives the function itself.
        if not hasattr(found, "_cache") or _is_trusted(found._cache.cache_path):
            return found
    except RuntimeError:
        pass
    _stop_keeping()
    return None


def _is_trusted(folder: str) -> bool:
    """Whether nobody but this user, and who may do anything, can have written there."""
    found = Path(folder).stat()
    return not hasattr(os, "geteuid") or (found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o002)


@functools.cache
def load() -> Any:
    """Load numba, and tell it what a kernel is, so that kernels can call each other."""
    import numba
    from numba.core import event
    from numba.extending import typeof_impl

    typeof_impl.register(_Kernel)(lambda value, context: typeof_impl(value.compiled(), context))
    if _announce is not None:
        event.register("numba:compile", _listener(event.Listener, _announce))
    return numba


_announce: Callable[[str | None], None] | None = None


def announce_compilation(announce: Callable[[str | None], None]) -> None:
    """Have ``announce`` called, once, when compilation first takes a user's time: ask before any kernel is called.

    It is told the folder in which machine code is kept, or None where none is.
    """
    global _announce
    _announce = announce


def _listener(base: Any, announce: Callable[[str | None], None]) -> Any:
    """A listener that calls back once, when the first compilation that the disk cache could not save begins."""
    waiting = [announce]

    def on_start(self: Any, event: Any) -> None:
        if waiting:
            cache = getattr((event.data or {}).get("dispatcher"), "_cache", None)
            waiting.pop()(getattr(cache, "cache_path", None))

    return type("Announcer", (base,), {"on_start": on_start, "on_end": lambda self, event: None})()


# Long loops run on both cores: kernels and NumPy release the interpreter.
THREADS = 2


def together(work: Callable[[int, int], None], items: int, threads: int = THREADS) -> None:
    """Share items out among threads, neighbours to the same one."""
    if threads < 2 or items < 2:
        work(0, items)
        return
    # Loaded here: most releases are too small for it.
    from concurrent.futures import ThreadPoolExecutor

    cuts = [items * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))
