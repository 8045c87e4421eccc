from fractions import Fraction

import numpy as np
import pytest

import textbook
from dphist.errors import MechanismError
from dphist.kernels.buckets.segmentation import segment
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.noisefirst import NoiseFirst
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.publishing.door import publish


def algorithm_2(noisy, scale, statistic):
    """The paper's search: the best partition for every k, then the k with the least corrected error."""
    n = noisy.size
    rows = textbook.fixed(textbook.bucket_costs(noisy, "squared" if statistic == "mean" else "absolute"), n)
    if statistic == "mean":
        criterion = [rows[k - 1, n] - (2 * n - 4 * k) * scale**2 for k in range(1, n + 1)]
    else:
        criterion = [rows[k - 1, n] - 3 * (n - k) * scale for k in range(1, n + 1)]
    return min(criterion)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_one_penalised_search_is_algorithm_2(statistic):
    draw = np.random.default_rng(3)
    for _ in range(60):
        n, scale = int(draw.integers(2, 40)), int(draw.integers(1, 9))
        noisy = np.rint(draw.laplace(draw.integers(0, 30, n), scale)).astype(np.int64)
        estimate = NoiseFirst(statistic=statistic, price="paper", cut=False).improve(noisy, scale=scale)
        k = int(estimate.note.split()[0])
        if statistic == "mean":
            found = ((noisy - estimate.counts) ** 2).sum() - (2 * n - 4 * k) * scale**2
        else:
            found = np.abs(noisy - estimate.counts).sum() - 3 * (n - k) * scale
        assert found == pytest.approx(algorithm_2(noisy, scale, statistic), abs=1e-6)


def test_levels_are_means_and_medians_of_their_buckets():
    noisy = np.array([10, 12, 11, 90, 95, 91, 93, -1, 0, 2])
    starts = segment(noisy, bins=3)
    assert starts.tolist() == [0, 3, 7]
    mean = NoiseFirst(bins=3, cut=False).improve(noisy, scale=1).counts
    assert np.allclose(mean, np.repeat([11, 92.25, 1 / 3], [3, 4, 3]))
    median = NoiseFirst(bins=3, statistic="median").improve(noisy, scale=1).counts
    assert median.tolist() == [11, 11, 11, 92, 92, 92, 92, 0, 0, 0]


def test_equations_22_and_23_keep_uneven_buckets():
    noisy = np.array([0, 1, 0, 1, 0, 1, 500, 100, 900, 300])
    for statistic in ("mean", "median"):
        kept = NoiseFirst(statistic=statistic, bins=2, keep=True).improve(noisy, scale=1).counts
        assert np.array_equal(kept[6:], noisy[6:])
        assert np.ptp(kept[:6]) == 0
        # SSE of six cells about their mean is 1.5 < 4·5; with scale 1/4 it is not < 4·5/16.
        sharp = NoiseFirst(statistic=statistic, bins=2, keep=True).improve(noisy, scale=Fraction(1, 8)).counts
        assert np.array_equal(sharp, noisy)


def release_of(counts, mechanism):
    axes = [Ordinal(f"x{i}", range(n)) for i, n in enumerate(np.shape(counts))]
    return publish(Histogram(Domain(axes), np.asarray(counts)), epsilon=1, mechanism=mechanism)


def test_improving_a_published_release_verifies():
    release = release_of(np.repeat([3, 70], 20).reshape(8, 5), Laplace())
    better = NoiseFirst().improve(release)
    better.verify()
    assert better.epsilon == release.epsilon
    assert better.mechanism == NoiseFirst()
    assert len(np.unique(better.counts)) < len(np.unique(release.counts))
    with pytest.raises(MechanismError, match="laplace"):
        NoiseFirst().improve(release_of(np.arange(20), "uniform"))


def test_improving_a_vector_of_fractions():
    noisy = np.array([0.5, 0.25, 1.0, 0.75, 100.5, 99.25, 101.0]).reshape(7, 1)
    estimate = NoiseFirst().improve(noisy, scale=1)
    assert estimate.counts.shape == (7, 1)
    assert np.allclose(estimate.counts.ravel(), np.repeat([0.625, 100.25], [4, 3]))
    with pytest.raises(MechanismError, match="scale"):
        NoiseFirst().improve(noisy)
    with pytest.raises(MechanismError, match="finite"):
        NoiseFirst().improve([1.0, np.nan], scale=1)
