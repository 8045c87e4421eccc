"""One runner for every experiment: over all cores, with progress and time left, and able to go on after a stop.

Finished trials lie as small Parquet files beside the experiment's result until it is whole, then they become one
file. A run that is stopped keeps what is finished, and the next one measures only what is missing: more trials
later are added to those already there.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from dphist.errors import InputError
from dphist_bench import catalogue, results
from dphist_bench.cases import Case, Setting
from dphist_bench.experiment import Experiment
from dphist_bench.results import Results, Row

# A stop loses at most this many trials of a case for each core.
_TRIALS_AT_ONCE = 5


@dataclass(frozen=True)
class Job:
    """Some trials of one case: the unit that a worker takes and that is never half kept."""

    experiment: str
    case: Case
    trials: tuple[int, ...]
    setting: Setting

    @property
    def file(self) -> str:
        """A name that the same trials of the same case always have."""
        return sha256(repr((self.case, self.trials)).encode()).hexdigest()[:16] + ".parquet"


# Called after every finished job with what is done and how much there is.
Progress = Callable[[int, int, Case], None]


def run(
    experiment: Experiment,
    folder: Path,
    *,
    trials: int | None = None,
    setting: Setting | None = None,
    workers: int | None = None,
    fresh: bool = False,
    progress: Progress = lambda done, whole, case: None,
) -> Results:
    """Measure what is missing of an experiment, save all readings, and give them.

    ``folder`` holds results by name. ``fresh`` forgets earlier readings, which is right after a change of the code
    they measure. With one worker everything happens in this process.
    """
    setting = setting or Setting()
    wanted = trials or (1 if setting.quick else experiment.trials)
    whole = path_of(folder, experiment.name, setting)
    parts = whole.with_suffix(".parts")
    if fresh:
        whole.unlink(missing_ok=True)
        for part in parts.glob("*.parquet"):
            part.unlink()
    about = {
        "experiment": experiment.name,
        "quick": setting.quick,
        "files": setting.files is not None,
        "date": datetime.now(UTC).date().isoformat(),
        **results.machine(),
    }
    before = gather(whole, parts)
    if before is not None and before.about.get("files") != about["files"]:
        raise InputError(
            f"{whole} was measured {'with' if before.about.get('files') else 'without'} --files; "
            "use the same again, another results folder, or --fresh"
        )
    cases = list(experiment.work.cases(setting))
    jobs = list(_missing(experiment.name, cases, wanted, setting, before))
    parts.mkdir(parents=True, exist_ok=True)
    try:
        for done, job in enumerate(_work(jobs, parts, about, workers or os.cpu_count() or 1), 1):
            progress(done, len(jobs), job.case)
    finally:
        # Also when stopped: what is finished becomes part of the one file.
        merged = _merge(whole, parts, cases, about)
    return merged


def path_of(folder: Path, name: str, setting: Setting) -> Path:
    """Where the readings of an experiment lie; quick ones never mix with real ones."""
    return folder / ("quick" if setting.quick else "full") / f"{name}.parquet"


def gather(whole: Path, parts: Path) -> Results | None:
    """Read everything measured so far."""
    files = [path for path in (whole, *sorted(parts.glob("*.parquet"))) if path.is_file()]
    found = [results.load(path) for path in files]
    return Results([row for one in found for row in one.rows], found[0].about) if found else None


def _missing(
    name: str, cases: Sequence[Case], wanted: int, setting: Setting, before: Results | None
) -> Iterator[Job]:
    done = before.trials_of() if before is not None else {}
    for case in cases:
        left = [trial for trial in range(wanted) if trial not in done.get(case, ())]
        for start in range(0, len(left), _TRIALS_AT_ONCE):
            yield Job(name, case, tuple(left[start : start + _TRIALS_AT_ONCE]), setting)


def _work(jobs: Sequence[Job], parts: Path, about: dict[str, Any], workers: int) -> Iterator[Job]:
    """Do the jobs, in this process or in several; a finished one is on disk before it is counted."""
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield _do(job, parts, about)
        return
    # Fresh processes: nothing of ours is inherited half-way, and each counts with one thread.
    with ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_one_thread
    ) as pool:
        pending: set[Future[Job]] = {pool.submit(_do, job, parts, about) for job in jobs}
        try:
            while pending:
                finished, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _one_thread() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"


def _do(job: Job, parts: Path, about: dict[str, Any]) -> Job:
    work = catalogue.load(job.experiment).work
    rows = [
        Row(job.case, trial, reading)
        for trial in job.trials
        for reading in work.trial(job.case, trial, job.setting)
    ]
    results.save(parts / job.file, rows, about)
    return job


def _merge(whole: Path, parts: Path, cases: Sequence[Case], about: dict[str, Any]) -> Results:
    found = gather(whole, parts)
    if found is None:
        return Results([], about)
    # In the order of the description, whatever order they were finished in; a case no longer described is dropped.
    order = {case: place for place, case in enumerate(cases)}
    rows = sorted(
        (row for row in found.rows if row.case in order), key=lambda row: (order[row.case], row.trial)
    )
    results.save(whole, rows, about)
    for part in parts.glob("*.parquet"):
        part.unlink()
    parts.rmdir()
    return Results(rows, about)
