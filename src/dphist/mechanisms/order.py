"""Whether cells stand in an order: a public fact by which mechanisms read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphist.model.domain import Ordinal

if TYPE_CHECKING:
    from dphist.model.domain import Domain
    from dphist.private.facts import Facts

# An ordered attribute of at least 16 values is asked for ranges.
_LONG = 16


def ordered_line(data: Facts) -> bool:
    """Whether there is one attribute whose cells have an order; a line of which nothing is known counts as such."""
    return len(data.shape) == 1 and (data.domain is None or isinstance(data.domain.attributes[0], Ordinal))


def long_axes(domain: Domain) -> tuple[int, ...]:
    """Which attributes are ordered and long: ranges are asked of them."""
    return tuple(k for k, a in enumerate(domain.attributes) if isinstance(a, Ordinal) and a.size >= _LONG)
