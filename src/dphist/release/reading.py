"""Reading a release from its file, which may come from anybody: nothing in it is taken on trust.

What a reader does not know it passes over. That counts were paid for, and that the file holds nothing else, is for
`Release.verify` to show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
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
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.release.cells import Cells, DenseCells, SparseCells, TableCells
from dphist.release.contents import MeasuredSums, WrittenBounds
from dphist.release.guarantee import Deferred, Guarantee, Maker, Receipt
from dphist.release.held import DAMAGED, FORMAT, KEY, Story, insist_on_room, stamped, unpack, wanted_memory
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
    if not _is_readable(version):
        raise ReleaseError(f"{place} has a format that only a newer dphist reads; upgrade dphist")
    try:
        if json.dumps(description).encode() != metadata[KEY]:
            raise ReleaseError("its description is written in another way than a release's is")
        insist_on_room(wanted_memory(raw) + _unpacked(description))
        release = _read(file, description)
        low, high = (str(description["bounds"][end]) for end in ("low", "high"))
        confidence = read_confidence(description["confidence"])
        # Columns of their own: an array of the model may be the same by chance, and does not point to these.
        written = WrittenBounds(_Columns(file), low, high, confidence, metadata, raw)
        object.__setattr__(release, "_written", written)
        return release
    except TooLargeError as error:
        raise ReleaseError(f"{place} cannot be read here: {error}") from None
    except DphistError as error:
        raise ReleaseError(f"{place} is damaged: {error}") from None
    except (pa.ArrowException, OSError, *_MISFITS):
        raise ReleaseError(f"{place} is damaged: its contents do not fit its description") from None


def _is_readable(version: Any) -> bool:
    """Whether a file of this format can be read: one of the same major number."""
    found = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", version) if isinstance(version, str) else None
    return found is not None and found[1] == FORMAT.split(".")[0]


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, ValueError):
        # A name too long, or one that no file can have.
        return False


def _unpacked(told: Any) -> int:
    """Bytes that all answers and sums of a description take, by its own account."""
    if isinstance(told, dict):
        shape = told.get("shape")
        own = 0 if "data" not in told or not isinstance(shape, list) else 8 * abs(prod(map(int, shape)))
        return own + sum(map(_unpacked, told.values()))
    return sum(map(_unpacked, told)) if isinstance(told, list) else 0


def _read(file: pyarrow.parquet.ParquetFile, description: dict[str, Any]) -> Release:
    domain, form = Domain.from_json(description["domain"]), description.get("form")
    # The file says how many values each attribute has, for readers that know no calendar.
    if description["shape"] != list(domain.shape):
        raise ReleaseError("its attributes have other numbers of values than it says")
    columns, guarantee = _Columns(file), _read_guarantee(description["guarantee"])
    said: dict[str, Any] = {
        "receipt": _read_receipt(description["receipt"]),
        "about": About.of(description["about"]),
    }
    if form == SparseCells.form:
        cells = _sparse_cells(file, domain, description, columns)
        answer = np.ascontiguousarray(np.stack([cells.flat, cells.values], axis=1))
        answer.setflags(write=False)
        asked, currency = description["entry"], guarantee.budget.currency
        entry = Entry(str(asked["path"]), asked["verb"], asked["question"], fraction(asked[currency]), answer)
        return _release(description, domain, cells, guarantee, [entry], **said)
    tables = [tuple(range(len(domain.shape)))]
    if form == TableCells.form:
        tables = _tables(description["tables"], len(domain.shape))
    shapes = [[domain.shape[axis] for axis in axes] for axes in tables]
    ends = list(accumulate(map(prod, shapes)))
    _check_size(file, ends[-1], ends[-1])
    numbers = np.ascontiguousarray(columns[description["estimate"]], dtype=np.float64)
    numbers.setflags(write=False)
    parts = zip(np.split(numbers, ends[:-1]), shapes, strict=True)
    found = [part.reshape(shape) for part, shape in parts]
    given, polish = description["workload"], tuple(str(step) for step in description["polish"])
    if polish and form == TableCells.form:
        raise ReleaseError("only cells that are all there are polished")
    release = _release(
        description,
        domain,
        TableCells(domain, dict(zip(tables, found, strict=True)))
        if form == TableCells.form
        else DenseCells(found[0]),
        guarantee,
        [_read_entry(each, guarantee.budget.currency, columns) for each in description["transcript"]],
        columns=columns,
        polish=polish,
        workload=None if given is None else Workload.from_json(domain, given),
        **said,
    )
    if "measures" in description:
        object.__setattr__(release, "sums", _sums(description["measures"], release))
    return release


def _release(
    told: dict[str, Any],
    domain: Domain,
    cells: Cells,
    guarantee: Guarantee,
    transcript: Sequence[Entry],
    *,
    columns: Mapping[str, NDArray[Any]] | None = None,
    **more: Any,
) -> Release:
    """A release or sums beside one, with who made it as the file says; mechanism and model are made when asked for."""
    mechanism = told["mechanism"]
    if not isinstance(mechanism, dict) or not isinstance(mechanism.get("name"), str):
        raise ReleaseError("its mechanism cannot be read")
    made: Any = Deferred(mechanism)
    note = str(told.get("note", ""))
    release = Release(domain, cells, guarantee, made, Transcript(transcript), note=note, **more)
    release.__dict__["maker"] = Maker.read(told["maker"])
    if columns is not None:
        model = told["model"]
        arrays = model.get("arrays") if isinstance(model, dict) else None
        if not isinstance(arrays, list) or not all(
            isinstance(each, dict)
            and isinstance(each.get("column", ""), str)
            and (isinstance(columns, _Columns) or "column" not in each)
            for each in arrays
        ):
            raise ReleaseError("its model cannot be read")
        object.__setattr__(release, "_story", Story(model, columns))
    return release


def _check_size(file: pyarrow.parquet.ParquetFile, least: int, most: int) -> None:
    """Refuse other rows than the description has cells, before any of them is read."""
    if not least <= file.metadata.num_rows <= most:
        raise ReleaseError("it has other rows than its description has cells")


def _sparse_cells(
    file: pyarrow.parquet.ParquetFile, domain: Domain, told: dict[str, Any], columns: _Columns
) -> SparseCells:
    _check_size(file, 0, domain.size)
    cells, values = (
        np.ascontiguousarray(columns[told["columns"][name]], dtype=np.int64) for name in ("cell", "estimate")
    )
    scale, threshold = fraction(told["scale"]), told["threshold"]
    if scale <= 0 or type(threshold) is not int:
        raise ReleaseError("its noise cannot be read")
    return SparseCells(domain, cells, values, scale, threshold)


def _tables(told: Any, attributes: int) -> list[tuple[int, ...]]:
    """The axes of each table that a description names, the total first; the file may come from anybody."""
    known = isinstance(told, list) and all(
        isinstance(axes, list) and all(type(axis) is int and 0 <= axis < attributes for axis in axes)
        for axes in told
    )
    if not known or not told or told[0] or any(axes != sorted(set(axes)) for axes in told):
        raise ReleaseError("its tables cannot be read")
    tables = [tuple(axes) for axes in told]
    if tables != sorted(set(tables), key=lambda axes: (len(axes), axes)):
        raise ReleaseError("its tables stand in another order than a release's do")
    return tables


class _Columns(dict[str, NDArray[Any]]):
    """Columns of numbers, each read when it is first looked at."""

    def __init__(self, file: pyarrow.parquet.ParquetFile) -> None:
        super().__init__()
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy goes to another process, and an open file cannot.
        numbers = [field.name for field in self._file.schema_arrow if field.name.startswith("model")]
        return dict, ({**self, **{name: self[name] for name in numbers}},)

    def __missing__(self, name: str) -> NDArray[Any]:
        import pyarrow as pa

        if name not in self._file.schema_arrow.names:
            raise ReleaseError("a column that its description names is not there")
        kind = self._file.schema_arrow.field(name).type
        # Texts, which may be of any length, are not even read.
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise ReleaseError("a column of numbers holds something else")
        try:
            self[name] = _plain_numbers(self._file.read(columns=[name]).column(0))
        except (pa.ArrowException, OSError, ValueError):
            raise ReleaseError("the file is damaged: a column cannot be read") from None
        if self[name].size != self._file.metadata.num_rows:
            raise ReleaseError("the file is damaged: a column has other rows than the rest")
        return self[name]


def _plain_numbers(column: pyarrow.ChunkedArray) -> NDArray[Any]:
    """The numbers of a column. Arrow's own way loads pandas, which takes longer than the rest of a question."""
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    parts = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind.to_pandas_dtype())


