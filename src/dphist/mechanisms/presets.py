"""The schemes of the literature as presets: each is a value made of blocks, and prints as one.

Names follow "Engineering methods for differentially private histograms" (Kellaris, Papadopoulos and Papadias):
S₁, S̃ and S₂ smooth by absolute deviations, the same with power-of-two buckets, and squared ones; O orders first;
MM and PMM measure a strategy for all ranges and for prefixes; H is a tree.
"""

from __future__ import annotations

from typing import Literal

from dphist.mechanisms.blocks import Blocks, Sort
from dphist.mechanisms.matrix import Matrix
from dphist.mechanisms.smooth import Smooth
from dphist.mechanisms.tree import Tree

Centre = Literal["mean", "median"]


def s1(centre: Centre = "mean") -> Blocks:
    """S₁: smooth by absolute deviations, all buckets."""
    return Blocks(group=Smooth("absolute", centre=centre))


def s_approx(centre: Centre = "mean") -> Blocks:
    """S̃: smooth by absolute deviations, buckets of power-of-two length."""
    return Blocks(group=Smooth("absolute", sizes="powers", centre=centre))


def s2() -> Blocks:
    """S₂: smooth by squared deviations of a noisy copy."""
    return Blocks(group=Smooth("squared"))


def o_s1() -> Blocks:
    """O + S₁: order by a noisy copy, group the copy by absolute deviations."""
    return Blocks(order=Sort(), group=Smooth("absolute"))


def o_s_approx() -> Blocks:
    """O + S̃: order by a noisy copy, group the copy into power-of-two buckets."""
    return Blocks(order=Sort(), group=Smooth("absolute", sizes="powers"))


def o_s2() -> Blocks:
    """O + S₂: order by a noisy copy, group the copy by squared deviations."""
    return Blocks(order=Sort(), group=Smooth("squared"))


def s1_mm(centre: Centre = "mean") -> Blocks:
    """S₁ + MM: groups by absolute deviations, then a strategy for all ranges."""
    return Blocks(group=Smooth("absolute", centre=centre), inner=Matrix(workload="all_ranges"))


def s_approx_mm(centre: Centre = "mean") -> Blocks:
    """S̃ + MM: power-of-two groups, then a strategy for all ranges."""
    return Blocks(
        group=Smooth("absolute", sizes="powers", centre=centre), inner=Matrix(workload="all_ranges")
    )


def s2_mm() -> Blocks:
    """S₂ + MM: groups by squared deviations, then a strategy for all ranges."""
    return Blocks(group=Smooth("squared"), inner=Matrix(workload="all_ranges"))


def s1_pmm(centre: Centre = "mean") -> Blocks:
    """S₁ + PMM: groups by absolute deviations, then a strategy for prefixes."""
    return Blocks(group=Smooth("absolute", centre=centre), inner=Matrix(workload="prefixes"))


def s_approx_pmm(centre: Centre = "mean") -> Blocks:
    """S̃ + PMM: power-of-two groups, then a strategy for prefixes."""
    return Blocks(group=Smooth("absolute", sizes="powers", centre=centre), inner=Matrix(workload="prefixes"))


def s2_pmm() -> Blocks:
    """S₂ + PMM: groups by squared deviations, then a strategy for prefixes."""
    return Blocks(group=Smooth("squared"), inner=Matrix(workload="prefixes"))


def h() -> Tree:
    """H: a tree of fan-out 16, shares best for all ranges, weighted least squares."""
    return Tree()


def s1_h(centre: Centre = "mean") -> Blocks:
    """S₁ + H: smooth whole subtrees by absolute deviations, then a tree that stops there."""
    return Blocks(group=Smooth("absolute", sizes="tree", centre=centre), inner=Tree())


def s2_h() -> Blocks:
    """S₂ + H: smooth whole subtrees by squared deviations, then a tree that stops there."""
    return Blocks(group=Smooth("squared", sizes="tree"), inner=Tree())


def boost() -> Tree:
    """Boost (Hay et al.): a binary tree with equal shares, made consistent."""
    return Tree(fanout=2, budgets="uniform")


def hb() -> Tree:
    """HB (Qardaji, Yang and Li): a tree whose fan-out is chosen by the number of cells, equal shares, no root."""
    return Tree(fanout="hb", budgets="uniform", root=False)


def greedyh() -> Tree:
    """GreedyH (the second half of DAWA): a binary tree whose levels are weighted for the workload."""
    return Tree(fanout=2)


def dawa(centre: Centre = "mean") -> Blocks:
    """DAWA (Li, Hay, Miklau and Wang): power-of-two groups, then a strategy for the workload. Corrected noise."""
    return Blocks(group=Smooth("absolute", sizes="powers", centre=centre), inner=Matrix())


def ahp() -> Blocks:
    """AHP (Zhang et al.): order by a noisy copy, group it by squared deviations, measure the groups anew."""
    return Blocks(order=Sort(), group=Smooth("squared"), nonnegative=True)
