"""Publish histograms and data cubes with differential privacy: records in, one private release out.

Names are imported when they are first used, so that ``import dphist`` and ``dphist --help`` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphist import audit, errors, testing
    from dphist.mechanisms import mechanisms
    from dphist.mechanisms.adaptivetree import AdaptiveTree
    from dphist.mechanisms.auto import Auto
    from dphist.mechanisms.baseline import Laplace, Uniform
    from dphist.mechanisms.blocks import Blocks, Sort
    from dphist.mechanisms.bypart import ByPart
    from dphist.mechanisms.dpcube import DPCube
    from dphist.mechanisms.fourier import EFPA, FPA, SPA
    from dphist.mechanisms.grids import AdaptiveGrid, UniformGrid
    from dphist.mechanisms.hpartition import HPartition, PHPartition
    from dphist.mechanisms.isotonic import Isotonic
    from dphist.mechanisms.marginals import Marginals
    from dphist.mechanisms.matrix import Matrix
    from dphist.mechanisms.mwem import MWEM
    from dphist.mechanisms.noisefirst import NoiseFirst
    from dphist.mechanisms.posterior import Posterior
    from dphist.mechanisms.privelet import Privelet
    from dphist.mechanisms.smooth import Smooth
    from dphist.mechanisms.sparselaplace import SparseLaplace
    from dphist.mechanisms.spatialtrees import HierarchicalKD, KDHybrid, QuadTree
    from dphist.mechanisms.structurefirst import StructureFirst
    from dphist.mechanisms.tree import Tree
    from dphist.model.domain import Domain, Nominal, Ordinal
    from dphist.model.histogram import Histogram
    from dphist.model.unit import Unit
    from dphist.model.workload import Workload
    from dphist.private.ledger import Ledger
    from dphist.publishing.door import publish
    from dphist.release import Answer, Answers, Release, SparseRelease, load

__version__ = "0.1.0"

# Where each public name lives; a module stands for itself.
_HOMES = {
    "AdaptiveGrid": "mechanisms.grids",
    "AdaptiveTree": "mechanisms.adaptivetree",
    "Answer": "release",
    "Answers": "release",
    "Auto": "mechanisms.auto",
    "Blocks": "mechanisms.blocks",
    "ByPart": "mechanisms.bypart",
    "DPCube": "mechanisms.dpcube",
    "Domain": "model.domain",
    "EFPA": "mechanisms.fourier",
    "FPA": "mechanisms.fourier",
    "HPartition": "mechanisms.hpartition",
    "HierarchicalKD": "mechanisms.spatialtrees",
    "Histogram": "model.histogram",
    "Isotonic": "mechanisms.isotonic",
    "KDHybrid": "mechanisms.spatialtrees",
    "Laplace": "mechanisms.baseline",
    "Ledger": "private.ledger",
    "MWEM": "mechanisms.mwem",
    "Marginals": "mechanisms.marginals",
    "Matrix": "mechanisms.matrix",
    "NoiseFirst": "mechanisms.noisefirst",
    "Nominal": "model.domain",
    "Ordinal": "model.domain",
    "PHPartition": "mechanisms.hpartition",
    "Posterior": "mechanisms.posterior",
    "Privelet": "mechanisms.privelet",
    "QuadTree": "mechanisms.spatialtrees",
    "Release": "release",
    "SPA": "mechanisms.fourier",
    "Smooth": "mechanisms.smooth",
    "Sort": "mechanisms.blocks",
    "SparseLaplace": "mechanisms.sparselaplace",
    "SparseRelease": "release",
    "StructureFirst": "mechanisms.structurefirst",
    "Tree": "mechanisms.tree",
    "Uniform": "mechanisms.baseline",
    "UniformGrid": "mechanisms.grids",
    "Unit": "model.unit",
    "Workload": "model.workload",
    "audit": "audit",
    "errors": "errors",
    "load": "release",
    "mechanisms": "mechanisms",
    "publish": "publishing.door",
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
