"""One runner for every experiment: over all cores, with progress and time left, and able to go on after a stop.

Readings are saved now and then, and when a run ends or is stopped; the next one measures only what is missing: more
trials later are added to those already there.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dphist.errors import InputError
from dphist_bench import catalogue, results
from dphist_bench.cases import Case, Setting
from dphist_bench.experiment import Experiment
from dphist_bench.results import Results, Row

# A stop loses at most this many trials of a case for each core; a crash, what was measured in so many seconds.
_TRIALS_AT_ONCE, _SECONDS = 5, 60.0


@dataclass(frozen=True)
class Job:
    """Some trials of one case: the unit that a worker takes and that is never half kept."""

    experiment: str
    case: Case
    trials: tuple[int, ...]
    setting: Setting


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
    path = path_of(folder, experiment.name, setting)
    about = {
        "experiment": experiment.name,
        "quick": setting.quick,
        "files": setting.files is not None,
        "date": datetime.now(UTC).date().isoformat(),
        **results.machine(),
    }
    before = Results([], about) if fresh or not path.is_file() else results.load(path)
    if before.about.get("files") != about["files"]:
        raise InputError(
            f"{path} was measured {'with' if before.about.get('files') else 'without'} --files; "
            "use the same again, another results folder, or --fresh"
        )
    # In the order of the description, whatever order they are finished in; a case no longer described is dropped.
    order = {case: place for place, case in enumerate(experiment.work.cases(setting))}
    rows = [row for row in before.rows if row.case in order]
    done = before.trials_of()

    def save() -> None:
        rows.sort(key=lambda row: (order[row.case], row.trial))
        results.save(path, rows, about)

    jobs = [
        Job(experiment.name, case, tuple(left[start : start + _TRIALS_AT_ONCE]), setting)
        for case in order
        for left in [[trial for trial in range(wanted) if trial not in done.get(case, ())]]
        for start in range(0, len(left), _TRIALS_AT_ONCE)
    ]
    saved = time.monotonic()
    try:
        for number, found in enumerate(_work(jobs, workers or os.cpu_count() or 1), 1):
            rows += found
            progress(number, len(jobs), found[-1].case)
            if time.monotonic() - saved > _SECONDS:
                save()
                saved = time.monotonic()
    finally:
        save()
    return Results(rows, about)


def path_of(folder: Path, name: str, setting: Setting) -> Path:
    """Where the readings of an experiment lie; quick ones never mix with real ones."""
    return folder / ("quick" if setting.quick else "full") / f"{name}.parquet"


def _work(jobs: Sequence[Job], workers: int) -> Iterator[list[Row]]:
    """Do the jobs, in this process or in several."""
    if workers == 1 or len(jobs) < 2:
        yield from map(_do, jobs)
        return
    # Fresh processes: nothing of ours is inherited half-way, and each counts with one thread.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_one_thread) as pool:
        try:
            for future in as_completed([pool.submit(_do, job) for job in jobs]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _one_thread() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"


def _do(job: Job) -> list[Row]:
    work = catalogue.load(job.experiment).work
    return [
        Row(job.case, trial, reading)
        for trial in job.trials
        for reading in work.trial(job.case, trial, job.setting)
    ]
