"""The name under which a release, or whatever else is paid for, will be saved: claimed before anything is paid.

Whoever pays and then cannot write has spent for nothing, since a reservation is never given back. So a file that is
there, a folder that cannot be written, a name that no file can have, and records, schema or ledger as the output are
refused first. So is an output to which somebody else is publishing at that moment: both would pay, and the second would
write over what the first paid for. The claim is a lock on a file beside the output, which the system lets go of when
its holder dies, however that happens; it knows nothing of budgets, so letting go gives nothing back.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

from dphist.errors import OutputError
from dphist.release.atomic import check_name, check_release_name, locked, sweep

_CLAIM = re.compile(r"\.[0-9a-f]{24}\.claim")
# A file that is written as an address.
_FILE = "sqlite:///"


@contextmanager
def claimed(
    output: Path, *, force: bool | None = False, kept: Iterable[str | Path | None] = ()
) -> Iterator[None]:
    """Hold the name of a release's file while the release is paid for, made and saved.

    Args:
        output: Where the release goes.
        force: Whether a file that is there may be written over; None where a command does not ask.
        kept: Files that may not be, whatever is said: paths, patterns or ``file::table``; None stands for none.

    Raises:
        InputError: if the name promises another kind of file than a release is.
        OutputError: if nothing can or may be written there, or somebody else is about to.
    """
    _refuse(output, kept)
    if force is not None:
        check_release_name(output, "--output ")
    place = output.parent / f".{sha256(output.name.casefold().encode()).hexdigest()[:24]}.claim"
    try:
        sweep(output.parent, _CLAIM)
        # Others may lock it too, so they must be able to open it; nothing is written to it.
        handle = locked(place, 0o644)
    except (BlockingIOError, FileExistsError):
        raise OutputError(
            f"somebody is publishing to {output} at this moment; nothing was spent. Wait until it is there, or choose "
            "another --output"
        ) from None
    except OSError as error:
        raise _cannot(output, error) from None
    try:
        # Looked at while nobody else can be writing it: whoever held the claim before has saved by now.
        if os.path.lexists(output) and not force:
            raise OutputError(
                f"{output} exists already, and a release that was paid for is not written over; nothing was spent. "
                "Choose another --output" + ("" if force is None else ", or say --force")
            )
        yield
    finally:
        # In this order: who opens the file in between finds that it has gone, and makes another.
        with suppress(OSError):
            place.unlink()
        os.close(handle)


def _refuse(output: Path, kept: Iterable[str | Path | None]) -> None:
    """Refuse what no release can be written to, by the name and what is there alone."""
    try:
        check_name(output)
        if not output.parent.is_dir():
            raise OutputError(f"cannot write {output}: the folder {output.parent} does not exist")
        there = output.exists()
    except OSError as error:
        raise _cannot(output, error) from None
    if there and any(output.samefile(path) for each in kept for path in _files(each)):
        raise OutputError(
            f"{output} is read or paid from, and would be lost; nothing was spent. Choose another --output"
        )


def local_name(text: str) -> str:
    """The file that a path or an ``sqlite:///`` address names; other addresses as they are."""
    return unquote(text.removeprefix(_FILE)) if text.startswith(_FILE) else text


def _files(named: str | Path | None) -> Iterator[Path]:
    """The files of this machine that a source, a schema or a ledger is: none where it is an address."""
    text = local_name(str(named or "").partition("::")[0])
    # A pattern of the user's, which may begin anywhere; a path of pathlib's must begin somewhere.
    matches = glob.iglob(text, recursive=True) if glob.has_magic(text) else ()  # noqa: PTH207
    for path in (text, *matches):
        with suppress(OSError, ValueError):
            if path and Path(path).exists():
                yield Path(path)


def _cannot(output: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot write {output}: {error.strerror}; choose another --output")
