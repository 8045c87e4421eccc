"""Where a ledger's file cannot be shared: SQLite keeps its log beside it, and that must be one log for all who spend.

A file that is mounted by itself (``docker run -v …/budget.db:/app/budget.db``) has another folder, hence another log,
in every container and outside of them: two processes spent the same budget, and one spend was gone in the end. On a
network file system machines share the file and not the memory in which SQLite keeps its locks. Linux says where either
is the case; other systems do not, and there nothing is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")
# Kinds of file systems that several machines see at once.
_SHARED = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "ceph-fuse", "glusterfs", "lustre", "gpfs", "beegfs",
    "ocfs2", "gfs2", "orangefs", "panfs", "moosefs", "juicefs", "sshfs", "davfs", "davfs2", "rclone", "s3fs",
    "gcsfuse", "goofys", "blobfuse", "blobfuse2",
)  # fmt: skip
_LINE = re.compile(r"(?:\S+ ){4}/\S* .* - \S+")


def unshareable(path: Path) -> str | None:
    """Say why a ledger must not be kept in this file, as far as the system tells; None where nothing speaks against it.

    Args:
        path: The file, without symbolic links.
    """
    try:
        # Bytes, as names of folders are: one that is no text must not keep the others from being read.
        lines = os.fsdecode(_TABLE.read_bytes()).split("\n")
    except OSError:
        return None
    mounts = dict(map(_mount, filter(_LINE.match, lines)))
    if path in mounts:
        return (
            "is a file that is mounted by itself, and what is spent through one mount would be lost to the others; "
            "mount its folder instead"
        )
    kind = next((mounts[folder] for folder in path.parents if folder in mounts), "")
    if kind.removeprefix("fuse.") in _SHARED:
        return (
            f"is on a network file system ({kind}), where machines do not see each other's spends; keep it on a local "
            "disk, or in PostgreSQL"
        )
    return None


def _mount(line: str) -> tuple[Path, str]:
    """Where a file system is mounted, and of which kind it is; what is mounted there later is listed later."""
    before, _, after = line.partition(" - ")
    # Spaces and the like are written as numbers.
    place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
    return Path(place), after.split(" ")[0]
