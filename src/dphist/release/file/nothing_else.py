"""Nothing in the file but the release: what else it holds would be published under the release's good name.

`Release.verify` shows that the counts follow from answers that were paid for. A column, a remark or a stretch of bytes
beside them is paid for by nobody, and another tool may read what dphist computes anew. So a file verifies only if its
description is what the writer would say, and if it is, part for part, what the writer makes of this release: it is
written again and compared, words, columns and labels with it. Bounds are checked by `Release.verify`, which knows the
errors. (Free text stays free: what the custodian says of the release, whose budget paid, and which program wrote the
file.)
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import IO, Any

from dphist.errors import VerificationError
from dphist.release.contents import Contents
from dphist.release.file.description import KEY
from dphist.release.file.writing import laid_out, write
from dphist.release.held import plainly
from dphist.release.packed import DAMAGED, DamagedError, is_one_frame, page_headers, read_footer

_SOFTWARE = re.compile(r"dphist \d+\.\d+\.\d+[\w.+-]{0,40}")
_WRITER = re.compile(rb"parquet-cpp-arrow version [\d.]{1,20}(-SNAPSHOT)?")
# Where the first page begins, and bytes that are compared at a time.
_FIRST, _BLOCK = 4, 1 << 20


def _check_told(release: Contents, told: Mapping[bytes, bytes], confidence: float) -> None:
    """Insist that the file's description is what the writer says of this release, and names a dphist that wrote it."""
    story = plainly(json.loads(told[KEY]))
    own = plainly(json.loads(json.dumps(laid_out(release, confidence, packed=False)[0])))
    if json.dumps(story) != json.dumps(own):
        other = ", ".join(key for key in {**story, **own} if story.get(key) != own.get(key))
        raise VerificationError(
            f"its description says more than a release does, or otherwise: {other or 'order'}"
        )
    if not _SOFTWARE.fullmatch(told.get(b"software", b"").decode(errors="replace")):
        raise VerificationError("the program that wrote the file has a strange name")


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

    told, theirs = written.told, written.raw
    _check_told(release, told, written.confidence)
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
