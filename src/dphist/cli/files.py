"""What commands write over, and what they do not."""

from __future__ import annotations

from pathlib import Path

from dphist.errors import OutputError


def check_copy(output: Path, release: Path, force: bool) -> None:
    """Refuse to write over the release that is read, which nobody could pay for again, or over what else is there.

    A table of a release, or synthetic records, would naturally go by the name that the true records have.
    """
    if not output.exists():
        return
    if release.exists() and output.samefile(release):
        raise OutputError(f"{output} is the release itself, which was paid for; choose another name")
    if not force:
        raise OutputError(f"{output} exists already; choose another name, or say --force")


def check_output(output: Path, force: bool) -> None:
    """Refuse an output that cannot be written, or holds a release already, before anything is spent."""
    if output.is_dir():
        raise OutputError(f"cannot write {output}: it is a folder; name a file in it")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: the folder {output.parent} does not exist")
    probe = output.parent / f".{output.name}.probe"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}; choose another --output") from None
    if output.exists() and not force:
        raise OutputError(
            f"{output} exists already, and a release that was paid for is not written over; nothing was spent. Choose "
            "another --output, or say --force"
        )
