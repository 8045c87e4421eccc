"""Python in a process of its own, and what it cost: imports, compiled code and memory of others do not count."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """What a process took and printed.

    Args:
        seconds: Of the processor.
        megabytes: Of memory, at the most.
        output: What it printed.
    """

    seconds: float
    megabytes: float
    output: str


def run_python(
    arguments: Sequence[str], *, place: Path | None = None, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run Python and wait for it.

    Args:
        arguments: Behind the interpreter's name.
        place: The folder to run in; this one unless told.
        environment: Variables beside those of this process.

    Returns:
        What it cost.
    """
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
