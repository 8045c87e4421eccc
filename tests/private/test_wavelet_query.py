import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dphist.kernels.wavelets import standard
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.law import NoiseLaw
from dphist.private.noise import Keystream, Noise
from dphist.private.pricing import Priced as _Priced
from dphist.private.queries.wavelet import (
    Wavelet,
    WaveletCells,
    numerators_fit,
    reference_scale,
    wavelet_axes,
)
from dphist.private.questions import Layout, Scales

PLACE = Nominal(
    "place",
    {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e", "f"]}, "sea": {"x": {"y": ["g"]}}},
)
SEX = Nominal("sex", ["F", "M"], other=True)
DOMAINS = [
    Domain([Ordinal("x", range(1))]),
    Domain([Ordinal("x", range(13))]),
    Domain([Ordinal("x", range(32), other=True)]),
    Domain([PLACE]),
    Domain([Ordinal("x", range(11)), PLACE]),
    Domain([PLACE, Ordinal("x", range(6)), Ordinal("one", range(1))]),
    Domain([SEX, Ordinal("x", range(5)), PLACE, Ordinal("y", range(9))]),
]


def layout(domain):
    return Layout(domain.shape, None, 1, domain)


def priced(seed, budget=1):
    return _Priced(Noise(Keystream.for_tests(seed)), "laplace", 1 / Fraction(budget))


class Recorded:
    """Noise from a list, so that a test can choose it; any size, also sizes no sampler would give."""

    def __init__(self, seed, largest):
        self.rng, self.largest = np.random.default_rng(seed), largest

    def add(self, values, scale, variance, out=None):
        return self.add_laplace(values, scale, out)

    def add_laplace(self, values, scale, out=None):
        with np.errstate(over="ignore"):
            noisy = values + self.rng.integers(-self.largest, self.largest, values.shape)
        if out is None:
            return noisy
        out[...] = noisy
        return out


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: "×".join(map(str, d.shape)))
def test_one_step_keeps_the_promise(domain, calibration):
    for plain in ((), (0,)):
        query = Wavelet(plain, calibration)
        scales = query.scales(layout(domain))
        if isinstance(scales, Scales):
            each = np.array([float(value) for value in scales.values])[scales.index]
        else:
            each = np.full(standard.slots(query.axes(layout(domain))), float(scales))
        base = np.arange(domain.size) % 7
        before = query.answer(base, layout(domain))
        loss = []
        for cell in range(domain.size):
            moved = base.copy()
            moved[cell] += 1
            loss.append((np.abs(query.answer(moved, layout(domain)) - before) / each).sum())
        assert max(loss) <= 1 + 1e-12
        if calibration == "tight":
            # The deepest cell loses exactly what is paid for: less noise would break the promise.
            assert max(loss) == pytest.approx(1)


def test_scales_multiply_along_the_axes():
    domain = DOMAINS[-1]
    query = Wavelet((), "paper")
    scales = query.scales(layout(domain))
    axes = query.axes(layout(domain))
    assert reference_scale(axes) == 2 * 4 * 4 * 5
    for where in product(*(range(0, axis.slots, 3) for axis in axes)):
        weight = reference_scale(axes)
        for axis, slot in zip(axes, where, strict=True):
            weight *= axis.classes[0][axis.classes[1][slot]]
        assert scales.values[scales.index[where]] == weight  # type: ignore[union-attr]


class Revealing:
    """Not noise at all, but the scale it was asked for: shows where noise goes and how much."""

    def add(self, values, scale, variance, out=None):
        return self.add_laplace(values, scale, out)

    def add_laplace(self, values, scale, out=None):
        assert (scale * 36).denominator == 1
        return np.add(values, int(scale * 36), out=out)


@pytest.mark.parametrize("slab", [1, 100, 1 << 20])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: "×".join(map(str, d.shape)))
def test_every_coefficient_gets_its_own_noise_once(monkeypatch, domain, calibration, slab):
    monkeypatch.setattr(standard, "SLAB", slab)
    monkeypatch.setattr(standard, "BATCH", slab)
    query, counts = Wavelet((), calibration), np.arange(domain.size)
    moved = query.perturb(counts, layout(domain), Revealing()) - query.answer(counts, layout(domain))  # type: ignore[arg-type]
    scales = query.scales(layout(domain))
    if isinstance(scales, Scales):
        values = np.array([int(value * 36) for value in scales.values])
        assert np.array_equal(moved, values[scales.index])
    else:
        assert (moved == 36 * scales).all()


def both_ways(domain, plain, calibration, counts, noises):
    """The cells by way of noisy coefficients, and straight from the noise."""
    query = Wavelet(plain, calibration)
    coefficients = query.perturb(counts, layout(domain), noises[0])
    axes = query.axes(layout(domain))
    numerators = standard.inverse(coefficients.copy(), axes)
    fused = WaveletCells(plain, calibration).perturb(counts, layout(domain), noises[1])
    return numerators, standard.denominator(axes), fused


