"""What there is to run, by name: experiments, which the runner runs, and measurements, programs of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dphist.errors import InputError

if TYPE_CHECKING:
    from dphist_bench.experiment import Experiment


@dataclass(frozen=True)
class Group:
    """Experiments that share a page: its title, the module whose EXPERIMENTS they are, and whose claims are checked."""

    title: str
    module: str
    paper: bool = True

    @property
    def claims(self) -> str:
        """What heads the table of claims."""
        return "What the paper claims" if self.paper else "What must show"


GROUPS: dict[str, Group] = {
    "xu2013": Group("NoiseFirst and StructureFirst (Xu et al.)", "dphist_bench.papers.xu2013"),
    "dpcube": Group("DPCube (Xiao et al.)", "dphist_bench.papers.dpcube"),
    "kellaris": Group("Building blocks (Kellaris et al.)", "dphist_bench.papers.kellaris"),
    "efpa": Group("Lossy compression (Acs et al.)", "dphist_bench.papers.efpa"),
    "privelet": Group("Privelet (Xiao et al.)", "dphist_bench.papers.privelet"),
    "peers": Group("Beside other libraries", "dphist_bench.peers.jobs", paper=False),
}


@cache
def group(name: str) -> dict[str, Experiment]:
    """Give the experiments of one group."""
    module = import_module(GROUPS[name].module)
    return {experiment.name: experiment for experiment in module.EXPERIMENTS}


def every() -> dict[str, Experiment]:
    """Give all experiments, paper by paper."""
    return {name: found for one in GROUPS for name, found in group(one).items()}


def load(name: str) -> Experiment:
    """Find an experiment by its name, or by a table or figure that it covers."""
    where, _, what = name.partition("/")
    for experiment in group(where).values() if where in GROUPS else ():
        if name == experiment.name or what in experiment.covers:
            return experiment
    raise InputError(f"there is no experiment named {name!r}; `dphist bench list` names them all")


def chosen(pattern: str) -> list[str]:
    """Give the names that a user means: one experiment, all of a paper, or "all"."""
    if pattern == "all":
        return list(every())
    if pattern in GROUPS:
        return list(group(pattern))
    return [load(pattern).name]


# Each a module with ``measure(*, quick, …)`` in the room of that name, run as `dphist_bench.measuring` says.
ROOMS: dict[str, dict[str, str]] = {
    "all of it": {
        "judge": "accuracy, coverage, widths, CPU, memory, size and files met in one file, and --beside a baseline",
    },
    "accuracy": {
        "coverage": "how often intervals hold, how wide they are, and errors beside the best other mechanism",
        "replicates": "intervals from 80 replicates in plain SQL: how often they hold, how wide beside our own",
    },
    "trust": {
        "mutants": "bugs planted in the trusted code, one at a time: which of them the tests notice",
        "textfuzz": "one record of a CSV or JSON file changed, every other read the same or the file refused",
        "precision": "values that only one of two neighbours can produce, in every mechanism that may be released",
        "neighbours": "tables that differ in one person of any content, through every source: the largest distance",
        "ledger": "16 processes race for one ledger and are killed hundreds of times: what is lost",
        "composition": "what totals in ε, (ε, δ) and ρ hold, and 10⁴ adaptive ways of spending beside an exact oracle",
    },
}
MEASUREMENTS: dict[str, str] = {name: words for room in ROOMS.values() for name, words in room.items()}


def measure(name: str, arguments: list[str], folder: Path | None = None) -> int:
    """Run a measurement, keep what it gave in ``folder``, and give its exit code."""
    from dphist_bench import measuring

    room = next(room for room, names in ROOMS.items() if name in names)
    home = f"dphist_bench.measurements.{room}.{name}"
    # Planted bugs and the judge have rooms of their own.
    module = import_module(home if " " not in room and find_spec(home) else f"dphist_bench.{name}")
    return measuring.run(name, module.measure, arguments, folder)
