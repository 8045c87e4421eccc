"""ρ through the same gate: L2 promises, groups and wiring, each worked out here apart from the code."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphist
from dphist import Domain, Histogram, Ordinal, Unit
from dphist.errors import MechanismError, NotPrivate
from dphist.mechanisms import Gaussian, Laplace
from dphist.model.budget import Budget
from dphist.model.conversion import choice_epsilon, epsilon_for_rho
from dphist.private.pricing import Change, UnitBudget
from dphist.private.queries.counting import Identity, Middles, Totals
from dphist.private.queries.prefixes import PrefixRoots, root_weights
from dphist.private.queries.wavelet import WaveletCells
from dphist.private.questions import Layout, Scales
from dphist.private.scores.counting import Medians
from dphist.private.segments import AbsoluteDeviation
from dphist.private.sparse import Above
from dphist.testing import Draw, RecordingNoise, open_counts
from dphist_bench.attacks.twin import Stage, Tally

sys.path += [str(Path(__file__).parent)]

from every_question import QUERIES

RHO = Fraction(3, 50)
COUNTS = [5, 0, 9, 2, 7, 7]
ROWS = [
    (q, layout) for kind, each in QUERIES.items() if kind not in (WaveletCells, Above) for q, layout in each
]
PROMISED = [(q, layout) for q, layout in ROWS if hasattr(q, "variances")]


def data(size: int) -> Any:
    rng = np.random.default_rng(size)
    every = np.array(list(product(range(3 if size < 6 else 2), repeat=size)), dtype=np.int64)
    yield from every if len(every) <= 81 else every[rng.choice(len(every), 40, replace=False)]
    for most in (50, 10**6, 2**40, 2**62 // size):
        yield rng.integers(0, most, size)


def weighed(question: Any, layout: Layout, moved: np.ndarray) -> Fraction:
    """Σ Δᵢ² ÷ varianceᵢ."""
    variances = question.variances(layout)
    flat = [int(m) for m in moved.reshape(-1)]
    if isinstance(variances, Scales):
        index = variances.index.reshape(-1)
        return sum(
            (Fraction(m * m) / variances.values[int(i)] for i, m in zip(index, flat, strict=True)),
            Fraction(0),
        )
    whole: Fraction = Fraction(sum(m * m for m in flat)) / variances
    return whole


@pytest.mark.parametrize(
    ("question", "layout"), PROMISED, ids=[f"{type(q).__name__}-{i}" for i, (q, _) in enumerate(PROMISED)]
)
def test_no_step_moves_a_query_further_than_its_variances(question: Any, layout: Layout) -> None:
    worst = Fraction(0)
    for counts in data(layout.size):
        before = question.answer(counts, layout)
        for cell in range(layout.size):
            after = question.answer(counts + (np.arange(layout.size) == cell), layout)
            worst = max(worst, weighed(question, layout, after - before))
    assert Fraction(1, 4) <= worst <= 1


def test_what_has_a_promise_for_gaussian_noise() -> None:
    """Every class that has one is brute-forced above; cells from wavelets are drawn by their coefficients' promise."""
    promised = {kind for kind in QUERIES if hasattr(kind, "variances")}
    assert {type(q) for q, _ in PROMISED} == promised - {WaveletCells}
    assert {kind.__name__ for kind in set(QUERIES) - promised} == {"Frequencies", "Above"}


def test_prefix_roots_of_huge_counts_do_not_wrap() -> None:
    """Wrapped sums would be as private, and nonsense."""
    answers = PrefixRoots().answer(np.full(4, 2**61), Layout((4,)))
    assert answers[0] > 0
    assert (np.diff(answers) > 0).all()


UNITS = [
    Unit(),
    Unit(replace=True),
    Unit(rows=2),
    Unit(rows=2, replace=True),
    Unit(cells=2),
    Unit(cells=2, per_cell=2),
    Unit(cells=2, replace=True),
]


