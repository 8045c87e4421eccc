"""The other side of a measurement: runs in a process of its own, perhaps of another Python, and says what a job cost.

Nothing of dphist may be imported here: the process may have another library only. Called with one argument, JSON:

    {"peer": file, "records": file, "sizes": [...], "epsilon": "1", "outs": [files], "options": {...}}

``peer`` is one of the files beside this one. It has ``load() -> version``, which does all that is done once a process
(imports, a Spark session), and ``publish(records, sizes, epsilon, out, **options)``, the job itself: records in, a
private count of every cell saved to ``out``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Do the job as often as outputs are asked for, and print its costs as JSON in the last line."""
    request = json.loads(sys.argv[1])
    peer = _module(request["peer"])
    version = peer.load()
    start_cpu, start_wall = cpu(), time.time()
    for out in request["outs"]:
        peer.publish(
            request["records"], request["sizes"], request["epsilon"], out, **request.get("options", {})
        )
    found = {
        "version": f"{version}, Python {platform.python_version()}",
        "start_cpu": start_cpu,
        "cpu": cpu(),
        "job_wall": time.time() - start_wall,
        "megabytes": _peak(),
    }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


def _module(file: str) -> Any:
    spec = importlib.util.spec_from_file_location("peer", file)
    if spec is None or spec.loader is None:
        raise ImportError(file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cpu() -> float:
    """Processor seconds since this process began, with those of all its descendants (Spark's Java is one)."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    tick = os.sysconf("SC_CLK_TCK")
    alive = 0.0
    for process in _descendants():
        try:
            # User and system time, its own and of children that it has waited for; the name may hold spaces.
            words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        alive += sum(map(int, words[11:15])) / tick
    return time.process_time() + ended.ru_utime + ended.ru_stime + alive


def _peak() -> float:
    """Largest resident memory in megabytes: ours, and that of descendants, each at its own peak."""
    # Not getrusage: what it gives for us began with the process that started us.
    told = [high_water(process) for process in (os.getpid(), *_descendants())]
    return sum(told) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def high_water(process: int) -> float:
    """The largest resident memory that a process has had since it began, in megabytes; zero where nothing tells."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _descendants() -> list[int]:
    """Processes that stem from this one; none where the system does not tell."""
    proc = Path("/proc")
    if not proc.is_dir():
        return []
    parents: dict[int, int] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
    found, known = [], {os.getpid()}
    grown = True
    while grown:
        grown = False
        for process, parent in parents.items():
            if parent in known and process not in known:
                known.add(process)
                found.append(process)
                grown = True
    return found


if __name__ == "__main__":
    main()
