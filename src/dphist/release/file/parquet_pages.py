"""Parquet by hand, as little of it as a large release needs: columns of codes or of plain numbers, one page each.

Arrow's writer looks every value up in a hash table, on one core: 130 nanoseconds a cell. Here labels are written as the
runs that they are, whole numbers get their code by position, and pages can be made on several threads. Schema, metadata
and dictionaries of labels come from Arrow, so that a file has the columns that Arrow would have written.
(The format: https://parquet.apache.org/docs/file-format/; its structures are in Thrift's compact protocol.)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.coding import mark, multiples, pack

Part = bytes | memoryview
FloatArray = NDArray[np.float64]

MAGIC = b"PAR1"
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_UNCOMPRESSED, _ZSTD = 0, 6
_TYPES = {"BOOLEAN": 0, "INT32": 1, "INT64": 2, "FLOAT": 4, "DOUBLE": 5, "BYTE_ARRAY": 6}
# Multiples are told apart by position in so wide a range, and are worth codes while there are so many of them.
_RANGE, _CODES = 1 << 22, 1 << 16


# ---- Thrift's compact protocol ------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    """Seven bits a byte, lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _whole(number: int) -> bytes:
    """A signed number, small ones in few bytes."""
    return varint(number * 2 if number >= 0 else -number * 2 - 1)


def _text(value: bytes) -> bytes:
    return varint(len(value)) + value


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))
    return head + b"".join(items)


def _struct(*fields: tuple[int, int, bytes]) -> bytes:
    """Fields by number, type and content, in ascending order."""
    found, last = bytearray(), 0
    for number, kind, content in fields:
        found += bytes([(number - last) << 4 | kind]) + content
        last = number
    return bytes(found) + b"\0"


class _Reader:
    """Walks over a structure, to find where its fields lie."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def fields(self) -> dict[int, tuple[int, int]]:
        """Where the content of each field begins and ends."""
        found: dict[int, tuple[int, int]] = {}
        last = 0
        while True:
            head = self.data[self.place]
            self.place += 1
            if head == 0:
                return found
            last = last + (head >> 4) if head >> 4 else (self.varint() + 1) // 2
            begin = self.place
            self.skip(head & 15)
            found[last] = (begin, self.place)

    def skip(self, kind: int) -> None:
        if kind in (4, _I32, _I64):
            self.varint()
        elif kind == 3:
            self.place += 1
        elif kind == 7:
            self.place += 8
        elif kind == _BINARY:
            size = self.varint()
            self.place += size
        elif kind == _LIST:
            head = self.data[self.place]
            self.place += 1
            for _ in range(head >> 4 if head >> 4 < 15 else self.varint()):
                if head & 15 > 2:
                    self.skip(head & 15)
                else:
                    # A truth value in a list is a byte; as a field it is in the head.
                    self.place += 1
        elif kind == _STRUCT:
            self.fields()


def footer(empty: bytes, groups: Sequence[bytes], rows: int) -> bytes:
    """The end of a file, given one of Arrow's with the same columns and no rows, and the descriptions of row groups."""
    (size,) = struct.unpack("<I", empty[-8:-4])
    described = empty[-8 - size : -8]
    fields = _Reader(described).fields()
    # Fields 3 and 4 are the number of rows and the row groups; what is before and after them stays as it is.
    count, old = fields[3], fields[4]
    told = b"".join(
        [
            described[: count[0]],
            _whole(rows),
            described[count[1] : old[0]],
            _list(_STRUCT, groups),
            described[old[1] :],
        ]
    )
    return told + struct.pack("<I", len(told)) + MAGIC


# ---- pages --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column as the schema has it."""

    name: str
    kind: str
    """Parquet's physical type."""
    optional: bool


@dataclass(frozen=True)
class Chunk:
    """What a row group holds of a column: bytes to be written one after the other, and what is said of them."""

    parts: tuple[Part, ...]
    dictionary: int
    """How many bytes the dictionary's page takes; zero if there is none."""
    rows: int
    least: bytes | None = None
    largest: bytes | None = None
    saved: int | None = None
    """How many bytes compression saved; None if nothing is compressed."""

    @property
    def size(self) -> int:
        """All bytes."""
        return sum(len(part) for part in self.parts)


