"""Runs tests in forks of a process that has imported everything heavy but dphist. Started by the runner."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

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
        noticed, by, processor = _run(job["tests"], float(job["limit"]))
        answers.write(json.dumps({"noticed": noticed, "by": by, "processor": processor}) + "\n")
        answers.flush()


class _First:
    """A plugin that tells which test failed first, or which file could not be collected."""

    def __init__(self, told: int) -> None:
        self.told = told

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.pytest_collectreport(report)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.told >= 0:
            os.write(self.told, str(report.nodeid).encode())
            self.told = -1


def _run(tests: list[str], limit: float) -> tuple[str, str, float]:
    """Run tests in a fork; how it ended, who noticed, and how long it kept the processor with all that it started."""
    told, tell = os.pipe()
    os.set_blocking(told, False)
    child = os.fork()
    if child == 0:
        os.setsid()  # so that whatever the tests start ends with them
        os.dup2(1, 2)
        import pytest

        # pytest would have liked to rewrite what is imported already.
        calm = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider", "-p", "no:xdist"]
        os._exit(int(pytest.main(["-x", "-q", *calm, *tests], plugins=[_First(tell)])))
    os.close(tell)
    noticed, processor = _ended(child, limit)
    with contextlib.suppress(BlockingIOError), os.fdopen(told, "rb") as pipe:
        return noticed, (pipe.read() or b"").decode(), processor
    return noticed, "", processor


def _ended(child: int, limit: float) -> tuple[str, float]:
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
