"""How fast exact noise is drawn, beside numpy's inexact noise and OpenDP's exact noise.

Four tables, all in CPU seconds of this process:

- many draws: discrete Laplace noise added in place to 64-bit integers, at four scales, for 10⁶ draws (numpy
  beside it in the same run, alternating; OpenDP's integer vector mechanism if it is installed) and for 10⁸
  draws in blocks of 10⁶. *entropy* is the least number of random bits any sampler needs for a draw,
  *bits* what ours takes from the keystream, and *floor* the share of our time that making those bits takes.
- Gaussian: the same for discrete Gaussian noise, beside ``normal`` of numpy and OpenDP's.
- few draws: microseconds of one call at a scale never seen and at one seen before.
- selection: the exact exponential mechanism beside the Gumbel trick in floating point.

``--quick`` draws less, to check that everything runs.
"""

from __future__ import annotations

import importlib.metadata
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from dphist.kernels.sampling.laplace import UNSETTLED
from dphist.private.noise import Keystream, Noise, laplace
from dphist_bench.measuring import Line
from dphist_bench.timing import least, seconds

_SCALES = (1, 10, 100, 10_000)


def measure(
    *, quick: bool, opendp: Annotated[str | None, "a Python that has OpenDP, where this one has not"] = None
) -> Iterator[Line]:
    """Give the four tables."""
    peer, reason = _opendp(2_000 if quick else 100_000)
    yield from _many(100_000 if quick else 1_000_000, 2 if quick else 100, peer)
    yield reason
    yield from _gaussian(
        100_000 if quick else 1_000_000, 2 if quick else 100, opendp or (peer and sys.executable)
    )
    yield from _few(3 if quick else 30)
    yield from _selection(3 if quick else 10)


def entropy(scale: int) -> float:
    """Give the bits of information in one discrete Laplace draw, which no exact sampler can do without."""
    a = math.exp(-1 / scale)
    at_zero = (1 - a) / (1 + a)
    mean_distance = 2 * a / (1 - a * a)
    return (mean_distance / scale - math.log(at_zero)) / math.log(2)


def bits_taken(scale: int) -> float:
    """Give the keystream bits our tables take for one draw, on average."""
    ladders = laplace.tabled(scale, 1).ladders
    return sum(16 + 64 * float((ladder.table == UNSETTLED).mean()) for ladder in ladders)


def _many(size: int, blocks: int, peer: Callable[[int], float] | None) -> Iterator[Line]:
    noise, numpy_noise = Noise.system(), np.random.default_rng()  # noqa: TID251 -- the peer that is measured
    byte = _keystream_seconds_per_byte()
    yield f"keystream: {1e-9 / byte:.1f} GB per CPU second (AES-256-CTR)"
    for scale in _SCALES:
        values = np.zeros(size, dtype=np.int64)

        def ours(scale: int = scale, values: Any = values) -> object:
            return noise.add_laplace(values, Fraction(scale), values)

        def numpys(scale: int = scale) -> object:
            return numpy_noise.laplace(0.0, scale, size)

        ours()
        spent = [(seconds(ours), seconds(numpys)) for _ in range(9)]
        mine, theirs = (min(times) for times in zip(*spent, strict=True))
        opendp = peer(scale) if peer else math.nan
        total = seconds(lambda: [ours() for _ in range(blocks)])
        yield {
            "scale": scale,
            "draws": size,
            "M draws/s": size / mine / 1e6,
            "numpy M/s": size / theirs / 1e6,
            "times numpy": theirs / mine,
            "OpenDP M/s": 1e-6 / opendp,
            "times OpenDP": opendp * size / mine,
            "entropy": entropy(scale),
            "bits": bits_taken(scale),
            "floor": bits_taken(scale) / 8 * byte * size / mine,
            f"M draws/s of {size * blocks:.0e}": size * blocks / total / 1e6,
        }


