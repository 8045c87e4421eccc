"""Is `mixture` ever worse than the better of independence and plain residual tables? A matrix of made-up tables.

Columns × values × dependence × records × budgets in both currencies, from generators of different kinds, so that what
was chosen on one can be checked on another. Error is the mean total variation over all pairs. Independence is single
columns with the whole budget and nothing else; plain tables are residuals with their best shares, each table cut to
the simplex by itself.

Two draws of a few numbers are far apart whatever is made of them. So an error of `mixture` is divided by that of the
same measurements without model and shrinking (plain tables, or single columns), and multiplied by what that is expected
to be over many draws, at the variance that `mixture` left for it: *steadied*, unless that leaves more doubt than the
plain mean does. Looks and trials are paid for in it.
The rule is about expected errors; *doubt* is the deviation of the ratio that single releases leave, and cases above the
limit by more than two of it are counted by themselves. (Which way is gone differs from release to release, so few
releases of a case in which both are gone say little.) Errors below a tenth of a record are none: with much budget and
few cells plain tables are often exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.inference.tables.measured import Axes
from dphist.inference.tables.residuals import TableResiduals
from dphist.mechanisms.mixture import Mixture
from dphist.mechanisms.residuals import measure_residuals
from dphist.mechanisms.wide.noise import planned_variances
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, code_type
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist_bench.measurements.accuracy.widemodels import independence, made, right_of
from dphist_bench.measuring import Line

FloatArray = NDArray[np.float64]

LIMIT = 1.02
EPSILONS = ("0.1", "1", "10")
# Draws of independence and of plain tables for each release of `mixture`.
_MORE = 3
# Records: an error of less is none.
_NONE = 0.1
KINDS = {"2": (2,), "10": (10,), "mixed": (2, 5, 20, 60), "few": (2, 3, 4, 8)}


def measure(
    *,
    quick: bool,
    generator: Annotated[str, "who makes the records: hidden, chain or classes"] = "chain",
    columns: Annotated[str, "numbers of columns, with commas"] = "5,15,40",
    strengths: Annotated[str, "of dependence, with commas"] = "0,0.3,0.8",
    values: Annotated[str, "of a column, with commas: 2, 10, mixed, few"] = "2,10,mixed,few",
    runs: Annotated[int, "releases of each case; tables of few values get 4, 8 or 32 times as many"] = 2,
    seed: Annotated[int, "of the records, for some that nobody has looked at; 0 is the generator's own"] = 0,
    classes: Annotated[int, "of the model: fewer are faster"] = 120,
    steps: Annotated[int, "of its fit"] = 700,
) -> Iterator[Line]:
    """Give the ratio for every case, and how many are within the limit."""
    found, surely = list[float](), 0
    mechanism = Mixture(classes=8, steps=20) if quick else Mixture(classes=classes, steps=steps)
    cases = (
        [(4, "2", 0.6, 500)]
        if quick
        else matrix(
            [int(each) for each in columns.split(",")], [float(each) for each in strengths.split(",")]
        )
    )
    for number, (count, kind, strength, rows) in enumerate(cases):
        if not quick and kind not in values.split(","):
            continue
        own = {"seed": seed} if seed else {}
        held = GENERATORS[generator](count, KINDS[kind], strength, rows, **own)
        for line in one_table(held, mechanism, 1 if quick else runs, quick, 10_000 * number):
            found.append(float(line["ratio"]))
            surely += float(line["ratio"]) > LIMIT + 2.0 * float(line["doubt"])
            yield {"columns": count, "values": kind, "dependence": strength, "records": rows, **line}
    within = sum(ratio <= LIMIT for ratio in found)
    yield {"cases": len(found), f"within {LIMIT}": within, "surely above": surely,
           "within 1.05": sum(ratio <= 1.05 for ratio in found),
           "worst": max(found), "mean": float(np.exp(np.mean(np.log(found))))}  # fmt: skip


def matrix(columns: Sequence[int], strengths: Sequence[float]) -> list[tuple[int, str, float, int]]:
    """Columns, values, dependence and records of every case."""
    return [
        (count, kind, strength, rows)
        for count in columns
        for kind in (("few",) if count > 20 else ("2", "10", "mixed"))
        for strength in strengths
        for rows in (3_000, 50_000)
    ]


def one_table(
    held: CodedColumns, mechanism: Mixture, runs: int, quick: bool, first: int
) -> Iterator[dict[str, Any]]:
    """All budgets of one table; no two cases share a seed, or the luck of one draw would count many times."""
    columns = len(held.domain.shape)
    # Few numbers are measured of few values: single draws are far apart there, and cheap.
    cells = sum(held.domain.shape) ** 2
    runs = (
        runs if quick else runs * (32 if cells < 300 else 8 if cells < 3_000 else 4 if cells < 30_000 else 1)
    )
    pairs = list(combinations(range(columns), 2))
    truth = {axes: table / held.rows for axes, table in zip(pairs, held.tables(pairs), strict=True)}

    dependence = float(
        np.mean([0.5 * np.abs(t - np.outer(t.sum(axis=1), t.sum(axis=0))).sum() for t in truth.values()])
    )

    def away(answer: Callable[[Axes], FloatArray]) -> float:
        far = []
        for axes in pairs:
            found = answer(axes)
            far.append(0.5 * float(np.abs(truth[axes] - found / max(float(found.sum()), 1e-300)).sum()))
        return float(np.mean(far))

    for currency in ("ρ", "ε"):
        for epsilon in EPSILONS[1:2] if quick else EPSILONS:
            first += 1_000
            budget = (
                Budget.of(epsilon=epsilon) if currency == "ε" else Budget.of(epsilon=epsilon, delta="1e-9")
            )
            law = right_of(held, budget, 0).law()
            planned = planned_variances(law, held.domain.shape, pairs, pairs)[0]
            single = float(law.variance) * columns**law.exponent
            drawn, errors, spent, note = np.zeros((_MORE * runs, 2)), list[float](), 0.0, ""
            beside = list[tuple[bool, float, float]]()
            for seed in range(_MORE * runs):
                plain = measure_residuals(right_of(held, budget, first + 100 + seed), pairs)
                drawn[seed] = (
                    away(independence(right_of(held, budget, first + 500 + seed))),
                    away(lambda axes, plain=plain: nonnegative(plain.table(axes))),  # type: ignore[misc]
                )
            alone, whole = (float(each) for each in drawn.mean(axis=0))
            for seed in range(runs):
                start = time.process_time()
                estimate = mechanism.estimate_tables(right_of(held, budget, first + 900 + seed))
                spent += time.process_time() - start
                errors.append(away(estimate.tables.__getitem__))
                own, note = estimate.errors.residuals, estimate.note  # type: ignore[attr-defined]
                if all(own.covers(pair) for pair in pairs) and not _mostly_single(estimate.made_by):
                    dearer = float(np.mean([own.cell_variance(pair) for pair in pairs]) / planned.mean())
                    same = away(lambda axes, own=own: nonnegative(own.table(axes)))  # type: ignore[misc]
                    beside.append((True, same, whole * math.sqrt(dearer)))
                else:
                    # In a column's total variation its noise counts as often as it has values.
                    each = np.array([own.cell_variance((a,)) for a in range(columns)])
                    dearer = float(np.average(each, weights=np.square(held.domain.shape))) / single
                    same = away(lambda axes, own=own: chance(own, axes))  # type: ignore[misc]
                    noise = max(alone**2 - dependence**2, 0.0) * dearer
                    beside.append((False, same, math.sqrt(min(dependence, alone) ** 2 + noise)))
            none = _NONE / held.rows
            # Where a handful of numbers is measured, what is made of them follows them too little to be steadied.
            found = np.array(errors)
            plainly = doubt(found, [(True, 1.0, 1.0)] * runs, drawn) < doubt(found, beside, drawn)
            beside = [(True, 1.0, 1.0)] * runs if plainly else beside
            steadied, better = max(none, steady(found, beside)), max(none, min(alone, whole))
            yield {"budget": f"{currency} {epsilon}", "independence": alone, "plain": whole,
                   "mixture": float(np.mean(errors)), "steadied": steadied, "ratio": steadied / better,
                   "doubt": doubt(found, beside, drawn) if better > none else 0.0,
                   "CPU s": spent / runs, "how": note.split(" were measured")[0][-40:]}  # fmt: skip


def _mostly_single(made_by: Any) -> bool:
    """Whether pairs were measured with a part of the budget, and single columns had the rest."""
    return bool(made_by is not None and made_by.course.part and made_by.course.way == "apart")


def steady(errors: FloatArray, beside: Sequence[tuple[bool, float, float]]) -> float:
    """The mean error, each way by the mean of the same measurements without a model and by what that should be."""
    kinds, same, expected = (np.array(each) for each in zip(*beside, strict=True))
    found = 0.0
    for kind in np.unique(kinds):
        here = kinds == kind
        found += errors[here].sum() / max(float(same[here].sum()), 1e-12) * expected[here].sum()
    return float(found / len(errors))


def doubt(errors: FloatArray, beside: Sequence[tuple[bool, float, float]], drawn: FloatArray) -> float:
    """The deviation of the ratio: that of single releases, and that of the draws of what it is compared with."""
    better = drawn[:, int(np.argmin(drawn.mean(axis=0)))]
    _, same, expected = (np.array(each) for each in zip(*beside, strict=True))
    ours = errors / np.maximum(same, 1e-12) * expected
    parts = [
        each.std(ddof=1) / math.sqrt(each.size) / each.mean() for each in (ours, better) if each.size > 1
    ]
    return float(np.hypot(*parts) if len(parts) == 2 else sum(parts)) * float(ours.mean() / better.mean())


def chance(own: TableResiduals, axes: Axes) -> FloatArray:
    """A pair as chance would have it, from single columns that were measured."""
    total = max(1.0, float(own.table(())))
    parts = [nonnegative(own.table((axis,)), total) / total for axis in axes]
    return np.asarray(np.multiply.outer(*parts), dtype=np.float64)


def chain(columns: int, levels: Sequence[int], strength: float, rows: int, seed: int = 11) -> CodedColumns:
    """Every column leans on an earlier one: some records copy it through a random map, others draw by themselves."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    held: list[NDArray[np.int64]] = []
    for place in range(columns):
        size = levels[place % len(levels)]
        chances = draw.permutation(1.0 / (1.0 + np.arange(size)) ** draw.uniform(0.0, 1.3))
        own = draw.choice(size, rows, p=chances / chances.sum())
        if place:
            before = int(draw.integers(0, place))
            mapped = draw.integers(0, size, levels[before % len(levels)])
            own = np.where(draw.random(rows) < strength, mapped[held[before]], own)
        held.append(own)
    return coded(levels, held)


