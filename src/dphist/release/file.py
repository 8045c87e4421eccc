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

from dphist.arguments import explained
from dphist.errors import DphistError, ReleaseError
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.private.transcript import Transcript
from dphist.release import learned, sparse_file, sums_file, wide_file
from dphist.release.about import About
from dphist.release.atomic import atomic
from dphist.release.bounds import WrittenBounds, check_confidence, keep_written, known_bounds
from dphist.release.cells import Cells, DenseCells
from dphist.release.columns import Column, along, as_arrow, axis_strides, free, label_columns
from dphist.release.contents import (
    check_bytes,
    check_description,
    check_labels,
    check_schema,
    is_plain,
    plain_numbers,
)
from dphist.release.description import (
    pack,
    read_entry,
    read_guarantee,
    read_mechanism,
    read_receipt,
    write_entry,
    write_guarantee,
    write_mechanism,
)
from dphist.release.readable import readable
from dphist.release.release import Release, register_writer
from dphist.release.sparse import SparseCells
from dphist.release.sums import sum_columns
from dphist.release.wide import TableCells

if TYPE_CHECKING:
    import pyarrow

FORMAT = 2
KEY = b"dphist"
_ROWS = 1 << 20
LARGE = 1 << 24
"""From so many cells on, a file is not left to Arrow's encoder."""
# What reading a description that was tampered with can raise; numpy reads types as a little language of its own.
_MISFITS = (
    ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError,
    RecursionError, SyntaxError, MemoryError, SystemError,
)  # fmt: skip
_FOOTER_LIMIT = (1 << 31) - 1


def save(release: Release, path: str | PathLike[str], confidence: float) -> None:
    """Write the release whole or not at all."""
    with atomic(Path(path)) as temporary:
        if isinstance(release.cells, SparseCells):
            sparse_file.write(release, release.cells, temporary, confidence, form=FORMAT, key=KEY)
        else:
            _write(release, temporary, confidence)


register_writer(save)


