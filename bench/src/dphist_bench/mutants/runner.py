"""Plants mutants in copies of the tree, two at a time, and counts who was noticed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from dphist.errors import InputError
from dphist_bench.mutants.planted import ROOT, Planted, every

_LIMIT = 240.0
_COPIED = ("src", "bench", "tests", "pyproject.toml", "docs", "README.md", "CHANGELOG.md")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Planted
    outcome: str  # killed, survived, stale
    seconds: float


class Copy:
    """A copy of the tree with a process that tests it: it has imported the heavy libraries and forks for every run.

    The copy keeps the times of its files, so that compiled kernels are found again; dphist itself is imported anew by
    every fork, and no byte code is written, so that no bug outlives its run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, symlinks=True)
            elif source.exists():
                shutil.copy2(source, folder / name)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder / "bench/src")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CI": "1",
        }
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environment,
            text=True,
        )

    def noticed(self, tests: Sequence[str], limit: float = _LIMIT) -> str:
        """Run tests on the copy as it is: "no" if all pass, else how they failed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({"tests": list(tests), "limit": limit}) + "\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return str(answer["noticed"])

    def plant(self, mutant: Planted, limit: float = _LIMIT) -> Verdict:
        """Put the bug in, run its tests, take it out."""
        begun = time.monotonic()
        path = self.folder / mutant.file
        before, times = path.read_bytes(), path.stat()
        try:
            text = mutant.edited(self.folder)
        except (ValueError, OSError):
            return Verdict(mutant, "stale", 0.0)
        try:
            path.write_text(text, encoding="utf-8")
            noticed = self.noticed(mutant.tests, limit)
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return Verdict(mutant, "survived" if noticed == "no" else "killed", time.monotonic() - begun)

    def close(self) -> None:
        """End the process that tests."""
        # Closes both pipes as well, and waits.
        self._server.communicate()


def plant_all(mutants: Sequence[Planted], workers: int, say: Any = print) -> list[Verdict]:
    """Check that the tests pass without a bug, then plant one after another in every copy."""
    if not (ROOT / "tests").is_dir():
        raise InputError(
            "mutants are planted in a checkout: run this from one, installed with pip install -e"
        )
    with tempfile.TemporaryDirectory(prefix="dphist-mutants-") as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(workers)]
        try:
            suites = list(dict.fromkeys(mutant.tests for mutant in mutants))
            failing = [suite for suite, said in _shared(copies, suites, Copy.noticed, say) if said != "no"]
            if failing:
                raise InputError(
                    f"these tests fail without any bug: {'; '.join(' '.join(suite) for suite in failing)}"
                )
            # Those that share tests follow each other, so that what the tests need is in the disk's cache.
            ordered = sorted(mutants, key=lambda mutant: (mutant.tests, mutant.file))
            return [verdict for _, verdict in _shared(copies, ordered, Copy.plant, say)]
        finally:
            for copy in copies:
                copy.close()


def _shared(copies: list[Copy], jobs: Sequence[Any], run: Any, say: Any) -> list[tuple[Any, Any]]:
    """Let every copy take the next job until none is left."""
    waiting: Queue[tuple[int, Any]] = Queue()
    for job in enumerate(jobs):
        waiting.put(job)
    done: dict[int, tuple[Any, Any]] = {}

    def work(copy: Copy) -> None:
        while True:
            try:
                number, job = waiting.get_nowait()
            except Empty:
                return
            done[number] = (job, run(copy, job))
            outcome = done[number][1]
            if isinstance(outcome, Verdict):
                say(
                    f"{len(done)}/{len(jobs)} {outcome.outcome:8} {outcome.seconds:5.1f} s  {job.room}: {job.why}"
                )

    with ThreadPoolExecutor(len(copies)) as threads:
        for finished in [threads.submit(work, copy) for copy in copies]:
            finished.result()
    return [done[number] for number in range(len(jobs))]


def main(argv: list[str] | None = None) -> int:
    """Plant every mutant and print who survived."""
    parser = argparse.ArgumentParser(prog="dphist bench run mutants", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one mutant of every room")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="mutants whose room, file or reason has this in it"
    )
    parser.add_argument("--workers", type=int, default=2, help="copies of the tree (default: 2)")
    options = parser.parse_args(argv)
    chosen = [m for m in every() if options.only in f"{m.room} {m.file} {m.why}"]
    if options.quick:
        chosen = list({mutant.room: mutant for mutant in chosen}.values())
    begun = time.monotonic()
    verdicts = plant_all(chosen, options.workers, lambda text: print(text, flush=True))
    minutes = (time.monotonic() - begun) / 60
    by = {name: [v for v in verdicts if v.outcome == name] for name in ("killed", "survived", "stale")}
    print(
        f"planted {len(verdicts)}, killed {len(by['killed'])}, survivors {len(by['survived'])}, "
        f"stale {len(by['stale'])}, {minutes:.1f} minutes"
    )
    for verdict in by["survived"] + by["stale"]:
        print(f"  {verdict.outcome}: {verdict.mutant.file}: {verdict.mutant.why}")
    return 1 if by["survived"] or by["stale"] else 0
