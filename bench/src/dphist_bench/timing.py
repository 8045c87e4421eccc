"""What a piece of work costs: processor seconds of all threads, and the peak of memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


def least(work: Callable[[], object], times: int = 3) -> float:
    """The least processor seconds of a few calls: what else the machine does can only add."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@dataclass(frozen=True)
class Cost:
    """What a process took, of the processor's time and of memory at the most, and what it printed."""

    seconds: float
    megabytes: float
    output: str


def run_python(
    arguments: Sequence[str], *, place: Path | None = None, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run Python in a process of its own and wait for it: imports, compiled code and memory of others do not count."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**os.environ, **(environment or {})},
    )
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    if child.returncode:
        raise RuntimeError("a measured process failed")
    # Linux reports kilobytes.
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output)
