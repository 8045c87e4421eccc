"""Numbers as compressed text, which a description in JSON can hold."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError, TooLargeError
from dphist.release.headers import is_one_frame

# No answer packs better than this (Zstandard's own limit is lower); a larger claim only wants our memory.
_LARGEST_RATIO = 1 << 18
# From 128 MiB on it is asked whether there is room.
_MUCH = 1 << 27


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
