"""Running a mechanism once per value of public attributes: here, on every core, or on Spark's executors.

Each run opens a gate of its own where it happens, on its own counts with the whole ε, and draws from the entropy of
that machine: neither a right nor a keystream ever travels. What comes back are transcripts and estimates, which are
public. They are put together under the paths ``root/d0``, ``root/d1``, …, as `ByPart` would have asked them, so that
the release verifies like any other and its spending is the largest over the parts.

A task that Spark loses is done again with fresh noise. Its lost answers never left the trusted machines, and the
release holds one run of every part, so nothing is paid twice. A process of this machine that dies ends the release,
and what was paid stays paid.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import EngineError, InputError
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.protocol import Mechanism
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram
from dphist.model.pieces import ByValues
from dphist.model.transcript import Entry, Transcript
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Noise


@dataclass(frozen=True, eq=False)
class Job:
    """Some parts to run: a row of counts for each. Secret, and travels inside the trusted boundary only."""

    inner: Mechanism
    domain: Domain
    counts: NDArray[np.int64]
    budget: Budget | Fraction
    unit: Unit
    workload: Workload | None

    def slice(self, start: int, stop: int) -> Job:
        """The same work on some of the parts."""
        return Job(self.inner, self.domain, self.counts[start:stop], self.budget, self.unit, self.workload)


@dataclass(frozen=True, eq=False)
class Done:
    """One part's public outcome."""

    counts: NDArray[np.float64]
    entries: tuple[Entry, ...]
    made_by: object


def run_job(job: Job, pay: Callable[[], None] | None = None, noise: Noise | None = None) -> list[Done]:
    """Open a gate on each part and run the mechanism there."""
    outcomes = []
    for row in job.counts:
        histogram = Histogram(job.domain, row.reshape(job.domain.shape))
        right, transcript = open_gate(
            histogram, job.budget, job.unit, workload=job.workload, noise=noise, pay=pay
        )
        estimate = job.inner.estimate(right)
        outcomes.append(Done(estimate.counts.reshape(-1), tuple(transcript), estimate.made_by))
    return outcomes


Run = Callable[[list[Job]], Iterator[list[Done]]]


def run_parts(
    histogram: Histogram,
    recipe: ByPart,
    budget: Budget | Fraction,
    unit: Unit,
    workload: Workload | None,
    *,
    pay: Callable[[], None] | None = None,
    noise: Noise | None = None,
    workers: int | None = None,
    session: Any = None,
) -> tuple[NDArray[np.float64], Transcript, ByPart]:
    """Run every part and put the outcomes together: the estimate, one transcript of all, and who made what.

    ``pay`` pays once, however often it is called (`dphist.private.transcript.Payment`).
    """
    domain = histogram.domain
    _, inner, asked = recipe.kinds(domain, workload)[0]
    axes = [domain.axis(name) for name in recipe.by]
    kept = [axis for axis in range(len(domain.shape)) if axis not in axes]
    rows = np.ascontiguousarray(histogram.counts.transpose([*axes, *kept])).reshape(-1, inner.size)
    job = Job(recipe.inner, inner, rows, budget, unit, asked)
    # Jobs per core of a cluster: enough that a lost one costs little, few enough that handing out costs nothing.
    slots = 0 if session is None else 4 * _parallelism(session)
    # The first part runs here: what the mechanism refuses is refused before anything is paid.
    outcomes = run_job(job.slice(0, 1), pay, noise)
    if pay is not None:
        # Where the first asked nothing, nothing is paid yet; the others may ask, and none of them can pay.
        pay()
    if noise is not None:
        outcomes += run_job(job.slice(1, len(rows)), None, noise)
    elif session is not None:
        outcomes += _elsewhere(job, 1, _on_spark(session), slots)
    else:
        outcomes += _here(job, workers)
    entries = [
        Entry(
            f"root/d{part}{entry.path.removeprefix('root')}",
            entry.verb,
            entry.question,
            entry.cost,
            entry.answer,
        )
        for part, outcome in enumerate(outcomes)
        for entry in outcome.entries
    ]
    for entry in entries:
        entry.answer.setflags(write=False)
    named = recipe.named([outcome.made_by for outcome in outcomes]) or recipe
    counts = ByValues(domain, recipe.by).joined([outcome.counts for outcome in outcomes])
    return counts, Transcript(entries), named


