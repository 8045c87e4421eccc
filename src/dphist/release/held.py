"""What a file holds beside its rows: the model that answers, packed numbers, and the headers of Parquet and Zstandard.

The description holds the model as JSON (`dphist.inference.models`) with its arrays in a list: each as packed numbers
or, where a column of the file has the same ones, by that column's name.

Headers are read without their libraries: Arrow's own accessors end the process where a footer is damaged, and give one
of two things that a footer says twice; pages say how much memory they want before anybody looks; and Zstandard's reader
passes over what stands beside a frame.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, sha256
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError, TooLargeError
from dphist.inference import models
from dphist.inference.estimate import Estimate
from dphist.inference.fields import Place, Sink, read_cells
from dphist.inference.tables.published import TableEstimate
from dphist.model.domain import Domain
from dphist.release.cells import Cells, DenseCells, TableCells

FORMAT = "1.0"
"""Which way of writing a release down. Of a higher minor number fields may be new, and are passed over; a file of
another major one is not read."""
KEY = b"dphist"
"""Where in a file's metadata the description stands."""
DIGEST = b"digest"
"""Where a fingerprint of all other metadata stands: pages carry checksums, a footer has none of its own."""
Struct = dict[int, Any]

_MAGIC, _TAIL = b"PAR1", 8
_DEEPEST = 12
# More than any header of a page takes.
_HEADER = 1 << 16
_ZSTD = bytes.fromhex("28b52ffd")
# No answer packs better than this (Zstandard's own limit is lower); a larger claim only wants our memory.
_LARGEST_RATIO = 1 << 18
# From 128 MiB on it is asked whether there is room.
_MUCH = 1 << 27
# Of fewer numbers a column takes more room than they do.
_LONG = 1 << 12
# Whole numbers that a float holds exactly.
_WHOLE = 2.0**53


def stamped(metadata: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Metadata with the SHA-256 of all others: of keys in order, each with its value behind it and a zero behind both.

    It tells damage, not forgery: whoever changes a file on purpose writes another, and `Release.verify` finds that.
    """
    told = (key + b"\0" + metadata[key] + b"\0" for key in sorted(metadata) if key != DIGEST)
    return {**metadata, DIGEST: sha256(b"".join(told)).hexdigest().encode()}


class Arrays:
    """The arrays of a model, each of them once.

    Args:
        columns: Columns of the file, by name: an array of the same numbers is not written again.
        name: What columns of the model's own are called, without their number; None if it has none.
        rows: An array with a number for every row of the file becomes a column.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], name: str | None = None, rows: int = 0) -> None:
        self.columns = columns
        self.name, self.rows = name, rows
        self.own: dict[str, NDArray[Any]] = {}
        self.entries: list[dict[str, Any]] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def put(self, values: NDArray[Any]) -> int:
        """Keep an array; gives its place."""
        plain = _narrow(np.asarray(values, order="C"))
        key = plain.dtype.str, plain.shape, blake2b(plain.tobytes(), digest_size=16).digest()
        if key not in self._known:
            self._known[key] = len(self.entries)
            self.entries.append({"shape": list(plain.shape), **self._numbers(plain)})
        return self._known[key]

    def _numbers(self, values: NDArray[Any]) -> dict[str, Any]:
        flat = values.reshape(-1)
        for name, column in self.columns.items():
            if column.size == flat.size > 1 and np.array_equal(column, flat):
                return {"dtype": values.dtype.str, "column": name}
        if self.name is not None and values.dtype.kind == "f" and flat.size == self.rows > _LONG:
            self.own[f"{self.name}_{len(self.own)}"] = flat
            return {"dtype": values.dtype.str, "column": f"{self.name}_{len(self.own) - 1}"}
        if values.dtype.kind == "i" and values.ndim and len(values) > 1:
            # Nodes stand in order, so that bounds and parents grow by little from one to the next.
            steps = _narrow(np.diff(values.astype(np.int64), axis=0, prepend=0))
            plain, less = pack(flat), pack(steps.reshape(-1))
            if len(less) < len(plain):
                return {"dtype": steps.dtype.str, "steps": True, "data": less}
            return {"dtype": values.dtype.str, "data": plain}
        return {"dtype": values.dtype.str, "data": pack(flat)}


