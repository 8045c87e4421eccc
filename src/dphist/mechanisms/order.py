"""Whether cells stand in an order: a public fact by which mechanisms read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphist.model.domain import Ordinal

if TYPE_CHECKING:
    from dphist.private.gate import PrivateCounts


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
    return len(data.shape) == 1 and (data.domain is None or isinstance(data.domain.attributes[0], Ordinal))