def hidden_classes(
    columns: int, levels: Sequence[int], strength: float, rows: int, seed: int = 13
) -> CodedColumns:
    """Twelve hidden classes; each has values of its own in every column, as often as the strength says."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    member = draw.choice(12, rows, p=draw.dirichlet(np.full(12, 2.0)))
    held = []
    for place in range(columns):
        size = levels[place % len(levels)]
        common = draw.dirichlet(np.full(size, 0.7))
        chances = np.stack(
            [(1.0 - strength) * common + strength * draw.dirichlet(np.full(size, 0.3)) for _ in range(12)]
        )
        up = np.cumsum(chances, axis=1)[member]
        held.append((draw.random(rows)[:, None] > up[:, :-1]).sum(axis=1))
    return coded(levels, held)


def coded(levels: Sequence[int], held: Sequence[NDArray[np.int64]]) -> CodedColumns:
    """Records as coded columns, every other one in no order."""
    attributes: list[Any] = []
    for place in range(len(held)):
        size = levels[place % len(levels)]
        ordered = Ordinal(f"c{place}", range(size))
        attributes.append(
            ordered if place % 2 else Nominal(f"c{place}", [f"v{value}" for value in range(size)])
        )
    columns = tuple(
        each.astype(code_type(attribute.size)) for each, attribute in zip(held, attributes, strict=True)
    )
    return CodedColumns(Domain(attributes), columns)


GENERATORS: dict[str, Callable[..., CodedColumns]] = {
    "hidden": made,
    "chain": chain,
    "classes": hidden_classes,
}