@dataclass(frozen=True, eq=False)
class Story:
    """A model as a file tells it.

    Args:
        model: Its JSON.
        columns: The columns that arrays may point to.
    """

    model: dict[str, Any]
    columns: Mapping[str, NDArray[Any]]

    def get(self, reference: Any) -> NDArray[Any]:
        """Give an array of flags, 64-bit whole numbers or floats; whoever asks for it again gets the same one."""
        entries = self.model["arrays"]
        if type(reference) is not int or not 0 <= reference < len(entries):
            raise ValueError("no such array")
        if reference not in self._read:
            self._read[reference] = self._array(entries[reference])
        return self._read[reference]

    @cached_property
    def _read(self) -> dict[int, NDArray[Any]]:
        return {}

    def _array(self, entry: dict[str, Any]) -> NDArray[Any]:
        dtype, shape = np.dtype(str(entry["dtype"])), tuple(entry["shape"])
        if dtype.kind not in "iufb" or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError("not an array of numbers")
        if "column" in entry:
            flat = self.columns[entry["column"]].astype(dtype)
        else:
            flat = np.frombuffer(unpack(entry["data"], prod(shape) * dtype.itemsize), dtype=dtype)
        array: NDArray[Any] = flat.reshape(shape).astype(
            {"b": np.bool_, "f": np.float64}.get(dtype.kind, np.int64)
        )
        array = np.cumsum(array, axis=0) if entry.get("steps") is True else array
        array.setflags(write=False)
        return array


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in as few bytes as hold them: noise on a lattice, and most numbers of nodes, are whole."""
    if values.dtype.kind == "f" and values.size and bool((np.abs(values) < _WHOLE).all()):
        whole = values.astype(np.int64)
        values = whole if np.array_equal(whole, values) else values
    if values.dtype.kind == "i" and values.size:
        least, most = int(values.min()), int(values.max())
        for kind in (np.int8, np.int16, np.int32):
            if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
                return values.astype(kind)
    return values


def written(
    estimate: Estimate | TableEstimate, domain: Domain, polished: bool, store: Sink
) -> dict[str, Any]:
    """Write an estimate down; its arrays go into the store."""
    tables = estimate.tables if isinstance(estimate, TableEstimate) else None
    place = Place(domain.shape, domain, None if tables is not None else estimate.counts, tables)
    story: dict[str, Any] = {"errors": models.write(estimate.errors, store, place)}
    if isinstance(estimate, TableEstimate):
        if estimate.model is not None:
            story["guess"] = models.write(estimate.model, store, place)
    elif polished:
        story["counts"] = store.put(estimate.counts.reshape(-1))
    return story


def read(story: Story, domain: Domain, cells: Cells, note: str) -> Estimate | TableEstimate:
    """Read the estimate of a release from its file."""
    model = story.model
    if isinstance(cells, TableCells):
        place = Place(domain.shape, domain, tables=cells.tables)
        guess = models.read(model["guess"], story, place) if "guess" in model else None
        return TableEstimate(cells.tables, models.read(model.get("errors"), story, place), note, guess)
    if not isinstance(cells, DenseCells):
        raise ReleaseError("these cells have no model")
    counts = cells.counts
    if "counts" in model:
        counts = read_cells(model["counts"], story, domain.shape)
    place = Place(domain.shape, domain, counts)
    return Estimate(counts, models.read(model.get("errors"), story, place), note)


class DamagedError(ValueError):
    """No header that a writer makes."""


DAMAGED = (DamagedError, LookupError, TypeError, AttributeError)
"""What reading a file's own account of itself may raise: fields may be missing, and of any kind."""


def read_footer(file: IO[bytes]) -> tuple[Struct, int]:
    """What a Parquet file says of itself, each field by its number in the format, and where that begins."""
    end = file.seek(0, 2)
    file.seek(max(end - _TAIL, 0))
    tail = file.read(_TAIL)
    begin = end - _TAIL - int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or begin < len(_MAGIC):
        raise DamagedError
    file.seek(begin)
    told, length = read_struct(file.read(end - _TAIL - begin))
    if begin + length != end - _TAIL:
        raise DamagedError
    return told, begin


def page_headers(file: IO[bytes], chunk: Struct) -> Iterator[tuple[Struct, int]]:
    """The headers of the pages of a column in a group of rows, and where each page's own bytes begin."""
    listed = 11 in chunk
    place = chunk[11] if listed else chunk[9]
    end = place + chunk[7]
    while place < end:
        file.seek(place)
        header, length = read_struct(file.read(_HEADER))
        if listed != (header[1] == 2) or (not listed and chunk[9] > place):
            raise DamagedError
        start, place = place + length, place + length + _size(header[3])
        if listed and chunk[9] != place:
            raise DamagedError
        listed = False
        yield header, start
    if place != end:
        raise DamagedError


