"""The noisy-cost partition: its promise, its exact law on three cells, and what the audit makes of wrong noise."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dphist.errors import MechanismError
from dphist.private.noise import Keystream, Noise
from dphist.private.questions import Layout
from dphist.private.segments import AbsoluteDeviation
from dphist.testing import open_counts
from dphist_bench.zoo.smoothing import LeakyDeviation, LeakySmoothing

sys.path += [str(Path(__file__).parent)]

from exact_partitions import law, loss


@dataclass(frozen=True)
class Priced:
    """Noise at ε = 1 or any other, without a gate."""

    noise: Noise
    budget: Fraction = Fraction(1)

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> np.ndarray:
        return self.noise.laplace(scale / self.budget, shape)

    def add_laplace(self, values: np.ndarray, scale: Fraction, out: np.ndarray | None = None) -> np.ndarray:
        return self.noise.add_laplace(values, scale / self.budget, out)

    def add(
        self, values: np.ndarray, scale: Fraction, variance: Fraction, out: np.ndarray | None = None
    ) -> np.ndarray:
        return self.add_laplace(values, scale, out)


def seeded(seed: int, epsilon: Fraction = Fraction(1)) -> Priced:
    return Priced(Noise(Keystream.for_tests(seed)), epsilon)


def mean_cost(price: int):
    def cost(cells: tuple[int, ...]) -> int:
        mean = Fraction(sum(cells), len(cells))
        return int((2 * sum(abs(x - mean) for x in cells) + 1) // 2) + price

    return cost


def median_cost(price: int):
    return lambda cells: sum(abs(x - sorted(cells)[len(cells) // 2]) for x in cells) + price


@pytest.mark.parametrize(("centre", "scales"), [("mean", {1: 2, 2: 3, 3: 4}), ("median", {1: 1, 2: 2, 3: 2})])
@pytest.mark.parametrize("sizes", ["all", "powers"])
def test_partitions_follow_their_exact_law(centre: str, scales: dict[int, int], sizes: str) -> None:
    """χ² against the law summed over all noise; false alarm below 10⁻⁶, and the seed is fixed."""
    costs = AbsoluteDeviation(price=Fraction(2), centre=centre, grid=1, sizes=sizes)  # type: ignore[arg-type]
    x, runs = (0, 3, 4), 6000
    noise, layout = seeded(5), Layout((3,))
    counts = np.array(x, dtype=np.int64)
    seen = np.zeros(4)
    for _ in range(runs):
        starts = tuple(costs.segment(counts, layout, noise).tolist())
        seen[[(0,), (0, 1), (0, 2), (0, 1, 2)].index(starts)] += 1
    if sizes == "all":
        expected = law(x, (mean_cost if centre == "mean" else median_cost)(2), scales) * runs
    else:
        # Longest bucket is two cells now: every scale is smaller, and one bucket cannot be had.
        assert seen[0] == 0
        smaller = {1: 1, 2: 2, 3: 1} if centre == "mean" else scales
        base = (mean_cost if centre == "mean" else median_cost)(2)
        expected = law(x, lambda cells: base(cells) + (10**4 if len(cells) == 3 else 0), smaller) * runs
    kept = expected > 1e-3
    assert stats.chisquare(seen[kept], expected[kept] * seen.sum() / expected[kept].sum()).pvalue > 1e-6


@pytest.mark.parametrize(
    ("cost", "scales"), [(mean_cost(3), {1: 2, 2: 3, 3: 4}), (median_cost(3), {1: 1, 2: 2, 3: 2})]
)
def test_the_exact_loss_stays_below_epsilon(cost, scales: dict[int, int]) -> None:
    for x in [(0, 4, 9), (3, 0, 0)]:
        assert loss(x, cost, scales) < 1


def test_noise_as_printed_has_an_exact_loss_above_epsilon() -> None:
    assert loss((0, 4, 9), mean_cost(3), {1: 1, 2: 1 / 2, 3: 1 / 3}) > 2


def lower_bound(often: int, rarely: int, runs: int) -> float:
    """Clopper-Pearson lower bound on the log ratio of two probabilities, wrong less than once in 10⁶."""
    if often == 0:
        return 0.0
    low = stats.beta.ppf(5e-7, often, runs - often + 1)
    high = stats.beta.ppf(1 - 5e-7, rarely + 1, runs - rarely)
    return float(np.log(low / high))


def audited(
    rule: str, runs: int, x: list[int], y: list[int], cuts: list[int], price: int, epsilon: Fraction
) -> float:
    """How much one partition's probability is shown to differ between neighbours x and y."""
    costs = LeakyDeviation(rule, Fraction(price))  # type: ignore[arg-type]
    counts = []
    for seed, data in enumerate((x, y)):
        last = costs.runs(np.array(data), seeded(seed, epsilon), runs)
        here = np.ones(runs, dtype=bool)
        end = len(data)
        for cut in reversed([0, *cuts]):
            here &= last[:, end] == cut
            end = cut
        counts.append(int(here.sum()))
    return max(lower_bound(counts[0], counts[1], runs), lower_bound(counts[1], counts[0], runs))


@pytest.mark.audit
@pytest.mark.parametrize(
    ("rule", "cuts"), [("printed", []), ("singletons", [2, 3, 4, 5]), ("clamped", [3, 4, 5])]
)
def test_faulty_noise_is_caught_where_the_right_noise_passes(rule: str, cuts: list[int]) -> None:
    """One record among six empty cells, at ε = 1."""
    x, y = [0] * 6, [0, 0, 0, 1, 0, 0]
    assert audited(rule, 150_000, x, y, cuts, 0, Fraction(1)) > 1
    assert audited("right", 150_000, x, y, cuts, 0, Fraction(1)) < 1


