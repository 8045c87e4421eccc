"""Mechanisms by name. A new one is one file and one line here.

Values are ``module:attribute`` so that listing names imports nothing heavy; an attribute is a frozen dataclass, or a
function that builds one (a preset).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

MECHANISMS: dict[str, str] = {
    "laplace": "baseline:Laplace",
    "uniform": "baseline:Uniform",
    "fpa": "fourier:FPA",
    "efpa": "fourier:EFPA",
    "spa": "fourier:SPA",
    "phpartition": "hpartition:PHPartition",
    "isotonic": "isotonic:Isotonic",
    "mwem": "mwem:MWEM",
    "privelet": "privelet:Privelet",
}

# Values that mechanisms are built of, but that are no mechanisms themselves.
INGREDIENTS: dict[str, str] = {}


class _Registry(Mapping[str, Callable[..., Any]]):
    """Names to classes, each imported when it is first looked up."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Callable[..., Any]:
        module, attribute = self._places[name].split(":")
        built: Callable[..., Any] = getattr(import_module(f"dphist.mechanisms.{module}"), attribute)
        return built

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._places))

    def __len__(self) -> int:
        return len(self._places)


def mechanisms() -> Mapping[str, Callable[..., Any]]:
    """Give everything that ``--mechanism`` accepts, by name."""
    return _Registry(MECHANISMS)


class _CallableFolder(ModuleType):
    """Lets ``dphist.mechanisms()`` list mechanisms although ``dphist.mechanisms`` is also the folder they live in."""

    def __call__(self) -> Mapping[str, Callable[..., Any]]:
        return mechanisms()


sys.modules[__name__].__class__ = _CallableFolder