def wanted_memory(file: IO[bytes]) -> int:
    """Bytes that all rows of all columns take once they are read, by every page's own account."""
    told, _ = read_footer(file)
    wanted = 0
    for group in told[4]:
        for column in group[1]:
            chunk = column[3]
            if chunk[5] != group[3]:
                raise DamagedError
            wanted += 8 * _size(chunk[5]) + sum(_size(header[2]) for header, _ in page_headers(file, chunk))
    return wanted


def is_one_frame(packed: bytes) -> bool:
    """Whether bytes are one frame of Zstandard and nothing else: no frames that readers pass over."""
    kind = packed[4] if packed[:4] == _ZSTD and len(packed) > 4 else 0xFF
    if kind & 0b11011:
        # A dictionary, or bits that mean nothing.
        return False
    single = kind >> 5 & 1
    place = 6 - single + (single, 2, 4, 8)[kind >> 6]
    last = 0
    while not last and place + 3 <= len(packed):
        block = int.from_bytes(packed[place : place + 3], "little")
        last, repeated = block & 1, block >> 1 & 3 == 1
        place += 3 + (1 if repeated else block >> 3)
    return bool(last) and place + 4 * (kind >> 2 & 1) == len(packed)


def read_struct(raw: bytes, place: int = 0, depth: int = 0) -> tuple[Struct, int]:
    """A struct of Thrift's compact protocol, by the numbers of its fields (kinds by negative ones), and its end."""
    told: Struct = {}
    field = 0
    while head := _byte(raw, place):
        if not head >> 4 or depth > _DEEPEST:
            raise DamagedError
        field += head >> 4
        # How it is spelt belongs to it: readers pass over a field of another kind than they know.
        told[-field] = head & 15, _byte(raw, place + 1) if head & 15 == 9 else 0
        told[field], place = _value(raw, place + 1, head & 15, depth)
    return told, place + 1


def _value(raw: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, place
    if kind in (4, 5, 6):
        number, place = _varint(raw, place)
        return number >> 1 ^ -(number & 1), place
    if kind == 8:
        size, place = _varint(raw, place)
        if size > len(raw) - place:
            raise DamagedError
        return raw[place : place + size], place + size
    if kind == 9:
        head = _byte(raw, place)
        size, place = (head >> 4, place + 1) if head >> 4 < 15 else _varint(raw, place + 1)
        if size > len(raw) - place:
            raise DamagedError
        listed = []
        for _ in range(size):
            # In a list a truth takes a byte of its own; no list of Parquet has any.
            value, place = _value(raw, place, head & 15, depth + 1)
            listed.append(value)
        return listed, place
    if kind == 12:
        return read_struct(raw, place, depth + 1)
    raise DamagedError


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = _byte(raw, place)
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if shift and not byte:
                break
            return number, place
    raise DamagedError


def _byte(raw: bytes, place: int) -> int:
    if place >= len(raw):
        raise DamagedError
    return raw[place]


def _size(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise DamagedError
    return number


def pack(values: NDArray[Any]) -> str:
    """Numbers as compressed text."""
    import pyarrow as pa

    return b64encode(pa.compress(np.ascontiguousarray(values).tobytes(), codec="zstd", asbytes=True)).decode()


def unpack(text: str, size: int) -> bytes:
    """What `pack` wrote, of a size that is known."""
    import pyarrow as pa

    packed = b64decode(text, validate=True)
    if b64encode(packed).decode() != text or not is_one_frame(packed):
        raise ReleaseError("numbers are written in another way than a release's are")
    if size > _LARGEST_RATIO * (len(packed) + 1):
        raise ReleaseError("an answer is smaller than it says")
    insist_on_room(size)
    raw: bytes = pa.decompress(packed, decompressed_size=size, codec="zstd", asbytes=True)
    return raw


def insist_on_room(size: int) -> None:
    """Refuse numbers whose bytes memory does not hold: a few bytes of a file may stand for billions."""
    if size < _MUCH:
        return
    # Loaded here: few releases are so large.
    from dphist.memory import available_memory

    if size > (free := available_memory()):
        raise TooLargeError(f"its numbers take {size:,} bytes of memory, of which {free:,} are free")
