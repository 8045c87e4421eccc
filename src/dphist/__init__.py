"""Publish histograms and data cubes with differential privacy: records in, one private release out.

Names are imported when they are first used, so that ``import dphist`` and ``dphist --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module

from dphist.extras import provide
from dphist.version import __version__

# As type checkers know it, without loading what only they need.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dphist import audit, errors, mechanisms, model, planning, report, testing, uses, web
    from dphist.mechanisms import list_mechanisms
    from dphist.model.domain import Domain, Nominal, Ordinal
    from dphist.model.histogram import Histogram
    from dphist.model.measure import Measure
    from dphist.model.unit import Unit
    from dphist.model.workload import Workload
    from dphist.planning.rehearsal import rehearse
    from dphist.private.ledger import Ledger
    from dphist.publishing.door import publish
    from dphist.release import Answer, Answers, Release, load

# Where each public name lives; a module stands for itself. At most twenty: what more there is lives in its own room.
_HOMES = {
    name: home
    for home, names in {
        "model.domain": ("Domain", "Nominal", "Ordinal"),
        "model.histogram": ("Histogram",),
        "model.measure": ("Measure",),
        "model.unit": ("Unit",),
        "model.workload": ("Workload",),
        "planning.rehearsal": ("rehearse",),
        "private.ledger": ("Ledger",),
        "publishing.door": ("publish",),
        "release": ("Answer", "Answers", "Release", "load"),
        "audit": ("audit",),
        "errors": ("errors",),
        "mechanisms": ("list_mechanisms", "mechanisms"),
        "testing": ("testing",),
    }.items()
    for name in names
}

# Rooms that are reached by their own name without being part of the face: ``dphist.report.figure``.
_ROOMS = ("model", "planning", "report", "uses", "web")

# Releases are drawn by a floor above them, which they cannot name; it is loaded when first wanted.
provide("drawing", lambda: import_module("dphist.report.drawing"))

# Written out, because type checkers read it.
__all__ = [
    "Answer",
    "Answers",
    "Domain",
    "Histogram",
    "Ledger",
    "Measure",
    "Nominal",
    "Ordinal",
    "Release",
    "Unit",
    "Workload",
    "__version__",
    "audit",
    "errors",
    "list_mechanisms",
    "load",
    "mechanisms",
    "publish",
    "rehearse",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"dphist.{name}")
    if name not in _HOMES:
        return _moved(name)
    home = import_module(f"dphist.{_HOMES[name]}")
    value = home if _HOMES[name] == name else getattr(home, name)
    globals()[name] = value
    return value


def _moved(name: str) -> Any:
    """Give an old spelling for one more version, and say where it lives now."""
    from warnings import warn

    from dphist.mechanisms.registry import CLASSES, at

    if name not in CLASSES:
        raise AttributeError(f"module 'dphist' has no attribute {name!r}")
    warn(f"dphist.{name} is dphist.mechanisms.{name} now", DeprecationWarning, stacklevel=3)
    return at(CLASSES[name])


def __dir__() -> list[str]:
    return sorted(__all__)
