"""What `Release.verify` insists on: a replay with no data behind the gate gives this release and nothing else.

Nothing else in the file either: a column, a remark or a stretch of bytes beside the release is paid for by nobody, and
another tool may read what dphist computes anew. So a file verifies only if its description is what the writer would
say, and if it is, part for part, what the writer makes of this release: it is written again and compared, words,
columns and labels with it. (Free text stays free: what the custodian says of the release, whose budget paid, and which
program wrote the file.)
"""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import VerificationError
from dphist.mechanisms.options import show
from dphist.mechanisms.protocol import bare, made_by, with_reason
from dphist.release.contents import Contents
from dphist.release.guarantee import ForeignMechanism, Maker, write_mechanism
from dphist.release.held import (
    DAMAGED,
    KEY,
    Arrays,
    DamagedError,
    Story,
    is_one_frame,
    page_headers,
    read,
    read_footer,
    written,
)
from dphist.release.writing import laid_out, write
from dphist.version import __version__

_ROWS = 1 << 20
# Arithmetic differs in the last digits from one platform to the next; a forger gains nothing there.
_SLACK = 1e-9
# Of what is worked out of differences a few digits more.
_MODEL, _NEXT_TO_NOTHING, _OF_LARGEST = 1e-8, 1e-9, 1e-12
# Numbers of a law have eleven bits behind the first.
_ROUNDED = 2.0**-11
_SOFTWARE = re.compile(r"dphist \d+\.\d+\.\d+[\w.+-]{0,40}")
_WRITER = re.compile(rb"parquet-cpp-arrow version [\d.]{1,20}(-SNAPSHOT)?")
# Where the first page begins, and bytes that are compared at a time.
_FIRST, _BLOCK = 4, 1 << 20


def verify(release: Contents, *, choice: bool = False, exact: bool = False) -> None:
    """Replay the transcript, and hold counts, words, bounds and what was learned against it; see `Release.verify`.

    What another version wrote it alone is sure to find again: its name is said where this one does not.
    """
    try:
        _verify(release, choice=choice, exact=exact)
    except VerificationError as error:
        file = release._written
        software = "" if file is None else file.told.get(b"software", b"").decode(errors="replace")
        if software in ("", f"dphist {__version__}") or not software.isprintable():
            raise
        raise VerificationError(
            f"{error}; the file names {software[:60]}: verify it with that version"
        ) from None


def _verify(release: Contents, *, choice: bool, exact: bool) -> None:
    if release.transcript.spent() > release._own_budget.amount:
        raise VerificationError("the transcript spends more than the guarantee says")
    mechanism = release.mechanism
    if isinstance(mechanism, ForeignMechanism):
        raise mechanism.refused
    _check_sums(release, exact=exact)
    cells = release.cells.replayed(release)
    for step in release.polish:
        cells = cells.polish(step, release)
    if not release.cells.same(cells, exact=exact):
        raise VerificationError("replaying the transcript gives other counts than the published ones")
    # What is said about the estimate is published with it, so it must follow from paid answers as well.
    for said in {release.note, getattr(release.mechanism, "why", "")} - {""}:
        if said != release._estimate.note:
            raise VerificationError("the release says of itself what its replay does not")
    if write_mechanism(mechanism) != release._described or Maker.of(mechanism) != release.maker:
        raise VerificationError(
            f"what the release says of its mechanism is not what dphist {__version__} says of it"
        )
    # Bounds of all cells first: they need every split, and what was learned some of them.
    _check_bounds(release, exact=exact)
    _check_written_again(release)
    if release._story is not None:
        _check_model(release, release._story)
    if choice:
        _check_choice(release)


def _check_bounds(release: Contents, *, exact: bool) -> None:
    """Insist that the bounds in the file which the release comes from are the release's own (``exact``: bit by bit)."""
    file = release._written
    if file is None:
        return
    size, slack = int(release.cells.numbers.size), 0.0 if exact else _SLACK
    for begin in range(0, size, _ROWS):
        end = min(begin + _ROWS, size)
        wanted = release.cells.bounds(release, begin, end, file.confidence)
        for one, other in zip(file.rows(begin, end), wanted, strict=True):
            if not np.allclose(one, other, rtol=slack, atol=slack, equal_nan=True):
                raise VerificationError("a bound in the file is not what this release's interval is")


def _check_sums(release: Contents, *, exact: bool = False) -> None:
    """Insist that the sums belong to this release, and that all of it together costs no more than it promises."""
    seen = set()
    for sums in release.sums:
        part = sums.release
        key = (sums.measure.name, sums.quantity.squared, sums.quantity.clipped)
        fits = part.domain == release.domain and not part.sums and part.polish == () and key not in seen
        seen.add(key)
        if not fits or part.guarantee.unit != sums.quantity.in_steps(release.guarantee.unit):
            raise VerificationError("the sums do not belong to this release")
        verify(part, exact=exact)


