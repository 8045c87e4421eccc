"""How kernels are compiled: once per machine, kept on disk, and never in silence.

Loading numba takes longer than publishing a small histogram, and compiling a kernel takes seconds. So a kernel is
compiled when it is hot, as other languages' compilers do it: until then its few elements are worked on by a twin in
NumPy, or by Python itself, which runs the very same function.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from dphist.extras import is_ours
from dphist.kernels import machine
from dphist.kernels.linker import Code

Function = TypeVar("Function", bound=Callable[..., Any])
Cost = Callable[..., float]

# Microseconds that twins and Python may still take in this process before numba is loaded, which takes as long: 0.9
# seconds, and 0.05 to 0.1 for the machine code of each of some kernels.
_patience = 1_300_000.0
# Microseconds of one kernel that is not on disk, in this process, before it is compiled: that takes seconds, once. Long
# calls count over all processes (`machine.worn`).
_COLD = 1_500_000.0
# Microseconds of it after which the disk is looked at again: another process may have compiled it by then.
_LOOK_AGAIN = 10_000.0
# Microseconds that they may take before the linker is loaded, which takes as long, for kernels compiled by then.
_spare = 100_000.0
# Microseconds that linking one of them takes.
_LINKING = 3_000.0
# What a twin in NumPy takes for an element.
_TWIN = 0.1
_numba: Any = None
# Whether machine code is kept on disk; no longer, once that failed (a full or foreign disk).
_keep = True


def kernel(function: Function) -> Function:
    """Compile a function on its first call and keep the machine code on disk.

    No ``fastmath``: kernels are exact where they claim to be, and reordered sums are not.
    """
    return cast(Function, _Kernel(function, None, None))


def kernel_once_hot(cost: float | Cost) -> Callable[[Function], Function]:
    """Compile a function as `kernel` does, but have Python run it while there is little to do.

    The same function on the same floats gives the same bits, compiled or not: Python and machine code call the same
    elementary functions, and NumPy's scalars are IEEE doubles. Only sums over whole arrays (``np.sum``, ``@``) go in
    another order; such kernels spell their loops out.

    Args:
        cost: About how many microseconds Python takes for each element of the first argument; or a function that is
            given the arguments and says it for the call.
    """

    def decorate(function: Function) -> Function:
        estimate = cost if callable(cost) else functools.partial(_by_length, cost)
        return cast(Function, _Kernel(function, None, estimate))

    return decorate


def _by_length(each: float, *arguments: Any) -> float:
    return each * len(arguments[0])


def kernel_with_twin(twin: Callable[..., Any], cost: float | Cost = _TWIN) -> Callable[[Function], Function]:
    """Compile a function as `kernel` does, but have its ``twin`` do small work while numba is not loaded.

    ``cost`` is how many microseconds the twin takes for an element of its largest argument, or a function that is given
    the arguments and says it for the call.

    The twin must give the same bits for the same arguments: which of the two has run is nobody's business, and a test
    seed must mean the same noise either way.
    """

    def decorate(function: Function) -> Function:
        estimate = cost if callable(cost) else functools.partial(_by_largest, cost)
        return cast(Function, _Kernel(function, twin, estimate))

    return decorate


def _by_largest(each: float, *arguments: Any) -> float:
    return each * max((getattr(argument, "size", 1) for argument in arguments), default=1)


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

    def __init__(
        self, function: Callable[..., Any], twin: Callable[..., Any] | None, cost: Cost | None
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.twin = twin
        self.cost = cost
        self.spent = self.look_at = 0.0
        self.foreseen = 0.0
        self.linking = 0.0
        self._compiled: Any = None
        self._kept = False
        self._hot = False
        self._linked: dict[str, Code | None] = {}
        self._written = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not self._hot:
            code = None if named else self._compiled_before(arguments)
            if code is not None:
                return code(*arguments)
            if not self._is_hot(arguments):
                return self._uncompiled(*arguments, **named)
            self._hot = True
        try:
            result = self.compiled()(*arguments, **named)
        except OSError:
            # Kernels touch no files: numba could not keep what it compiled, and has not run it yet.
            _stop_keeping()
            return self.compiled()(*arguments, **named)
        if self._kept and not named and len(self._compiled.overloads) > self._written:
            self._written = len(self._compiled.overloads)
            machine.keep(self.function, self._compiled, arguments)
        return result

    def _compiled_before(self, arguments: tuple[Any, ...]) -> Code | None:
        """Machine code that an earlier process left behind, once there is more to do than loading a linker takes."""
        global _spare
        if _running.inside or _eager:
            return None
        asked = machine.signature(arguments)
        if asked is None or asked in self._linked:
            return self._linked.get(asked or "")
        if self.cost is not None:
            cost = self.cost(*arguments)
            if not machine.loaded() and cost <= _spare:
                _spare -= cost
                return None
            self.linking += cost
            if self.linking < _LINKING:
                return None
        self._linked[asked] = machine.linked(self.function, asked)
        return self._linked[asked]

    def _is_hot(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the time has come for machine code: never to cool down again."""
        global _patience
        if _running.inside:
            return False
        if self.cost is None or _eager:
            return True
        cost = self.cost(*arguments)
        if self.foreseen > machine.COMPILING or machine.worn(self.function, cost):
            return True
        if _numba is None:
            if cost <= _patience:
                _patience -= cost
                return False
            started()
        if self.spent >= self.look_at:
            self.look_at = self.spent + _LOOK_AGAIN
            if _is_on_disk(self.compiled()):
                return True
        self.spent += cost
        return self.spent > _COLD

    def _uncompiled(self, *arguments: Any, **named: Any) -> Any:
        if self.twin is not None:
            return self.twin(*arguments, **named)
        if _running.inside:
            return self.function(*arguments, **named)
        _running.inside = True
        try:
            # Machine code says nothing of infinities and overflows either.
            with np.errstate(all="ignore"):
                return self.function(*arguments, **named)
        finally:
            _running.inside = False

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