def _sums(described: Any, release: Release) -> tuple[MeasuredSums, ...]:
    """The sums that a description has beside the counts; `Release.verify` shows that they were paid for."""
    if not isinstance(described, list) or not described:
        raise ReleaseError("its sums cannot be read")
    found, domain, currency = [], release.domain, release.budget.currency
    for told in described:
        centre = told["centre"]
        if type(centre) is not int or {type(told["squared"]), type(told["clipped"])} != {bool}:
            raise ReleaseError("its sums cannot be read")
        measure = Measure.from_json(told["measure"])
        quantity = Quantity(measure, squared=told["squared"], clipped=told["clipped"], centre=centre)
        counts = np.frombuffer(unpack(told["estimate"], domain.size * 8), dtype=np.float64)
        part = _release(
            told,
            domain,
            DenseCells(counts.reshape(domain.shape)),
            Guarantee(Budget(fraction(told["amount"]), currency), quantity.in_steps(release.guarantee.unit)),
            [_read_entry(asked, currency, {}) for asked in told["transcript"]],
            columns={},
            workload=release.workload,
        )
        found.append(MeasuredSums(quantity, part))
    return tuple(found)


def _read_entry(described: dict[str, Any], currency: str, columns: Mapping[str, NDArray[Any]]) -> Entry:
    """Read one question and its answer; the file may come from anybody, so nothing in it is taken on trust."""
    path, verb, question = described["path"], described["verb"], described["question"]
    if not (
        isinstance(path, str) and isinstance(verb, str) and isinstance(question, dict) and "ask" in question
    ):
        raise ReleaseError("a question of the transcript cannot be read")
    dtype, shape = np.dtype(str(described["dtype"])), tuple(described["shape"])
    if dtype.kind not in "iuf" or not all(type(side) is int and side >= 0 for side in shape):
        raise ReleaseError("an answer of the transcript has an unknown type or shape")
    if "column" in described:
        answer = columns[described["column"]].astype(dtype, copy=False)
    else:
        answer = np.frombuffer(unpack(described["data"], prod(shape) * dtype.itemsize), dtype=dtype)
    answer = answer.reshape(shape)
    answer.setflags(write=False)
    return Entry(path, verb, question, fraction(described[currency]), answer)


def _read_guarantee(told: dict[str, Any]) -> Guarantee:
    """What `write_guarantee` wrote."""
    budget, unit = Budget.from_json(told), Unit.from_json(told["unit"])
    found = told.get("discovered")
    if found is None:
        return Guarantee(budget, unit)
    delta, level = fraction(found["delta"]), found["threshold"]
    if not 0 < delta < 1 or type(level) is not int or level < 1:
        raise ValueError("not a chance and a threshold")
    return Guarantee(budget, unit, delta, level)


def _read_receipt(told: Any) -> Receipt | None:
    """The budget that paid, the number of the reservation and the hash of its line, if somebody did."""
    if told is None:
        return None
    dataset, payment, line = told
    return Receipt(str(dataset), int(payment), str(line))