def _check_choice(release: Contents) -> None:
    """Insist that the same choice is made again, for the same reason, of the public facts and the same answers.

    A release names what was chosen, so that replays choose nothing again (`dphist.mechanisms.protocol.made_by`). That
    the name is the rule's and not somebody's is another question, which only the version that made the release is sure
    to answer.
    """
    if show(release.mechanism, filled=True) == show(release.mechanism):
        # Nobody chose.
        return
    recipe = bare(release.mechanism)
    again = replace(release, mechanism=recipe)._replay()
    chosen = with_reason(made_by(recipe, again), again.note)
    if write_mechanism(chosen) != write_mechanism(release.mechanism):
        raise VerificationError(
            f"dphist {__version__} would choose otherwise than this release says, or for another reason: another "
            "version made it, or somebody chose by hand"
        )


def _check_model(release: Contents, story: Story) -> None:
    """Insist that the model in a file is what a replay gives, and that the file says nothing beside it."""
    domain, polished, replayed = release.domain, bool(release.polish), release._estimate
    told = read(story, domain, release.cells, replayed.note)
    if not _same(*(written(each, domain, polished, _AsTheyAre()) for each in (told, replayed))):
        raise VerificationError(
            f"the model in the file is not the one that dphist {__version__} makes of its transcript"
        )
    arrays = Arrays(story.columns)
    again = {**written(told, domain, polished, arrays), "arrays": arrays.entries}
    if _plainly(again) != _plainly(story.model):
        raise VerificationError("the model in the file says more than a release does")


class _AsTheyAre:
    """Arrays that stay where a reference to them would stand."""

    def put(self, values: NDArray[Any]) -> Any:
        return np.asarray(values)


def _plainly(told: Any) -> Any:
    """A description without its packed numbers, which another release of the packer packs otherwise."""
    if isinstance(told, list):
        return [_plainly(each) for each in told]
    if not isinstance(told, dict):
        return told
    # What was added up of a measure is packed under the name that elsewhere is a column's.
    packed = {"data", "estimate"} if "measure" in told else {"data"}
    return {key: None if key in packed else _plainly(value) for key, value in told.items()}


def _same(one: Any, other: Any) -> bool:
    """Whether what is written of two models is the same but for rounding."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        a, b = one.reshape(-1), other.reshape(-1)
        finite = b[np.isfinite(b)] if b.dtype.kind == "f" else b
        # Whole numbers are not rounded by anybody, and none of them hides in what others are off by.
        if a.size != b.size or np.array_equal(finite, np.rint(finite) if b.dtype.kind == "f" else finite):
            return np.array_equal(a, b)
        largest = float(np.abs(finite).max(initial=1.0))
        return bool(np.allclose(a, b, rtol=_MODEL, atol=max(_NEXT_TO_NOTHING, _OF_LARGEST * largest)))
    if isinstance(one, dict) and isinstance(other, dict):
        # Numbers of a predictive law are rounded to few digits.
        same = _nearly if "caution" in one else _same
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=_MODEL, atol=0.0))
    return type(one) is type(other) and bool(one == other)


def _nearly(one: Any, other: Any) -> bool:
    """Whether numbers that were rounded to few digits are the same, but for some that fell to the other side."""
    a, b = np.atleast_1d(one), np.atleast_1d(other)
    if a.shape != b.shape:
        return False
    apart = ~np.isclose(a, b, rtol=_MODEL, atol=_NEXT_TO_NOTHING)
    return bool(np.allclose(a, b, rtol=_ROUNDED, atol=_NEXT_TO_NOTHING) and apart.sum() <= 1 + a.size // 100)


def _check_told(release: Contents, told: Mapping[bytes, bytes], confidence: float) -> None:
    """Insist that the file's description is what the writer says of this release, and names a dphist that wrote it."""
    story = _plainly(json.loads(told[KEY]))
    own = _plainly(json.loads(json.dumps(laid_out(release, confidence, packed=False)[0])))
    if json.dumps(story) != json.dumps(own):
        other = ", ".join(key for key in {**story, **own} if story.get(key) != own.get(key))
        raise VerificationError(
            f"its description says more than a release does, or otherwise: {other or 'order'}"
        )
    if not _SOFTWARE.fullmatch(told.get(b"software", b"").decode(errors="replace")):
        raise VerificationError("the program that wrote the file has a strange name")


def _check_written_again(release: Contents) -> None:
    """Refuse a file that holds anything else than the writer makes of what was read from it.

    The same pyarrow makes the same bytes. Where another one packed or placed them otherwise, the parts are compared:
    what the footer says, and every page unpacked. That leaves no label of another cell, no entry of a dictionary that
    no row has, nothing between or behind the parts, and no least or largest value that is not so, by which tools pass
    rows over.
    """
    file = release._written
    if file is None:
        return
    import pyarrow as pa

    told, theirs = file.told, file.raw
    _check_told(release, told, file.confidence)
    with tempfile.TemporaryFile() as ours:
        write(release, ours, file.confidence, said={name: told[name] for name in (KEY, b"software")})
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
