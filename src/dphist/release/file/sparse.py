"""A sparse release as a Parquet file: a row per published cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist.errors import ReleaseError
from dphist.inference.intervals import read_confidence
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.release.bounds import block_bounds
from dphist.release.cells import SparseCells
from dphist.release.cells.cells import places
from dphist.release.columns import as_arrow, label_columns, number_names
from dphist.release.contents import Contents
from dphist.release.file.description import FORMAT, KEY, write_guarantee
from dphist.release.file.nothing_else import (
    check_bytes,
    check_description,
    check_schema,
    check_statistics,
)
from dphist.release.file.readable import readable

if TYPE_CHECKING:
    import pyarrow


def write(release: Contents, cells: SparseCells, path: Path, confidence: float) -> None:
    """Write a row per published cell."""
    import pyarrow.parquet as pq

    description, table = _laid_out(release, cells, confidence)
    words = readable(release, confidence, description["columns"])
    pq.write_table(
        table.replace_schema_metadata({KEY: json.dumps(description).encode(), **words}),
        path,
        compression="zstd",
    )


def check(
    file: pyarrow.parquet.ParquetFile,
    path: Path,
    description: dict[str, Any],
    release: Contents,
) -> None:
    """Insist that the file holds the release and nothing else, every label with its cell."""
    if not isinstance(release.cells, SparseCells):
        raise ReleaseError("its cells are not those of a sparse release")
    confidence = read_confidence(description["confidence"])
    known, table = _laid_out(release, release.cells, confidence)
    check_description(description, known)
    if description["columns"] != known["columns"] or description["bounds"] != known["bounds"]:
        raise ReleaseError("its numbers stand in other columns than a release's do")
    words = readable(release, confidence, known["columns"])
    check_schema(file, table.schema, KEY, words)
    check_bytes(file, path)
    check_statistics(file)
    for column in label_columns(release.domain):
        found, wanted = file.read(columns=[column.name]).column(0), table.column(column.name)
        kind = getattr(wanted.type, "value_type", wanted.type)
        if not found.cast(kind).equals(wanted.cast(kind)):
            raise ReleaseError("a label does not belong to its cell")


def _laid_out(
    release: Contents, cells: SparseCells, confidence: float
) -> tuple[dict[str, Any], pyarrow.Table]:
    """The description of a sparse release, and its table."""
    import pyarrow as pa

    if not isinstance(release.mechanism, SparseLaplace):
        raise ReleaseError("only what sparselaplace made can be saved as a sparse release")

    labels = label_columns(release.domain)
    names = number_names(release.domain, "cell")
    (entry,) = release.transcript
    description = {
        "format": FORMAT,
        "form": "sparse",
        "domain": release.domain.to_json(),
        "guarantee": write_guarantee(release.guarantee),
        "threshold": release.mechanism.threshold,
        "receipt": release.receipt,
        "columns": names,
        "entry": {
            "path": entry.path,
            "verb": entry.verb,
            "question": entry.question,
            release.budget.currency: str(entry.cost),
        },
        "about": release.about.given(),
        "confidence": confidence,
        "bounds": {"low": names["low"], "high": names["high"]},
    }
    placed = places(release.domain, cells.flat)
    columns: dict[str, Any] = {}
    for column in labels:
        values = column.at(placed[column.axis])
        columns[column.name] = values.dictionary_encode() if pa.types.is_string(values.type) else values
    columns[names["cell"]] = as_arrow(cells.flat)
    columns[names["estimate"]] = as_arrow(cells.values)
    for name, ends in zip(("low", "high"), block_bounds(release, 0, len(cells), confidence), strict=True):
        columns[names[name]] = as_arrow(ends)
    return description, pa.table(columns)
