"""Machine code that an earlier process compiled, linked into this one without loading the compiler.

Loading numba takes 0.4 s, and 0.05 to 0.1 s more for each kernel that it kept: nearly all of that for what it needs to
compile. To run what is compiled takes LLVM's linker (0.05 s, a millisecond a kernel) and three small libraries of
numba's own. So once numba has compiled a kernel, its object code is written down with what it must be linked with, and
commands that are called again and again run the very same machine code at a tenth of the price.

What is kept is linked only where it was made: for this `processor`, Python, NumPy, numba, LLVM and these very `sources`
of all kernels; otherwise, and wherever else something is not as expected, nothing is said and numba does as ever. Kept
code is trusted as bytecode and numba's own cache are: it lies beside the package, in ``NUMBA_CACHE_DIR`` if that is
set, or in the user's cache.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from dphist.extras import kept_folder
from dphist.kernels.linker import Code, linker, numba_folder, undefined_symbols

# Only these kernels are among the `sources`.
_HOME = "dphist.kernels."
# What is lost is written down for these kernels alone: they work on what was released. How long others take may follow
# from how many records there are, which no file may tell.
_PUBLIC = (f"{_HOME}trees.", f"{_HOME}predictive.", f"{_HOME}levels.")
# Bits of an array's flags, as NumPy documents them.
_C_ORDER, _F_ORDER, _ALIGNED, _WRITEABLE = 0x1, 0x2, 0x100, 0x400
_NUMBERS = frozenset("?bhilqBHILQfd")
# Microseconds of a long call, and those that compiling a kernel takes: one to three seconds, once.
_LONG, COMPILING = 100_000.0, 2_000_000.0
_HEAT, _MOST_HEAT = "heat.txt", 1 << 16
_heat: dict[str, float] = {}
_added: dict[str, float] = {}
_lock = threading.Lock()


def signature(arguments: tuple[Any, ...]) -> str | None:
    """What numba would tell calls apart by, in a text; None for what is not told here.

    Args:
        arguments: What a kernel is called with.

    Returns:
        A word for every argument.

    Example:
        >>> import numpy as np
        >>> signature((np.zeros((2, 3)), 1, 0.5, True))
        'd2Cw i f b'
        >>> signature(("text",)) is None
        True
    """
    words = []
    for each in arguments:
        kind = type(each)
        if kind is np.ndarray:
            flags, dtype = each.flags.num, each.dtype
            if not flags & _ALIGNED or dtype.char not in _NUMBERS or not dtype.isnative:
                return None
            order = "C" if flags & _C_ORDER else "F" if flags & _F_ORDER else "A"
            words.append(f"{dtype.char}{each.ndim}{order}{'w' if flags & _WRITEABLE else 'r'}")
        elif kind is float or kind is np.float64:
            words.append("f")
        elif kind is bool or kind is np.bool_:
            words.append("b")
        elif (kind is int or kind is np.int64) and -(1 << 63) <= each < 1 << 63:
            words.append("i")
        else:
            return None
    return " ".join(words)


def loaded() -> bool:
    """Whether the linker is here already."""
    return linker.cache_info().currsize > 0


def linked(function: Callable[..., Any], asked: str) -> Code | None:
    """The machine code of a kernel for arguments of some signature, where it was kept and can be run here."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return None
    for folder in _folders():
        try:
            place = folder / _file_name(function, asked)
            if not (_is_ours(folder) and _is_ours(place)):
                continue
            story, code = place.read_bytes().split(b"\n", 1)
            told = json.loads(story)
            with _lock:
                # What can be said without the linker comes first.
                if told["made_from"] != sources() or told["digest"] != _digest(code):
                    continue
                if told["made_for"] == processor():
                    return linker().link(function, told, code)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError, RuntimeError):
            continue
    return None


def keep(function: Callable[..., Any], dispatcher: Any, arguments: tuple[Any, ...]) -> None:
    """Write down what numba compiled for these arguments, if it is all that a linker needs."""
    asked = signature(arguments)
    if asked is None or not function.__module__.startswith(_HOME):
        return
    try:
        told, code = _taken(dispatcher, arguments)
        told |= {"made_from": sources(), "made_for": processor(), "digest": _digest(code)}
        for folder in _folders():
            if _written(folder / _file_name(function, asked), json.dumps(told).encode() + b"\n" + code):
                return
    except Exception:
        # Numba's cache is nobody's promise: where it looks different, there is nothing to keep.
        return