def _gaussian(size: int, blocks: int, opendp: str | None) -> Iterator[Line]:
    noise, numpy_noise = Noise.system(), np.random.default_rng()  # noqa: TID251 -- the peer that is measured
    for deviation in (*_SCALES, 10**9):
        values, variance = np.zeros(size, dtype=np.int64), Fraction(deviation) ** 2

        def ours(variance: Fraction = variance, values: Any = values) -> object:
            return noise.add_gaussian(values, variance, values)

        def numpys(deviation: int = deviation) -> object:
            return numpy_noise.normal(0.0, deviation, size)

        ours()
        spent = [(seconds(ours), seconds(numpys)) for _ in range(9)]
        mine, theirs = (min(times) for times in zip(*spent, strict=True))
        total = seconds(lambda: [ours() for _ in range(blocks)])
        peer = _opendp_gaussian(deviation, opendp) if opendp else math.nan
        yield {
            "deviation": deviation,
            "draws": size,
            "seconds for these": mine,
            "M draws/s": size / mine / 1e6,
            "numpy M/s": size / theirs / 1e6,
            "times numpy": theirs / mine,
            "OpenDP M/s": 1e-6 / peer,
            "times OpenDP": peer * size / mine,
            f"seconds for {size * blocks:.0e}": total,
        }


# Runs where OpenDP is installed: more and more draws until a second of processor time has been spent on them.
_OPENDP = """
import sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
mechanism = dp.m.make_gaussian(*space, scale=float(sys.argv[1]))
mechanism([0] * 10)
size = 10
while True:
    begun = time.process_time()
    mechanism([0] * size)
    spent = time.process_time() - begun
    if spent > 0.3:
        print(spent / size)
        break
    size *= 3
"""


def _opendp_gaussian(deviation: int, python: str) -> float:
    """OpenDP's seconds a draw of integer Gaussian noise, from about a second of draws."""
    done = subprocess.run(
        [python, "-c", _OPENDP, str(deviation)], capture_output=True, text=True, timeout=120
    )
    return float(done.stdout) if done.returncode == 0 else math.nan


def _opendp(size: int) -> tuple[Callable[[int], float] | None, str]:
    """Give a function that measures OpenDP's seconds a draw, or why there is none."""
    try:
        import opendp.prelude as dp  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None, "OpenDP is not installed and was not measured (pip install './bench[peers]')"
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)

    def seconds_per_draw(scale: int) -> float:
        mechanism = dp.m.make_laplace(*space, scale=float(scale))
        zeros = [0] * size
        return least(lambda: mechanism(zeros)) / size

    return seconds_per_draw, f"OpenDP {importlib.metadata.version('opendp')}, vectors of {size:,} integers"


def _few(repeats: int) -> Iterator[Line]:
    noise = Noise.system()
    for scale in (Fraction(1, 100), *map(Fraction, _SCALES), Fraction(10**12), Fraction(10**100 + 9, 3**200)):
        times = []
        for size in (1, 1000):

            def seen(scale: Fraction = scale, size: int = size) -> object:
                return noise.laplace(scale, size)

            def new(draw: Callable[[], object] = seen) -> object:
                laplace.binary.cache_clear()
                return draw()

            times += [least(run, repeats) for run in (new, seen)]
        heads = ("1 draw, new scale, µs", "seen before", "1,000 draws, new scale, µs", "seen")
        yield {"scale": float(scale), **dict(zip(heads, (1e6 * each for each in times), strict=True))}


def _selection(repeats: int) -> Iterator[Line]:
    noise, numpy_noise = Noise.system(), np.random.default_rng(0)  # noqa: TID251 -- scores, and the peer
    for parts, each in ((1, 2), (1, 1000), (1, 1_000_000), (100_000, 2)):
        scores = numpy_noise.integers(0, 1000, parts * each)
        starts = np.arange(parts + 1, dtype=np.int64) * each

        def exact(scores: Any = scores, starts: Any = starts) -> object:
            return noise.select(scores, starts, Fraction(1, 20))

        def gumbel(scores: Any = scores, shape: tuple[int, int] = (parts, each)) -> object:
            return np.argmax(scores.reshape(shape) * 0.05 + numpy_noise.gumbel(size=shape), axis=1)

        exact()
        mine, theirs = (1e3 * least(run, repeats) for run in (exact, gumbel))
        yield {"parts": parts, "candidates a part": each, "exact ms": mine, "Gumbel ms": theirs}


def _keystream_seconds_per_byte() -> float:
    keystream, size = Keystream(), 1 << 16
    keystream.take(size)
    return least(lambda: [keystream.take(size) for _ in range(50)], 9) / size / 50
