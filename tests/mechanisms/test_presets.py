"""Every scheme of Table 1, and the presets of the literature, by name."""

from __future__ import annotations

from dphist.mechanisms import list_mechanisms
from dphist.mechanisms.blocks import Blocks, Sort
from dphist.mechanisms.matrix import Matrix
from dphist.mechanisms.options import parse, show
from dphist.mechanisms.smooth import Smooth
from dphist.mechanisms.tree import Tree

TABLE_1 = [
    "s1", "s-approx", "s2", "o+s1", "o+s-approx", "o+s2", "s1+mm", "s-approx+mm", "s2+mm",
    "s1+pmm", "s-approx+pmm", "s2+pmm", "h", "s1+h", "s2+h",
]  # fmt: skip


def test_presets_are_what_the_paper_says() -> None:
    built = {name: list_mechanisms()[name]() for name in TABLE_1}
    assert built["s1"] == Blocks(group=Smooth("absolute"))
    assert built["o+s2"] == Blocks(order=Sort(share="0.65"), group=Smooth("squared"))  # type: ignore[arg-type]
    assert built["s-approx+pmm"].inner == Matrix(workload="prefixes")
    assert built["h"] == Tree(fanout=16)
    assert built["s2+h"].group == Smooth("squared", sizes="tree", share="0.25")  # type: ignore[arg-type]


def test_a_preset_prints_as_the_blocks_it_is_made_of() -> None:
    assert show(parse("o+s2")) == "blocks(order=sort, group=smooth(metric='squared'))"
    assert parse(show(parse("s1+h"))) == parse("s1+h")