@explained
def load(path: str | PathLike[str]) -> Release:
    """Read a release that `Release.save` wrote, whatever kind of cells it has.

    Args:
        path: The Parquet file.

    Returns:
        The release. Its counts are as the file says; `Release.verify` shows that they were paid for.

    Raises:
        ReleaseError: if the file is damaged, foreign or from a newer dphist, with the reason.

    Example:
        >>> import dphist, numpy as np, pathlib, tempfile
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> release = dphist.publish(dphist.Histogram(domain, np.array([5, 9])), epsilon=1, mechanism="laplace")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.save(pathlib.Path(folder) / "sex.parquet")
        ...     again = dphist.load(pathlib.Path(folder) / "sex.parquet")
        >>> again.verify()
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(path, str | PathLike):
        raise ReleaseError(f"path: where the release is, as a text or a path, not a {type(path).__name__}")
    place = Path(path)
    if not _exists(place):
        raise ReleaseError(f"there is no file {place}")
    try:
        file = pq.ParquetFile(place, thrift_string_size_limit=_FOOTER_LIMIT)
        metadata = file.schema_arrow.metadata or {}
    except (pa.ArrowException, OSError, ValueError):
        raise ReleaseError(
            f"{place} is not a readable Parquet file; it may be truncated or damaged"
        ) from None
    if KEY not in metadata:
        raise ReleaseError(f"{place} is a Parquet file, but not a dphist release")
    try:
        description = json.loads(metadata[KEY])
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReleaseError(f"{place} is damaged: its description cannot be read") from None
    if type(version) is not int or version != FORMAT:
        raise ReleaseError(f"{place} has a format that only a newer dphist reads; upgrade dphist")
    try:
        if description.get("form") == "sparse":
            release = sparse_file.read(file, description)
            sparse_file.check(file, place, description, release, key=KEY)
        else:
            release = _read(file, description)
            _check(file, place, description, release)
        keep_written(release, _bounds(file, description))
        return release
    except DphistError as error:
        raise ReleaseError(f"{place} is damaged: {error}") from None
    except (pa.ArrowException, OSError, *_MISFITS):
        raise ReleaseError(f"{place} is damaged: its contents do not fit its description") from None


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, ValueError):
        # A name too long, or one that no file can have.
        return False


def _bounds(file: pyarrow.parquet.ParquetFile, description: dict[str, Any]) -> WrittenBounds:
    named = description["bounds"]
    software = file.schema_arrow.metadata[b"software"].decode()
    return WrittenBounds(
        file, named["low"], named["high"], check_confidence(description["confidence"]), software
    )


def _write(release: Release, path: Path, confidence: float) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    description, columns = _laid_out(release, confidence)
    tables = release.cells if isinstance(release.cells, TableCells) else None
    labels = label_columns(release.domain)
    known = [column.every() for column in labels]
    names = description["bounds"]
    words = readable(release, confidence, names | {"estimate": description["estimate"]})
    fields = _fields(labels, known) if tables is None else wide_file.fields(tables)
    schema = _schema(fields, columns, names).with_metadata({KEY: json.dumps(description).encode(), **words})
    size, step = release.cells.numbers.size, wide_file.ROWS if tables is not None else _ROWS
    if size >= LARGE:
        # Loaded here: few releases are so large.
        from dphist.release import large

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


def _laid_out(
    release: Release, confidence: float, *, packed: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a release, and the columns of numbers that go with it; answers left out unless ``packed``."""
    names = _column_names(release)
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
        description["measures"] = sums_file.describe(release)
    told = learned.worth_keeping(release) if packed else learned.learned(release)
    if told is not None:
        description["learned"] = learned.described(told)
    if isinstance(release.cells, TableCells):
        description |= wide_file.described(release.cells)
    return (
        description,
        {names["estimate"]: flat}
        | sum_columns(release, _taken(release))
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


def _taken(release: Release) -> set[str]:
    """The names of all columns but those of sums."""
    names = _column_names(release)
    return {column.name for column in label_columns(release.domain)} | {
        names[name] for name in ("estimate", "low", "high")
    }


def _fields(labels: list[Column], known: list[Any]) -> list[pyarrow.Field]:
    """The label columns with their types."""
    import pyarrow as pa

    return [
        pa.field(
            column.name,
            pa.dictionary(pa.int32(), values.type) if pa.types.is_string(values.type) else values.type,
        )
        for column, values in zip(labels, known, strict=True)
    ]


def _schema(
    fields: list[pyarrow.Field], columns: dict[str, NDArray[Any]], bounds: dict[str, str]
) -> pyarrow.Schema:
    import pyarrow as pa

    numbers = [pa.field(name, pa.from_numpy_dtype(values.dtype)) for name, values in columns.items()]
    ends = [pa.field(name, pa.float64()) for name in bounds.values()]
    return pa.schema([*fields, numbers[0], *ends, *numbers[1:]])


def _check(
    file: pyarrow.parquet.ParquetFile, path: Path, description: dict[str, Any], release: Release
) -> None:
    """Insist that the file holds the release and nothing else."""
    confidence = check_confidence(description["confidence"])
    known, columns = _laid_out(release, confidence, packed=False)
    check_description(description, known)
    labels = label_columns(release.domain)
    values = [column.every() for column in labels]
    names = known["bounds"]
    if description["bounds"] != names:
        raise ReleaseError("its bounds stand in other columns than a release's do")
    words = readable(release, confidence, names | {"estimate": known["estimate"]})
    cells = release.cells
    fields = wide_file.fields(cells) if isinstance(cells, TableCells) else _fields(labels, values)
    check_schema(file, _schema(fields, columns, names), KEY, words)
    # Reading the labels finds damaged descriptions of columns, of which Arrow's own accessors would die.
    if isinstance(cells, TableCells):
        wide_file.check_rows(file, cells)
    else:
        check_labels(file, release.domain, [(c.name, c.axis, v) for c, v in zip(labels, values, strict=True)])
    check_bytes(file, path)
    sums_file.check_columns(file, release, _taken(release))


def _read(file: pyarrow.parquet.ParquetFile, description: dict[str, Any]) -> Release:
    domain = Domain.from_json(description["domain"])
    wanted = {
        description["estimate"],
        *(entry["column"] for entry in description["transcript"] if "column" in entry),
    }
    columns = {name: plain_numbers(file.read(columns=[name]).column(0)) for name in sorted(wanted)}
    numbers = np.ascontiguousarray(columns[description["estimate"]], dtype=np.float64)
    cells: Cells
    if description.get("form") == TableCells.form:
        cells = wide_file.read_cells(domain, numbers, description["tables"])
    else:
        cells = DenseCells(numbers.reshape(domain.shape))
    guarantee = read_guarantee(description["guarantee"])
    currency = guarantee.budget.currency
    entries = [read_entry(described, currency, columns) for described in description["transcript"]]
    workload = (
        None if description["workload"] is None else Workload.from_json(domain, description["workload"])
    )
    release = Release(
        domain,
        cells,
        guarantee,
        read_mechanism(description["mechanism"]),
        Transcript(entries),
        note=str(description["note"]),
        polish=tuple(str(step) for step in description["polish"]),
        workload=workload,
        receipt=read_receipt(description["receipt"]),
        about=About.of(description["about"]),
    )
    if "measures" in description:
        release = sums_file.read(description["measures"], release)
    if "learned" in description:
        learned.keep_learned(release, learned.read(description["learned"]))
    return release


def _column_names(release: Release) -> dict[str, str]:
    """What the columns of numbers are called: no label column has the same name."""
    taken = {column.name for column in label_columns(release.domain)}
    names = {}
    for name in ("estimate", "measured", "low", "high"):
        names[name] = free(name, taken)
        taken.add(names[name])
    return names
