"""Publish histograms and data cubes with differential privacy: records in, one private release out.

Names are imported when they are first used, so that ``import dphist`` and ``dphist --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphist import audit, errors, testing
    from dphist.domain import Domain, Nominal, Ordinal
    from dphist.door import publish
    from dphist.histogram import Histogram
    from dphist.mechanisms import mechanisms
    from dphist.mechanisms.baseline import Laplace, Uniform
    from dphist.private.ledger import Ledger
    from dphist.release import Answer, Answers, Release, load
    from dphist.unit import Unit
    from dphist.workload import Workload

__version__ = "0.1.0"

# Where each public name lives; a module stands for itself.
_HOMES = {
    "Answer": "release",
    "Answers": "release",
    "Domain": "domain",
    "Histogram": "histogram",
    "Laplace": "mechanisms.baseline",
    "Ledger": "private.ledger",
    "Nominal": "domain",
    "Ordinal": "domain",
    "Release": "release",
    "Uniform": "mechanisms.baseline",
    "Unit": "unit",
    "Workload": "workload",
    "audit": "audit",
    "errors": "errors",
    "load": "release",
    "mechanisms": "mechanisms",
    "publish": "door",
    "testing": "testing",
}

__all__ = [
    "__version__",
    *_HOMES,
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dphist' has no attribute {name!r}")
    home = import_module(f"dphist.{_HOMES[name]}")
    value = home if _HOMES[name] == name else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
