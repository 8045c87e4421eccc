"""Reading a release from its file, which may come from anybody: nothing in it is taken on trust.

What a reader does not know it passes over. That counts were paid for, and that the file holds nothing else
(`dphist.release.file.nothing_else`), is for `Release.verify` to show.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import DphistError, ReleaseError, TooLargeError
from dphist.inference.intervals import read_confidence
from dphist.model.about import About
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import fraction
from dphist.model.measure import Measure, Quantity
from dphist.model.transcript import Entry, Transcript
from dphist.model.workload import Workload
from dphist.release.cells import Cells, DenseCells, SparseCells, TableCells
from dphist.release.columns import plain_numbers
from dphist.release.contents import MeasuredSums, WrittenBounds
from dphist.release.file.description import (
    KEY,
    is_readable,
    read_entry,
    read_guarantee,
    read_receipt,
    stamped,
)
from dphist.release.guarantee import Guarantee
from dphist.release.held import Story
from dphist.release.maker import Deferred, Maker
from dphist.release.packed import DAMAGED, insist_on_room, unpack, wanted_memory
from dphist.release.release import Release

if TYPE_CHECKING:
    import pyarrow.parquet

# What reading a description that was tampered with can raise; numpy reads types as a little language of its own.
_MISFITS = (
    ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError,
    RecursionError, SyntaxError, MemoryError, SystemError, *DAMAGED,
)  # fmt: skip
# Where Arrow keeps a copy of the schema and of all that a file says of itself.
_ARROW = b"ARROW:schema"
_FOOTER_LIMIT = (1 << 31) - 1


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
        raw = pa.OSFile(str(place))
        file = pq.ParquetFile(raw, thrift_string_size_limit=_FOOTER_LIMIT, page_checksum_verification=True)
        metadata = file.schema_arrow.metadata or {}
    except (pa.ArrowException, OSError, ValueError):
        raise ReleaseError(
            f"{place} is no release: that is a Parquet file which dphist wrote, and this cannot be read as one"
        ) from None
    if KEY not in metadata:
        raise ReleaseError(f"{place} is a Parquet file, but not a dphist release")
    try:
        description = json.loads(metadata[KEY])
        version = description["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ReleaseError(f"{place} is damaged: its description cannot be read") from None
    if {key: text for key, text in file.metadata.metadata.items() if key != _ARROW} != metadata:
        raise ReleaseError(f"{place} is damaged: what it says of itself stands there twice, and differs")
    if metadata != stamped(metadata):
        raise ReleaseError(f"{place} is damaged: what it says of itself is not what was written")
    if not is_readable(version):
        raise ReleaseError(f"{place} has a format that only a newer dphist reads; upgrade dphist")
    try:
        if json.dumps(description).encode() != metadata[KEY]:
            raise ReleaseError("its description is written in another way than a release's is")
        insist_on_room(wanted_memory(raw) + _unpacked(description))
        release = (_read_sparse if description.get("form") == "sparse" else _read)(file, description)
        object.__setattr__(release, "_written", _bounds(file, raw, description))
        return release
    except TooLargeError as error:
        raise ReleaseError(f"{place} cannot be read here: {error}") from None
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


def _bounds(file: pyarrow.parquet.ParquetFile, raw: Any, description: dict[str, Any]) -> WrittenBounds:
    named = description["bounds"]
    software = file.schema_arrow.metadata[b"software"].decode()
    return WrittenBounds(
        file, named["low"], named["high"], read_confidence(description["confidence"]), software, raw
    )


def _domain(description: dict[str, Any]) -> Domain:
    """What is counted; the file says how many values each attribute has, for readers that know no calendar."""
    domain = Domain.from_json(description["domain"])
    if description["shape"] != list(domain.shape):
        raise ReleaseError("its attributes have other numbers of values than it says")
    return domain


def _check_size(file: pyarrow.parquet.ParquetFile, least: int, most: int) -> None:
    """Refuse other rows than the description has cells, before any of them is read."""
    if not least <= file.metadata.num_rows <= most:
        raise ReleaseError("it has other rows than its description has cells")


def _unpacked(told: Any) -> int:
    """Bytes that all answers and sums of a description take, by its own account."""
    if isinstance(told, dict):
        shape = told.get("shape")
        own = 0 if "data" not in told or not isinstance(shape, list) else 8 * abs(prod(map(int, shape)))
        return own + sum(map(_unpacked, told.values()))
    return sum(map(_unpacked, told)) if isinstance(told, list) else 0


def _read(file: pyarrow.parquet.ParquetFile, description: dict[str, Any]) -> Release:
    domain = _domain(description)
    tables = None
    if description.get("form") == TableCells.form:
        tables = _read_tables(domain, description["tables"])
    size = domain.size if tables is None else _rows(domain, tables)
    _check_size(file, size, size)
    wanted = {
        description["estimate"],
        *(entry["column"] for entry in description["transcript"] if "column" in entry),
    }
    columns = _Columns(file, wanted)
    numbers = np.ascontiguousarray(columns[description["estimate"]], dtype=np.float64)
    cells: Cells = (
        DenseCells(numbers.reshape(domain.shape)) if tables is None else _read_cells(domain, numbers, tables)
    )
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
        _deferred(description["mechanism"]),
        Transcript(entries),
        note=str(description["note"]),
        polish=tuple(str(step) for step in description["polish"]),
        workload=workload,
        receipt=read_receipt(description["receipt"]),
        about=About.of(description["about"]),
    )
    if "measures" in description:
        release = _with_sums(description["measures"], release)
    return _telling(_made(release, description["maker"]), description["model"], columns)


def _read_tables(domain: Domain, tables: Any) -> list[tuple[int, ...]]:
    """The axes of each table that a description names; the file may come from anybody."""
    if not isinstance(tables, Sequence) or isinstance(tables, str):
        raise ReleaseError("its tables cannot be read")
    found: dict[tuple[int, ...], None] = {}
    for axes in tables:
        whole = isinstance(axes, list) and all(type(a) is int and 0 <= a < len(domain.shape) for a in axes)
        if not whole or axes != sorted(set(axes)) or tuple(axes) in found:
            raise ReleaseError("its tables cannot be read")
        found[tuple(axes)] = None
    if () not in found:
        raise ReleaseError("its tables cannot be read")
    return list(found)


def _rows(domain: Domain, tables: Sequence[tuple[int, ...]]) -> int:
    """How many rows the cells of all tables take."""
    return sum(prod(domain.shape[axis] for axis in axes) for axes in tables)


def _read_cells(domain: Domain, numbers: NDArray[Any], tables: Sequence[tuple[int, ...]]) -> TableCells:
    """Take the numbers of a file apart into its tables."""
    found, begin = {}, 0
    for axes in tables:
        shape = [domain.shape[axis] for axis in axes]
        end = begin + prod(shape)
        table = np.array(numbers[begin:end], dtype=np.float64).reshape(shape)
        table.setflags(write=False)
        found[axes] = table
        begin = end
    cells = TableCells(domain, found)
    if list(cells.order) != list(found):
        raise ReleaseError("its tables stand in another order than a release's do")
    return cells


class _Columns(dict[str, NDArray[Any]]):
    """Columns of numbers, each read when it is first looked at."""

    def __init__(self, file: pyarrow.parquet.ParquetFile, names: Iterable[str]) -> None:
        super().__init__({name: _numbers(file, name) for name in sorted(names)})
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy goes to another process, and an open file cannot.
        numbers = [field.name for field in self._file.schema_arrow if field.name.startswith("model")]
        return dict, ({**self, **{name: self[name] for name in numbers}},)

    def __missing__(self, name: str) -> NDArray[Any]:
        self[name] = _numbers(self._file, name)
        return self[name]


def _deferred(described: Any) -> Any:
    """The mechanism, made when somebody asks for it."""
    if not isinstance(described, dict) or not isinstance(described.get("name"), str):
        raise ReleaseError("its mechanism cannot be read")
    return Deferred(described)


def _made(release: Release, maker: Any) -> Release:
    """The release, with who made it as its file says."""
    release.__dict__["maker"] = Maker.read(maker)
    return release


def _telling(release: Release, model: Any, columns: Mapping[str, NDArray[Any]]) -> Release:
    """The release, with the model that its file holds: read when something is asked."""
    if not isinstance(model, dict) or not isinstance(model.get("arrays"), list):
        raise ReleaseError("its model cannot be read")
    object.__setattr__(release, "_story", Story(model, columns))
    return release


def _read_sparse(file: pyarrow.parquet.ParquetFile, description: dict[str, Any]) -> Release:
    """Read a sparse release that `save` wrote."""
    domain = _domain(description)
    _check_size(file, 0, domain.size)
    names = description["columns"]
    cells, values = (
        np.ascontiguousarray(_numbers(file, names[name]), dtype=np.int64) for name in ("cell", "estimate")
    )
    if cells.shape != values.shape:
        raise ReleaseError("its columns differ in length")
    described = description["entry"]
    answer = np.ascontiguousarray(np.stack([cells, values], axis=1))
    answer.setflags(write=False)
    guarantee = read_guarantee(description["guarantee"])
    cost = fraction(described[guarantee.budget.currency])
    entry = Entry(described["path"], described["verb"], described["question"], cost, answer)
    scale, threshold = fraction(description["scale"]), description["threshold"]
    if scale <= 0 or type(threshold) is not int:
        raise ReleaseError("its noise cannot be read")
    return _made(
        Release(
            domain,
            SparseCells(domain, cells, values, scale, threshold),
            guarantee,
            _deferred(description["mechanism"]),
            Transcript([entry]),
            receipt=read_receipt(description["receipt"]),
            about=About.of(description["about"]),
        ),
        description["maker"],
    )


def _numbers(file: pyarrow.parquet.ParquetFile, name: Any) -> NDArray[Any]:
    """A column of numbers; texts, which may be of any length, are not even read."""
    import pyarrow as pa

    kind = file.schema_arrow.field(name).type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ReleaseError("a column of numbers holds something else")
    return plain_numbers(file.read(columns=[name]).column(0))


def _with_sums(described: Any, release: Release) -> Release:
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
            _deferred(each["mechanism"]),
            Transcript([read_entry(asked, release.budget.currency, {}) for asked in each["transcript"]]),
            note=str(each["note"]),
            workload=release.workload,
        )
        found.append(MeasuredSums(quantity, _telling(_made(part, each["maker"]), each["model"], {})))
    object.__setattr__(release, "sums", tuple(found))
    return release
