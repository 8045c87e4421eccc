"""The wide transform against exact arithmetic: sines and cosines to 60 digits, sums in decimal."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from dphist.kernels import doubledouble as wide

getcontext().prec = 70


def circle(order):
    """cos and sin of 2πt/order to about 65 digits, by the series and the addition theorem."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")
    angle = 2 * pi / order
    cosine = sine = Decimal(0)
    term, k = Decimal(1), 0
    while abs(term) > Decimal(10) ** -68:
        if k % 2 == 0:
            cosine += term if k % 4 == 0 else -term
        else:
            sine += term if k % 4 == 1 else -term
        k += 1
        term = term * angle / k
    c, s = [Decimal(1)], [Decimal(0)]
    for _ in range(order - 1):
        c.append(c[-1] * cosine - s[-1] * sine)
        s.append(s[-1] * cosine + c[-2] * sine)
    return c, s


def exact_error(counts):
    """‖computed − exact‖₂ ÷ (√n ‖counts‖₂), everything exact but the transform under test."""
    n = len(counts)
    computed = wide.wide_fourier(wide.widen(np.array(counts, dtype=np.int64)))
    c, s = circle(n)
    total = Decimal(0)
    for f in range(n):
        real = sum((Decimal(x) * c[(f * j) % n] for j, x in enumerate(counts)), Decimal(0))
        imaginary = -sum((Decimal(x) * s[(f * j) % n] for j, x in enumerate(counts)), Decimal(0))
        for part, exact in enumerate((real, imaginary)):
            total += (Decimal(computed[0, part, f]) + Decimal(computed[1, part, f]) - exact) ** 2
    return float((total / (n * sum(Decimal(x) ** 2 for x in counts))).sqrt())


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 8, 12, 30, 64, 101])
def test_the_error_bound_holds_with_a_wide_margin(n):
    rng = np.random.default_rng(n)
    worst = max(
        exact_error(counts)
        for counts in (
            rng.integers(1, 2**62 // n + 1, n).tolist(),
            (2**55 + rng.integers(0, 3, n)).tolist(),
            [2**62] + [0] * (n - 1),
            [1] * n,
        )
    )
    bound = float(wide.fourier_error(n))
    assert worst <= bound / 16
    # The bound is of use, not just true: a double's transform could not meet it.
    assert bound < 2.0**-85


@pytest.mark.parametrize("n", [4096, 6000, 4099])
def test_long_transforms_invert(n):
    """Transforming twice reverses and multiplies by n, which integers of 61 bits show to the last bit."""
    counts = np.random.default_rng(n).integers(0, 2**61 // n, n)
    twice = wide.wide_fourier(wide.wide_fourier(wide.widen(counts)))
    expected = [int(x) * n for x in np.roll(counts[::-1], 1)]
    off = [abs(int(h) + round(low) - e) for h, low, e in zip(*twice[:, 0], expected, strict=True)]
    assert max(off) == 0


def test_roots_are_on_the_circle_to_a_hundred_bits():
    table = wide.roots(360, 360)
    c, s = circle(360)
    for t in range(0, 360, 7):
        assert abs(Decimal(table[0, 0, t]) + Decimal(table[1, 0, t]) - c[t]) < Decimal(2) ** -100
        assert abs(Decimal(table[0, 1, t]) + Decimal(table[1, 1, t]) + s[t]) < Decimal(2) ** -100
