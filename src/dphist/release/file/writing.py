"""The release as one Parquet file: a row per cell with its labels and its interval, and in the metadata what to trust.

DuckDB, pandas or a spreadsheet opens it without dphist. The footer says in words what the file is (see `readable`), and
under the key ``dphist`` it holds JSON: the format's version, domain, guarantee, mechanism, transcript. Answers of the
transcript are not stored twice: one that equals the estimate points to that column, one with a number per cell gets a
column of its own, the rest sit in the footer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain
from dphist.release.atomic import atomic, check_release_name
from dphist.release.cells import Cells, SparseCells, TableCells
from dphist.release.columns import (
    Column,
    along,
    as_arrow,
    axis_strides,
    is_plain,
    label_columns,
    number_names,
)
from dphist.release.contents import Contents
from dphist.release.file.description import (
    FORMAT,
    KEY,
    stamped,
    write_entry,
    write_guarantee,
)
from dphist.release.file.readable import readable
from dphist.release.held import Arrays, written
from dphist.release.packed import pack
from dphist.release.sums import sum_columns

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1 << 20
HOW: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    # Of more different numbers a list of them takes longer and more room than they do.
    "dictionary_pagesize_limit": 1 << 16,
}
# Of more columns fewer rows are held at a time.
_MANY = 16


def save(release: Contents, path: str | PathLike[str], confidence: float) -> None:
    """Write the release whole or not at all."""
    check_release_name(Path(path))
    with atomic(Path(path)) as temporary:
        write(release, temporary, confidence)


def write(
    release: Contents, path: Path | IO[bytes], confidence: float, said: Mapping[bytes, bytes] | None = None
) -> None:
    """Write the release; ``said``, which a file of it has said, stands in place of what would be said now."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    domain, cells, labels = release.domain, release.cells, label_columns(release.domain)
    description, columns = laid_out(release, confidence, packed=said is None)
    names = description["bounds"]
    words = readable(release, confidence, names | {"estimate": next(iter(columns))})
    told = {KEY: json.dumps(description).encode(), **words, **(said or {})}
    schema = file_schema(label_fields(domain, cells, labels), columns, names).with_metadata(stamped(told))
    size, step = cells.numbers.size, _ROWS if len(schema) <= _MANY else _ROWS // _MANY
    # Readers pass row groups over by the labels that a group has some of; of the other columns each has all kinds.
    telling = [each.name for each in labels if step < min(size, prod(domain.shape[each.axis :]))]
    with pq.ParquetWriter(path, schema, write_statistics=telling, **HOW) as writer:
        for begin in range(0, size, step):
            end = min(begin + step, size)
            ends = [
                as_arrow(each, missing=np.isnan(each))
                for each in release._cell_bounds(begin, end, confidence)
            ]
            # In the order of the schema: the estimate, its bounds, then what else was measured.
            numbers = [as_arrow(values[begin:end]) for values in columns.values()]
            arrays = label_rows(domain, cells, labels, begin, end).values()
            writer.write_table(
                pa.Table.from_arrays([*arrays, numbers[0], *ends, *numbers[1:]], schema=schema)
            )


