"""Mechanisms: classes by their own names, and everything that ``--mechanism`` accepts by `list_mechanisms`.

    >>> import dphist
    >>> dphist.mechanisms.Tree(fanout=4)
    Tree(fanout=4, budgets='optimal', root=True, nonnegative=True, workload=None)

Classes are imported when they are first used. A new mechanism is one file and one line in `registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dphist.mechanisms.registry import CLASSES, INGREDIENTS, MECHANISMS, Entry, at, list_mechanisms

if TYPE_CHECKING:
    from dphist.mechanisms.adaptivetree import AdaptiveTree
    from dphist.mechanisms.added import Added
    from dphist.mechanisms.auto import Auto
    from dphist.mechanisms.baseline import Gaussian, Laplace, Uniform
    from dphist.mechanisms.blocks import Blocks, Sort
    from dphist.mechanisms.bypart import ByPart, Heap
    from dphist.mechanisms.dpcube import DPCube
    from dphist.mechanisms.fourier import EFPA, FPA, SPA
    from dphist.mechanisms.grids import AdaptiveGrid, UniformGrid
    from dphist.mechanisms.hpartition import PHPartition
    from dphist.mechanisms.isotonic import Isotonic
    from dphist.mechanisms.marginals import Marginals
    from dphist.mechanisms.matrix import Matrix
    from dphist.mechanisms.mixture import Mixture
    from dphist.mechanisms.mwem import MWEM
    from dphist.mechanisms.noisefirst import NoiseFirst
    from dphist.mechanisms.posterior import Posterior
    from dphist.mechanisms.prefixsums import PrefixSums
    from dphist.mechanisms.privelet import Privelet
    from dphist.mechanisms.residuals import Residuals
    from dphist.mechanisms.smooth import Smooth
    from dphist.mechanisms.sparselaplace import SparseLaplace
    from dphist.mechanisms.spatialtrees import HierarchicalKD, KDHybrid, QuadTree
    from dphist.mechanisms.structurefirst import StructureFirst
    from dphist.mechanisms.tree import Tree

# Written out, because type checkers read it.
__all__ = [
    "CLASSES",
    "EFPA",
    "FPA",
    "INGREDIENTS",
    "MECHANISMS",
    "MWEM",
    "SPA",
    "AdaptiveGrid",
    "AdaptiveTree",
    "Added",
    "Auto",
    "Blocks",
    "ByPart",
    "DPCube",
    "Entry",
    "Gaussian",
    "Heap",
    "HierarchicalKD",
    "Isotonic",
    "KDHybrid",
    "Laplace",
    "Marginals",
    "Matrix",
    "Mixture",
    "NoiseFirst",
    "PHPartition",
    "Posterior",
    "PrefixSums",
    "Privelet",
    "QuadTree",
    "Residuals",
    "Smooth",
    "Sort",
    "SparseLaplace",
    "StructureFirst",
    "Tree",
    "Uniform",
    "UniformGrid",
    "list_mechanisms",
]


def __getattr__(name: str) -> Any:
    if name not in CLASSES:
        raise AttributeError(f"module 'dphist.mechanisms' has no attribute {name!r}")
    value = at(CLASSES[name])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
