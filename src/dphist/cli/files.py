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
