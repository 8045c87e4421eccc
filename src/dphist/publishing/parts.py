"""Running a mechanism once per value of public attributes: here, or on every core.

Each run opens a gate of its own where it happens, on its own counts with the whole ε, and draws from entropy of its
own: neither a right nor a keystream ever travels. What comes back are transcripts and estimates, which are
public. They are put together under the paths ``root/d0``, ``root/d1``, …, as `ByPart` would have asked them, so that
the release verifies like any other and its spending is the largest over the parts.

The release holds one run of every part, so nothing is paid twice. A process that dies ends the release, and what was
paid stays paid.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

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
    # The first part runs here: what the mechanism refuses is refused before anything is paid.
    outcomes = run_job(job.slice(0, 1), pay, noise)
    if pay is not None:
        # Where the first asked nothing, nothing is paid yet; the others may ask, and none of them can pay.
        pay()
    if noise is not None:
        outcomes += run_job(job.slice(1, len(rows)), None, noise)
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
        outcomes += _in_processes(job, part, wanted)
    return outcomes


def _in_processes(job: Job, start: int, workers: int) -> list[Done]:
    """Processes of their own interpreter: they need no guard in the caller's script, and inherit no keystream."""
    left = len(job.counts) - start
    size = max(1, -(-left // workers))
    jobs = [job.slice(begin, begin + size) for begin in range(start, len(job.counts), size)]
    with ThreadPoolExecutor(workers) as threads:
        outcomes = [done for outcome in threads.map(_in_process, jobs) for done in outcome]
    if len(outcomes) != left:
        raise EngineError("a part was lost: there is no release, and the budget stays spent")
    return outcomes


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
