"""The schemes of the literature as presets: each is a value made of blocks, and prints as one.

Names follow "Engineering methods for differentially private histograms" (Kellaris, Papadopoulos and Papadias):
S₁, S̃ and S₂ smooth by absolute deviations, the same with power-of-two buckets, and squared ones; O orders first;
MM and PMM measure a strategy for all ranges and for prefixes; H is a tree. `registry` says of each what it is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.blocks import Blocks, Sort
from dphist.mechanisms.matrix import Matrix
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.smooth import Smooth
from dphist.mechanisms.tree import Tree

Sizes = Literal["all", "powers", "tree"]
Centre = Literal["mean", "median"]

_RANGES, _PREFIXES = Matrix(workload="all_ranges"), Matrix(workload="prefixes")


def _absolute(sizes: Sizes = "all", inner: Mechanism = Laplace()) -> Callable[..., Blocks]:  # noqa: B008 -- frozen
    """Smooth by absolute deviations, about means or medians, and measure the groups."""

    def preset(centre: Centre = "mean") -> Blocks:
        return Blocks(group=Smooth("absolute", sizes=sizes, centre=centre), inner=inner)

    return preset


def _squared(sizes: Sizes = "all", inner: Mechanism = Laplace()) -> Callable[[], Blocks]:  # noqa: B008 -- frozen
    """Smooth by squared deviations of a noisy copy, and measure the groups."""
    return lambda: Blocks(group=Smooth("squared", sizes=sizes), inner=inner)


s1, s_approx, s2 = _absolute(), _absolute("powers"), _squared()
s1_mm, s_approx_mm, s2_mm = _absolute(inner=_RANGES), _absolute("powers", _RANGES), _squared(inner=_RANGES)
s1_pmm, s_approx_pmm = _absolute(inner=_PREFIXES), _absolute("powers", _PREFIXES)
s2_pmm = _squared(inner=_PREFIXES)
s1_h, s2_h = _absolute("tree", Tree()), _squared("tree", Tree())
dawa = _absolute("powers", Matrix())


def o_s1() -> Blocks:
    """O + S₁: order by a noisy copy, group the copy by absolute deviations."""
    return Blocks(order=Sort(), group=Smooth("absolute"))


def o_s_approx() -> Blocks:
    """O + S̃: order by a noisy copy, group the copy into power-of-two buckets."""
    return Blocks(order=Sort(), group=Smooth("absolute", sizes="powers"))


def o_s2() -> Blocks:
    """O + S₂: order by a noisy copy, group the copy by squared deviations."""
    return Blocks(order=Sort(), group=Smooth("squared"))


def ahp() -> Blocks:
    """AHP (Zhang et al.): order by a noisy copy, group it by squared deviations, measure the groups anew."""
    return Blocks(order=Sort(), group=Smooth("squared"), nonnegative=True)


def h() -> Tree:
    """H: a tree of fan-out 16, shares best for all ranges, weighted least squares."""
    return Tree()


def boost() -> Tree:
    """Boost (Hay et al.): a binary tree with equal shares, made consistent."""
    return Tree(fanout=2, budgets="uniform")


def hb() -> Tree:
    """HB (Qardaji, Yang and Li): a tree whose fan-out is chosen by the number of cells, equal shares, no root."""
    return Tree(fanout="hb", budgets="uniform", root=False)


def greedyh() -> Tree:
    """GreedyH (the second half of DAWA): a binary tree whose levels are weighted for the workload."""
    return Tree(fanout=2)