def people(unit: Unit, size: int) -> Any:
    """Every way in which the rows of one unit can come and go, as (rows that come, rows that go)."""
    most = unit.per_cell or unit.rows
    sides = [
        np.array(v)
        for v in product(range(most + 1), repeat=size)
        if sum(v) <= unit.rows and sum(x > 0 for x in v) <= (unit.cells or size)
    ]
    for come in sides:
        for go in sides if unit.replace else [np.zeros(size, dtype=int)]:
            yield come, go


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.describe())
def test_nobody_moves_answers_further_than_the_factor_and_parts_add_up(unit: Unit) -> None:
    """‖A(a − b)‖² is at most the factor; over disjoint cells the parts' costs sum to at most one, whatever is asked."""
    change, size = Change.of(unit), 4
    rng = np.random.default_rng(5)
    matrices: list[tuple[Any, np.ndarray]] = [("disjoint", np.eye(size))]
    for _ in range(6):
        positive = rng.integers(0, 4, (3, size)).astype(float)
        matrices.append(("nonnegative", positive / np.sqrt((positive**2).sum(axis=0).max())))
        signed = rng.integers(-3, 4, (3, size)).astype(float)
        matrices.append(("any", signed / np.sqrt((signed**2).sum(axis=0).max())))
    matrices += [
        ("nonnegative", np.ones((1, size))),
        ("nonnegative", np.kron(np.eye(2), np.ones((1, 2)))),
        ("any", np.array([[1.0, -1.0, 1.0, -1.0]])),
    ]
    halves = [np.array(mask, dtype=bool) for mask in ((1, 1, 0, 0), (1, 0, 0, 0), (0, 0, 1, 0))]
    worst = dict.fromkeys(("disjoint", "nonnegative", "any"), 0.0)
    for come, go in people(unit, size):
        moved = come - go
        for moves, matrix in matrices:
            cost = float(((matrix @ moved) ** 2).sum()) / change.squared(moves)
            worst[moves] = max(worst[moves], cost)
        for mask in halves:
            dearest = [
                max(
                    float(((m @ np.where(side, moved, 0)) ** 2).sum()) / change.squared(k)
                    for k, m in matrices
                )
                for side in (mask, ~mask)
            ]
            assert sum(dearest) <= 1 + 1e-9
    assert max(worst.values()) <= 1 + 1e-9
    assert worst["disjoint"] == pytest.approx(1)
    assert worst["nonnegative"] == pytest.approx(1)


def test_merged_cells_know_less() -> None:
    change = Change.of(Unit(cells=3, per_cell=2, replace=True))
    assert (change.steps, change.disjoint, change.nonnegative) == (12, 24, 72)
    assert (change.merged().disjoint, change.merged().nonnegative) == (72, 72)


