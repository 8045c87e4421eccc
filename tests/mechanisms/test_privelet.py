from fractions import Fraction

import numpy as np
import pytest
from attacking import stands

from dphist.audit import Pair
from dphist.audit.neighbours import pair, worst_pairs
from dphist.errors import MechanismError
from dphist.inference.linear import WaveletNoise
from dphist.kernels.wavelets.axes import PlainAxis
from dphist.kernels.wavelets.haar import HaarAxis
from dphist.kernels.wavelets.nominal import NominalAxis
from dphist.mechanisms.privelet import Privelet
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries.wavelet import Wavelet
from dphist.testing import run
from dphist_bench.attacks.law import check_law
from dphist_bench.papers import privelet
from dphist_bench.zoo.mutants import Mutant

TREE = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e", "f"]}, "sea": ["g", "h", "i", "j"]}
# One run of a plain axis this long is as many independent runs of what stands beside it.
RUNS = 4000


def repeated(*attributes):
    return Domain([Ordinal("run", range(RUNS)), *attributes])


def test_a_single_name_is_a_list_of_one():
    assert Privelet(plain="age") == Privelet(plain=("age",)) == Privelet(plain=["age"])  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="shoe"):
        run(Privelet(plain="shoe"), np.arange(4), 1)
    with pytest.raises(MechanismError, match="calibration"):
        Privelet(calibration="loose")  # type: ignore[arg-type]


# ---- which axes are transformed ----------------------------------------------------------------------------


def test_the_rule_leaves_age_and_gender_plain_as_the_paper_does():
    for shape in ((101, 2, 512, 1001), (96, 2, 511, 1020)):
        kinds = [type(axis) for axis in Privelet().axes(privelet.census_domain(shape))]
        assert kinds == [PlainAxis, PlainAxis, NominalAxis, HaarAxis]


@pytest.mark.parametrize("size", [16, 512, 513])
def test_the_rule_goes_by_padded_sizes(size):
    # 512 ≤ 10² · 5.5, but 1024 > 11² · 6; of a flat list up to sixteen stay plain.
    ordered, flat = Ordinal("x", range(size)), Nominal("n", [str(i) for i in range(size)])
    for attribute, most in ((ordered, 512), (flat, 16)):
        (axis,) = Privelet().axes(Domain([attribute]))
        assert isinstance(axis, PlainAxis) == (size <= most)


# ---- noise: what is promised is what is measured -----------------------------------------------------------


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize(
    "attributes",
    [[Ordinal("x", range(37))], [Nominal("n", TREE)], [Ordinal("x", range(6)), Nominal("n", TREE)]],
    ids=["ordered", "nominal", "both"],
)
def test_measured_variance_is_the_stated_one_and_below_the_bounds(attributes, calibration):
    inner = Domain(attributes)
    mechanism = Privelet(plain=("run",), calibration=calibration)
    domain = repeated(*attributes)
    counts = np.zeros(domain.shape, dtype=np.int64)
    epsilon = Fraction(1, 2)
    estimate = run(mechanism, Histogram(domain, counts), epsilon, seed=4)
    asked = Workload.random(inner, 40, seed=2)
    answers = np.array([asked.answer(cells) for cells in estimate.counts])
    axes = mechanism.axes(domain)[1:]
    stated = WaveletNoise(axes, float(np.prod([axis.sensitivity for axis in axes]) / epsilon)).spread(asked)  # type: ignore[operator]
    # A mean square of 4000 draws of kurtosis ≤ 6 has a relative deviation of 3.6 %; the seed is fixed.
    np.testing.assert_allclose((answers**2).mean(axis=0), stated.variance, rtol=0.2)
    assert np.abs(answers.mean(axis=0)).max() <= 5 * np.sqrt(stated.variance.max() / RUNS)
    assert (stated.variance <= cube_bound(axes, 0.5)).all()
    # The same question on one run of the whole domain.
    whole = Workload(
        domain,
        np.concatenate([np.full((40, 1), 7), asked.low], axis=1),
        np.concatenate([np.full((40, 1), 8), asked.high], axis=1),
    )
    np.testing.assert_allclose(estimate.errors.spread(whole).variance, stated.variance)  # type: ignore[arg-type, attr-defined]


