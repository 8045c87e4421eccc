"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dphist.errors import InputError, OutputError


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Hand out a temporary file beside ``path`` and move it there when, and only when, all went well.

    The data reach the disk before the name does, so a crash leaves the old file or the new one, never half of one.
    """
    # Loaded here: who only reads writes nothing.
    import tempfile

    try:
        check_name(path)
        # Cut: a name that is just short enough for the file must not be too long for what precedes it.
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".partial", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}; choose another --output") from None
    except ValueError:
        raise OutputError("no file can have this name; choose another --output") from None
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes files for their owner only; a release is meant to be read by others.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}; is the disk full?") from None
    finally:
        temporary.unlink(missing_ok=True)


def check_release_name(path: Path, argument: str = "") -> None:
    """Refuse a release under the name of a table: it would be opened by what cannot read it."""
    if path.suffix.lower() in (".csv", ".tsv", ".xlsx"):
        raise InputError(
            f"{argument}{path}: a release is a Parquet file; nothing was {'spent' if argument else 'written'}. Call it "
            f"{path.with_suffix('.parquet')}, and `dphist export` makes {path.suffix.lower()} of it"
        )


def check_page_name(path: Path) -> None:
    """Refuse a page under a name that no browser would open as one."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{path}: a report is a page of HTML; nothing was written. Call it {path.with_suffix('.html')}"
        )


def check_name(path: Path) -> None:
    """Refuse what no file can be moved to, or may be.

    A name that is bytes and no text could not be opened by what reads and writes Parquet; and where a device is, or a
    pipe, a file would take its place.
    """
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise OutputError(f"cannot write {path}: it is no file but a device or a pipe; name a file")
    try:
        os.path.abspath(path).encode()  # noqa: PTH100 -- as what makes temporary files does
    except UnicodeEncodeError:
        raise OutputError(
            f"cannot write {path}: its name, or that of a folder above, is no text in UTF-8; choose another --output"
        ) from None


def _sync_directory(directory: Path) -> None:
    # Without this the new name itself may be lost in a power cut (not offered on every platform).
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