@pytest.mark.parametrize("rule", ["printed", "two", "singletons", "clamped"])
def test_leaky_smoothing_runs_through_the_gate_like_any_mechanism(rule: str) -> None:
    estimate = LeakySmoothing(rule=rule).estimate(open_counts([0, 0, 0, 1, 0, 0], 1, seed=1, unproven=True))  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="no proof"):
        LeakySmoothing(rule=rule).estimate(open_counts([0, 0, 0, 1, 0, 0], 1, seed=1))  # type: ignore[arg-type]
    assert estimate.counts[0] == 1
    assert set(estimate.counts.tolist()) <= {0.0, 1.0}


@pytest.mark.audit
def test_noise_as_printed_is_caught_in_a_few_thousand_runs() -> None:
    x, y = [0, 0, 0, 0, 2, 2, 2, 2], [0, 0, 0, 0, 2, 2, 2, 1]
    assert audited("printed", 4_000, x, y, [4], 7, Fraction(1)) > 3
    assert audited("right", 4_000, x, y, [4], 7, Fraction(1)) < 1


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.parametrize(("rule", "caught"), [("two", True), ("right", False)])
def test_two_over_epsilon_is_not_enough(rule: str, caught: bool) -> None:
    """A cell between two plateaus pulls two buckets apart at once: both sensitivities are needed."""
    half, far = 6, 30
    x = [0] * half + [far + 5] + [2 * far] * half
    y = [0] * half + [far + 6] + [2 * far] * half
    assert (audited(rule, 1_500_000, x, y, [half + 1], 3 * far, Fraction(1)) > 1) == caught


def test_buckets_of_a_tree_are_blocks() -> None:
    x = np.random.default_rng(2).poisson(4, 37)
    for seed in range(20):
        starts = open_counts(x, 1, seed=seed).segment(
            AbsoluteDeviation(price=Fraction(3), sizes=(64, 16, 4, 1))
        )
        ends = np.append(starts[1:], 37)
        for a, b in zip(starts, ends, strict=True):
            assert any(a % m == 0 and b == min(a + m, 37) for m in (64, 16, 4, 1))


@pytest.mark.parametrize("sizes", ["all", "powers", (32, 8, 4, 1)])
@pytest.mark.parametrize("centre", ["mean", "median"])
def test_with_all_the_budget_the_plateaus_come_out(sizes: object, centre: str) -> None:
    x = np.repeat([5, 90, 0, 90], 8)
    costs = AbsoluteDeviation(price=Fraction(1, 2), sizes=sizes, centre=centre)  # type: ignore[arg-type]
    assert open_counts(x, 10**6, seed=1).segment(costs).tolist() == [0, 8, 16, 24]


def test_singletons_are_noised_too() -> None:
    """Watch what is drawn: one scale for every short length, single cells first, and one for the rest."""
    spied: list[Fraction] = []

    class Spy(Priced):
        def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> np.ndarray:
            spied.append(scale)
            return super().laplace(scale, shape)

    AbsoluteDeviation(grid=2).segment(np.arange(9), Layout((9,)), Spy(Noise(Keystream.for_tests(1))))
    # Δ = 2g − ⌊2g/m⌋ for m = 1 … 4, then 2g; plus Δ of all nine cells, 2g.
    assert spied == [4, 6, 7, 7, 8]


def test_batches_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).integers(0, 50, 200)
    costs = AbsoluteDeviation(price=Fraction(5), grid=4)
    whole = costs.segment(x, Layout((200,)), seeded(9))
    assert whole.size > 2
    monkeypatch.setattr("dphist.private.segments._BATCH", 10**9)
    assert costs.segment(x, Layout((200,)), seeded(9)).tolist() == whole.tolist()


def test_refusals_speak_of_public_facts() -> None:
    with pytest.raises(MechanismError, match="powers"):
        open_counts(np.zeros(2**17 + 1, dtype=np.int64), 1).segment(AbsoluteDeviation())
    with pytest.raises(MechanismError, match="one part"):
        open_counts([1, 2], 1).partition([0, 1]).segment(AbsoluteDeviation())


def test_sums_that_64_bits_cannot_hold_are_refused_whatever_the_data() -> None:
    with pytest.raises(MechanismError, match="price"):
        open_counts([1, 2], 1).segment(AbsoluteDeviation(price=Fraction(2**60)))
    for sizes in ("all", "powers", (4096, 1)):
        with pytest.raises(MechanismError, match="budget"):
            open_counts(np.zeros(4096, dtype=np.int64), "1e-14", seed=1).segment(
                AbsoluteDeviation(sizes=sizes)
            )


@pytest.mark.parametrize(
    "options",
    [
        {"sizes": (6, 4, 1)},
        {"sizes": ()},
        {"sizes": (4, 4)},
        {"sizes": "odd"},
        {"grid": 0},
        {"centre": "mode"},
        {"price": (Fraction(1), Fraction(2))},
    ],
)
def test_costs_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(MechanismError, match="segment"):
        AbsoluteDeviation(**options)  # type: ignore[arg-type]


def test_one_cell_and_two() -> None:
    assert open_counts([5], 1, seed=1).segment(AbsoluteDeviation()).tolist() == [0]
    assert open_counts([5, 7], 1, seed=1).segment(AbsoluteDeviation(sizes=(1,))).tolist() == [0, 1]
