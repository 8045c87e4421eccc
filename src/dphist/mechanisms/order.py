"""Whether cells stand in an order: a public fact by which mechanisms read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphist.model.domain import Ordinal

if TYPE_CHECKING:
    from dphist.model.domain import Domain
    from dphist.private.gate import PrivateCounts

# An ordered attribute of at least 16 values is asked for ranges.
_LONG = 16


def ordered_line(data: PrivateCounts) -> bool:
    """Whether there is one attribute whose cells have an order; a line of which nothing is known counts as such.

    Args:
        data: A right, of which only shape and domain are read.

    Returns:
        Whether it is an ordered line.

    Example:
        >>> from dphist.testing import open_counts
        >>> ordered_line(open_counts([1, 2, 3], 1)), ordered_line(open_counts([[1, 2], [3, 4]], 1))
        (True, False)
    """
    return len(data.shape) == 1 and ordered_axes(data) == (0,)


def ordered_axes(data: PrivateCounts) -> tuple[int, ...]:
    """Which attributes have values in an order; those of which nothing is known count as such.

    Args:
        data: A right, of which only shape and domain are read.

    Returns:
        Their axes.

    Example:
        >>> from dphist.testing import open_counts
        >>> ordered_axes(open_counts([[1, 2], [3, 4]], 1))
        (0, 1)
    """
    if data.domain is None:
        return tuple(range(len(data.shape)))
    return tuple(axis for axis, each in enumerate(data.domain.attributes) if isinstance(each, Ordinal))


def long_axes(domain: Domain) -> tuple[int, ...]:
    """Which attributes are ordered and long: ranges are asked of them.

    Args:
        domain: The domain.

    Returns:
        Their places.

    Example:
        >>> from dphist.model.domain import Domain, Nominal
        >>> long_axes(Domain([Ordinal("age", range(90)), Nominal("sex", ["F", "M"]), Ordinal("rooms", range(9))]))
        (0,)
    """
    return tuple(k for k, a in enumerate(domain.attributes) if isinstance(a, Ordinal) and a.size >= _LONG)
