"""Figures 9–18 of the DPCube paper (Xiao, Xiong, Fan and Goryczka, 2014): the formulas here, the rest beside it.

Neighbours add or remove a record, as in the paper. The paper simulates its formulas; here each is one integral.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.claims import beats, every, peaks
from dphist_bench.experiment import Claim, Experiment, Finding
from dphist_bench.papers import dpcube_compared, dpcube_histograms, dpcube_uses
from dphist_bench.papers import dpcube_formulas as formulas
from dphist_bench.results import Results
from dphist_bench.views import Lines

_ERROR = "expected absolute error"
SMOOTH, ANY = "uniform, γ-smooth data (7)", "uniform, any data (8)"
PRINTED, WEIGHTED = "least squares (9)", "weighted least squares"


@dataclass(frozen=True)
class Part:
    """One part of a release and a query inside it, by default as in Table 2."""

    size: int = 5
    part: int = 11
    cells: float = 0.05
    leaf: float = 0.15
    smoothness: float = 5.0
    inconsistency: float = 5.0


_FORMULAS: Mapping[str, Callable[[Part], float]] = {
    SMOOTH: lambda p: formulas.smooth_error_bound(p.smoothness, p.size, p.part, p.leaf),
    ANY: lambda p: formulas.observed_error(p.inconsistency, p.size, p.cells),
    PRINTED: lambda p: formulas.least_squares_error(p.size, p.part, p.cells, p.leaf),
    WEIGHTED: lambda p: formulas.least_squares_error(p.size, p.part, p.cells, p.leaf, weighted=True),
}
_SQUARES = (PRINTED, WEIGHTED)


@dataclass(frozen=True)
class Figure:
    """What varies in a figure, where, and which formulas are drawn."""

    points: Sequence[float]
    part: Callable[[float], Part]
    axis: str
    methods: Sequence[str] = tuple(_FORMULAS)


_FIGURES: Mapping[str, Figure] = {
    "Fig. 9": Figure(range(1, 12), lambda x: Part(size=int(x)), "query size s, part of 11 cells"),
    "Fig. 10": Figure(
        [0.01, *(round(0.02 * i, 2) for i in range(1, 10)), 0.19],
        lambda x: Part(cells=x, leaf=round(0.2 - x, 2)),
        "α₁, of α = 0.2",
    ),
    "Fig. 11(a)": Figure(
        range(3, 22, 2),
        lambda x: Part(part=int(x), size=(int(x) - 1) // 2),
        "cells in the part, query of nearly half",
        (SMOOTH, *_SQUARES),
    ),
    "Fig. 11(b)": Figure(range(11), lambda x: Part(smoothness=x), "smoothness γ", (SMOOTH, *_SQUARES)),
    "Fig. 12": Figure(range(0, 41, 5), lambda x: Part(inconsistency=x), "inconsistency η", (ANY, *_SQUARES)),
}


@dataclass(frozen=True)
class Formulas:
    """The paper's error formulas along the axis of every figure."""

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Every line of every figure."""
        return [Case(name, method) for name, figure in _FIGURES.items() for method in figure.methods]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Work out one line; there is nothing random in it."""
        figure = _FIGURES[case.data]
        for x in figure.points[:: 2 if setting.quick else 1]:
            yield Reading(_ERROR, _FORMULAS[case.method](figure.part(x)), x)


def _inconsistent(results: Results) -> Finding:
    """Equation 8 at η = 10 beside Equation 9."""
    uniform, squares = (results.value(_ERROR, method=m, data="Fig. 12", x=10) for m in (ANY, PRINTED))
    return Finding(uniform > squares, f"at η = 10 Equation 8 gives {uniform:.3g}, Equation 9 {squares:.3g}")


_FORMULA_CLAIMS = (
    Claim(
        says="Uniform estimation of smooth data errs most on queries of half the part",
        where="Fig. 9(a)",
        check=peaks(_ERROR, SMOOTH, (5, 6), data="Fig. 9"),
    ),
    Claim(
        says="On smooth data (γ = 5) uniform estimation beats least squares",
        where="Fig. 9(a)",
        check=beats(_ERROR, SMOOTH, (PRINTED,), data="Fig. 9"),
    ),
    Claim(
        says="Smooth data want a small budget for the cells, data of any kind a large one",
        where="Fig. 10",
        check=every(
            peaks(_ERROR, SMOOTH, (0.0, 0.05), least=True, data="Fig. 10"),
            peaks(_ERROR, ANY, (0.15, 0.2), least=True, data="Fig. 10"),
        ),
    ),
    Claim(
        says="Least squares does best with an equal split, or slightly more for the cells",
        where="Fig. 10",
        check=peaks(_ERROR, PRINTED, (0.1, 0.14), least=True, data="Fig. 10"),
    ),
    Claim(
        says="With an inconsistency of 10 uniform estimation is worse than least squares",
        where="Fig. 12",
        check=_inconsistent,
    ),
)


def _lines(name: str, title: str) -> Lines:
    return Lines(
        title=f"{name}: {title}",
        measure=_ERROR,
        axis=_FIGURES[name].axis,
        panels=(),
        log="",
        where={"data": name},
    )


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="dpcube/figures9-12",
        title="Figures 9 to 12: the error formulas for a query inside one part",
        work=Formulas(),
        trials=1,
        views=(
            _lines("Fig. 9", "error against the size of the query"),
            _lines("Fig. 10", "error against the budget of the first phase"),
            _lines("Fig. 11(a)", "error against the size of the part"),
            _lines("Fig. 11(b)", "error against the smoothness of the data"),
            _lines("Fig. 12", "error against the inconsistency of cells and leaf"),
        ),
        reported="For smooth data uniform estimation is ahead of least squares and wants little budget for the cells; "
        "for data of unknown shape it is the other way round.",
        differs="The formulas are the paper's, computed by one integral each instead of simulated. Weighted least "
        "squares is ours: the printed one is right for equal budgets only, and with α₁ ≠ α₂ leaves accuracy on the "
        "table. Equation 8 treats an inconsistency that is itself noisy as fixed, so it is a heuristic.",
        claims=_FORMULA_CLAIMS,
    ),
    *dpcube_histograms.EXPERIMENTS,
    *dpcube_compared.EXPERIMENTS,
    *dpcube_uses.EXPERIMENTS,
)