def laid_out(
    release: Contents, confidence: float, *, packed: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a release, and the columns of numbers that go with it; answers left out unless ``packed``."""
    if isinstance(release.cells, SparseCells):
        return _laid_out_sparse(release, release.cells, confidence)
    names = number_names(release.domain, "measured")
    flat = release.cells.numbers
    measured: list[NDArray[Any]] = []
    entries = []
    for entry in release.transcript:
        described = write_entry(entry, release.budget)
        answer = entry.answer.reshape(-1)
        if answer.size == flat.size and np.array_equal(answer, flat):
            described["column"] = names["estimate"]
        elif answer.size == flat.size and answer.size > 4096:
            described["column"] = f"{names['measured']}_{len(measured)}"
            measured.append(answer)
        else:
            described["data"] = pack(answer) if packed else ""
        entries.append(described)
    description: dict[str, Any] = {
        "format": FORMAT,
        "domain": release.domain.to_json(),
        "shape": list(release.domain.shape),
        "guarantee": write_guarantee(release.guarantee),
        "mechanism": release._described,
        "maker": release.maker.told(),
        "note": release.note,
        "polish": list(release.polish),
        "workload": None if release.workload is None else release.workload.to_json(),
        "receipt": release.receipt,
        "estimate": names["estimate"],
        "transcript": entries,
        "about": release.about.given(),
        "confidence": confidence,
        "bounds": {"low": names["low"], "high": names["high"]},
    }
    if release.sums:
        # What stands in no column stands in the description.
        description["measures"] = _described_sums(release)
    columns = {names["estimate"]: flat}
    more = {f"{names['measured']}_{i}": answer for i, answer in enumerate(measured)}
    description["model"], own = told_model(
        release, columns | more, number_names(release.domain, "model")["model"]
    )
    if isinstance(release.cells, TableCells):
        cells = release.cells
        tables = [list(axes) for axes in cells.order]
        description |= {"form": cells.form, "tables": tables, "table": cells.table_column()}
    return (
        description,
        columns | sum_columns(release, taken_names(release)) | more | own,
    )


def _laid_out_sparse(
    release: Contents, cells: SparseCells, confidence: float
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a sparse release, and its column of numbers."""
    names = number_names(release.domain, "cell")
    (entry,) = release.transcript
    description = {
        "format": FORMAT,
        "form": "sparse",
        "domain": release.domain.to_json(),
        "shape": list(release.domain.shape),
        "guarantee": write_guarantee(release.guarantee),
        "mechanism": release._described,
        "maker": release.maker.told(),
        "scale": str(cells.scale),
        "threshold": cells.threshold,
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
    return description, {names["estimate"]: cells.values}


def told_model(
    release: Contents, columns: dict[str, NDArray[Any]], name: str | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The model as the release's own file has it, else as it is; and the columns of its own."""
    if (story := release._story) is not None:
        named = (entry.get("column") for entry in story.model["arrays"])
        return story.model, {each: story.columns[each] for each in named if each and each not in columns}
    rows = next(iter(columns.values())).size if columns else 0
    arrays = Arrays(columns, name, rows)
    return written(release._estimate, release.domain, bool(release.polish), arrays), arrays.own


def taken_names(release: Contents) -> set[str]:
    """The names of all columns but those of sums."""
    labels = label_columns(release.domain)
    return {column.name for column in labels} | set(number_names(release.domain).values())


def file_schema(
    fields: list[pyarrow.Field], columns: dict[str, NDArray[Any]], bounds: dict[str, str]
) -> pyarrow.Schema:
    """Labels, the estimate, its bounds, then what else was measured."""
    import pyarrow as pa

    numbers = [pa.field(name, pa.from_numpy_dtype(values.dtype)) for name, values in columns.items()]
    ends = [pa.field(name, pa.float64()) for name in bounds.values()]
    return pa.schema([*fields, numbers[0], *ends, *numbers[1:]])


def _described_sums(release: Contents) -> list[dict[str, Any]]:
    """Write the sums down: what was added up, by whom it was noised, for how much, and every answer."""
    return [
        {
            "measure": sums.measure.to_json(),
            "squared": sums.quantity.squared,
            "clipped": sums.quantity.clipped,
            "centre": sums.quantity.centre,
            "amount": str(sums.release.budget.amount),
            "mechanism": sums.release._described,
            "maker": sums.release.maker.told(),
            "note": sums.release.note,
            "estimate": pack(sums.release.counts),
            "model": told_model(sums.release, {})[0],
            "transcript": [
                write_entry(entry, sums.release.budget) | {"data": pack(entry.answer)}
                for entry in sums.release.transcript
            ],
        }
        for sums in release.sums
    ]


def label_rows(
    domain: Domain, cells: Cells, labels: list[Column], begin: int, end: int
) -> dict[str, pyarrow.Array]:
    """The columns of labels for some rows, texts as a dictionary of those that come."""
    if isinstance(cells, TableCells):
        return cells.label_rows(begin, end)
    if isinstance(cells, SparseCells):
        flat = cells.flat[begin:end]
        placed = np.unravel_index(flat, domain.shape)
        found = {column.name: column.rows(placed[column.axis]) for column in labels}
        return found | {number_names(domain, "cell")["cell"]: as_arrow(flat)}
    strides = axis_strides(domain)
    return {column.name: _runs(column, strides[column.axis], begin, end) for column in labels}


def _runs(column: Column, stride: int, begin: int, end: int) -> pyarrow.Array:
    """The labels of cells in C order, a run of ``stride`` for each value: made once a run, or once a round of all."""
    import pyarrow as pa

    first, whole = begin // stride, column.size * stride <= end - begin
    runs = np.arange(column.size) if whole else np.arange(first, -(-end // stride)) % column.size

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        return along(values, stride, begin, end) if whole else along(values, stride, *inside)

    inside = (begin - first * stride, end - first * stride)
    found = column.rows(runs)
    if hasattr(found, "dictionary"):
        index = as_arrow(spread(np.from_dlpack(found.indices)))
        return pa.DictionaryArray.from_arrays(index, found.dictionary)
    if is_plain(found):
        # Arrow's own functions take longer to load than a small release to write.
        return as_arrow(spread(np.from_dlpack(found)))
    return found.take(as_arrow(spread(np.arange(runs.size, dtype=np.int32))))


def label_fields(domain: Domain, cells: Cells, labels: list[Column]) -> list[pyarrow.Field]:
    """The columns of labels with their types."""
    import pyarrow as pa

    return [pa.field(name, column.type) for name, column in label_rows(domain, cells, labels, 0, 0).items()]
