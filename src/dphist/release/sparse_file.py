"""A sparse release as a Parquet file: a row per published cell. `dphist.release.file` calls this for its kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.errors import ReleaseError
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.private.exact import fraction
from dphist.private.transcript import Entry, Transcript
from dphist.release.cells import places
from dphist.release.contents import check_bytes, check_description, check_schema
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.release.sparse import SparseCells

if TYPE_CHECKING:
    import pyarrow


def write(release: Release, cells: SparseCells, path: Path, *, form: int, key: bytes) -> None:
    """Write a row per published cell."""
    import pyarrow.parquet as pq

    description, table = _laid_out(release, cells, form)
    pq.write_table(
        table.replace_schema_metadata({key: json.dumps(description).encode()}), path, compression="zstd"
    )


def check(
    file: pyarrow.parquet.ParquetFile,
    path: Path,
    description: dict[str, Any],
    release: Release,
    *,
    key: bytes,
) -> None:
    """Insist that the file holds the release and nothing else, every label with its cell."""
    if not isinstance(release.cells, SparseCells):
        raise ReleaseError("its cells are not those of a sparse release")
    known, table = _laid_out(release, release.cells, int(description["format"]))
    check_description(description, known)
    check_schema(file, table.schema, key)
    check_bytes(file, path)
    for name in release.domain.names:
        found, wanted = file.read(columns=[name]).column(0), table.column(name)
        kind = getattr(wanted.type, "value_type", wanted.type)
        if not found.cast(kind).equals(wanted.cast(kind)):
            raise ReleaseError("a label does not belong to its cell")


def _laid_out(release: Release, cells: SparseCells, form: int) -> tuple[dict[str, Any], pyarrow.Table]:
    """The description of a sparse release, and its table."""
    import pyarrow as pa

    if not isinstance(release.mechanism, SparseLaplace):
        raise ReleaseError("only what sparselaplace made can be saved as a sparse release")

    names = {}
    for name in ("cell", "estimate"):
        chosen = name
        while chosen in release.domain.names:
            chosen += "_"
        names[name] = chosen
    (entry,) = release.transcript
    description = {
        "format": form,
        "form": "sparse",
        "domain": release.domain.to_json(),
        "guarantee": {"epsilon": str(release.epsilon), "unit": release.guarantee.unit.to_json()},
        "threshold": release.mechanism.threshold,
        "receipt": release.receipt,
        "columns": names,
        "entry": {
            "path": entry.path,
            "verb": entry.verb,
            "question": entry.question,
            "epsilon": str(entry.epsilon),
        },
    }
    columns: dict[str, Any] = {}
    named, placed = cells.labels(release.domain), places(release.domain, cells.flat)
    for attribute, place in zip(release.domain.attributes, placed, strict=True):
        labels = named[attribute.name]
        scale = getattr(attribute, "scale", None)
        whole = not attribute.other and scale is not None and scale.form == "range"
        columns[attribute.name] = (
            pa.array(scale.values.start + scale.values.step * place)
            if whole and scale is not None
            else pa.array([str(label) for label in labels], pa.string()).dictionary_encode()
        )
    columns[names["cell"]] = pa.array(cells.flat)
    columns[names["estimate"]] = pa.array(cells.values)
    return description, pa.table(columns)


def read(file: pyarrow.parquet.ParquetFile, description: dict[str, Any]) -> Release:
    """Read a sparse release that `save` wrote."""
    domain = Domain.from_json(description["domain"])
    names = description["columns"]
    cells, values = (
        np.ascontiguousarray(file.read(columns=[names[name]]).column(0).to_numpy(), dtype=np.int64)
        for name in ("cell", "estimate")
    )
    if cells.shape != values.shape:
        raise ReleaseError("its columns differ in length")
    described = description["entry"]
    answer = np.ascontiguousarray(np.stack([cells, values], axis=1))
    answer.setflags(write=False)
    entry = Entry(
        described["path"], described["verb"], described["question"], fraction(described["epsilon"]), answer
    )
    guarantee = Guarantee(
        fraction(description["guarantee"]["epsilon"]), Unit.from_json(description["guarantee"]["unit"])
    )
    receipt = (
        None
        if description["receipt"] is None
        else (str(description["receipt"][0]), int(description["receipt"][1]))
    )
    mechanism = SparseLaplace(threshold=description["threshold"])
    return Release(
        domain,
        SparseCells.of(domain, answer, guarantee, mechanism),
        guarantee,
        mechanism,
        Transcript([entry]),
        receipt=receipt,
    )
