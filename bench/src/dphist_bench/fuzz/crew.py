"""Processes that call targets, so that none can take the measurement with it: one that dies or stands still is told.

A worker has a folder of its own to work in, and a limit of memory. Batches are drawn from a start that is known; if a
worker dies over one, the batch is drawn again in a process that writes down each input first, so that the input which
did it is told too.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from dphist_bench.fuzz.calling import Tally, attack, every, shown

_MEMORY = 6 * 2**30
# Without a new input for so long a worker stands still; a busy machine takes its time.
_STILL = 300.0
_SPAWN = multiprocessing.get_context("spawn")
Job = tuple[str, int, int]


def _work(pipe: Connection, ticks: Any, told: str) -> None:
    from dphist_bench.fuzz import pool

    with tempfile.TemporaryDirectory(prefix="dphist-fuzz-") as folder, suppress(EOFError):
        os.chdir(folder)
        # Data only: engines reserve far more addresses than they use.
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))

        def before(given: Any) -> None:
            ticks.value += 1
            if told:
                Path(told).write_text(shown(given), encoding="utf-8", errors="backslashreplace")

        begun = False
        while True:
            target, inputs, start = pipe.recv()
            if target not in every():
                raise KeyError(target)
            if not begun:
                pool.write_files()
                begun = True
            pipe.send(attack(target, inputs, start, before))


class Worker:
    """A process that takes one batch after another."""

    def __init__(self, told: str = "") -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self.ticks = _SPAWN.Value("Q", 0)
        self.process = _SPAWN.Process(target=_work, args=(theirs, self.ticks, told), daemon=True)
        self.process.start()
        theirs.close()
        self.job: Job | None = None
        self.seen, self.since = 0, time.monotonic()

    def take(self, job: Job) -> None:
        """Begin a batch."""
        self.job, self.since = job, time.monotonic()
        self.pipe.send(job)

    def stands_still(self) -> bool:
        """Whether no input has been begun for too long."""
        if self.ticks.value != self.seen:
            self.seen, self.since = self.ticks.value, time.monotonic()
        return time.monotonic() - self.since > _STILL

    def end(self) -> None:
        """Let it go."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(jobs: Iterator[Job], workers: int) -> Iterator[tuple[Job, Tally]]:
    """Do all jobs; a batch over which a worker died gives a finding."""
    crew = [Worker() for _ in range(workers)]
    try:
        for worker in crew:
            if (job := next(jobs, None)) is not None:
                worker.take(job)
        while any(worker.job for worker in crew):
            ready = wait([worker.pipe for worker in crew if worker.job], timeout=5.0)
            for place, worker in enumerate(crew):
                if worker.job is None:
                    continue
                job, found = worker.job, None
                if worker.pipe in ready:
                    with suppress(EOFError, OSError):
                        found = worker.pipe.recv()
                elif not worker.stands_still():
                    continue
                if found is None:
                    how = "the process died" if worker.pipe in ready else "stood still"
                    worker.end()
                    found = _again(job, how)
                    crew[place] = worker = Worker()
                worker.job = None
                yield job, found
                if (another := next(jobs, None)) is not None:
                    worker.take(another)
    finally:
        for worker in crew:
            worker.end()


def _again(job: Job, how: str) -> Tally:
    """Draw a batch once more to see which input it was."""
    found = Tally()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "input"
        worker = Worker(str(told))
        worker.take(job)
        while not worker.pipe.poll(5.0) and not worker.stands_still():
            pass
        ended = False
        if worker.pipe.poll(0):
            with suppress(EOFError, OSError):
                worker.pipe.recv()
                ended = True
        worker.end()
        last = told.read_text(encoding="utf-8") if told.exists() else "nothing yet"
        found.note(how, "not a second time" if ended else last)
    return found
