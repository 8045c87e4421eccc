"""The sums of a release in its file: a column for readers, and all that replaying them needs in the description."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.exact import fraction
from dphist.model.measure import Measure, Quantity
from dphist.private.transcript import Entry, Transcript
from dphist.release.cells import DenseCells
from dphist.release.contents import plain_numbers
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.release.sums import MeasuredSums, sum_columns

if TYPE_CHECKING:
    import pyarrow.parquet


def describe(
    release: Release, transcribe: Callable[[Release], list[dict[str, Any]]], name: Callable[[Mechanism], Any]
) -> list[dict[str, Any]]:
    """Write the sums down: what was added up, by whom it was noised, for how much, and every answer."""
    return [
        {
            "measure": sums.measure.to_json(),
            "squared": sums.quantity.squared,
            "clipped": sums.quantity.clipped,
            "centre": sums.quantity.centre,
            "amount": str(sums.release.budget.amount),
            "mechanism": name(sums.release.mechanism),
            "note": sums.release.note,
            "estimate": pack(sums.release.counts),
            "transcript": transcribe(sums.release),
        }
        for sums in release.sums
    ]


def read(
    described: Any,
    release: Release,
    entry: Callable[[dict[str, Any]], Entry],
    mechanism: Callable[[dict[str, Any]], Mechanism],
) -> Release:
    """The release with the sums that a description has; `Release.verify` shows that they were paid for."""
    if not isinstance(described, list) or not described:
        raise ReleaseError("its sums cannot be read")
    found = []
    for each in described:
        measure = Measure.from_json(each["measure"])
        centre = each["centre"]
        if type(centre) is not int or {type(each["squared"]), type(each["clipped"])} != {bool}:
            raise ReleaseError("its sums cannot be read")
        quantity = Quantity(measure, squared=each["squared"], clipped=each["clipped"], centre=centre)
        counts = np.frombuffer(unpack(each["estimate"], release.domain.size * 8), dtype=np.float64)
        moved = quantity.in_steps(release.guarantee.unit)
        part = Release(
            release.domain,
            DenseCells(counts.reshape(release.domain.shape)),
            Guarantee(Budget(fraction(each["amount"]), release.budget.currency), moved),
            mechanism(each["mechanism"]),
            Transcript([entry(asked) for asked in each["transcript"]]),
            note=str(each["note"]),
            workload=release.workload,
        )
        found.append(MeasuredSums(quantity, part))
    return replace(release, sums=tuple(found))


def check_columns(file: pyarrow.parquet.ParquetFile, release: Release, taken: set[str]) -> None:
    """Insist that the columns for readers hold what the description says."""
    for name, values in sum_columns(release, taken).items():
        found = plain_numbers(file.read(columns=[name]).column(0))
        if not np.array_equal(found, values):
            raise ReleaseError("a column of sums is not what the release says")


def pack(values: NDArray[Any]) -> str:
    """Numbers as compressed text."""
    import pyarrow as pa

    return b64encode(pa.compress(np.ascontiguousarray(values).tobytes(), codec="zstd", asbytes=True)).decode()


def unpack(text: str, size: int) -> bytes:
    """What `pack` wrote, of a size that is known."""
    import pyarrow as pa

    packed = b64decode(text, validate=True)
    if size > (len(packed) + 1) << 18:
        raise ReleaseError("the sums are fewer than they say")
    raw: bytes = pa.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    return raw