def _here(job: Job, workers: int | None) -> list[Done]:
    """Run in this process while that is quick, then on all cores."""
    outcomes: list[Done] = []
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = cores if workers is None else workers
    # Parts that are done sooner than this are done here: starting other processes takes longer.
    deadline = time.monotonic() + (2.0 if workers is None else 0.0)
    part = 1
    while part < len(job.counts) and (wanted <= 1 or time.monotonic() < deadline):
        outcomes += run_job(job.slice(part, part + 1))
        part += 1
    if part < len(job.counts):
        try:
            pickle.dumps(job.inner)
        except (pickle.PicklingError, AttributeError, TypeError):
            # A mechanism that other processes cannot import runs here.
            return outcomes + run_job(job.slice(part, len(job.counts)))
        outcomes += _elsewhere(job, part, _in_processes(wanted), wanted)
    return outcomes


def _elsewhere(job: Job, start: int, run: Run, count: int) -> list[Done]:
    left = len(job.counts) - start
    size = max(1, -(-left // max(1, count)))
    jobs = [job.slice(begin, begin + size) for begin in range(start, len(job.counts), size)]
    outcomes = [done for outcome in run(jobs) for done in outcome] if jobs else []
    if len(outcomes) != left:
        raise EngineError("a part was lost: there is no release, and the budget stays spent")
    return outcomes


def _in_processes(workers: int) -> Run:
    """Processes of their own interpreter: they need no guard in the caller's script, and inherit no keystream."""

    def run(jobs: list[Job]) -> Iterator[list[Done]]:
        with ThreadPoolExecutor(workers) as threads:
            yield from threads.map(_in_process, jobs)

    return run


def _in_process(job: Job) -> list[Done]:
    # It finds modules where this process does. By itself it would look in the working folder first, where any file may
    # be called like a module, and would be run beside the counts.
    known = os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if isinstance(each, str))}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dphist.publishing.parts"],
        input=pickle.dumps(job), capture_output=True, env=known,
    )  # fmt: skip
    if done.returncode:
        raise EngineError(
            "a process that ran some of the parts failed: there is no release, and the budget stays spent"
        )
    outcomes: list[Done] = pickle.loads(done.stdout)  # noqa: S301 -- written by our own process
    return outcomes


def _on_spark(session: Any) -> Run:
    def run(jobs: list[Job]) -> Iterator[list[Done]]:
        try:
            # One action: every part's outcome is taken once. Lost tasks are run again by Spark, with fresh noise.
            yield from session.sparkContext.parallelize(jobs, len(jobs)).map(run_job).collect()
        except Exception:
            # The engine's own words may quote what it was working on.
            raise EngineError(
                "Spark's executors failed after the budget was paid: there is no release, and the budget stays spent"
            ) from None

    return run


def _parallelism(session: Any) -> int:
    return int(session.sparkContext.defaultParallelism)


def names(partition_by: str | Sequence[str]) -> tuple[str, ...]:
    """The attributes to partition by, as a tuple."""
    listed = [partition_by] if isinstance(partition_by, str) else partition_by
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise InputError("partition_by: name an attribute, or list several")
    return tuple(listed)


def main() -> None:
    """Run the job on standard input; the outcomes go to standard output."""
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 -- written by the process that started this one
    sys.stdout.buffer.write(pickle.dumps(run_job(job)))


if __name__ == "__main__":
    # Under its own name, so that what it writes can be read by the process that started it.
    from dphist.publishing.parts import main as run

    run()
