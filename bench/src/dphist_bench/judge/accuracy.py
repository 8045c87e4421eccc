"""Errors, coverage and widths of `auto`, case by case."""

from __future__ import annotations

import math
import multiprocessing
import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypedDict

import numpy as np

from dphist.mechanisms import Auto
from dphist.model.budget import Budget
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.making import release_of
from dphist.release import Release
from dphist_bench.judge.cases import Task, counts_of, questions

LEVEL = 0.95


class Reading(TypedDict):
    """One kind of question about one set of counts."""

    sort: str
    data: str
    announced: str
    currency: str
    asked: str
    error: float
    """Root of the mean squared error, over questions and releases."""
    held: float | None
    """Part of the 95 % intervals that held the truth; None where nothing was measured."""
    width: float | None
    """Mean half-width of these."""
    measured: float
    """Part of the answers that were measured, so that they have intervals and not only bounds."""


def published(histogram: Histogram, budget: Budget, workload: Workload | None, seed: int) -> Release:
    """Publish with `auto` and noise that is the same again: the one place that knows how this version does that."""
    return release_of(histogram, budget, Auto(), Unit(), workload, Noise(Keystream.for_tests(seed)))


def readings(task: Task) -> list[Reading]:
    """Release a task's counts as often as it says, and ask everything."""
    histogram, budget = counts_of(task)
    asked = questions(histogram.domain)
    truths = {
        kind: np.asarray(load.answer(histogram.counts), dtype=np.float64) for kind, load in asked.items()
    }
    first = zlib.crc32(f"{task.sort} {task.data} {task.announced} {task.currency}".encode())
    totals = {kind: np.zeros(5) for kind in asked}
    for draw in range(task.draws):
        release = published(histogram, budget, asked.get(task.announced), first + draw)
        for kind, load in asked.items():
            totals[kind] += _one(release, load, truths[kind])
    found: list[Reading] = []
    for kind, (square, held, width, known, answers) in totals.items():
        found.append(
            Reading(
                sort=task.sort,
                data=task.data,
                announced=task.announced,
                currency=task.currency,
                asked=kind,
                error=round(math.sqrt(square / answers), 6),
                held=round(held / known, 5) if known else None,
                width=round(width / known, 6) if known else None,
                measured=round(known / answers, 4),
            )
        )
    return found


def _one(release: Release, load: Workload, truth: np.ndarray) -> np.ndarray:
    """Squares, intervals that held, half-widths, answers that were measured, answers: summed over questions."""
    answers = release.answer(load, confidence=LEVEL)
    known = np.asarray(answers.measured)
    holds = (answers.low - 1e-6 <= truth) & (truth <= answers.high + 1e-6)
    reach = (answers.high - answers.low) / 2.0
    value = np.nan_to_num(answers.value)
    return np.array(
        [((value - truth) ** 2).sum(), holds[known].sum(), reach[known].sum(), known.sum(), known.size],
        dtype=float,
    )


def every(asked: Sequence[Task], workers: int | None = None) -> Iterator[list[Reading]]:
    """Do all tasks, the largest kinds first, a process a core, each with one thread."""
    order = ("space", "file plane", "plane", "file cube", "cube", "people")
    ordered = sorted(asked, key=lambda task: order.index(task.sort) if task.sort in order else len(order))
    workers = workers or os.cpu_count() or 1
    if workers == 1:
        yield from map(readings, ordered)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(readings, ordered)