def _page(
    kind: int, size: int, raw: int, *, data: bytes | None = None, dictionary: bytes | None = None
) -> bytes:
    fields = [(1, _I32, _whole(kind)), (2, _I32, _whole(raw)), (3, _I32, _whole(size))]
    if data is not None:
        fields.append((5, _STRUCT, data))
    if dictionary is not None:
        fields.append((7, _STRUCT, dictionary))
    return _struct(*fields)


def _present(column: Column, rows: int) -> bytes:
    """That no row is missing."""
    levels = varint(rows << 1) + b"\1"
    return struct.pack("<I", len(levels)) + levels if column.optional else b""


def _data_page(rows: int, encoding: int, body: Sequence[Part], raw: int | None = None) -> tuple[Part, ...]:
    told = _struct(
        (1, _I32, _whole(rows)), (2, _I32, _whole(encoding)), (3, _I32, _whole(_RLE)), (4, _I32, _whole(_RLE))
    )
    size = sum(len(part) for part in body)
    return (_page(0, size, size if raw is None else raw, data=told), *body)


def dictionary_page(values: bytes, count: int, raw: int | None = None) -> bytes:
    """The page that says which value each code stands for."""
    told = _struct((1, _I32, _whole(count)), (2, _I32, _whole(_PLAIN)))
    return _page(2, len(values), len(values) if raw is None else raw, dictionary=told) + values


def page_body(page: bytes) -> bytes:
    """What comes after a page's head."""
    reader = _Reader(page)
    reader.fields()
    return page[reader.place :]


def coded(
    column: Column, rows: int, width: int, body: Part, dictionary: bytes, span: tuple[bytes, bytes]
) -> Chunk:
    """A column of codes of so many bits, packed."""
    parts = _data_page(rows, _RLE_DICTIONARY, [_present(column, rows) + bytes([width]), body])
    return Chunk((dictionary, *parts), len(dictionary), rows, *span)


def compressed(
    column: Column,
    rows: int,
    width: int,
    body: bytes,
    dictionary: tuple[bytes, int],
    span: tuple[bytes, bytes] | None,
) -> Chunk:
    """A column of codes that repeat themselves; the dictionary's values and how many they are."""
    codec = _zstandard()
    values, count = dictionary
    small = codec.compress(values, asbytes=True)
    page = dictionary_page(small, count, len(values))
    whole = _present(column, rows) + bytes([width]) + body
    packed = codec.compress(whole, asbytes=True)
    parts = _data_page(rows, _RLE_DICTIONARY, [packed], len(whole))
    saved = len(values) + len(whole) - len(small) - len(packed)
    least, largest = span or (None, None)
    return Chunk((page, *parts), len(page), rows, least, largest, saved)


def _zstandard() -> Any:
    import pyarrow as pa

    return pa.Codec("zstd", compression_level=1)


def plain(column: Column, values: FloatArray) -> Chunk:
    """A column of numbers as they are in memory."""
    rows = values.size
    parts = _data_page(rows, _PLAIN, [_present(column, rows), values.view(np.uint8).data])
    return Chunk(parts, 0, rows)


def code_width(count: int) -> int:
    """How many bits tell so many codes apart."""
    return max(1, (count - 1).bit_length())


def runs(codes: NDArray[np.int64], length: int, width: int, first: int, rows: int) -> bytes:
    """Runs of equal codes, each of one length but the first, of which ``first`` rows are left, and the last."""
    size = (width + 7) // 8
    values = codes.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :size]
    head = np.frombuffer(varint(length << 1), dtype=np.uint8)
    whole = np.concatenate([np.broadcast_to(head, (codes.size, head.size)), values], axis=1)
    if codes.size == 1:
        return varint(rows << 1) + bytes(values[0])
    last = rows - first - length * (codes.size - 2)
    ends = [varint(count << 1) + bytes(values[place]) for count, place in ((first, 0), (last, -1))]
    return b"".join([ends[0], whole[1:-1].tobytes(), ends[1]])


