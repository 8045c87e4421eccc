"""Libraries that only some users need: imported when they are used, and missed by name.

Part of every ``import dphist``, so what it needs itself is imported where it is used.
"""

from __future__ import annotations

import os
from importlib import import_module

from dphist.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any


def need(module: str, extra: str) -> Any:
    """Import a library that comes with an extra, or say how to get it."""
    import sys

    if module == "altair" and sys.flags.optimize > 1:
        raise InputError(
            "figures need what Python drops under -OO and PYTHONOPTIMIZE=2: leave it out, or say -O"
        )
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module.split(".")[0]:
            raise
        raise InputError(f"this needs {missing.name}: pip install 'dphist[{extra}]'") from None


def later(homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__`` that imports each of its names from its home when it is first used."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"there is no {name!r} here; there are {', '.join(homes)}")
        return getattr(import_module(f"dphist.{homes[name]}"), name)

    return find


def kept_folder() -> Path:
    """Where things are kept that take long to make and can be made again: ``dphist`` in the user's cache."""
    from pathlib import Path

    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dphist"


_later: dict[str, Callable[[], object]] = {}


def provide(what: str, bring: Callable[[], object]) -> None:
    """Say, from above, how something is brought that a lower floor may want but must not know."""
    _later[what] = bring


def brought(what: str) -> Any:
    """What was provided for."""
    return _later[what]()
