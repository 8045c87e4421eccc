"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dphist.errors import InputError, OutputError

# What a file system says that has no locks: there nobody is kept apart, and writing goes on.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP)
_NEW = 60.0
_PARTIAL = re.compile(r"\..*\.[0-9a-f]{16}\.partial", re.DOTALL)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Hand out a temporary file beside ``path`` and move it there when, and only when, all went well.

    The data reach the disk before the name does, so a crash leaves the old file or the new one, never half of one.
    """
    try:
        check_name(path)
        sweep(path.parent, _PARTIAL)
        # Cut: a name that is just short enough for the file must not be too long for what precedes it.
        temporary = path.parent / f".{path.name[:40]}.{os.urandom(8).hex()}.partial"
        handle = locked(temporary, 0o666)
    except OSError as error:
        raise OutputError(f"cannot write to {path}: {error.strerror}; choose another --output") from None
    except ValueError:
        raise OutputError("no file can have this name; choose another --output") from None
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}; is the disk full?") from None
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


def locked(place: Path, mode: int) -> int:
    """Make and lock a file that goes when its holder lets go; where one was killed it stays, and nobody has it."""
    if sys.platform == "win32":
        return os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_TEMPORARY)
    import fcntl

    while True:
        # The system takes away what the umask says; a link that somebody laid there is not followed.
        handle = os.open(place, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, mode)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return handle
            os.close(handle)
            raise
        # Whoever held it before may have taken it away between our opening and our locking.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), place.lstat()):
                return handle
        os.close(handle)


def sweep(folder: Path, names: re.Pattern[str]) -> None:
    """Take away what holders left that were killed: files by our names that nobody has locked, and that are not new."""
    if sys.platform == "win32":
        return
    import fcntl

    with suppress(OSError):
        for place in [each for each in folder.iterdir() if names.fullmatch(each.name)]:
            handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
            with suppress(OSError):
                # Whoever made it this minute may not have locked it yet.
                if time.time() - os.fstat(handle).st_mtime > _NEW:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    place.unlink()
            os.close(handle)


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