def packed_head(rows: int) -> bytes:
    """What comes before packed codes: how many groups of eight follow; the last one is filled up."""
    return varint((rows + 7) // 8 << 1 | 1)


# ---- numbers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Coded:
    """Numbers that are multiples of a step: which of them occur, and how a number finds its code."""

    values: FloatArray
    inverse: float
    base: int
    found: FloatArray
    """Those that occur, ascending."""
    places: NDArray[np.intp]
    """Where these lie, counted from the base."""
    range: int

    @staticmethod
    def of(values: FloatArray, step: float = 1.0) -> Coded | None:
        """The codes of some numbers; none if they are no multiples of the step, or too many different ones."""
        whole, low, high = multiples(values, 1.0 / step)
        if not whole or not high - low < _RANGE or abs(low) > 2**52:
            return None
        base, present = int(low), np.zeros(int(high - low) + 1, dtype=np.uint8)
        mark(values, 1.0 / step, base, present)
        places = np.flatnonzero(present)
        if places.size > _CODES:
            return None
        found: FloatArray = np.asarray((places + base) * step, dtype=np.float64)
        return Coded(values, 1.0 / step, base, found, places, present.size)

    @cached_property
    def _own(self) -> Part:
        return self._packed(np.arange(self.found.size), code_width(self.found.size))

    def _packed(self, codes: NDArray[Any], width: int) -> Part:
        """Every number's code, given those of the numbers that occur."""
        table = np.zeros(self.range, dtype=np.uint32)
        table[self.places] = codes
        words = np.empty(-(-self.values.size * width // 64) + 1, dtype=np.uint64)
        words[-2:] = 0
        pack(self.values, self.inverse, self.base, table, width, words)
        head = packed_head(self.values.size)
        body = words.view(np.uint8)[: (self.values.size + 7) // 8 * width]
        return head + body.tobytes()

    def chunk(self, column: Column, meant: FloatArray | None = None) -> Chunk:
        """The column of the numbers, or of what each that occurs stands for."""
        values, codes = np.unique(self.found if meant is None else meant, return_inverse=True)
        width = code_width(values.size)
        # Where no two stand for the same, codes are the numbers' own: packed once for all columns.
        apart = values.size == self.found.size and bool((np.diff(codes) == 1).all())
        return coded(
            column,
            self.values.size,
            width,
            self._own if apart else self._packed(codes, width),
            dictionary_page(values.tobytes(), values.size),
            (values[:1].tobytes(), values[-1:].tobytes()),
        )


def numbers(column: Column, values: FloatArray, step: float) -> Chunk:
    """A column of numbers: as codes where they are few multiples of a step, as they are otherwise."""
    found = Coded.of(values, step)
    return plain(column, np.ascontiguousarray(values)) if found is None else found.chunk(column)


# ---- row groups ---------------------------------------------------------------------------------------------


def described(columns: Sequence[Column], chunks: Sequence[Chunk], offset: int, rows: int) -> bytes:
    """What the footer says of a row group that begins at an offset of the file."""
    told, begin = [], offset
    for column, chunk in zip(columns, chunks, strict=True):
        told.append(_struct((2, _I64, _whole(0)), (3, _STRUCT, _column(column, chunk, begin))))
        begin += chunk.size
    size = _whole(begin - offset)
    return _struct((1, _LIST, _list(_STRUCT, told)), (2, _I64, size), (3, _I64, _whole(rows)))


def _column(column: Column, chunk: Chunk, begin: int) -> bytes:
    encodings = [_PLAIN, _RLE, _RLE_DICTIONARY] if chunk.dictionary else [_PLAIN, _RLE]
    fields = [
        (1, _I32, _whole(_TYPES[column.kind])),
        (2, _LIST, _list(_I32, [_whole(each) for each in encodings])),
        (3, _LIST, _list(_BINARY, [_text(column.name.encode())])),
        (4, _I32, _whole(_UNCOMPRESSED if chunk.saved is None else _ZSTD)),
        (5, _I64, _whole(chunk.rows)),
        (6, _I64, _whole(chunk.size + (chunk.saved or 0))),
        (7, _I64, _whole(chunk.size)),
        (9, _I64, _whole(begin + chunk.dictionary)),
    ]
    if chunk.dictionary:
        fields.append((11, _I64, _whole(begin)))
    if chunk.least is not None and chunk.largest is not None:
        fields.append(
            (
                12,
                _STRUCT,
                _struct(
                    (3, _I64, _whole(0)), (5, _BINARY, _text(chunk.largest)), (6, _BINARY, _text(chunk.least))
                ),
            )
        )
    return _struct(*fields)
