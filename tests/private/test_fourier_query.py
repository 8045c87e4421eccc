from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.kernels.doubledouble import to_lattice
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private import spectrum
from dphist.private.gate import open_gate
from dphist.private.questions import LARGEST_SUM, Layout
from dphist.private.spectrum import (
    Frequencies,
    bands,
    column_sum,
    coordinates,
    coordinates_error,
    corner,
    kept,
)
from waves import waves

SHAPES = [(1,), (2,), (3,), (7,), (8,), (12,), (3, 4), (4, 4), (5, 1), (2, 3, 4)]


def keeps(shape, basis):
    return product(*(range(1, most + 1) for most in bands(shape, basis)))


both = pytest.mark.parametrize("basis", ["fourier", "cosine"])


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_the_basis_is_orthonormal(shape, basis):
    rows = waves(shape, basis)
    np.testing.assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-12)


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_corners_hold_what_lies_below_keep_and_close_under_negation(shape, basis):
    for keep in keeps(shape, basis):
        places = corner(shape, keep, basis)
        assert len(set(places.tolist())) == len(places) == np.prod(kept(shape, keep, basis))
        frequency = np.stack(np.unravel_index(places, shape), axis=1)
        if basis == "fourier":
            negative = {tuple(f) for f in ((-frequency) % np.array(shape)).tolist()}
            assert negative == {tuple(f) for f in frequency.tolist()}
            frequency = np.minimum(frequency, np.array(shape) - frequency)
        assert (frequency.max(axis=0) < np.array(keep)).all()


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_answers_are_the_waves_of_the_counts(shape, basis):
    counts = np.random.default_rng(1).integers(0, 10**6, int(np.prod(shape)))
    for keep in keeps(shape, basis):
        query = Frequencies(shape, keep, basis)
        answer = query.answer(counts, Layout(shape)) * float(query.unit)
        assert answer.shape == kept(shape, keep, basis)
        expected = (waves(shape, basis) @ counts)[corner(shape, keep, basis)]
        np.testing.assert_allclose(answer.reshape(-1), expected, atol=float(query.unit) + 1e-8)


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_no_step_moves_the_answers_further_than_promised(shape, basis, monkeypatch):
    """Every step from quiet, busy and enormous data: the sum of changes never passes the scale."""
    n = int(np.prod(shape))

    @cache
    def transformed(counts):
        return coordinates(np.frombuffer(counts, dtype=np.int64), shape, basis)

    # All corners are cut out of one transform of the same counts.
    monkeypatch.setattr(spectrum, "coordinates", lambda counts, *_: transformed(counts.tobytes()))
    rng = np.random.default_rng(n)
    starting = [np.zeros(n, dtype=np.int64), rng.integers(0, 1000, n), rng.integers(0, 2**62 // n, n)]
    for keep in keeps(shape, basis):
        query = Frequencies(shape, keep, basis)
        scale, worst = query.scales(Layout(shape)), 0
        for counts in starting:
            before = query.answer(counts, Layout(shape))
            for cell in range(n):
                after = query.answer(counts + (np.arange(n) == cell), Layout(shape))
                worst = max(worst, int(np.abs(after - before).sum()))
        assert worst <= scale
        # And the promise is not idle: the exact largest column is within a fifth of the bound on each axis.
        assert worst >= 0.79 ** len(shape) * scale


@both
@pytest.mark.parametrize("n", [2, 9, 64, 101, 256])
def test_column_sums_are_bounded_for_every_corner_of_longer_axes(n, basis):
    absolute = np.abs(waves((n,), basis))
    for keep in range(1, bands((n,), basis)[0] + 1):
        exact = absolute[corner((n,), (keep,), basis)].sum(axis=0).max()
        assert exact <= float(column_sum((n,), (keep,), basis)) * (1 + 1e-12)


def test_the_scale_is_the_column_sum_plus_a_hair():
    for basis in ("fourier", "cosine"):
        for shape in [(16,), (100,), (65_536,), (256, 256), (65_535,)]:
            for keep in ((1,) * len(shape), bands(shape, basis)):
                query = Frequencies(shape, keep, basis)
                paid = query.scales(Layout(shape)) * query.unit / column_sum(shape, keep, basis)
                assert 1 < paid < 1.015


def test_the_error_of_the_transform_is_paid_for_on_any_data():
    assert 0 < coordinates_error((65_536,), "fourier") < Fraction(1, 2**25)
    with_error = Frequencies((10**6,), (1,)).scales(Layout((10**6,)))
    without = Fraction(1, 1000) / Frequencies((10**6,), (1,)).unit
    assert with_error > without


@both
@pytest.mark.parametrize("shape", [(6,), (7,), (8,), (2, 5)])
def test_the_error_bound_holds_against_sixty_digits(shape, basis):
    """Coordinates of counts near the limit, in decimal arithmetic: 2⁶² records, errors far below one."""
    n = int(np.prod(shape))
    counts = np.random.default_rng(n).integers(2**61 // n, 2**62 // n, n)
    computed = coordinates(counts, shape, basis)
    with localcontext() as context:
        context.prec = 60
        off = Decimal(0)
        for f, frequency in enumerate(np.ndindex(*shape)):
            exact = Decimal(0)
            for j, place in enumerate(np.ndindex(*shape)):
                if basis == "fourier":
                    turn = sum(
                        (Fraction(a * b, m) for a, b, m in zip(frequency, place, shape, strict=True)),
                        Fraction(0),
                    )
                    wave = cosine(turn) + cosine(turn - Fraction(1, 4))
                else:
                    wave = Decimal(1)
                    for a, b, m in zip(frequency, place, shape, strict=True):
                        wave *= cosine(Fraction(a * (2 * b + 1), 4 * m)) * (Decimal(2).sqrt() if a else 1)
                exact += int(counts[j]) * wave
            exact /= Decimal(n).sqrt()
            off += (Decimal(computed[0, f]) + Decimal(computed[1, f]) - exact) ** 2
        bound = coordinates_error(shape, basis)
        assert off.sqrt() * 8 < Decimal(bound.numerator) / Decimal(bound.denominator)


def cosine(turns):
    """cos(2π · turns) in decimal: Taylor's series after removing whole turns."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
    turns -= round(turns)
    angle = 2 * pi * turns.numerator / turns.denominator
    total, term, k = Decimal(0), Decimal(1), 0
    while abs(term) > Decimal(10) ** -58:
        total += term
        k += 2
        term *= -angle * angle / (k * (k - 1))
    return total


def test_the_record_limit_is_the_gates():
    """Whatever the data, the gate lets through no more than the error bound was computed for."""
    histogram = Histogram(Domain([Ordinal("x", range(3))]), np.array([2**63 - 1, 2**63 - 1, 5]))
    right, _ = open_gate(histogram, 1, Unit())
    assert sum(right._right[0].tolist()) <= LARGEST_SUM  # type: ignore[union-attr]
    assert sum(open_gate(histogram, 1, Unit())[0].coarsen([0, 0, 0])._right[0].tolist()) <= LARGEST_SUM  # type: ignore[union-attr]


def test_counts_beyond_the_lattice_are_cut_not_wrapped():
    query = Frequencies((2,), (2,))
    assert query.answer(np.array([2**61, 2**61 - 1]), Layout((2,)))[0] == 2**61


@pytest.mark.parametrize("keep", [(0,), (6,), (1, 1)])
def test_impossible_corners_are_refused(keep):
    with pytest.raises(MechanismError):
        Frequencies((8,), keep)


def test_rows_can_be_strung_together():
    counts = np.arange(12)
    strung = Frequencies((12,), (3,)).answer(counts, Layout((3, 4)))
    np.testing.assert_array_equal(strung, Frequencies((12,), (3,)).answer(counts, Layout((12,))))
    with pytest.raises(MechanismError):
        Frequencies((13,), (3,)).scales(Layout((3, 4)))


def test_the_cut_is_exact_and_moves_nothing_apart():
    """Wide numbers around ±2⁶¹, also where the high word is the ceiling and the low word below zero."""
    ceiling = 2.0**61
    top = int(ceiling)
    offsets = [
        -1000,
        -257,
        -256,
        -255,
        -129,
        -128,
        -127,
        -2,
        -1,
        0,
        1,
        127,
        128,
        129,
        256,
        1000,
        2**55,
        2**61,
    ]
    for sign in (1, -1):
        exact = [sign * (top + offset) for offset in offsets]
        high = np.array([float(value) for value in exact])
        low = np.array([float(value - int(float(value))) for value in exact])
        got = to_lattice(np.stack([high, low]), 1.0, ceiling)
        assert got.tolist() == [max(-top, min(top, value)) for value in exact]
        for a, b in pairwise(exact):
            i = exact.index(a)
            assert abs(int(got[i + 1]) - int(got[i])) <= abs(b - a)


def test_a_step_beside_the_cut_moves_an_answer_by_one_step():
    """Where the cut compared the high word alone, one record moved an answer by more than a hundred steps."""
    query = Frequencies((1,), (1,))
    power = int(1 / query.unit)
    counts = 2**61 // power
    answers = [int(query.answer(np.array([counts + d]), Layout((1,)))[0]) for d in range(-3, 4)]
    assert max(abs(b - a) for a, b in pairwise(answers)) <= query.scales(Layout((1,)))
    assert answers[-1] == 2**61
