"""Object code made into a kernel by LLVM's linker, with three small libraries of numba's own and without numba.

A symbol that could not be found would end the process, so all of them are looked up before; that needs a look into the
object code, of which this module reads ELF (Linux) alone.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import pickle
import struct
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

Code = Callable[..., Any]

# Numba's own libraries, and the functions of C's mathematics that it binds by name.
_LIBRARIES = ("_dynfunc", "_helperlib", "core/runtime/_nrt_python")
_MATHEMATICS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
    "fabs", "floor", "fmod", "frexp", "ldexp", "lgamma", "log", "log10", "log1p", "pow", "sin", "sinh", "sqrt", "tan",
    "tanh", "tgamma", "trunc",
)  # fmt: skip


def numba_folder() -> Path:
    """Where numba is installed; it is not loaded."""
    found = find_spec("numba")
    if found is None or not found.submodule_search_locations:
        raise ImportError("numba")
    return Path(found.submodule_search_locations[0])


def undefined_symbols(code: bytes) -> list[str] | None:
    """The names that object code leaves to the linker; None if it is not little-endian ELF of 64 bits.

    Args:
        code: An object file.

    Returns:
        Names, each once.

    Example:
        >>> undefined_symbols(b"something else") is None
        True
    """
    if code[:6] != b"\x7fELF\x02\x01":
        return None
    at = struct.unpack_from("<Q", code, 0x28)[0]
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, at + size * k) for k in range(count)]
    found: dict[str, None] = {}
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        # 2 is a table of symbols.
        if kind != 2:
            continue
        names = sections[link][4]
        for place in range(offset, offset + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", code, place)
            if section == 0 and name:
                found[code[names + name : code.index(b"\0", names + name)].decode()] = None
    return list(found)


class Linker:
    """LLVM's linker, told what numba would tell it."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self.llvm = llvm
        dynamic, helpers, memory = (_library(name) for name in _LIBRARIES)
        self.dynamic = dynamic
        self.known = {"_Py_NoneStruct": id(None)}
        for name, address in (*helpers.c_helpers.items(), *dynamic.c_helpers.items()):
            self.known[f"numba_{name}"] = address
        for name, address in memory.c_helpers.items():
            self.known[name if name.startswith("_") else f"NRT_{name}"] = address
        for name, found in vars(builtins).items():
            if isinstance(found, type) and issubclass(found, BaseException):
                self.known[f"PyExc_{name}"] = id(found)
        self.known |= {name: helpers.c_helpers[name] for name in _MATHEMATICS if name in helpers.c_helpers}
        # Numba's own would load all of numba to read a constant.
        self.known["numba_unpickle"] = ctypes.cast(_unpickle, ctypes.c_void_p).value or 0
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for name, address in self.known.items():
            llvm.add_symbol(name, address)
        # With its first engine LLVM learns of the process's own symbols, which are looked up below.
        self.first = self._engine()

    def _engine(self) -> Any:
        machine = self.llvm.Target.from_default_triple().create_target_machine(jit=True)
        return self.llvm.create_mcjit_compiler(self.llvm.parse_assembly(""), machine)

    def link(self, function: Callable[..., Any], told: dict[str, Any], code: bytes) -> Code | None:
        """Make a kernel of its object code; None where a symbol is missing."""
        if not all(name in self.known or self.llvm.address_of_symbol(name) for name in told["needs"]):
            return None
        # An engine for each: names within object code are unique in the process that compiled it, and not beyond.
        engine = self._engine()
        engine.add_object_file(self.llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        # It lives as long as the process, and so does what the code refers to.
        _alive.append(engine)
        entry = engine.get_function_address(told["entry"])
        if not entry:
            return None
        own = None
        for name, constants in told["constants"].items():
            surroundings = self.dynamic.Environment({})
            surroundings.consts.extend(np.dtype(each) for each in constants)
            place = engine.get_global_value_address(name)
            if not place:
                return None
            (ctypes.c_void_p * 1).from_address(place)[0] = id(surroundings)
            _alive.append(surroundings)
            own = own or surroundings
        home = sys.modules[function.__module__]
        words = function.__name__, function.__doc__ or ""
        made: Code = self.dynamic.make_function(home, *words, entry, own, engine)
        return made


_alive: list[Any] = []


@functools.cache
def linker() -> Linker:
    """The one of this process, made when it is first wanted."""
    return Linker()


def _library(name: str) -> Any:
    """A library of numba's, without numba; numba finds it where it is when it is loaded later."""
    folder = numba_folder()
    for suffix in EXTENSION_SUFFIXES:
        place = folder / f"{name}{suffix}"
        spec = spec_from_file_location(f"numba.{name.replace('/', '.')}", place) if place.exists() else None
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError(name)


_read: dict[int, Any] = {}


def _constant(at: int, size: int, digest: int) -> Any:
    """Read a constant of machine code: the type of an array, or an error to raise."""
    if at not in _read:
        _read[at] = pickle.loads(ctypes.string_at(at, size))  # noqa: S301 -- as trusted as the code it is in
    return _read[at]


_unpickle = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(_constant)