@pytest.mark.parametrize("slab", [1, 100, 1 << 20])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_rebuilding_from_noise_is_rebuilding_from_noisy_coefficients(monkeypatch, slab, calibration):
    monkeypatch.setattr(standard, "SLAB", slab)
    monkeypatch.setattr(standard, "BATCH", slab)
    rng = np.random.default_rng(slab)
    for domain in DOMAINS:
        last = len(domain.shape) - 1
        for plain in ((), (0,), (last,), tuple(range(last + 1))):
            counts = rng.integers(0, 1000, domain.size)
            kept = counts.copy()
            numerators, denominator, fused = both_ways(
                domain, plain, calibration, counts, (priced(5), priced(5))
            )
            assert np.array_equal(numerators / denominator, fused)
            assert np.array_equal(counts, kept), "the counts belong to the caller"
            assert fused.shape == domain.shape
            assert fused.flags.c_contiguous


@pytest.mark.parametrize("slab", [100, 1 << 20])
def test_they_agree_for_noise_of_any_size(monkeypatch, slab):
    # Modulo 2⁶⁴ sums and products are exact, so even noise beyond 64 bits leaves a function of the noisy coefficients.
    monkeypatch.setattr(standard, "SLAB", slab)
    monkeypatch.setattr(standard, "BATCH", slab)
    for domain in DOMAINS:
        counts = np.random.default_rng(1).integers(0, 1000, domain.size)
        noises = Recorded(2, 2**62), Recorded(2, 2**62)
        numerators, denominator, fused = both_ways(domain, (), "tight", counts, noises)
        assert np.array_equal(numerators / denominator, fused)


def test_they_agree_on_a_cube_that_takes_threads(monkeypatch):
    monkeypatch.setattr(standard, "SLAB", 1 << 13)
    for attributes in (
        [Ordinal("a", range(300)), Ordinal("b", range(700)), SEX],
        [Ordinal("a", range(40)), PLACE, Ordinal("b", range(600))],
        [Ordinal("a", range(200_003))],
    ):
        domain = Domain(attributes)  # type: ignore[arg-type]
        counts = np.random.default_rng(1).integers(0, 9, domain.size)
        for plain in ((), (0,)):
            numerators, denominator, fused = both_ways(domain, plain, "tight", counts, (priced(3), priced(3)))
            assert np.array_equal(numerators / denominator, fused)


def test_cells_are_the_exact_value_rounded_once():
    domain = DOMAINS[4]
    counts = np.arange(domain.size) * 1000
    numerators, denominator, fused = both_ways(domain, (), "tight", counts, (priced(9), priced(9)))
    assert denominator % 9 == 0, "a denominator that floats cannot divide by without rounding"
    for top, cell in zip(numerators.reshape(-1).tolist(), fused.reshape(-1).tolist(), strict=True):
        assert float(Fraction(top, denominator)) == cell


def test_counts_meet_a_public_ceiling():
    domain = DOMAINS[1]
    counts = np.full(13, 2**61)
    cells = WaveletCells().perturb(counts, layout(domain), Recorded(0, 1))  # type: ignore[arg-type]
    assert np.abs(cells - 3 * 2**61 // 16).max() < 2**40


def test_fit_is_judged_by_public_facts():
    census = wavelet_axes((101, 2, 512, 1001), None, (0, 1))
    assert numerators_fit(census, NoiseLaw("laplace", Fraction(1000)))
    assert not numerators_fit(wavelet_axes((4096,) * 3, None), NoiseLaw("laplace", Fraction(1)))
    assert not numerators_fit(census, NoiseLaw("laplace", Fraction(10**12)))


def test_peak_memory_is_below_three_cubes(monkeypatch):
    tree = Nominal("job", {f"g{g}": [f"g{g}j{i}" for i in range(16)] for g in range(8)})
    for attributes, plain in (
        ([Ordinal("age", range(101)), Nominal("sex", ["F", "M"]), tree, Ordinal("pay", range(120))], (0, 1)),
        ([Ordinal("age", range(101)), Nominal("sex", ["F", "M"]), tree, Ordinal("pay", range(120))], ()),
        ([Ordinal("x", range(3_000_001))], ()),
    ):
        # As small beside this cube as they are beside a large one.
        monkeypatch.setattr(standard, "SLAB", 1 << 16)
        monkeypatch.setattr(standard, "BATCH", 1 << 14)
        domain = Domain(attributes)  # type: ignore[arg-type]
        counts = np.ones(domain.size, dtype=np.int64)
        # Once before, since loading compiled code and tables takes memory of its own.
        WaveletCells(plain).perturb(counts, layout(domain), priced(1))
        tracemalloc.start()
        WaveletCells(plain).perturb(counts, layout(domain), priced(1))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 3 * counts.nbytes
