"""Figures 19 and 20 of the NoiseFirst and StructureFirst paper: CPU time against n, k and ε."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

from dphist.mechanisms.noisefirst import NoiseFirst
from dphist.mechanisms.protocol import Mechanism
from dphist.testing import run
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.claims import beats, every, power
from dphist_bench.data import social_degrees
from dphist_bench.experiment import Claim, Experiment, Finding, IntArray
from dphist_bench.papers.xu2013_setup import EPSILONS, structure_first
from dphist_bench.results import Results
from dphist_bench.timing import least
from dphist_bench.views import Lines

# A mechanism for these counts and so many buckets.
Make = Callable[[IntArray, int], Mechanism]

_MEAN: dict[str, Make] = {
    "Mean-NF, given k": lambda counts, k: NoiseFirst(bins=k),
    "Mean-NF, finds k": lambda counts, k: NoiseFirst(price="paper"),
    "Mean-SF": lambda counts, k: structure_first("mean", counts, k),
}
_MEDIAN: dict[str, Make] = {
    "Median-NF, given k": lambda counts, k: NoiseFirst(statistic="median", bins=k),
    "Median-NF, finds k": lambda counts, k: NoiseFirst(statistic="median", price="paper"),
    "Median-SF": lambda counts, k: structure_first("median", counts, k),
}
_METHODS = {**_MEAN, **_MEDIAN}

_CELLS, _BUCKETS, _BUDGETS = (
    "n cells, k = 100, ε = 0.1",
    "k buckets, n = 1,678, ε = 0.1",
    "ε, n = 1,678, k = 100",
)
_PLACES: dict[str, Sequence[float]] = {
    _CELLS: (200, 400, 800, 1_200, 1_678),
    _BUCKETS: (25, 50, 100, 200, 400),
    _BUDGETS: tuple(map(float, EPSILONS)),
}


class _Times:
    """One of n, k and ε varies, the others stay; every method runs once before it is timed."""

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Give every method at every place of every panel."""
        return [
            Case(panel, method, "", x)
            for panel, places in _PLACES.items()
            for method in _METHODS
            for x in (places[:2] if setting.quick else places)
        ]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Time an estimate, without making the counts: the fastest of three, which other work disturbs least."""
        x = 0.0 if case.x is None else case.x
        most = 200 if setting.quick else 1_678
        counts = _network(min(most, int(x)) if case.data == _CELLS else most)
        buckets = int(x) if case.data == _BUCKETS else 100
        epsilon = f"{x:g}" if case.data == _BUDGETS else "0.1"
        mechanism = _METHODS[case.method](counts, buckets)
        _warm(case.method)
        once = partial(run, mechanism, counts, epsilon)
        yield Reading("CPU s", least(once, 1 if setting.quick else 3))


def _network(cells: int) -> IntArray:
    """The first so many cells of Social Network, which is the largest of the four."""
    return social_degrees(1_678, 32_768)[:cells]


@cache
def _warm(method: str) -> None:
    counts = _network(150)
    run(_METHODS[method](counts, 20), counts, "1")


def _steady(results: Results) -> Finding:
    """Whether the slowest ε takes at most half as long again as the fastest."""
    words, holds = [], True
    for method in _METHODS:
        times = [point.value for point in results.select("CPU s", data=_BUDGETS, method=method)]
        ratio = max(times) / min(times)
        holds &= ratio < 1.5
        words.append(f"{method} {ratio:.2g}")
    return Finding(holds, f"slowest over fastest ε: {', '.join(words)}")


_ALGORITHM = (
    "The paper's dynamic programme is O(n²k). Here functional pruning makes each of its k rows close to linear in n, "
    "and to find k together with the buckets is a single such row."
)


def _figure(title: str, methods: Sequence[str]) -> Lines:
    return Lines(
        title=title,
        measure="CPU s",
        axis="n, k or ε",
        unit="CPU seconds",
        across=3,
        where={"method": tuple(methods)},
    )


TIMES = Experiment(
    name="xu2013/figures19-20",
    title="Figures 19 and 20: CPU time against n, k and ε on Social Network",
    work=_Times(),
    trials=20,
    views=(
        _figure("Figure 19: CPU time of mean-based solutions", tuple(_MEAN)),
        _figure("Figure 20: CPU time of median-based solutions", tuple(_MEDIAN)),
    ),
    reported="Time does not depend on ε, grows linearly with k and quadratically with n; StructureFirst is about four "
    "times faster than NoiseFirst, which also computes a value for k.",
    differs=f"{_ALGORITHM} NoiseFirst is shown with a given k, as the paper's runs are, and finding it.",
    claims=(
        Claim(
            says="Time is not sensitive to ε",
            where="Figs. 19, 20",
            check=_steady,
            why="How much is pruned depends on the noisy counts; under absolute loss with a given k, more noise is "
            "slower.",
        ),
        Claim(
            says="Time grows linearly with k",
            where="Figs. 19, 20",
            check=every(
                *(
                    power("CPU s", method, (0.75, 1.25), data=_BUCKETS)
                    for method in ("Mean-NF, given k", "Median-NF, given k", "Mean-SF", "Median-SF")
                )
            ),
            why="It grows less: part of the work does not depend on k.",
        ),
        Claim(
            says="Time grows quadratically with n",
            where="Figs. 19, 20",
            check=every(
                *(
                    power("CPU s", method, (1.75, 2.25), data=_CELLS)
                    for method in ("Mean-NF, given k", "Median-NF, given k", "Mean-SF", "Median-SF")
                )
            ),
            why=_ALGORITHM,
        ),
        Claim(
            says="StructureFirst is faster than NoiseFirst that finds its k",
            where="§7.4",
            check=every(
                beats("CPU s", "Mean-SF", ("Mean-NF, finds k",)),
                beats("CPU s", "Median-SF", ("Median-NF, finds k",)),
            ),
            why="To find k here is one penalised search, not n dynamic programmes.",
        ),
    ),
    covers=("figure19", "figure20"),
)
