"""Where records heap up on one value of an attribute: when that is worth looking for, and what is done then.

How it is found is in `dphist.mechanisms.choosing.heaps`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.protocol import Mechanism
from dphist.private.gate import PrivateCounts

# From so many noise scales of records on, but for tall cells, a heap is worth looking for, up to so many a cell: where
# all cells are full they are measured one by one, and a wall costs nothing. What it costs to ask for these; then so
# many nats tell all of them from none, for no less and no more than one part in so many of the budget.
_HEAPS, _FULLEST, _SPREAD_OUT = 500.0, 3.0, Fraction(1, 128)
_NATS, _CHEAPEST, _DEAREST = 100.0, 256, 32


def look_for_heaps(look: Look, seen: Glimpse, data: PrivateCounts) -> tuple[Look, Glimpse, PrivateCounts]:
    """See on which values records heap up too, if there are enough of them.

    Args:
        look: What was asked so far: a noisy total.
        seen: What that showed.
        data: What is left of the right.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    scale = float(data.unit_scale)
    if (seen.records or 0.0) < _HEAPS * scale:
        return look, seen, data
    look = replace(look, spread=_SPREAD_OUT)
    seen, data = look.lower(data, seen)
    spread = (seen.spread or 0.0) / scale
    if not _HEAPS <= spread < _FULLEST * data.size:
        return look, seen, data
    look = replace(look, heap=Fraction(1, min(max(round(spread / _NATS), _DEAREST), _CHEAPEST)))
    return look, *look.heaped(data, seen)


def set_apart(
    data: PrivateCounts, inner: Mechanism, heaps: tuple[tuple[int, int], ...]
) -> tuple[Mechanism, str]:
    """Publish values by themselves and the others beside them; and why.

    Args:
        data: A right, of which only public facts are read.
        inner: What runs on every piece.
        heaps: Attributes and their values, each attribute once.

    Returns:
        The mechanism and the reason.
    """
    from dphist.mechanisms.heap import Heap

    assert data.domain is not None  # noqa: S101 -- spaces have one
    mechanism = inner
    for axis, value in reversed(heaps):
        mechanism = Heap(of=data.domain.names[axis], value=value, inner=mechanism)
    names = " and of ".join(data.domain.names[axis] for axis, _ in heaps)
    return (
        mechanism,
        f"one value of {names} has a large part of the records, so it is published by itself and the others beside it "
        "(heap), each as is best there",
    )