WAYS: dict[str, tuple[Any, Fraction]] = {
    "as opened": (lambda right: right, Fraction(1)),
    "a share": (lambda right: right.split("1/4", "3/4")[1], Fraction(3, 4)),
    "a share of a part": (
        lambda right: right.partition([0, 0, 0, 1, 1, 1]).split("1/3", "2/3")[0].partition([0] * 6),
        Fraction(1, 3),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", UNITS, ids=lambda u: u.describe())
def test_measure_draws_what_the_budget_pays(way: str, unit: Unit) -> None:
    for query, variance, squared in (
        (Identity(), 1, unit.squared),
        (Totals(), 1, unit.rows**2 * (2 if unit.replace else 1)),
        (Middles(), 1, unit.steps**2),
        (PrefixRoots(), None, unit.rows**2 * (2 if unit.replace else 1)),
    ):
        noise = RecordingNoise(seed=1)
        right = WAYS[way][0](open_counts(COUNTS, Budget(RHO, "rho"), unit=unit, noise=noise))
        variance = variance or int((root_weights(right.size) ** 2).sum())
        expected = Fraction(variance * squared) / (2 * RHO * WAYS[way][1])
        noisy = right.measure(query)
        assert noise.drawn == [Draw("gaussian", (expected,), noisy.values.size)]
        assert noisy.law.size == expected
        assert noisy.variance == pytest.approx(float(expected))


def test_laplace_noise_choices_and_partitions_under_rho() -> None:
    unit = Unit(rows=3)
    pure, choice = epsilon_for_rho(RHO), choice_epsilon(RHO / 1)

    def opened() -> tuple[Any, RecordingNoise]:
        noise = RecordingNoise(seed=1)
        return open_counts(COUNTS, Budget(RHO, "rho"), unit=unit, noise=noise), noise

    right, noise = opened()
    assert right.unit_scale == 3 / pure
    right.measure(Identity(), "laplace")
    assert noise.drawn == [Draw("laplace", (3 / pure,), 6)]
    right, noise = opened()
    right.choose(Medians(np.arange(6), np.array([6])))
    assert noise.drawn[0].amounts == (choice / 3 / 2,)
    right, noise = opened()
    right.segment(AbsoluteDeviation())
    assert max(draw.amounts[0] for draw in noise.drawn) * pure / 3 == max(
        draw.amounts[0] for draw in _segmented()
    )


def _segmented() -> list[Draw]:
    noise = RecordingNoise(seed=1)
    open_counts(COUNTS, 1, noise=noise).segment(AbsoluteDeviation())
    return noise.drawn


def test_gaussian_noise_under_epsilon_or_without_a_promise_is_refused() -> None:
    with pytest.raises(NotPrivate, match="rho"):
        open_counts(COUNTS, 1).measure(Identity(), "gaussian")
    with pytest.raises(MechanismError, match="no promise"):
        open_counts(COUNTS, Budget(RHO, "rho")).measure(Above(2), "gaussian")
    with pytest.raises(MechanismError, match="priced"):
        UnitBudget.of(Budget(RHO, "rho"), Unit()).price(Identity(), Layout((2,))).noise(
            RecordingNoise(1)
        ).laplace(Fraction(1), 2)


@pytest.mark.parametrize(
    "mechanism", ["gaussian", "laplace", "tree", "adaptivetree", "posterior", "efpa", "structurefirst"]
)
def test_releases_of_rho_survive_the_file_and_verify(mechanism: str, tmp_path: Path) -> None:
    histogram = Histogram(Domain([Ordinal("x", range(16))]), np.arange(16) * 7 % 11)
    release = dphist.publish(histogram, epsilon=1, delta="1e-9", mechanism=mechanism, unit=Unit(rows=2))
    release.save(tmp_path / "one.parquet")
    again = dphist.load(tmp_path / "one.parquet")
    again.verify()
    assert again.guarantee == release.guarantee
    assert (again.epsilon, again.budget.currency) == (None, "rho")
    assert again.transcript.spent() == again.budget.amount
    kinds = {entry.question.get("noise") for entry in again.transcript if entry.verb == "measure"}
    assert kinds <= {"gaussian", "laplace"}
    assert "zCDP, which implies (1, 1e-09)" in again.guarantee.describe()
    answer = again.answer(where={"x": (3, 9)})
    # Noise may bring an answer below zero; its interval, which is one of a count, ends there.
    assert answer.low <= max(answer.value, 0.0) <= answer.high


def test_parts_of_a_release_of_rho() -> None:
    domain = Domain([Ordinal("x", range(3)), Ordinal("y", range(4))])
    release = dphist.publish(
        Histogram(domain, np.arange(12).reshape(3, 4)), rho="1/2", mechanism="gaussian", partition_by="x"
    )
    release.verify()
    assert release.transcript.spent() == Fraction(1, 2)
    assert len(release.transcript) == 3


def test_the_twin_knows_how_likely_gaussian_answers_are() -> None:
    """The mean loss of the Gaussian mechanism moved by one step is ρ, and so is half its variance."""
    domain = Domain([Ordinal("x", range(2))])
    one, other = (Histogram(domain, np.array([n, 4])) for n in (30, 31))
    stage, losses = Stage(one, other, Budget.of(rho=Fraction(1, 8))), []
    for _ in range(4000):
        tally = Tally()
        Gaussian().estimate(stage.open(tally))
        losses.append(tally.loss)
    assert np.mean(losses) == pytest.approx(1 / 8, abs=0.05)
    assert np.var(losses) == pytest.approx(1 / 4, rel=0.15)
    tally = Tally()
    Laplace().estimate(stage.open(tally))
    assert abs(tally.loss) <= float(epsilon_for_rho(Fraction(1, 8))) * (1 + 1e-9)
