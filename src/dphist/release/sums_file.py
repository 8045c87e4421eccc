"""The sums of a release in its file: a column for readers, and all that replaying them needs in the description."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.errors import ReleaseError
from dphist.model.budget import Budget
from dphist.model.exact import fraction
from dphist.model.measure import Measure, Quantity
from dphist.private.transcript import Transcript
from dphist.release.cells import DenseCells
from dphist.release.contents import plain_numbers
from dphist.release.description import pack, read_entry, read_mechanism, unpack, write_entry, write_mechanism
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.release.sums import MeasuredSums, sum_columns

if TYPE_CHECKING:
    import pyarrow.parquet


def describe(release: Release) -> list[dict[str, Any]]:
    """Write the sums down: what was added up, by whom it was noised, for how much, and every answer."""
    return [
        {
            "measure": sums.measure.to_json(),
            "squared": sums.quantity.squared,
            "clipped": sums.quantity.clipped,
            "centre": sums.quantity.centre,
            "amount": str(sums.release.budget.amount),
            "mechanism": write_mechanism(sums.release.mechanism),
            "note": sums.release.note,
            "estimate": pack(sums.release.counts),
            "transcript": [
                write_entry(entry, sums.release.budget) | {"data": pack(entry.answer)}
                for entry in sums.release.transcript
            ],
        }
        for sums in release.sums
    ]


def read(described: Any, release: Release) -> Release:
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
            read_mechanism(each["mechanism"]),
            Transcript([read_entry(asked, release.budget.currency, {}) for asked in each["transcript"]]),
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
