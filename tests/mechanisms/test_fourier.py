import numpy as np
import pytest

from dphist.errors import MechanismError, NotPrivate
from dphist.inference.linear import WaveNoise
from dphist.mechanisms.fourier import EFPA, FPA, SPA
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.private.spectrum import bands, corner
from dphist.testing import open_counts, run
from waves import waves

SMOOTH = np.rint(200 * np.exp(-(((np.arange(256) - 90) / 30) ** 2)) + 40).astype(np.int64)


def test_keep_must_fit_the_axes():
    with pytest.raises(MechanismError):
        run(FPA(keep=(3, 3)), SMOOTH, 1)


def test_spa_is_refused_before_anything_is_asked():
    data = open_counts(SMOOTH, 1, seed=0)
    with pytest.raises(NotPrivate, match="efpa"):
        SPA().estimate(data)
    data.split(1)  # the right is untouched


def test_rows_strung_together_equal_the_flat_histogram():
    counts = SMOOTH.reshape(16, 16)
    flat = run(EFPA(), SMOOTH, 1, seed=3)
    strung = run(EFPA(joint=False), counts, 1, seed=3)
    np.testing.assert_array_equal(strung.counts.reshape(-1), flat.counts)


def test_noise_has_the_stated_variance():
    """Averaged over all cells and 200 seeds: 2z³/(n²ε²) a cell, within 5 % (the seeds are fixed)."""
    keep, n = 4, 32
    counts = np.zeros(n, dtype=np.int64)
    got = np.mean([run(FPA(keep=keep), counts, 1, seed=s).counts ** 2 for s in range(200)])
    z = 2 * keep - 1
    assert got == pytest.approx(2 * z**3 / n**2, rel=0.15)
    estimate = run(FPA(keep=keep), counts, 1, seed=0)
    cells = estimate.errors.spread(Workload.cells(Domain([Ordinal("x0", range(n))])))  # type: ignore[attr-defined]
    np.testing.assert_allclose(cells.variance, 2 * z**3 / n**2, rtol=1e-3)


@pytest.mark.parametrize("basis", ["fourier", "cosine"])
@pytest.mark.parametrize("shape", [(1,), (2,), (9,), (12,), (5, 6), (3, 4, 5)])
def test_spread_equals_the_waves_summed_over_boxes(shape, basis):
    domain = Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(shape)])
    workload = Workload.random(domain, 40, seed=2)
    most = bands(shape, basis)
    for keep in ((1,) * len(shape), most, tuple(min(3, m) for m in most)):
        spread = WaveNoise(shape, keep, basis, 1.5).spread(workload)
        weights = np.array(
            [workload.answer(wave.reshape(shape)) for wave in waves(shape, basis)[corner(shape, keep, basis)]]
        )
        np.testing.assert_allclose(spread.variance, 2 * 1.5**2 * (weights**2).sum(axis=0), atol=1e-9)
        assert (spread.largest >= 1.5 * np.abs(weights).max(axis=0) - 1e-9).all()


@pytest.mark.parametrize("basis", ["fourier", "cosine"])
def test_spread_of_rows_strung_together_is_never_too_narrow_and_exact_for_single_runs(basis):
    shape, keep = (4, 6), (5,)
    domain = Domain([Ordinal("a", range(4)), Ordinal("b", range(6))])
    low, high = np.array(list(np.ndindex(4, 6))), []
    low, high = zip(
        *[((a, b), (c, d)) for a, b in low for c in range(a + 1, 5) for d in range(b + 1, 7)], strict=True
    )
    workload = Workload(domain, np.array(low), np.array(high))
    rows = waves((24,), basis)[corner((24,), keep, basis)]
    exact = 2 * (np.array([workload.answer(wave.reshape(shape)) for wave in rows]) ** 2).sum(axis=0)
    got = WaveNoise((24,), keep, basis, 1.0).spread(workload).variance
    whole = (workload.high[:, 1] - workload.low[:, 1] == 6) | (workload.high[:, 0] - workload.low[:, 0] == 1)
    np.testing.assert_allclose(got[whole], exact[whole], atol=1e-9)
    assert (got >= exact - 1e-9).all()
