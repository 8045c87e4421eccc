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
    "scale": Group("How cost grows", "dphist_bench.scale", paper=False),
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
        "accuracy": "auto beside the best peer chosen with hindsight: cells, prefixes, rectangles, marginals",
        "matrix": "auto beside the best of our own candidates: attributes × records × ε × announced or not × questions",
        "five": "five attributes of a census: errors of auto on every kind of question, announced or not",
        "wide": "forty and a hundred columns: CPU and memory of all pairs, their error, and how often intervals hold",
        "widemodels": "mixture beside independence and residual tables: error, records, coverage; --data, a classifier",
        "widerule": "mixture beside the better of independence and residual tables: a matrix from three generators",
        "sums": "sums, means and ratios: coverage, range sums beside sums per cell, bounds learned privately",
        "coverage": "how often intervals hold the truth and how wide they are, case by case; with --page, a page",
        "tables": "how often intervals hold in each table of one and two attributes, and in each cell; --data",
        "doors": "how often intervals hold wherever they are printed: means, quantiles, groups, wide tables, measures",
        "replicates": "intervals from 80 replicates in plain SQL: how often they hold, how wide beside our own",
        "rare": "how often the interval of a value that seven people have holds them, over a hundred releases",
        "forecasts": "what `dphist plan` says beside the error measured: visits, vectors, with --data the census cube",
        "currencies": "the same questions under ε, (ε, δ) and ρ: exact errors of unbiased answers",
        "constants": "what every constant of adaptive trees is worth: the error with two thirds and 1.5 of it",
        "noisefirst": "which price per bucket NoiseFirst should ask, by measured error",
    },
    "speed": {
        "paths": "the paths used most, beside another source tree with --before: CPU seconds and their ratio",
        "publishing": "CPU seconds of auto on lines, hills and ten million cells, which are also saved and verified",
        "commands": "processor seconds of query, show, verify and report on releases of 10⁵ cells",
        "saving": "what an interval for every cell costs when a release of a million cells is saved and read",
        "large": "seconds, processor seconds and memory of a dense cube of 10⁸ or 10⁹ cells, phase by phase",
        "explore": "what one interaction with the explorer costs the server on a release of a million cells",
        "counting": "ten million rows into a cube: CPU and memory beside plain DuckDB SQL",
        "engines": "fifty million rows, two rows a person, a trillion cells: CPU and memory",
        "bounding": "at most two rows a person: CPU beside GROUP BY person",
        "discover": "a day of page views whose keys nobody declared: CPU beside the plain GROUP BY",
        "noise": "exact draws per CPU second beside numpy and OpenDP",
        "segmentation": "CPU time of the segmentation kernels beside the textbook programs, up to a million cells",
        "blocks": "building blocks: CPU by number of bins; with --data, errors beside public implementations",
        "compression": "CPU time of EFPA, P-HPartition, isotonic and MWEM up to a million cells, beside a floor",
        "cubes": "DPCube on ten million cells, its growth; 256 × 256 sets beside other mechanisms with --data",
        "census": "a census-sized cube through Privelet end to end: CPU against one pass, memory, NumPy, linear growth",
    },
    "trust": {
        "mutants": "bugs planted in the trusted code, one at a time: which of them the tests notice",
        "power": "how many runs the audit needs to refute noise that is too small by a factor, or of another law",
        "codecoverage": "lines and branches of private/ and sources/ that their tests run; with --page, a page",
        "textfuzz": "one record of a CSV or JSON file changed, every other read the same or the file refused",
        "publicfuzz": "every public function, method and command, given anything: an answer or an error of ours",
        "neighbours": "tables that differ in one person of any content, through every source: the largest distance",
        "fairness": "which of a person's rows are kept: χ² over a million people on each engine, and bounding's CPU",
        "ledger": "16 processes race for one ledger and are killed hundreds of times: what is lost",
        "composition": "what totals in ε, (ε, δ) and ρ hold, and 10⁴ adaptive ways of spending beside an exact oracle",
        "trust": "load: the ledger under 64 writers, the explorer under many clients; what running times tell",
        "mistakes": "what newcomers get wrong, in Python and on the command line, and what happens; --page, a page",
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
    if not hasattr(module, "measure"):
        # A program of its own, which reads its options and prints by itself.
        return int(module.main(arguments))
    return measuring.run(name, module.measure, arguments, folder)
