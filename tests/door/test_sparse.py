"""The sparse release: the law of the dense one, domains that no array holds, answers, and the file."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dphist
from dphist import audit
from dphist.errors import MechanismError, QueryError, ReleaseError, TooLargeError, VerificationError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.noise.hits import _Binomial, _uniform, probability
from dphist.private.noise.hits import hits as _hits
from dphist.private.queries.counting import Identity
from dphist.private.sparse import Above, Occupied
from dphist.publishing.door import _sparse

HUGE = Domain([Ordinal("x", range(10**6)), Ordinal("y", range(10**6))])


def alpha(scale: Fraction) -> float:
    return float(np.exp(-1 / float(scale)))


def law(count: int, scale: Fraction, threshold: int, values: range) -> dict[int | None, float]:
    """What the dense mechanism shows of one cell: a value, or nothing (None)."""
    a = alpha(scale)
    shown = {v: (1 - a) / (1 + a) * a ** abs(v - count) for v in values if v >= threshold}
    return {**shown, None: 1 - sum(shown.values())}  # type: ignore[dict-item]


def chi_square(seen: Counter[Any], expected: dict[Any, float], draws: int) -> float:
    """The p-value; outcomes expected fewer than five times are counted together."""
    rare = [key for key, share in expected.items() if share * draws < 5]
    common = [key for key in expected if key not in rare]
    observed = [seen[key] for key in common]
    wanted = [expected[key] * draws for key in common]
    observed.append(draws - sum(observed))
    wanted.append(max(draws - sum(wanted), 1e-9))
    if wanted[-1] < 5:
        observed[-2:], wanted[-2:] = [sum(observed[-2:])], [sum(wanted[-2:])]
    return float(stats.chisquare(observed, np.array(wanted) * draws / sum(wanted)).pvalue)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense gate", "sparse gate"])
def test_its_law_is_that_of_noise_on_every_cell_and_a_threshold(sparse: bool) -> None:
    """Joint outcomes of three cells, one empty, one below the threshold, one above; fixed seed."""
    counts, scale, threshold, draws = [0, 1, 4], Fraction(1), 2, 6000
    domain = Domain([Ordinal("x", range(3))])
    held = Occupied.of(domain, np.array([1, 2]), np.array([1, 4]))
    noise = Noise(Keystream.for_tests(5))
    seen: Counter[Any] = Counter()
    for _ in range(draws):
        if sparse:
            right, _ = open_gate(held, 1, Unit(), noise=noise)
        else:
            right, _ = open_gate(Histogram(domain, np.array(counts)), 1, Unit(), noise=noise)
        shown = dict(right.measure(Above(threshold)).values.tolist())
        seen[tuple(shown.get(cell) for cell in range(3))] += 1
    each = [law(count, scale, threshold, range(-30, 40)) for count in counts]
    expected = {
        outcome: float(np.prod([each[cell][value] for cell, value in enumerate(outcome)]))
        for outcome in itertools.product(*each)
        if np.prod([each[cell][value] for cell, value in enumerate(outcome)]) * draws > 1
    }
    assert chi_square(seen, expected, draws) > 1e-4


def test_the_check_of_the_law_can_fail() -> None:
    draws = 40_000
    noise = Noise(Keystream.for_tests(6))
    right_law = law(0, Fraction(1), 2, range(40))
    for scale, passes in ((Fraction(1), True), (Fraction(9, 10), False)):
        seen: Counter[Any] = Counter()
        for z in noise.laplace(scale, draws).tolist():
            seen[z if z >= 2 else None] += 1
        assert (chi_square(seen, right_law, draws) > 1e-4) == passes


@pytest.mark.parametrize(("size", "scale", "threshold"), [(4, 2, 1), (5, 1, 1), (3, Fraction(1, 2), 1)])
def test_every_set_of_hits_has_its_probability(size: int, scale: Any, threshold: int) -> None:
    keystream, draws = Keystream.for_tests(7), 6000
    p = probability(Fraction(scale), threshold)
    seen = Counter(tuple(_hits(keystream, size, Fraction(scale), threshold).tolist()) for _ in range(draws))
    expected = {
        chosen: p**k * (1 - p) ** (size - k)
        for k in range(size + 1)
        for chosen in itertools.combinations(range(size), k)
    }
    assert chi_square(seen, expected, draws) > 1e-4


@pytest.mark.parametrize(("size", "threshold"), [(1, 3), (2, 1), (1000, 5), (10**9, 20), (10**13, 30)])
def test_the_binomial_is_certified(size: int, threshold: int) -> None:
    made = _Binomial(Fraction(1), threshold, size)
    p = probability(Fraction(1), threshold)
    exact = stats.binom.cdf(np.arange(len(made.floors)), size, p)
    assert np.abs(np.array(made.floors, dtype=float) / 2**64 - exact).max() < 1e-9 * max(1, size * p)
    # The enclosures shrink around the same numbers as bits are added.
    for k in range(min(3, size)):
        low, high = made._bounds(k)(200)
        assert low <= high <= low + 2**100
        assert low >> 136 == made.floors[k]


def test_ties_and_tails_are_settled_by_more_bits() -> None:
    made = _Binomial(Fraction(1), 5, 1000)
    keystream = Keystream.for_tests(3)
    for k in (0, 3, 10):
        settled = {made._settle(made.floors[k], keystream) for _ in range(400)}
        assert settled <= {k, k + 1}
    assert all(made._settle(2**64 - 1, keystream) >= len(made.floors) - 3 for _ in range(5))


def test_positions_are_even() -> None:
    keystream = Keystream.for_tests(8)
    for below in (1, 2, 3, 1000, 2**40 + 1):
        drawn = _uniform(keystream, below, 20_000)
        assert drawn.min() >= 0
        assert drawn.max() < below
        if 1 < below <= 1000:
            assert stats.chisquare(np.bincount(drawn, minlength=below)).pvalue > 1e-4


def test_a_trillion_cells() -> None:
    rng = np.random.default_rng(1)
    rows = pa.table(
        {"x": rng.integers(0, 1000, 50_000) ** 2 % 10**6, "y": rng.integers(0, 3, 50_000) * 333_333}
    )
    release = dphist.publish(rows, HUGE, 1, SparseLaplace(threshold=20))
    release.verify()
    true = Counter(zip(rows["x"].to_pylist(), rows["y"].to_pylist(), strict=True))
    assert (np.diff(release.cells.flat) > 0).all()  # type: ignore[union-attr]
    assert release.cells.flat.dtype == release.cells.values.dtype == np.int64  # type: ignore[union-attr]
    assert release.cells.values.min() >= 20  # type: ignore[union-attr]
    found = {
        divmod(cell, 10**6): value
        for cell, value in zip(release.cells.flat.tolist(), release.cells.values.tolist(), strict=True)  # type: ignore[union-attr]
    }
    # Noise of scale one passes 30 with probability 10⁻¹³: what is far above the threshold is there, and near.
    assert all(abs(found[key] - count) < 30 for key, count in true.items() if count >= 50)
    # 10¹² · exp(−20) ÷ (1 + exp(−1)) ≈ 1507 empty cells; six standard deviations is 233.
    empty = sum(key not in true for key in found)
    assert abs(empty - 10**12 * probability(Fraction(1), 20)) < 240


def test_the_threshold_is_a_public_number() -> None:
    recipe = SparseLaplace()
    level = recipe.level(Fraction(1), 10**12)
    assert 10**12 * probability(Fraction(1), level) <= 100 < 10**12 * probability(Fraction(1), level - 1)
    assert recipe.level(Fraction(1), 10) == 1
    empty = pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.int64())})
    release = dphist.publish(empty, HUGE, 1, "sparselaplace", allow_dropped=1)
    assert release.cells.threshold == level  # type: ignore[union-attr]
    with pytest.raises(MechanismError, match="raise it, or leave it out for 23"):
        dphist.publish(empty, HUGE, 1, "sparselaplace(threshold=5)")
    for bad in (0, -1, 1.5, True):
        with pytest.raises(MechanismError, match="threshold must be"):
            SparseLaplace(threshold=bad)  # type: ignore[arg-type]


def test_answers_and_their_intervals() -> None:
    domain = Domain([Ordinal("x", range(1000)), Nominal("s", ["a", "b"], other=True)])
    counts = np.zeros((1000, 3), dtype=np.int64)
    counts[::50] = [[400, 0, 35]]
    histogram = Histogram(domain, counts)
    # A seed, because an interval may miss once in a while.
    noise = Noise(Keystream.for_tests(9))
    release = _sparse(histogram, None, Fraction(1), SparseLaplace(threshold=8), Unit(), lambda: None, noise)
    workload = Workload.random(domain, 60, seed=2)
    answers = release.answer(workload)
    assert np.allclose(answers.value, workload.answer(release.counts))
    assert (answers.low <= answers.value).all()
    assert (answers.value <= answers.high).all()
    one = release.answer(where={"x": (100, 149), "s": "a"})
    assert one.low <= 400 <= one.high
    # A union of boxes is one question.
    union = release.answer(where={"x": [0, 100, 200], "s": "a"})
    assert union.low <= 1200 <= union.high
    assert "below 8" in union.details
    table = release.project("s")
    assert np.allclose(table.counts, release.counts.sum(axis=0))
    assert (table.low <= counts.sum(axis=0)).all()
    assert (counts.sum(axis=0) <= table.high).all()
    with pytest.raises(QueryError, match="another domain"):
        release.answer(Workload.cells(HUGE.project(["x"])))


def test_intervals_cover() -> None:
    """300 releases with fixed noise; true coverage ≥ 95 % leaves below 91 % with probability under 10⁻³."""
    domain = Domain([Ordinal("x", range(40))])
    counts = np.zeros(40, dtype=np.int64)
    counts[[3, 4, 20, 21, 22]] = [2, 9, 5, 30, 1]
    histogram = Histogram(domain, counts)
    workload = Workload(domain, [[3], [4], [0], [20], [0]], [[4], [5], [3], [23], [40]])
    truth = workload.answer(counts)
    noise = Noise(Keystream.for_tests(4))
    covered = np.zeros(5)
    for _ in range(300):
        release = _sparse(
            histogram, None, Fraction(1), SparseLaplace(threshold=4), Unit(), lambda: None, noise
        )
        answers = release.answer(workload)
        covered += (answers.low <= truth) & (truth <= answers.high)
    assert (covered >= 0.91 * 300).all()


def test_the_file(tmp_path: Any) -> None:
    domain = Domain([Ordinal("x", range(5, 10**9)), Nominal("estimate", ["a", "b"])])
    rows = pa.table({"x": [7] * 90 + [10**8] * 50, "estimate": ["a"] * 90 + ["b"] * 50})
    release = dphist.publish(rows, domain, 1, "sparselaplace", unit=Unit(rows=2))
    release.save(tmp_path / "out.parquet")
    back = dphist.load(tmp_path / "out.parquet")
    back.verify()
    assert back.cells.same(release.cells)
    assert (back.domain, back.epsilon, back.mechanism) == (release.domain, release.epsilon, release.mechanism)
    assert back.guarantee == release.guarantee
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["x", "estimate", "cell", "estimate_", "low", "high"]
    assert table["x"][0].as_py() == 7
    assert table["estimate"][0].as_py() == "a"
    frame = back.to_pandas()
    assert len(frame) == len(back.cells)  # type: ignore[arg-type]
    assert len(back.records(100)) == 100
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "out.parquet").read_bytes()[:200])
    with pytest.raises(ReleaseError):
        dphist.load(tmp_path / "cut.parquet")


def test_what_was_altered_does_not_verify() -> None:
    from dataclasses import replace

    release = dphist.publish(
        Histogram(Domain([Ordinal("x", range(9))]), np.full(9, 50)), epsilon=1, mechanism="sparselaplace"
    )
    release.verify()
    cells: Any = release.cells
    with pytest.raises(VerificationError, match="other counts"):
        replace(release, cells=replace(cells, values=cells.values + 1)).verify()
    with pytest.raises(VerificationError):
        replace(release, mechanism=SparseLaplace(threshold=7)).verify()


def test_too_large_a_domain_is_told_of_it_and_other_mechanisms_are_stopped() -> None:
    rows = pa.table({"x": [1], "y": [1]})
    with pytest.raises(TooLargeError, match="sparselaplace"):
        dphist.publish(rows, HUGE, 1, "laplace")
    release = dphist.publish(rows, HUGE, 1, "sparselaplace")
    with pytest.raises(TooLargeError, match="sparse"):
        _ = release.counts
    right, _ = open_gate(Occupied.of(HUGE, np.array([5]), np.array([1])), 1, Unit())
    with pytest.raises(MechanismError, match="counts every combination"):
        right.measure(Identity())
    wide = Domain([Ordinal(f"x{i}", range(2**31)) for i in range(2)])
    with pytest.raises(TooLargeError, match="more than can be numbered"):
        dphist.publish(pa.table({"x0": [1], "x1": [1]}), wide, 1, "sparselaplace")


def test_a_sparse_release_does_what_a_release_does_or_says_why_not() -> None:
    rows = pa.table({"x": [1] * 90 + [7] * 60, "y": [1] * 90 + [9] * 60})
    release = dphist.publish(rows, HUGE, 1, "sparselaplace(threshold=30)")
    assert isinstance(release, dphist.Release)
    assert release.to_arrow().column_names == ["x", "y", "estimate", "low", "high"]
    assert release.answer("x = 7 and y = 9").value == release.answer(where={"x": 7, "y": 9}).value
    assert release.polished(nonnegative=True, integer=True).cells is release.cells
    assert len(release.records()) == int(release.cells.values.sum())  # type: ignore[union-attr]
    assert len(release.project("x").counts) == 10**6
    assert "mark" in release.plot("x").to_dict() or "layer" in release.plot("x").to_dict()
    assert "<svg" in release._repr_html_()
    with pytest.raises(TooLargeError, match="sparse"):
        release.to_xarray()
    with pytest.raises(TooLargeError, match="name fewer"):
        release.project("x", "y")
    with pytest.raises(QueryError, match="public total"):
        release.polished(total=150)
    with pytest.raises(TooLargeError, match="too many"):
        _ = release._estimate
    small = dphist.publish(
        Histogram(Domain([Ordinal("x", range(9))]), np.full(9, 50)), epsilon=1, mechanism="sparselaplace"
    )
    assert small.to_xarray().shape == (9,)
    assert np.array_equal(small._estimate.counts, small.counts)


def test_cells_named_twice_are_added() -> None:
    held = Occupied.of(HUGE, np.array([9, 2, 9, 4]), np.array([1, 5, 2, 0]))
    assert held.cells.tolist() == [2, 9]
    assert held.counts.tolist() == [5, 3]


def test_a_ledger_pays_for_it_once(tmp_path: Any) -> None:
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("adults", 1)
        rows = pa.table({"x": [1] * 40, "y": [1] * 40})
        with pytest.raises(MechanismError):
            dphist.publish(rows, HUGE, 1, SparseLaplace(threshold=1), ledger=ledger, dataset="adults")
        assert ledger.spent("adults") == 0
        release = dphist.publish(rows, HUGE, "1/2", "sparselaplace", ledger=ledger, dataset="adults")
        assert ledger.spent("adults") == Fraction(1, 2)
        assert release.receipt[0] == "adults"  # type: ignore[index]


@pytest.mark.audit
@pytest.mark.slow
def test_the_audit_finds_nothing() -> None:
    # Half the noise, or a step that is not paid for, falls within 449 runs.
    assert audit.audit(SparseLaplace(threshold=2), epsilon=1, runs=1_500, confidence=1 - 1e-6).passed


@dataclass(frozen=True)
class OnlyOccupied(Above):
    """What must not be done: noise on occupied cells alone, so that a published cell betrays its record."""

    def perturb(self, counts: Any, layout: Any, noise: Any) -> Any:
        cells = np.flatnonzero(counts)
        noisy = noise.add_laplace(np.ascontiguousarray(counts[cells]), Fraction(1))
        stay = noisy >= self.threshold
        return np.stack([cells[stay], noisy[stay]], axis=1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Betraying:
    def estimate(self, data: Any) -> Any:
        noisy = data.measure(OnlyOccupied(1))
        counts = np.zeros(data.size)
        counts[noisy.values[:, 0]] = noisy.values[:, 1]
        return Estimate(counts, IndependentNoise(noisy.scale))


@pytest.mark.audit
@pytest.mark.slow
def test_the_audit_catches_a_release_of_occupied_cells_alone() -> None:
    assert not audit.audit(Betraying(), epsilon=1, runs=1_500, confidence=1 - 1e-6).passed
