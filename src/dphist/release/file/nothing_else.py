"""Nothing in the file but the release: what else it holds would be published under the release's good name.

`Release.verify` shows that the counts follow from answers that were paid for. A column, a remark or a stretch of bytes
beside them is paid for by nobody, and another tool may read what dphist computes anew. So a file verifies only if its
description and its words, in both of the places where Parquet keeps them, are what the writer would say, and if it is,
part for part, what the writer makes of this release: it is written again and compared. Bounds are checked by
`Release.verify`, which knows the errors. (Free text stays free: what the custodian says of the release,
whose budget paid, and which program wrote the file.)
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import IO, TYPE_CHECKING, Any

from dphist.errors import ReleaseError, VerificationError
from dphist.inference.intervals import read_confidence
from dphist.release.columns import label_columns
from dphist.release.contents import Contents
from dphist.release.file.description import DIGEST, KEY
from dphist.release.file.readable import check_words, readable
from dphist.release.file.writing import file_schema, label_fields, laid_out, write
from dphist.release.packed import DAMAGED, DamagedError, is_one_frame, page_headers, read_footer

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

_WRITER = re.compile(rb"parquet-cpp-arrow version [\d.]{1,20}(-SNAPSHOT)?")
# Where the first page begins, and bytes that are compared at a time.
_FIRST, _BLOCK = 4, 1 << 20


def check_schema(
    file: pyarrow.parquet.ParquetFile, expected: pyarrow.Schema, key: bytes, words: Mapping[bytes, bytes]
) -> None:
    """Refuse other columns than the release's, and metadata of others."""
    found = file.schema_arrow
    plain = [(field.name, _plain(field.type)) for field in found]
    if plain != [(field.name, _plain(field.type)) for field in expected]:
        raise ReleaseError("it has other columns than a release has")
    # The other place where words stand says the same, or nobody would have opened the file.
    check_words({name: text for name, text in found.metadata.items() if name not in (key, DIGEST)}, words)
    for field in found:
        if set(field.metadata or {}) - {b"PARQUET:field_id"}:
            raise ReleaseError("a column carries metadata that no release has")


def _check_told(release: Contents, file: pyarrow.parquet.ParquetFile) -> None:
    """Insist that the file says of itself what the release does, and no more."""
    description = json.loads(file.schema_arrow.metadata[KEY])
    confidence = read_confidence(description["confidence"])
    known, columns = laid_out(release, confidence, packed=False)
    check_description(description, known)
    names = known["bounds"]
    if any(description.get(key) != known.get(key) for key in ("bounds", "columns")):
        raise ReleaseError("its numbers stand in other columns than a release's do")
    words = readable(release, confidence, names | {"estimate": next(iter(columns))})
    labels = label_columns(release.domain)
    check_schema(
        file, file_schema(label_fields(release.domain, release.cells, labels), columns, names), KEY, words
    )


def check_written_again(release: Contents) -> None:
    """Refuse a file that holds anything else than the writer makes of what was read from it.

    The same pyarrow makes the same bytes. Where another one packed or placed them otherwise, the parts are compared:
    what the footer says, and every page unpacked. That leaves no label of another cell, no entry of a dictionary that
    no row has, nothing between or behind the parts, and no least or largest value that is not so, by which tools pass
    rows over.
    """
    import tempfile

    written = release._written
    if written is None:
        return
    import pyarrow as pa

    try:
        _check_told(release, written.file)
    except ReleaseError as error:
        raise VerificationError(f"the file says more than its release, or otherwise: {error}") from None
    told, theirs = written.file.metadata.metadata, written.raw
    with tempfile.TemporaryFile() as ours:
        write(release, ours, written.confidence, said={name: told[name] for name in (KEY, b"software")})
        try:
            same = _same_bytes(theirs, ours) or all(
                one == other for one, other in zip_longest(_parts(theirs), _parts(ours))
            )
        except (*DAMAGED, pa.ArrowException, OSError):
            same = False
    if not same:
        raise VerificationError(
            "the file holds something else than its release, or another pyarrow wrote it than the one here "
            f"({pa.__version__}) and laid it out otherwise; that one can tell"
        )


def _same_bytes(one: IO[bytes], other: IO[bytes]) -> bool:
    one.seek(0)
    other.seek(0)
    while block := one.read(_BLOCK):
        if block != other.read(_BLOCK):
            return False
    return not other.read(1)


def _parts(file: IO[bytes]) -> Iterator[Any]:
    """What the footer says and what every page holds, but for what depends on how well they were packed."""
    import pyarrow as pa

    told, begin = read_footer(file)
    place = _FIRST
    if not _WRITER.fullmatch(told.pop(6)):
        raise DamagedError
    for group in told[4]:
        sizes = group.pop(2), group.pop(5), group.pop(6)
        unpacked, first = 0, place
        for column in group[1]:
            chunk = column[3]
            own = -chunk[6]
            for header, start in page_headers(file, chunk):
                file.seek(start)
                packed = file.read(header.pop(3))
                # Thrift's numbers have a sign.
                checksum = (zlib.crc32(packed) ^ 1 << 31) - (1 << 31)
                if checksum != header.pop(4) or not is_one_frame(packed):
                    raise DamagedError
                yield header, pa.decompress(packed, header[2], "zstd", asbytes=True)
                own += header[2] + start - place
                place = start + len(packed)
            unpacked += chunk[6]
            # What depends on how well it was packed is known by its sum, and what stands in its place by the pages.
            if own or chunk.get(11, chunk[9]) != place - chunk[7]:
                raise DamagedError
            for field in (6, 7, 9, 11):
                chunk.pop(field, None)
        if sizes != (unpacked, first, place - first):
            raise DamagedError
    if place != begin:
        raise DamagedError
    yield told


def check_description(story: Any, known: Any) -> None:
    """Refuse keys that the description's writer does not know; what they mean is checked where they are read."""
    if isinstance(story, Mapping):
        if not isinstance(known, Mapping) or list(story) != [name for name in known if name in story]:
            raise ReleaseError("its description says more than a release does")
        for name, value in story.items():
            check_description(value, known[name])
    elif isinstance(story, Sequence) and not isinstance(story, str):
        if not isinstance(known, Sequence) or len(story) != len(known):
            raise ReleaseError("its description says more than a release does")
        for one, other in zip(story, known, strict=True):
            check_description(one, other)


def _plain(kind: Any) -> Any:
    """The type of the values: Parquet keeps dictionaries of numbers as plain numbers."""
    return getattr(kind, "value_type", kind)
