"""Every class of question there is, found by walking the modules, and small cases of each."""

from __future__ import annotations

import importlib
import pkgutil
from fractions import Fraction
from typing import Any

import numpy as np

import dphist.private
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.private.queries.counting import Heights, Identity, Middles, Totals
from dphist.private.queries.prefixes import PrefixRoots
from dphist.private.queries.tables import RangedTables, TableTotals, TopDependence
from dphist.private.queries.wavelet import Wavelet, WaveletCells
from dphist.private.questions import Layout
from dphist.private.scores.bisections import Bisections, Configurations
from dphist.private.scores.boundaries import Boundaries
from dphist.private.scores.counting import BestAttributes, Disagreements, Heaps, Medians
from dphist.private.scores.tables import TableErrors
from dphist.private.segments import AbsoluteDeviation
from dphist.private.sparse import Above
from dphist.private.spectrum import Frequencies, LowFrequencies


def found(*methods: str) -> set[type]:
    """Classes anywhere in the trusted room that have these methods, protocols aside."""
    classes: set[type] = set()
    for module in pkgutil.walk_packages(dphist.private.__path__, "dphist.private."):
        here = importlib.import_module(module.name)
        for thing in vars(here).values():
            ours = isinstance(thing, type) and thing.__module__.startswith("dphist.private")
            asks = ours and all(hasattr(thing, name) for name in methods)
            if asks and not getattr(thing, "_is_protocol", False):
                classes.add(thing)
    return classes


PLACES = Nominal("place", ["a", "b", "c", "d"])
LINE, PAIRS = Layout((4,)), Layout((4,), np.array([0, 1, 0, 1]), 2)
RUNS = Layout((5,), np.array([0, 0, 0, 1, 1]), 2)
TABLE = Layout((2, 2))
TREE = Layout((4,), domain=Domain([PLACES]))
MIXED = Layout((2, 4), domain=Domain([Ordinal("x", range(2)), PLACES]))
RANGED = Layout((2, 3), domain=Domain([Nominal("p", ["a", "b"]), Ordinal("x", range(3))]))

QUERIES: dict[type, list[tuple[Any, Layout]]] = {
    Identity: [(Identity(), LINE), (Identity(), TABLE)],
    Totals: [(Totals(), LINE), (Totals(), PAIRS)],
    Middles: [(Middles(), LINE), (Middles(), RUNS), (Middles(), PAIRS)],
    PrefixRoots: [(PrefixRoots(), LINE), (PrefixRoots(), Layout((1,)))],
    Frequencies: [
        (Frequencies(shape, keep, basis), layout)
        for basis in ("fourier", "cosine")
        for shape, keep, layout in [((4,), (2,), LINE), ((2, 2), (1, 2), TABLE), ((5,), (3,), RUNS)]
    ],
    Wavelet: [
        (Wavelet(plain, calibration), layout)
        for calibration in ("tight", "paper")
        for plain, layout in [((), LINE), ((), TREE), ((0,), MIXED), ((), MIXED), ((), Layout((3,)))]
    ],
    TableTotals: [
        (TableTotals(((0,), (0, 1)), (Fraction(1, 4), Fraction(3, 4))), TABLE),
        (TableTotals(((), (0,), (0, 1)), (Fraction(1, 4),) * 3, ((), (0,), (0, 1))), TABLE),
        (TableTotals(((0, 1), (1,)), (Fraction(1, 2),) * 2, ((0,), ())), Layout((2, 3))),
    ],
    TopDependence: [
        (TopDependence(((0, 1),), 1), TABLE),
        (TopDependence(((0, 1),), 1), Layout((2, 3))),
        *[(TopDependence(((0, 1), (0, 2), (1, 2)), top), Layout((2, 2, 2))) for top in (1, 2)],
    ],
    # Larger trees, and hierarchies, are in `test_ranged`.
    RangedTables: [
        (
            RangedTables(((), (0,), (0, 1)), (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)), centred=True),
            TABLE,
        ),
        (RangedTables(((0, 1), (1,)), (Fraction(1, 2),) * 2, centred=True), Layout((2, 3))),
        (RangedTables(((0,),), (Fraction(1),), centred=True), LINE),
        *[
            (
                RangedTables(((0, 1), (1,)), (Fraction(1, 2),) * 2, ((1, (Fraction(1, 2),) * 2),), centred),
                RANGED,
            )
            for centred in (False, True)
        ],
    ],
    # Fused questions whose law is that of another: see `test_laws`.
    WaveletCells: [(WaveletCells(), LINE), (WaveletCells(), TREE), (WaveletCells((0,)), MIXED)],
    Above: [(Above(1), LINE)],
    Heights: [(Heights(height), layout) for height, layout in ((1, LINE), (2, PAIRS), (3, TABLE))],
}

INDEX = np.indices((2, 2)).reshape(2, -1)
BOXES = np.array([[0], [1], [0]]), np.array([[1], [4], [2]])
SCORES: dict[type, list[tuple[Any, Layout]]] = {
    Bisections: [(Bisections(Fraction(1, 3)), LINE), (Bisections(Fraction(2)), RUNS)],
    Configurations: [
        (Configurations(np.array([0, 2]), np.array([2, 3]), np.array([4, 4]), Fraction(1)), LINE),
        (Configurations(np.array([0, 0, 1]), np.array([3, 1, 2]), np.array([4, 3, 3]), Fraction(1, 7)), LINE),
    ],
    Boundaries: [
        (Boundaries(2, "squared", 2), LINE),
        (Boundaries(3, "squared", 1, Fraction(2)), LINE),
        (Boundaries(3, "absolute"), LINE),
    ],
    BestAttributes: [
        (BestAttributes((INDEX[0], np.arange(4) // 3), (2, 2), INDEX[1], 2), LINE),
        (BestAttributes((INDEX[0], INDEX[1]), (2, 2), np.array([0, 1, 1, 0]), 2), PAIRS),
    ],
    Disagreements: [(Disagreements(*BOXES, np.array([1, 2, 0])), LINE)],
    LowFrequencies: [
        (LowFrequencies((4,), Fraction(1)), LINE),
        (LowFrequencies((2, 2), Fraction(1, 3), ("cosine",)), TABLE),
        (LowFrequencies((4,), Fraction(2), ("fourier", "cosine")), LINE),
    ],
    TableErrors: [
        (
            TableErrors(((0,), (1,), (0, 1)), np.array([0, 1, 5, 0, 0, 1, 2, 3]), 2),
            TABLE,
        ),
        (TableErrors(((), (0,)), np.array([3, 2, 0, 0, 1])), LINE),
        (
            TableErrors(
                ((0,), (1,), (0, 1)),
                np.array([0, 1, 5, 0, 0, 1, 2, 3]),
                2,
                np.array([7, 1, 3]),
            ),
            TABLE,
        ),
    ],
    Heaps: [(Heaps((1, 2), 2), TABLE), (Heaps((3,), 1), LINE), (Heaps((0, 5, 2), 3), Layout((2, 3, 2)))],
    Medians: [
        (Medians(np.arange(4), np.array([4])), LINE),
        (Medians(np.array([0, 0, 1, 1]), np.array([3, 3])), PAIRS),
    ],
}

COSTS: dict[type, list[tuple[Any, Layout]]] = {
    AbsoluteDeviation: [
        (AbsoluteDeviation(Fraction(1), sizes, centre, grid), Layout((n,)))
        for sizes in ("all", "powers", (4, 2, 1), (5, 1), (2,))
        for centre in ("mean", "median")
        for grid in (1, 3)
        for n in (2, 5)
    ],
}
