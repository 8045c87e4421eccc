"""What a piece of work costs: processor seconds of all threads, and the peak of memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def least(work: Callable[[], object], times: int = 3) -> float:
    """The least processor seconds of a few calls: what else the machine does can only add."""
    return min(seconds(work) for _ in range(times))


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """Let the peak of memory start again from what is held now, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def of_processes(processes: Iterable[int]) -> float:
    """Processor seconds of processes on this machine, as Linux counts them."""
    total = 0
    for process in processes:
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def descendants(process: int) -> list[int]:
    """All processes that descend from one, as Linux knows them."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found
