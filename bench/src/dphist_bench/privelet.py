"""A census-sized cube through Privelet, end to end: what it costs beside one pass over the memory."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Estimate
from dphist.kernels.wavelets import standard
from dphist.kernels.wavelets.axes import Axis, HaarAxis, NominalAxis, PlainAxis
from dphist.mechanisms.privelet import Privelet
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.private.noise import Noise
from dphist.private.queries.wavelet import WaveletCells, wavelet_axes
from dphist.private.questions import Layout
from dphist.testing import open_counts
from dphist_bench import data


def main(argv: list[str]) -> int:
    """Print what a pass, the noise, the transform and the whole cost, and how that grows."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench privelet", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small cube, in seconds")
    parser.add_argument("--calibration", choices=("tight", "paper"), default="tight")
    parser.add_argument("--plain", nargs="*", help="attributes left plain; by default the rule decides")
    parser.add_argument("--no-growth", action="store_true", help="leave the growth tables out")
    options = parser.parse_args(argv)
    shape = (11, 2, 64, 129) if options.quick else (101, 2, 512, 1_001)
    plain = "auto" if options.plain is None else tuple(options.plain)
    cube(shape, Privelet(plain=plain, calibration=options.calibration))
    against_numpy(shape)
    if not options.no_growth:
        growth([2**14, 2**16] if options.quick else [2**k for k in range(22, 27)])
    return 0


