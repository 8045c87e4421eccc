"""`mixture` on wide tables: error beside independence and plain residual tables, records, coverage.

Error is the mean total variation over all pairs, or triples of at most 10⁵ cells, of counts divided by records. Without
options on made-up tables of 5, 15 and 40 columns; ``--data FILE`` reads a CSV with a header, whose numbers are cut into
at most 100 bins between their least and largest and whose words are taken as the public list (for measuring only).
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.mixture import Mixture
from dphist.mechanisms.residuals import measure_residuals
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, code_type
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.private.noise import Keystream, Noise
from dphist.private.queries.tables import TableTotals
from dphist.private.records import PrivateRecords, open_records_gate
from dphist_bench.measuring import Line
from dphist_bench.timing import peak_memory

FloatArray = NDArray[np.float64]
# Budgets by their names: pure ε, and ρ for (ε, 10⁻⁹).
BUDGETS = {"ρ": ("0.1", "1", "10"), "ε": ("0.1", "1", "10")}
LARGEST_TRIPLE = 100_000


def measure(
    *,
    quick: bool,
    data: Annotated[Path | None, "a CSV of records with a header, instead of made-up ones"] = None,
    runs: Annotated[int, "releases of each kind"] = 3,
    draws: Annotated[int, "releases whose intervals are counted"] = 16,
) -> Iterator[Line]:
    """Give errors, what records keep, and coverage."""
    if data is not None:
        yield from errors("file", read(data), 1 if quick else runs, quick)
        return
    for name, held in matrix(quick):
        yield from errors(name, held, 1 if quick else runs, quick)
    yield from coverage(made(6, (2, 5, 20), 0.6, 500 if quick else 20_000), 2 if quick else draws, quick)


def read(path: Path) -> CodedColumns:
    """Records of a CSV file as codes."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    attributes: list[Any] = []
    columns = []
    for name in rows[0]:
        words = [str(row[name]).strip() for row in rows]
        try:
            numbers = np.array(words, dtype=np.float64)
        except ValueError:
            levels, codes = np.unique(words, return_inverse=True)
            attributes.append(Nominal(name, levels.tolist()))
        else:
            width = max(1.0, math.ceil((numbers.max() - numbers.min() + 1) / 100))
            codes = ((numbers - numbers.min()) // width).astype(np.int64)
            attributes.append(Ordinal(name, range(int(codes.max()) + 1)))
        columns.append(codes.reshape(-1).astype(code_type(attributes[-1].size)))
    return CodedColumns(Domain(attributes), tuple(columns))


def made(columns: int, levels: tuple[int, ...], correlation: float, rows: int, seed: int = 7) -> CodedColumns:
    """Made-up records: three hidden numbers, uneven margins, every other column in no order."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    hidden = draw.standard_normal((rows, 3))
    attributes: list[Any] = []
    held = []
    for place in range(columns):
        size = levels[place % len(levels)]
        load = draw.standard_normal(3)
        part = correlation * draw.uniform(0.5, 1.0)
        value = part * (hidden @ (load / np.linalg.norm(load)))
        value += math.sqrt(1.0 - part * part) * draw.standard_normal(rows)
        margins = np.cumsum(draw.dirichlet(np.full(size, 1.0 if place % 2 else 3.0)))[:-1]
        codes = np.searchsorted(margins, np.argsort(np.argsort(value)) / rows)
        if place % 2:
            attributes.append(Ordinal(f"c{place}", range(size)))
        else:
            codes = draw.permutation(size)[codes]
            attributes.append(Nominal(f"c{place}", [f"v{value}" for value in range(size)]))
        held.append(codes.astype(code_type(size)))
    return CodedColumns(Domain(attributes), tuple(held))


def matrix(quick: bool) -> Iterator[tuple[str, CodedColumns]]:
    """Columns × levels × correlation × records."""
    if quick:
        yield "4 × 3, 0.6, 500", made(4, (3,), 0.6, 500)
        return
    for columns, kinds in (
        (5, ((2,), (10,), (2, 5, 20, 60))),
        (15, ((2,), (10,), (2, 5, 20, 60))),
        (40, ((2, 3, 4, 8),)),
    ):
        for levels in kinds:
            for correlation in (0.0, 0.6, 0.9):
                for rows in (3_000, 50_000):
                    name = f"{columns} × {'/'.join(map(str, levels))}, {correlation}, {rows:,}"
                    yield name, made(columns, levels, correlation, rows)


def errors(name: str, held: CodedColumns, runs: int, quick: bool) -> Iterator[Line]:
    """Mean total variation of independence, residual tables cut to the simplex, and `mixture`; records; cost."""
    columns = len(held.domain.shape)
    pairs = list(combinations(range(columns), 2))
    triples = [t for t in combinations(range(columns), 3) if _cells(held, t) <= LARGEST_TRIPLE][
        :: 1 if name == "file" else 1 + columns // 6
    ]
    for currency, sizes in BUDGETS.items():
        for epsilon in sizes[1:2] if quick else sizes:
            found: dict[str, list[float]] = {}
            for seed in range(runs):
                budget = (
                    Budget.of(epsilon=epsilon)
                    if currency == "ε"
                    else Budget.of(epsilon=epsilon, delta="1e-9")
                )
                right = right_of(held, budget, seed)
                single = independence(right)
                residuals = measure_residuals(right_of(held, budget, seed), pairs)
                start = time.process_time()
                estimate = (Mixture(classes=8, steps=30) if quick else Mixture()).estimate_tables(
                    right_of(held, budget, seed)
                )
                spent = time.process_time() - start
                for kind, value in {
                    "independence": variation(held, pairs, single),
                    "residuals": variation(held, pairs, lambda t, r=residuals: nonnegative(r.table(t))),  # type: ignore[misc]
                    "mixture": variation(held, pairs, estimate.tables.__getitem__),
                    # What is dear to look at, at one size of budget alone.
                    "triples": variation(held, triples, estimate.model.table)  # type: ignore[union-attr]
                    if epsilon == "1"
                    else math.nan,
                    "records": variation(held, pairs, _recorded(estimate, held))
                    if epsilon == "1"
                    else math.nan,
                    "CPU s": spent,
                }.items():
                    found.setdefault(kind, []).append(value)
            means = {kind: float(np.mean(values)) for kind, values in found.items()}
            best = min(means["independence"], means["residuals"])
            yield {"table": name, "budget": f"{currency} {epsilon}", **means, "ratio": means["mixture"] / best,
                   "GB": peak_memory() / 1e9, "least": min(found["mixture"]), "largest": max(found["mixture"]),
                   "triples at most": max(found["triples"])}  # fmt: skip


def independence(right: PrivateRecords) -> Callable[[Axes], FloatArray]:
    """Single columns with the whole budget, and nothing else: what has to be beaten."""
    from fractions import Fraction

    columns = len(right.shape)
    ones = tuple((axis,) for axis in range(columns))
    noisy = right.measure(TableTotals(ones, (Fraction(1, columns),) * columns))
    parts = np.split(noisy.values.astype(np.float64), np.cumsum(right.shape)[:-1])
    weights = 1.0 / np.array(right.shape)
    total = max(1.0, float(np.average([part.sum() for part in parts], weights=weights)))
    shares = [nonnegative(part, total) / total for part in parts]
    return lambda axes: np.asarray(np.multiply.outer(shares[axes[0]], shares[axes[1]]), dtype=np.float64)


def variation(held: CodedColumns, tables: Sequence[Axes], answer: Callable[[Axes], FloatArray]) -> float:
    """The mean total variation between true tables and answers, each as shares."""
    far = []
    for axes in tables:
        found = answer(axes)
        far.append(
            0.5 * np.abs(held.tables([axes])[0] / held.rows - found / max(float(found.sum()), 1e-300)).sum()
        )
    return float(np.mean(far)) if far else math.nan


def coverage(held: CodedColumns, draws: int, quick: bool) -> Iterator[Line]:
    """How often 95 % intervals hold the truth, table by table: the worst of all covered tables."""
    tables = [axes for ways in (1, 2) for axes in combinations(range(len(held.domain.shape)), ways)]
    exact: Mapping[Axes, Any] = dict(zip(tables, held.tables(tables), strict=True))
    for currency in BUDGETS:
        held_in: dict[Axes, list[float]] = {}
        for seed in range(draws):
            budget = Budget.of(epsilon=1) if currency == "ε" else Budget.of(epsilon=1, delta="1e-9")
            estimate = Mixture(classes=8, steps=30 if quick else 100).estimate_tables(
                right_of(held, budget, seed)
            )
            for axes in tables:
                shown = estimate.errors.table_interval(axes, estimate.tables[axes], 0.95)
                if np.isfinite(shown.low).all():
                    inside = (shown.low <= exact[axes]) & (exact[axes] <= shown.high)
                    held_in.setdefault(axes, []).append(float(inside.mean()))
        shares = {axes: float(np.mean(each)) for axes, each in held_in.items()}
        # A table of few cells is a few questions: chance alone takes it further from its mean.
        many = [share for axes, share in shares.items() if draws * exact[axes].size >= 1_000]
        yield {"95 % intervals": f"{currency} 1", "tables covered": len(shares),
               "held": float(np.mean(list(shares.values()))), "worst table": min(shares.values()),
               "worst of 1,000 cells over all draws": min(many, default=math.nan)}  # fmt: skip


def _counted(codes: NDArray[np.int64], held: CodedColumns) -> Callable[[Axes], FloatArray]:
    """Tables of records that were made up."""
    columns = tuple(
        np.minimum(codes[:, place], size - 1).astype(code_type(size))
        for place, size in enumerate(held.domain.shape)
    )
    records = CodedColumns(held.domain, columns)
    return lambda axes: records.tables([axes])[0].astype(np.float64)


def right_of(held: CodedColumns, budget: Budget, seed: int) -> PrivateRecords:
    """A right over records, with noise that is a test's."""
    return open_records_gate(held, budget, Unit(), noise=Noise(Keystream.for_tests(seed)))[0]


def _recorded(estimate: TableEstimate, held: CodedColumns) -> Callable[[Axes], FloatArray]:
    codes = estimate.model.sample(max(1, round(estimate.total)), 0)  # type: ignore[union-attr]
    return _counted(np.stack(codes, axis=1), held)


def _cells(held: CodedColumns, axes: Axes) -> int:
    return math.prod(held.domain.shape[axis] for axis in axes)
