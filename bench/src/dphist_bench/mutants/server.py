"""Runs tests in forks of a process that has imported everything heavy but dphist. Started by the runner."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from importlib import import_module

# Slow to import, and the same for every mutant. Not here: what starts threads, and plugins that pytest rewrites.
_HEAVY = (
    "numpy",
    "scipy.special",
    "numba",
    "pyarrow",
    "pyarrow.parquet",
    "pytest",
    "hypothesis",
    "ibis",
    "duckdb",
)


def serve() -> None:
    """Answer one line for every line: were the tests' failures noticed, and how."""
    for name in _HEAVY:
        with contextlib.suppress(ImportError):
            import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    for line in sys.stdin:
        job = json.loads(line)
        noticed, processor = _run(job["tests"], float(job["limit"]))
        answers.write(json.dumps({"noticed": noticed, "processor": processor}) + "\n")
        answers.flush()


def _run(tests: list[str], limit: float) -> tuple[str, float]:
    """Run tests in a fork; how it ended, and how long it kept the processor, whatever it started and waited for."""
    child = os.fork()
    if child == 0:
        os.setsid()  # so that whatever the tests start ends with them
        os.dup2(1, 2)
        import pytest

        # pytest would have liked to rewrite what is imported already.
        calm = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider", "-p", "no:xdist"]
        os._exit(int(pytest.main(["-x", "-q", *calm, *tests])))
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            # 5: the tests named are not there, which must not pass for a kill.
            return {0: "no", 5: "no"}.get(code, f"exit code {code}"), used.ru_utime + used.ru_stime
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    used = os.wait4(child, 0)[2]
    return "never ended", used.ru_utime + used.ru_stime


if __name__ == "__main__":
    serve()