def census_domain(shape: tuple[int, int, int, int]) -> Domain:
    """Age and income ordered, gender and occupation nominal with two and three levels, as in the paper."""
    ages, genders, occupations, incomes = shape
    family = 32 if occupations >= 511 else 8
    groups = {
        f"group {g}": [f"job {i}" for i in range(g * family, min((g + 1) * family, occupations))]
        for g in range(-(-occupations // family))
    }
    return Domain(
        [
            Ordinal("age", range(ages)),
            Nominal("gender", [f"gender {i}" for i in range(genders)]),
            Nominal("occupation", groups),
            Ordinal("income", range(incomes)),
        ]
    )


def cube(shape: tuple[int, int, int, int], mechanism: Privelet) -> None:
    """One cube: memory in a first run, time in the best of three more, and where the time goes."""
    domain = census_domain(shape)
    histogram = Histogram(domain, data.census(shape, 10_000_000 if prod(shape) > 10**8 else 20_000))
    # Compiled on a small cube first: machine code is kept on disk, and its making is no part of the figure.
    warm = census_domain((5, 2, 512, 9))
    mechanism.estimate(open_counts(Histogram(warm, np.zeros(warm.shape, dtype=np.int64)), 1))

    axes = mechanism.axes(domain)
    cells, size = histogram.counts.nbytes, domain.size
    transformed = [n for n, axis in zip(domain.names, axes, strict=True) if not isinstance(axis, PlainAxis)]
    say(f"cube {' × '.join(map(str, shape))} = {size / 1e6:.1f} million cells, {cells / 1e6:.0f} MB; "
        f"transformed: {', '.join(transformed)}; {mechanism.calibration} noise")  # fmt: skip

    right = open_counts(histogram, 1)
    forget_peak()
    before = peak_memory()
    first, estimate = cpu(lambda: mechanism.estimate(right))
    grown = peak_memory() - before
    say(
        f"memory beyond the counts   {grown / 1e6:8.0f} MB = {grown / cells:.2f} × the cube (result included)"
    )
    del estimate

    floor = pass_over(histogram.counts)
    totals = []
    for _ in range(3):
        clock = time.perf_counter()
        spent, estimate = cpu(partial(release, mechanism, histogram))
        totals.append((spent, time.perf_counter() - clock))
        del estimate
    total, wall = min(totals)
    parts = shares(axes, histogram.counts, Fraction(1))
    parts["the rest"] = max(0.0, total - sum(parts.values()))
    say(f"one read-and-write pass    {floor:8.3f} CPU s")
    say(f"Privelet, end to end       {total:8.3f} CPU s ({wall:.2f} s elapsed; first run {first:.3f} CPU s)")
    say(f"ratio to the pass          {total / floor:8.1f}   (target ≤ 25)")
    for name, part in parts.items():
        say(f"  {name:22}   {part:8.3f} CPU s, {part / total:4.0%}, {part / size * 1e9:5.2f} ns a cell")


def shares(axes: tuple[Axis, ...], counts: NDArray[np.int64], unit_scale: Fraction) -> dict[str, float]:
    """The parts by themselves, on as many slabs as the cube has."""
    split = standard.slab_start(axes)
    inner = axes[split:]
    slab = np.zeros(standard.slots(inner), dtype=np.int64)
    slabs = prod(axis.slots for axis in axes[:split])
    scale = prod(axis.sensitivity for axis in axes) * unit_scale
    kinds = [
        (value, int((axis.classes[1] == i).sum()))
        for axis in inner
        for i, value in enumerate(axis.classes[0])
    ]
    weight = max(kinds, key=lambda kind: kind[1] if kind[0] != 1 else 0)[0]
    source = Noise.system()
    noise, _ = best(lambda: [source.add_laplace(slab, scale * weight, slab) for _ in range(slabs)])

    def invert() -> None:
        for _ in range(slabs):
            standard.sweep(slab, inner, lambda axis: axis.inverse, 1)

    transform, _ = best(invert)
    flat, out = counts.reshape(-1), np.zeros(counts.size)
    out.fill(0.0)
    del out
    # Memory that the process has given back and takes again, as a second release does.
    out = np.empty(counts.size)
    touch, _ = cpu(lambda: out.fill(0.0))
    step = prod(axis.size for axis in inner)

    def add() -> None:
        for i in range(0, counts.size, step):
            add_slab(slab, inner, flat[i : i + step], out[i : i + step])

    traffic, _ = best(add)
    return {"noise": noise, "transform": transform, "adding the counts": traffic, "fresh memory": touch}


def against_numpy(shape: tuple[int, int, int, int]) -> None:
    """Cells from noisy coefficients and counts, by these kernels and in plain NumPy."""
    domain = census_domain((min(shape[0], 16), *shape[1:]))
    axes = wavelet_axes(domain.shape, domain, (0, 1))
    noise = np.zeros(standard.slots(axes), dtype=np.int64)
    Noise.system().add_laplace(noise, Fraction(100), noise)
    counts, cells = np.ones(domain.size, dtype=np.int64), np.zeros(domain.size)
    theirs, slow = best(lambda: counts.reshape(domain.shape) + numpy_inverse(noise, axes))
    inner = axes[2:]
    slabs, step = noise.reshape(-1, *standard.slots(inner)), prod(axis.size for axis in inner)

    def transform() -> None:
        for i, slab in enumerate(slabs):
            standard.sweep(slab, inner, lambda axis: axis.inverse, 1)
            part = slice(i * step, (i + 1) * step)
            add_slab(slab, inner, counts[part], cells[part])

    once, _ = cpu(transform)
    assert np.allclose(cells.reshape(domain.shape), slow)
    # Integers take the same time whatever they are, so the transform may be timed on what it has left.
    ours = min(once, best(transform)[0])
    # The same with everything a release does around it, but for the sampler: slabs are filled from recorded draws,
    # handed to another thread, and the result's memory is fresh, as NumPy's is.
    drawn = np.zeros_like(noise)
    Noise.system().add_laplace(drawn, Fraction(100), drawn)
    layout = Layout(domain.shape, None, 1, domain)
    around, fast = best(lambda: WaveletCells((0, 1)).perturb(counts, layout, Recorded(drawn)))
    assert np.allclose(fast, counts.reshape(domain.shape) + numpy_inverse(drawn, axes))
    say(f"cells from {noise.size / 1e6:.1f} million coefficients in plain NumPy: {theirs:.3f} CPU s")
    say(
        f"  kernels alone, in memory held already    {ours:8.3f} CPU s: NumPy takes {theirs / ours:.1f} × as long"
    )
    say(
        f"  a whole release without its sampler      {around:8.3f} CPU s: NumPy takes {theirs / around:.1f} × as long"
    )


class Recorded:
    """Noise that was drawn before, so that a release can be timed without the sampler."""

    def __init__(self, drawn: NDArray[np.int64]) -> None:
        self.drawn, self.used = drawn.reshape(-1), 0

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
        """Hand out the next numbers."""
        return self.add_laplace(np.zeros(shape, dtype=np.int64), scale)

    def add_laplace(
        self, values: NDArray[np.int64], scale: Fraction, out: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Add the next numbers."""
        begin, self.used = self.used, self.used + values.size
        return np.add(values, self.drawn[begin : self.used].reshape(values.shape), out=out)


def add_slab(
    slab: NDArray[np.int64], axes: tuple[Axis, ...], counts: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    """Add the counts to the numerators of a sub-matrix, as a release does."""
    last, denominator = axes[-1], standard.denominator(axes)
    rows = np.arange(prod(axis.size for axis in axes[:-1]), dtype=np.int64)
    standard.add_numerators(
        counts, slab.reshape(-1), rows * last.slots, last.size, denominator, 1 << 40, True, out
    )


def numpy_inverse(noise: NDArray[np.int64], axes: tuple[Axis, ...]) -> NDArray[np.float64]:
    """The transform as one would write it in NumPy: whole arrays, an axis at a time, level by level."""
    array = noise.astype(np.float64)
    for place, axis in enumerate(axes):
        array = np.moveaxis(array, place, -1)
        if isinstance(axis, HaarAxis):
            sums = array[..., :1]
            half = axis.padded // 2
            beyond = array.shape[-1]
            while half:
                nodes = -(-axis.size // (2 * half))
                differences = array[..., half : axis.size : 2 * half]
                if differences.shape[-1] < nodes:
                    beyond -= 1
                    differences = np.concatenate([differences, array[..., beyond : beyond + 1]], axis=-1)
                below = np.empty((*array.shape[:-1], 2 * nodes))
                below[..., ::2] = (sums + differences) / 2
                below[..., 1::2] = (sums - differences) / 2
                sums = below[..., : -(-axis.size // half)]
                half //= 2
            array = sums[..., : axis.size]
        elif isinstance(axis, NominalAxis):
            array = array.copy()
            for node, children in axis.families():
                family = array[..., children]
                centred = family - family.mean(axis=-1, keepdims=True)
                array[..., children] = centred + array[..., node : node + 1] / len(children)
            array = array[..., : axis.size]
        array = np.moveaxis(array, -1, place)
    return array


def growth(sizes: list[int]) -> None:
    """CPU time with every axis transformed, from a few million cells to a hundred million."""
    say("growth with the number of cells, every axis transformed, two ordered and two nominal axes")
    say(f"{'cells':>12} {'CPU s':>8} {'ns a cell':>10}")
    mechanism = Privelet(plain=())
    for wanted in sizes:
        domain = square_domain(round(wanted**0.25))
        generator = np.random.default_rng(0)  # noqa: TID251 -- data only
        histogram = Histogram(domain, generator.integers(0, 3, domain.shape))
        spent, _ = best(partial(release, mechanism, histogram), 2)
        say(f"{domain.size:12,} {spent:8.3f} {spent / domain.size * 1e9:10.1f}")


def release(mechanism: Privelet, histogram: Histogram) -> Estimate:
    """One release with fresh noise."""
    return mechanism.estimate(open_counts(histogram, 1))


def square_domain(side: int) -> Domain:
    """The synthetic tables of the paper's Figs. 13 and 14: four axes of one size, about √size groups in a hierarchy."""
    groups = min((g for g in range(1, side + 1) if side % g == 0), key=lambda g: abs(g - side**0.5))
    family = side // groups
    tree = {f"group {g}": [f"value {g * family + i}" for i in range(family)] for g in range(groups)}
    return Domain(
        [Ordinal("a", range(side)), Ordinal("b", range(side)), Nominal("c", tree), Nominal("d", tree)]
    )


def pass_over(counts: NDArray[np.int64]) -> float:
    """CPU time to read an array and write another of its size that the process already owns."""
    out = np.zeros_like(counts)
    out.fill(1)
    return best(lambda: np.copyto(out, counts))[0]


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads, and the result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def best(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least CPU time of a few runs: others share the machine."""
    runs = [cpu(work) for _ in range(times)]
    return min(spent for spent, _ in runs), runs[-1][1]


def forget_peak() -> None:
    """Let the peak of memory start again from what is held now, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        say("(this system cannot restart the peak of memory: the figure may be too small)")


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    try:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
