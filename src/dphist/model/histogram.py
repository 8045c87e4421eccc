"""Integer counts over a domain: the secret that a release protects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.model.domain import Domain, Ordinal

IntArray = npt.NDArray[np.int64]


@explained
class Histogram:
    """How many records fall in each cell of a domain.

    The counts are secret until a mechanism has spent budget on them: neither ``repr`` nor any error shows
    one. They are exact 64-bit integers; anything else, such as averages or weights, is refused, because the
    noise is calibrated to one record moving one cell by one. A contiguous int64 array is used as it is, not
    copied, and is never written to.

    Args:
        domain: What is counted.
        counts: An integer for every cell, in the domain's shape and order; an object with labels (a pandas Series, an
            xarray DataArray) is refused.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(3))])
        >>> Histogram(domain, [4, 0, 7])
        Histogram(age[3]; counts are secret)
    """

    __slots__ = ("counts", "domain")

    domain: Domain
    counts: IntArray

    def __init__(self, domain: Domain, counts: npt.ArrayLike) -> None:
        if not isinstance(domain, Domain):
            raise InputError("histogram: domain must be a Domain")
        if isinstance(counts, np.ndarray) and hasattr(counts, "mask"):
            raise InputError(
                "histogram: counts must not be masked; fill in what is missing, with 0 where nobody is"
            )
        if hasattr(counts, "axes") or hasattr(counts, "coords"):
            # What pandas and xarray hold goes by its labels, in any order; an array would go by its places.
            raise InputError(
                "histogram: counts have labels of their own, which may stand in another order than the domain's "
                "values; give the records, or put the counts in order: counts.reindex([…]).to_numpy()"
            )
        try:
            array = np.asarray(counts)
        except ValueError:
            raise InputError("histogram: counts must be a plain array of integers") from None
        if array.dtype.kind not in "iu":
            raise InputError(f"histogram: counts must be integers, not {array.dtype}")
        if array.shape != domain.shape:
            raise InputError(f"histogram: counts have shape {array.shape}, but the domain has {domain.shape}")
        if array.size:
            if array.dtype.kind == "i" and bool(array.min() < 0):
                raise InputError("histogram: counts must not be negative")
            if array.dtype == np.uint64 and bool(array.max() > np.uint64(2**63 - 1)):
                raise InputError("histogram: counts must fit in 64-bit signed integers")
        own = np.ascontiguousarray(array, dtype=np.int64).view()
        own.setflags(write=False)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "counts", own)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a histogram does not change; make another one")

    def __reduce__(self) -> tuple[Any, ...]:
        return Histogram, (self.domain, self.counts)

    def project(self, names: Sequence[str]) -> Histogram:
        """The histogram of some attributes, in the order given; the others are summed away.

        Args:
            names: The attributes to keep.

        Returns:
            Their histogram: as secret as this one.
        """
        if isinstance(names, str):
            names = (names,)
        domain = self.domain.project(names)
        return Histogram(domain, sum_others(self.counts, [self.domain.axis(name) for name in names]))

    def unattributed(self) -> Histogram:
        """The multiset of the counts: sorted ascending over ranks, forgetting which cell each belonged to.

        Publish this when only the distribution of counts matters: sorted counts are smooth, so compression
        and isotonic regression take most of the noise away. Raising one count of a multiset of integers
        raises one entry of its sorted vector by one (the last copy of that value), so one record still moves
        one cell by one and the guarantee is unchanged. The order itself is never released.

        Returns:
            A histogram over ranks: as secret as this one.
        """
        ranks = Domain([Ordinal("rank", range(self.counts.size))])
        return Histogram(ranks, np.sort(self.counts, axis=None))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return self.domain == other.domain and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # a hash would be a fingerprint of secret counts

    def __repr__(self) -> str:
        axes = " × ".join(f"{a.name}[{a.size}]" for a in self.domain.attributes)
        return f"Histogram({axes}; counts are secret)"


def sum_others(counts: npt.NDArray[Any], axes: Sequence[int]) -> npt.NDArray[Any]:
    """Sum a cube over all axes but some, which stay in the order they are named."""
    others, kept = tuple(axis for axis in range(counts.ndim) if axis not in axes), sorted(axes)
    return np.array(
        np.asarray(counts.sum(axis=others)).transpose([kept.index(axis) for axis in axes]), order="C"
    )
