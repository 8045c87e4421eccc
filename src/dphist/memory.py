"""How much memory this process may still take."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> int:
    """Bytes this process may still take: what the system can free, within the container's limit.

    Returns:
        The bytes; on systems that do not say, all that the machine has.

    Example:
        >>> available_memory() > 0
        True
    """
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        if limit != "max":
            free = min(free, max(int(limit) - used, 0))
    except (OSError, ValueError):
        # Other systems have no such files; all of the memory is then the bound.
        pass
    return free