def cube_bound(axes, epsilon):
    """Equation 7, which is 4 for one ordered axis and 6 for one nominal one."""
    return 2 / epsilon**2 * np.prod([axis.sensitivity**2 * axis.bound for axis in axes])


@pytest.mark.parametrize("n", [2, 37, 512, 1001])
def test_equation_4_bounds_every_range(n):
    asked = Workload.all_ranges(Domain([Ordinal("x", range(min(n, 300)))]))
    axis = HaarAxis(n)
    spread = WaveletNoise((axis,), axis.sensitivity).spread(asked)
    assert spread.variance.max() <= cube_bound([axis], 1)
    assert spread.variance.max() >= 0.3 * cube_bound([axis], 1), "the bound is not idle"


def test_equation_6_bounds_every_node():
    tree = Nominal("n", TREE).hierarchy
    for calibration in ("tight", "paper"):
        axis = NominalAxis(tree.parent, tree.leaves, calibration)
        squares, _ = axis.spread(tree.start, tree.stop)
        assert (2 * axis.sensitivity**2 * squares < cube_bound([axis], 1)).all()


# ---- the two ways through the gate -------------------------------------------------------------------------


def test_cells_and_coefficients_give_the_same_release(monkeypatch):
    domain = Domain([Ordinal("x", range(700)), Nominal("n", TREE)])
    histogram = Histogram(domain, np.random.default_rng(0).integers(0, 9, domain.shape))
    straight = run(Privelet(plain=()), histogram, 1, seed=3)
    monkeypatch.setattr("dphist.mechanisms.privelet.numerators_fit", lambda axes, scale: False)
    right, transcript = open_gate(histogram, 1, Unit(), noise=Noise(Keystream.for_tests(3)))
    roundabout = Privelet(plain=()).estimate(right)
    assert transcript[0].question["ask"] == Wavelet.__name__
    np.testing.assert_allclose(straight.counts, roundabout.counts, rtol=1e-12, atol=1e-9)


# ---- thresholding ------------------------------------------------------------------------------------------


def test_intervals_of_a_thresholded_release_come_from_before():
    asked = Workload.random(Domain([Ordinal("x0", range(1000))]), 20, seed=1)
    plain, shrunk = (run(Privelet(threshold=t), np.arange(1000), 1, seed=1) for t in (False, True))
    np.testing.assert_array_equal(plain.errors.spread(asked).variance, shrunk.errors.spread(asked).variance)  # type: ignore[attr-defined]
    assert "bias" in shrunk.errors.words.details
    assert "bias" not in plain.errors.words.details


def test_thresholding_keeps_every_total_of_a_submatrix():
    # The base coefficient is never shrunk, so neither is what it alone decides.
    # Padding would take a share of the base: the axis is full.
    full = Domain([Nominal("n", TREE), Ordinal("plain", range(3)), Ordinal("x", range(32))])
    counts = Histogram(full, np.random.default_rng(5).integers(0, 4, full.shape))
    plain, shrunk = (
        run(Privelet(plain="plain", threshold=threshold), counts, 1, seed=6).counts
        for threshold in (False, True)
    )
    assert not np.allclose(plain, shrunk)
    np.testing.assert_allclose(plain.sum(axis=(0, 2)), shrunk.sum(axis=(0, 2)))


NEIGHBOURS = [
    pair("two cells", [0, 0], 0),
    Pair(
        "a family of three",
        Histogram(Domain([Nominal("n", ["a", "b", "c"])]), np.array([1, 0, 0])),
        Histogram(Domain([Nominal("n", ["a", "b", "c"])]), np.array([0, 0, 0])),
    ),
]


@pytest.mark.audit
@pytest.mark.slow
def test_audit_of_thresholds():
    thresholded = Privelet(plain=(), threshold=True)
    assert stands(thresholded, 800, NEIGHBOURS)
    # The sizes of noise tell sooner than bets that half of it is missing.
    assert check_law(Mutant(inner=thresholded, fault="halved"), worst_pairs((5,))[1], 1, 600).sizes > 6
