"""DPCube: the paper's example, weighted least squares, variances, and that the phases share no noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist import Histogram, publish
from dphist.mechanisms.dpcube import DPCube
from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Totals
from dphist.testing import open_counts, run

# Figure 2: ages across, incomes down.
FIGURE_2 = np.array([[10, 21, 37], [20, 0, 0], [53, 0, 0]])


def transcript_of(mechanism, counts, epsilon, seed):
    domain = Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(counts.shape)])
    noise = Noise(Keystream.for_tests(seed))
    right, transcript = open_gate(Histogram(domain, counts), epsilon, Unit(), noise=noise)
    return mechanism.estimate(right), list(transcript)


def test_figure_2_and_equations_4_and_5():
    # The paper draws these four parts by hand; Equation 5 sums them and Figure 8 spreads them evenly.
    parts = np.array([0, 0, 1, 2, 3, 3, 2, 3, 3])
    H2 = (parts == np.arange(4)[:, None]).astype(int)
    assert (H2 @ FIGURE_2.reshape(-1)).tolist() == [31, 37, 73, 0]
    released = open_counts(FIGURE_2, 10**6, seed=1).partition(parts).measure(Totals()).values
    assert released.tolist() == [31, 37, 73, 0]
    assert (released / H2.sum(axis=1))[parts].reshape(3, 3)[:, 1].sum() == 31 / 2 + 0 / 2
    # Algorithm 3 itself also keeps the four zeros together, and cuts the rest by columns first.
    estimate, entries = transcript_of(DPCube(threshold=200.0), FIGURE_2, 10**6, 1)
    labels = estimate.errors.cuts.labels.reshape(3, 3)
    groups = {
        frozenset(np.flatnonzero(labels.reshape(-1) == label).tolist()) for label in range(labels.max() + 1)
    }
    assert groups == {frozenset({0, 3}), frozenset({6}), frozenset({1, 2}), frozenset({4, 5, 7, 8})}
    # Equation 4: phase one is every cell.
    assert entries[0].answer.reshape(-1).tolist() == [10, 21, 37, 20, 0, 0, 53, 0, 0]
    assert sorted(entries[1].answer.tolist()) == [0, 30, 53, 58]


@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(1, 2), Fraction(4, 5)])
@pytest.mark.parametrize("estimator", ["weighted", "least-squares"])
def test_least_squares_equals_a_dense_solver(share, estimator):
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 80, (5, 6))
    mechanism = DPCube(cells_share=share, estimator=estimator, threshold=100.0)
    estimate, entries = transcript_of(mechanism, counts, 1, 3)
    labels = estimate.errors.cuts.labels
    S = (labels == np.arange(labels.max() + 1)[:, None]).astype(float)
    H = np.vstack([np.eye(30), S])
    y = np.concatenate([entries[0].answer.reshape(-1), entries[1].answer]).astype(float)
    root = np.concatenate([np.full(30, float(share)), np.full(len(S), float(1 - share))])
    weight = root if estimator == "weighted" else np.ones_like(root)
    dense = np.linalg.lstsq(H * weight[:, None], y * weight, rcond=None)[0]
    assert np.allclose(estimate.counts.reshape(-1), dense)


@pytest.mark.parametrize("estimator", ["weighted", "least-squares", "uniform"])
def test_variances_agree_with_simulation(estimator):
    # A threshold nothing reaches keeps the whole a single leaf, so the tree is the same in every run.
    mechanism = DPCube(cells_share=Fraction(1, 4), estimator=estimator, threshold=1e12)
    counts = np.full(11, 40)
    domain = Domain([Ordinal("x", range(11))])
    workload = Workload(domain, [[0], [0], [2]], [[11], [1], [7]])
    runs = 800
    answers = np.array(
        [workload.answer(run(mechanism, counts, 0.2, seed=s).counts) for s in range(runs)], dtype=float
    )
    told = run(mechanism, counts, 0.2, seed=0).errors.spread(workload).variance  # type: ignore[attr-defined]
    # Laplace kurtosis 6 at most: a sample variance deviates by √(5/800) = 8 %; seeds are fixed.
    assert np.allclose(answers.var(axis=0), told, rtol=0.4)
    assert np.allclose(answers.mean(axis=0), workload.answer(counts), atol=6 * np.sqrt(told / runs))
    if estimator == "weighted":
        assert told[0] == pytest.approx(88.0)
    if estimator == "least-squares":
        assert told[0] == pytest.approx(135.80246913)


def test_nonnegative_is_nonnegative_and_stands_on_unbiased_numbers():
    counts = np.zeros((12, 12), dtype=np.int64)
    counts[3, 4] = 200
    domain = Domain([Ordinal("x", range(12)), Ordinal("y", range(12))])
    release = publish(Histogram(domain, counts), epsilon=1, mechanism=DPCube(estimator="nonnegative"))
    assert release.counts.min() >= 0
    plain = run(DPCube(), counts, 1, seed=3)
    projected = run(DPCube(estimator="nonnegative"), counts, 1, seed=3)
    everything = Workload.where(domain, {})
    assert projected.errors.stand(everything, np.zeros(1))[0][0] == pytest.approx(plain.counts.sum())
    answer = release.answer(where={"x": (0, 11)})
    assert answer.low <= answer.value <= answer.high
    release.verify()
