"""An experiment as a description: data, methods, ε, what is measured, how it is shown, and what the paper claims of it.

The runner (`dphist_bench.runner`) turns a description into readings, the pages (`dphist_bench.pages`) turn readings
into tables, pictures and verdicts. A description holds no results and no loops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.options import parse
from dphist.mechanisms.protocol import Mechanism
from dphist.testing import run
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.results import Results
from dphist_bench.views import View

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# A mechanism, its one-line spelling, or a function from counts and ε to an estimate (for methods that we do not ship).
Method = Mechanism | str | Callable[[IntArray, str], FloatArray]


@dataclass(frozen=True)
class DataSet:
    """Counts shaped like the paper's: a maker of its size, a small one for quick runs, a reader of the real file.

    Makers are seeded, so everybody measures on the same counts; the noise is fresh in every trial.
    """

    make: Callable[[], IntArray]
    small: Callable[[], IntArray]
    file: str = ""
    read: Callable[[Path], IntArray] | None = None

    def counts(self, setting: Setting) -> IntArray:
        """Small counts in a quick run, the real file's where it is at hand, made-up ones otherwise."""
        if setting.quick:
            return self.small()
        if setting.files is not None and self.read is not None and (setting.files / self.file).is_file():
            return self.read(setting.files / self.file)
        return self.make()


class Work(Protocol):
    """What an experiment does: a list of cases, and how to take one trial of one of them."""

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Say what there is to measure, data set by data set."""

    def trial(self, case: Case, number: int, setting: Setting) -> Iterable[Reading]:
        """Measure a case once, with fresh noise."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Every method on every data set at every ε, judged by one function: what most figures of the papers are."""

    data: Mapping[str, DataSet]
    methods: Mapping[str, Method]
    epsilons: Sequence[str]
    errors: Callable[[IntArray, FloatArray], Iterable[Reading]]
    quick_epsilons: Sequence[str] = ()
    # Some methods are shown at some points only.
    skip: Callable[[Case], bool] = field(default=lambda case: False)

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Give the product of data, methods and ε, without what is skipped."""
        epsilons = (self.quick_epsilons or self.epsilons[:1]) if setting.quick else self.epsilons
        every = (Case(d, m, e) for d in self.data for m in self.methods for e in epsilons)
        return [case for case in every if not self.skip(case)]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Run the method once; its CPU seconds are a reading too."""
        truth = counts_of(self.data[case.data], setting)
        method = self.methods[case.method]
        started = time.process_time()
        estimate = apply(method, truth, case.epsilon)
        yield Reading("CPU s", time.process_time() - started)
        yield from self.errors(truth, estimate)


def apply(method: Method, truth: IntArray, epsilon: str) -> FloatArray:
    """Run a method on counts with fresh noise."""
    if isinstance(method, str):
        method = parse(method)
    if isinstance(method, Mechanism):
        return run(method, truth, epsilon).counts.reshape(truth.shape)
    return method(truth, epsilon)


@lru_cache(maxsize=2)
def counts_of(data: DataSet, setting: Setting) -> IntArray:
    """Give a data set's counts, made once a process for all cases that follow one another on the same data."""
    counts = np.asarray(data.counts(setting), dtype=np.int64)
    counts.flags.writeable = False
    return counts


@dataclass(frozen=True)
class Finding:
    """What the readings say of a claim: whether it holds (None: too few readings), and the figures that show it."""

    holds: bool | None
    figures: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A qualitative statement of a paper, with a check on our readings; ``why`` explains a departure.

    ``check`` judges it beside competitors as their authors published them, so that a refuted claim is the paper's own.
    Where we ship a better form of a competitor, ``shipped`` judges it once more beside that one.
    """

    says: str
    where: str
    check: Callable[[Results], Finding]
    why: str = ""
    shipped: Callable[[Results], Finding] | None = None
    why_shipped: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Tables and figures that share their runs: a name in the catalogue, work, views, and the claims that rest on it.

    ``covers`` names each table and figure, so that every one can be asked for by itself.
    """

    name: str
    title: str
    work: Work
    trials: int
    views: Sequence[View]
    reported: str
    differs: str
    claims: Sequence[Claim] = ()
    covers: Sequence[str] = ()
