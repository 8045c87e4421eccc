"""The other side of a measurement: runs in a process of its own, perhaps of another Python, and says what a job cost.

Nothing of dphist may be imported here: the process may have another library only. Called with one argument, JSON:

    {"file": file, "way": class, "records": file, "sizes": [...], "epsilon": "1", "outs": [files], "options": {...}}
"""

from __future__ import annotations

import importlib.util
import json
import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Do the job as often as outputs are asked for, and print its costs as JSON in the last line."""
    request = json.loads(sys.argv[1])
    way = _way(request["file"], request["way"])
    version = way.load()
    start_cpu, start_wall = time.process_time(), time.time()
    for out in request["outs"]:
        way.publish(request["records"], request["sizes"], request["epsilon"], out, **request["options"])
    found = {
        "version": f"{version}, Python {platform.python_version()}",
        "start_cpu": start_cpu,
        "cpu": time.process_time(),
        "job_wall": time.time() - start_wall,
        "megabytes": _peak(),
    }
    sys.stdout.write("\n" + json.dumps(found) + "\n")


def _way(file: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location("ways", file)
    if spec is None or spec.loader is None:
        raise ImportError(file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _peak() -> float:
    """The largest resident memory in megabytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # Not getrusage: what it gives began with the process that started us.
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
