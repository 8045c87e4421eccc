"""Data, methods and printed figures of the NoiseFirst and StructureFirst paper, for its experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from dphist.mechanisms.structurefirst import StructureFirst
from dphist.testing import run
from dphist_bench import data
from dphist_bench.cases import Reading
from dphist_bench.data import files
from dphist_bench.experiment import DataSet, FloatArray, IntArray, Method
from dphist_bench.metrics import SlidingRanges, mean_absolute_error, mean_relative_error, mean_squared_error

EPSILONS = ("0.01", "0.1", "1")
# Short ranges; longer ones are tenths of the domain.
_SHORT = (1, 2, 5, 10, 20, 50)

SETS = {
    "Age": DataSet(data.age_pyramid, lambda: data.age_pyramid(60, 60_000), files.ADULT[0], files.ages),
    "Search Logs": DataSet(
        data.search_logs,
        lambda: data.search_logs(80, 4_000),
        "SEARCHLOGS4096.csv",
        lambda path: files.occurrences(path, 496),
    ),
    "NetTrace": DataSet(
        data.network_trace,
        lambda: data.network_trace(100, 5_000),
        "NETTRACE4096.csv",
        lambda path: files.occurrences(path, 1_423),
    ),
    "Social Network": DataSet(
        data.social_degrees, lambda: data.social_degrees(100, 4_000), "SOCIALNETWORK.csv", files.counts
    ),
}
SKEWED = ("Search Logs", "NetTrace", "Social Network")
DOMAINS = (101.0, 496.0, 1_423.0, 1_678.0)


def structure_first(
    statistic: Literal["mean", "median"], counts: IntArray, bins: int | None
) -> StructureFirst:
    """StructureFirst as section 7 runs it: a binary tree in every bin, and F = 10⁴ · records / cells.

    F stands for public knowledge here.
    """
    ceiling = max(1, 10_000 * int(counts.sum()) // counts.size)
    return StructureFirst(
        statistic=statistic,
        bins=bins,
        ceiling=ceiling if statistic == "mean" else None,
        inside="tree",
        even=False,
    )


def _structure(statistic: Literal["mean", "median"], cells_a_bin: int) -> Method:
    """StructureFirst with n divided by so many bins, one bin if that is 0."""

    def method(counts: IntArray, epsilon: str) -> FloatArray:
        bins = max(1, counts.size // cells_a_bin) if cells_a_bin else 1
        return run(structure_first(statistic, counts, bins), counts, epsilon).counts

    return method


METHODS: dict[str, Method] = {
    "Dwork": "laplace",
    "Boost": "tree(fanout=2, budgets='uniform', nonnegative=False)",
    "Privelet": "privelet(plain=(), calibration='paper')",
    "our Privelet": "privelet(plain=())",
    "Median-NF": "noisefirst(statistic='median', price='paper', keep=True, cut=False)",
    "Mean-NF": "noisefirst(price='paper', keep=True, cut=False)",
    "Median-SF": _structure("median", 10),
    "Mean-SF": _structure("mean", 10),
    "our NoiseFirst": "noisefirst",
    "our NoiseFirst, median": "noisefirst(statistic='median')",
    "our StructureFirst": "structurefirst",
    "our StructureFirst, mean": "structurefirst(statistic='mean')",
}
SHOWN = (
    *("Dwork", "Boost", "Privelet", "our Privelet", "Median-NF", "Mean-NF", "Median-SF"),
    *("our NoiseFirst", "our StructureFirst"),
)
# The numbers of bins of section 7.1, as cells a bin.
_BINS = {"k = 1": 0, "k = n/15": 15, "k = n/10": 10, "k = n/5": 5, "k = n": 1}
MEAN_BINS = {f"Mean-SF, {name}": _structure("mean", cells) for name, cells in _BINS.items()}
MEDIAN_BINS = {f"Median-SF, {name}": _structure("median", cells) for name, cells in _BINS.items()}


def range_errors(truth: IntArray, estimate: FloatArray) -> Iterator[Reading]:
    """Errors of all ranges of a length, for short ones and for tenths of the domain; and averaged over the tenths."""
    tenths = sorted({max(1, truth.size * i // 10) for i in range(1, 11)})
    measures = {
        "squared error": mean_squared_error,
        "absolute error": mean_absolute_error,
        "relative error": mean_relative_error,
    }
    for name, measure in measures.items():
        found = {
            length: measure(truth, estimate, SlidingRanges(length))
            for length in sorted({*tenths, *(length for length in _SHORT if length < truth.size)})
        }
        yield from (Reading(name, value, length) for length, value in found.items())
        yield Reading(f"{name}, all lengths", sum(found[length] for length in tenths) / len(tenths))


def _printed(rows: Mapping[str, Sequence[float]]) -> dict[tuple[str, str, str], float]:
    """Method by method, data set by data set, ε = 0.01, 0.1, 1: in the order of the paper's tables."""
    columns = [(name, epsilon) for name in SETS for epsilon in EPSILONS]
    return {
        (name, method, epsilon): value
        for method, row in rows.items()
        for (name, epsilon), value in zip(columns, row, strict=True)
    }


# As printed; one figure lost a comma to "874,2".
TABLE_2 = _printed(
    {
        "Dwork": (18_865, 187, 2.38, 19_986, 204, 1.98, 19_927, 204, 1.99, 20_153, 198, 2.05),
        "Boost": (730_466, 7_666, 76, 1_264_010, 12_037, 127, 1_774_689, 16_956, 178, 1_701_026, 17_769, 172),
        "Privelet": (360_774, 4_745, 42, 678_763, 6_975, 62, 978_884, 9_987, 91, 972_103, 9_426, 92),
        "Median-NF": (19_438, 203, 2.10, 5_081, 60, 1.44, 3_475, 35, 0.56, 4_102, 50, 0.76),
        "Mean-NF": (21_178, 205, 1.98, 12_231, 131, 1.48, 13_198, 95, 1.34, 12_677, 135, 1.40),
        "Median-SF": (327_525, 2_876, 32, 863_095, 8_742, 77, 1_283_316, 12_465, 122, 1_252_283, 12_725, 127),
        "Mean-SF": (598_750, 5_541, 58, 854_311, 8_353, 90, 1_156_542, 12_154, 129, 1_245_424, 12_819, 123),
    }
)
TABLE_3 = _printed(
    {
        "Dwork": (99, 9.99, 1.04, 100, 10, 1, 101, 10, 1, 100, 9.97, 1),
        "Boost": (653, 67, 7, 851, 83, 8, 1_008, 99, 10, 991, 102, 10),
        "Privelet": (453, 51, 4.90, 615, 62, 5.89, 732, 74, 7.16, 730, 73, 7.21),
        "Median-NF": (100, 10, 0.99, 28, 3.51, 0.74, 21, 2.06, 0.31, 24, 3.04, 0.40),
        "Mean-NF": (104, 10, 0.96, 62, 6.86, 0.83, 63, 6.32, 0.67, 62, 6.50, 0.71),
        "Median-SF": (427, 40, 4.25, 665, 66, 6.23, 807, 81, 8.04, 800, 81, 8.08),
        "Mean-SF": (535, 56, 5.59, 662, 65, 6.80, 763, 79, 8.20, 798, 81, 8.08),
    }
)
