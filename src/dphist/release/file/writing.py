"""The release as one Parquet file: a row per cell with its labels and its interval, and in the metadata what to trust.

DuckDB, pandas or a spreadsheet opens it without dphist. The footer says in words what the file is (see `readable`), and
under the key ``dphist`` it holds JSON: the format's version, domain, guarantee, mechanism, transcript. Answers of the
transcript are not stored twice: one that equals the estimate points to that column, one with a number per cell gets a
column of its own, the rest sit in the footer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain
from dphist.release.atomic import atomic, check_release_name
from dphist.release.bounds import known_bounds
from dphist.release.cells import SparseCells, TableCells
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
from dphist.release.file import sparse as sparse_file
from dphist.release.file import tables as tables_file
from dphist.release.file.description import FORMAT, KEY, pack, write_entry, write_guarantee, write_mechanism
from dphist.release.file.readable import readable
from dphist.release.learned import as_lists, worth_keeping
from dphist.release.sums import sum_columns

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1 << 20
LARGE = 1 << 24
"""From so many cells on, a file is not left to Arrow's encoder."""


def save(release: Contents, path: str | PathLike[str], confidence: float) -> None:
    """Write the release whole or not at all."""
    check_release_name(Path(path))
    with atomic(Path(path)) as temporary:
        if isinstance(release.cells, SparseCells):
            sparse_file.write(release, release.cells, temporary, confidence)
        else:
            _write(release, temporary, confidence)


def _write(release: Contents, path: Path, confidence: float) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    description, columns = laid_out(release, confidence)
    tables = release.cells if isinstance(release.cells, TableCells) else None
    labels = label_columns(release.domain)
    # Tables have the labels of their own cells: an attribute that stands in none of them may have any number.
    known = [] if tables is not None else [column.every() for column in labels]
    names = description["bounds"]
    words = readable(release, confidence, names | {"estimate": description["estimate"]})
    fields = label_fields(labels, known) if tables is None else tables_file.fields(tables)
    schema = file_schema(fields, columns, names).with_metadata(
        {KEY: json.dumps(description).encode(), **words}
    )
    size, step = release.cells.numbers.size, tables_file.ROWS if tables is not None else _ROWS
    if size >= LARGE:
        # Loaded here: few releases are so large.
        from dphist.release.file import large

        if large.suits(release, len(columns), labels, known):
            large.write(release, path, confidence, schema, labels, known)
            return
    with (
        pq.ParquetWriter(path, schema, compression="zstd") as writer,
        _one_ahead(writer.write_table, size > step) as write,
    ):
        for begin in range(0, size, step):
            end = min(begin + step, size)
            if tables is not None:
                arrays = list(tables.label_rows(begin, end).values())
            else:
                arrays = _label_arrays(release.domain, labels, known, begin, end)
            # In the order of the schema: the estimate, its bounds, then what else was measured.
            ends = [
                as_arrow(each, missing=np.isnan(each))
                for each in known_bounds(release, begin, end, confidence)
            ]
            numbers = [as_arrow(values[begin:end]) for values in columns.values()]
            write(pa.Table.from_arrays([*arrays, numbers[0], *ends, *numbers[1:]], schema=schema))


@contextmanager
def _one_ahead(write: Callable[[Any], None], several: bool) -> Iterator[Callable[[Any], None]]:
    """Let a block be compressed while the next one is made, where there are several."""
    if not several:
        yield write
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    waiting: list[Future[None]] = []

    def finish() -> None:
        while waiting:
            waiting.pop().result()

    def hand_over(block: Any) -> None:
        finish()
        waiting.append(pool.submit(write, block))

    with ThreadPoolExecutor(1) as pool:
        yield hand_over
        finish()


def _label_arrays(
    domain: Domain, labels: list[Column], known: list[Any], begin: int, end: int
) -> list[pyarrow.Array]:
    """The labels of some cells of a domain, in C order."""
    import pyarrow as pa

    strides, arrays = axis_strides(domain), []
    for column, values in zip(labels, known, strict=True):
        if is_plain(values):
            # Arrow's own functions take longer to load than a small release to write.
            arrays.append(as_arrow(along(np.from_dlpack(values), strides[column.axis], begin, end)))
            continue
        cells = np.arange(domain.shape[column.axis], dtype=np.int32)
        place = as_arrow(along(cells, strides[column.axis], begin, end))
        arrays.append(
            pa.DictionaryArray.from_arrays(place, values)
            if pa.types.is_string(values.type)
            else values.take(place)
        )
    return arrays


def laid_out(
    release: Contents, confidence: float, *, packed: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a release, and the columns of numbers that go with it; answers left out unless ``packed``."""
    names = number_names(release.domain, "measured")
    flat = release.cells.numbers
    measured: list[NDArray[Any]] = []
    entries = []
    for entry in release.transcript:
        described = write_entry(entry, release.budget)
        answer = entry.answer.reshape(-1)
        if answer.size == flat.size and _equal(answer, flat):
            described["column"] = names["estimate"]
        elif answer.size == flat.size and answer.size > 4096:
            described["column"] = f"{names['measured']}_{len(measured)}"
            measured.append(answer)
        else:
            described["data"] = pack(answer) if packed else ""
        entries.append(described)
    description = {
        "format": FORMAT,
        "domain": release.domain.to_json(),
        "guarantee": write_guarantee(release.guarantee),
        "mechanism": write_mechanism(release.mechanism),
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
    told = worth_keeping(release) if packed else release._learned
    if told is not None:
        description["learned"] = as_lists(told)
    if isinstance(release.cells, TableCells):
        description |= tables_file.described(release.cells)
    return (
        description,
        {names["estimate"]: flat}
        | sum_columns(release, taken_names(release))
        | {f"{names['measured']}_{i}": answer for i, answer in enumerate(measured)},
    )


def _equal(answer: NDArray[Any], flat: NDArray[Any]) -> bool:
    """Whether they are the same numbers; those of a large cube are often the same memory."""
    same = answer.__array_interface__["data"][0] == flat.__array_interface__["data"][0]
    if same and answer.dtype == flat.dtype and answer.strides == flat.strides:
        return True
    # In blocks, because the comparison is as long as what is compared.
    return all(
        np.array_equal(answer[begin : begin + _ROWS], flat[begin : begin + _ROWS])
        for begin in range(0, flat.size, _ROWS)
    )


def taken_names(release: Contents) -> set[str]:
    """The names of all columns but those of sums."""
    labels = label_columns(release.domain)
    return {column.name for column in labels} | set(number_names(release.domain).values())


def label_fields(labels: list[Column], known: list[Any]) -> list[pyarrow.Field]:
    """The label columns with their types."""
    import pyarrow as pa

    return [
        pa.field(
            column.name,
            pa.dictionary(pa.int32(), values.type) if pa.types.is_string(values.type) else values.type,
        )
        for column, values in zip(labels, known, strict=True)
    ]


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