def worn(function: Callable[..., Any], cost: float) -> bool:
    """Whether a kernel's twin has by now taken as long as compiling would, over all processes on this machine.

    Who compiles at the first long call waits for nothing that might come again; who never does waits for ever. Paying
    once as much has been lost costs at most twice what hindsight would (renting skis, or buying them). Only calls that
    are long are counted, of kernels that work on what was released, in a file that is written at the process's end.

    Args:
        function: The kernel.
        cost: Microseconds that its twin is about to take.

    Returns:
        Whether to compile it now.
    """
    if cost < _LONG or not function.__module__.startswith(_PUBLIC):
        return False
    try:
        if not _heat:
            _heat.update(_heat_before())
            atexit.register(_remember)
    except (OSError, ValueError, ImportError):
        return False
    name = f"{function.__module__.removeprefix(_HOME)}.{function.__qualname__}"
    _added[name] = _added.get(name, 0.0) + cost
    return _heat.get(name, 0.0) + _added[name] > COMPILING


def _heat_before() -> dict[str, float]:
    """What was lost before this process, by kernel; never empty."""
    before = {"": 0.0}
    for folder in _folders():
        if (folder / _HEAT).exists():
            for line in (folder / _HEAT).read_text().splitlines():
                made_from, name, lost = line.split()
                if made_from == sources():
                    before[name] = before.get(name, 0.0) + float(lost)
            break
    return before


def _remember() -> None:
    lines = "".join(f"{sources()} {name} {lost:.0f}\n" for name, lost in _added.items())
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place = folder / _HEAT
            full = place.exists() and place.stat().st_size > _MOST_HEAT
            # One write, so that processes do not mix theirs.
            with place.open("wb" if full else "ab", buffering=0) as file:
                file.write(lines.encode())
        except OSError:
            continue
        return


def _taken(dispatcher: Any, arguments: tuple[Any, ...]) -> tuple[dict[str, Any], bytes]:
    """What numba kept of a compiled function: its names and surroundings, and its object code."""
    from numba import typeof

    cache, target = dispatcher._cache, dispatcher.targetctx
    types = tuple(typeof(each) for each in arguments)
    kept = cache._cache_file.load(cache._index_key(types, target.codegen()))
    (_, kind, (code, _)), function, own, _, as_object, lifted, _, again, others = kept
    needs = undefined_symbols(code)
    if kind != "object" or as_object or lifted or again or needs is None:
        raise ValueError("more than machine code")
    surroundings = {function.env_name: own} | {other.env_name: other for other in others}
    constants = {name: [_dtype_name(each) for each in found.consts] for name, found in surroundings.items()}
    return {"entry": function.llvm_cpython_wrapper_name, "constants": constants, "needs": needs}, code


def _dtype_name(constant: Any) -> str:
    if not isinstance(constant, np.dtype) or constant.char not in _NUMBERS:
        raise ValueError("not a type of numbers")
    return constant.char


def _written(path: Path, contents: bytes) -> bool:
    """Write a file whole or not at all; whether that worked."""
    waiting = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        waiting.write_bytes(contents)
        waiting.replace(path)
    except OSError:
        return False
    return True


def _is_ours(place: Path) -> bool:
    """Whether nobody but this user, and who may do anything, has written there: machine code runs with our rights."""
    told = place.stat()
    return not hasattr(os, "geteuid") or (told.st_uid in (0, os.geteuid()) and not told.st_mode & 0o002)


def _folders() -> Iterator[Path]:
    """Where machine code may lie, best first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "dphist"
        return
    yield Path(__file__).parent / "__pycache__"
    try:
        yield kept_folder()
    except RuntimeError:
        # Nobody's home.
        return


def _file_name(function: Callable[..., Any], asked: str) -> str:
    name = f"{function.__module__.removeprefix(_HOME)}.{function.__qualname__}"
    return f"{name}-{_digest(asked.encode())[:16]}.{sys.implementation.cache_tag}.machine"


def _digest(contents: bytes) -> str:
    return blake2b(contents, digest_size=16).hexdigest()


@functools.cache
def sources() -> str:
    """All that machine code is made from, in a few letters: the kernels, and who compiles and calls them."""
    whole = blake2b(digest_size=16)
    for part in (sys.version, np.__version__, (numba_folder() / "_version.py").read_text()):
        whole.update(part.encode() + b"\0")
    home = str(Path(__file__).parent)
    paths = list[str]()
    for folder, within, names in os.walk(home):
        # There lies what was compiled, in many files.
        within[:] = [name for name in within if name != "__pycache__"]
        paths += [f"{folder}/{name}" for name in names if name.endswith(".py")]
    for path in sorted(paths):
        whole.update(path.removeprefix(home).encode() + b"\0" + Path(path).read_bytes() + b"\0")
    return whole.hexdigest()


@functools.cache
def processor() -> str:
    """All that it is made for, in a few letters: the processor, as this LLVM knows it."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    told = (llvmlite.__version__, llvm.get_process_triple(), llvm.get_host_cpu_name(), features)
    return _digest("\0".join(told).encode())
