"""How much memory this process may still take."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def available_memory() -> int:
    """Bytes this process may still take: what the system can free, within the container's limit and the process's own.

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
    return min(free, _left())


def _left() -> int:
    """Bytes that the limits of this process (`ulimit -v` and `-d`) leave it."""
    try:
        import resource

        page, taken = os.sysconf("SC_PAGE_SIZE"), Path("/proc/self/statm").read_text().split()
        limits = {resource.RLIMIT_AS: taken[0], resource.RLIMIT_DATA: taken[5]}
        told = [(resource.getrlimit(kind)[0], int(pages) * page) for kind, pages in limits.items()]
    except (ImportError, OSError, ValueError):
        return sys.maxsize
    return min([sys.maxsize, *(max(most - used, 0) for most, used in told if most != resource.RLIM_INFINITY)])