def expect_much() -> None:
    """Say that much is to be done: what was compiled before is linked at its first call, not after some of twins."""
    global _spare
    _spare = 0.0


def foresee(function: Callable[..., Any], cost: float) -> None:
    """Say how much a kernel is about to do in all: if compiling takes less than its twin would, that comes first.

    Args:
        function: The kernel.
        cost: Microseconds that its twin would take for all calls together.
    """
    cast(_Kernel, function).foreseen = cost


_eager = False


def compile_at_once() -> None:
    """Compile every kernel on its first call from now on: for processes that run long, and for measurements."""
    global _eager
    _eager = True
    started()


class _Running(threading.local):
    """Whether Python runs a kernel in this thread: those that it calls are then run likewise."""

    inside = False


_running = _Running()


def _is_on_disk(compiled: Any) -> bool:
    """Whether machine code of a kernel was kept by an earlier process, for whatever types."""
    kept = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    index = getattr(kept, "_index_path", None)
    return index is not None and Path(index).exists()


def started() -> Any:
    """Load numba, and tell it what a kernel is, so that kernels can call each other; from now on no twin is asked."""
    global _numba
    if _numba is None:
        numba = load()
        from numba.core import event
        from numba.extending import typeof_impl

        typeof_impl.register(_Kernel)(lambda value, context: typeof_impl(value.compiled(), context))
        for announcer in _announcers:
            event.register("numba:compile", _listener(event.Listener, announcer))
        _numba = numba
    return _numba


def load() -> Any:
    """Load numba and nothing more: twins go on doing small work."""
    with _without_linear_algebra():
        import numba
        import numba.np.arraymath
    return numba


@contextmanager
def _without_linear_algebra() -> Iterator[None]:
    """Keep numba from looking for SciPy's linear algebra, which takes as long to load as numba: no kernel uses it.

    Only where the process is ours: a user's own compiled functions may want it.
    """
    if not is_ours() or "scipy.linalg" in sys.modules:
        yield
        return
    # What is None here cannot be imported; numba then goes on without.
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["scipy.linalg"]


def _listener(base: Any, announce: Callable[[str | None], None]) -> Any:
    """A listener that calls back once, when the first compilation that the disk cache could not save begins."""
    waiting = [announce]

    def on_start(self: Any, event: Any) -> None:
        if waiting:
            cache = getattr((event.data or {}).get("dispatcher"), "_cache", None)
            waiting.pop()(getattr(cache, "cache_path", None))

    return type("Announcer", (base,), {"on_start": on_start, "on_end": lambda self, event: None})()


_announcers: list[Callable[[str | None], None]] = []


def announce_compilation(announce: Callable[[str | None], None]) -> None:
    """Have ``announce`` called when compilation first takes a user's time; the first to ask is the one called.

    It is told the folder in which machine code is kept, or None where no folder may be written: beside the package, in
    ``NUMBA_CACHE_DIR`` if that is set, or in the user's cache where the installation is read-only.
    """
    if _announcers:
        return
    _announcers.append(announce)
    if _numba is not None:
        from numba.core import event

        event.register("numba:compile", _listener(event.Listener, announce))
