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
    "posterior": "posterior:Posterior",
    "adaptivetree": "adaptivetree:AdaptiveTree",
    "marginals": "marginals:Marginals",
    "auto": "auto:Auto",
    "laplace": "baseline:Laplace",
    "uniform": "baseline:Uniform",
    "sparselaplace": "sparselaplace:SparseLaplace",
    "bypart": "bypart:ByPart",
    "noisefirst": "noisefirst:NoiseFirst",
    "structurefirst": "structurefirst:StructureFirst",
    "fpa": "fourier:FPA",
    "efpa": "fourier:EFPA",
    "spa": "fourier:SPA",
    "phpartition": "hpartition:PHPartition",
    "isotonic": "isotonic:Isotonic",
    "mwem": "mwem:MWEM",
    "privelet": "privelet:Privelet",
    "dpcube": "dpcube:DPCube",
    "kdhybrid": "spatialtrees:KDHybrid",
    "hierarchicalkd": "spatialtrees:HierarchicalKD",
    "quadtree": "spatialtrees:QuadTree",
    "uniformgrid": "grids:UniformGrid",
    "adaptivegrid": "grids:AdaptiveGrid",
    "blocks": "blocks:Blocks",
    "matrix": "matrix:Matrix",
    "tree": "tree:Tree",
    "boost": "presets:boost",
    "hb": "presets:hb",
    "greedyh": "presets:greedyh",
    "dawa": "presets:dawa",
    "ahp": "presets:ahp",
    "s1": "presets:s1",
    "s-approx": "presets:s_approx",
    "s2": "presets:s2",
    "o+s1": "presets:o_s1",
    "o+s-approx": "presets:o_s_approx",
    "o+s2": "presets:o_s2",
    "s1+mm": "presets:s1_mm",
    "s-approx+mm": "presets:s_approx_mm",
    "s2+mm": "presets:s2_mm",
    "s1+pmm": "presets:s1_pmm",
    "s-approx+pmm": "presets:s_approx_pmm",
    "s2+pmm": "presets:s2_pmm",
    "h": "presets:h",
    "s1+h": "presets:s1_h",
    "s2+h": "presets:s2_h",
}

# Values that mechanisms are built of, but that are no mechanisms themselves.
INGREDIENTS: dict[str, str] = {
    "smooth": "smooth:Smooth",
    "sort": "blocks:Sort",
}


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
