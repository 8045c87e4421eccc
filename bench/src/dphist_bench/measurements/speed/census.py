"""A census-sized cube through Privelet, end to end: what it costs beside one pass over the memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import prod
from typing import Annotated, Literal

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
from dphist_bench.measuring import Line
from dphist_bench.timing import forget_peak, least, peak_memory, seconds


def measure(
    *,
    quick: bool,
    calibration: Literal["tight", "paper"] = "tight",
    plain: Annotated[tuple[str, ...] | None, "attributes left plain; by default the rule decides"] = None,
    growth: Annotated[bool, "the growth with the number of cells as well"] = True,
) -> Iterator[Line]:
    """Give what a pass, the noise, the transform and the whole cost, and how that grows."""
    shape = (11, 2, 64, 129) if quick else (101, 2, 512, 1_001)
    yield from cube(shape, Privelet(plain="auto" if plain is None else tuple(plain), calibration=calibration))
    yield from against_numpy(shape)
    if growth:
        yield from grown([2**14, 2**16] if quick else [2**k for k in range(22, 27)])


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


def cube(shape: tuple[int, int, int, int], mechanism: Privelet) -> Iterator[Line]:
    """One cube: memory in a first run, time in the best of three more, and where the time goes."""
    domain = census_domain(shape)
    histogram = Histogram(domain, data.census(shape, 10_000_000 if prod(shape) > 10**8 else 20_000))
    # Compiled on a small cube first: machine code is kept on disk, and its making is no part of the figure.
    warm = census_domain((5, 2, 512, 9))
    mechanism.estimate(open_counts(Histogram(warm, np.zeros(warm.shape, dtype=np.int64)), 1))

    axes = mechanism.axes(domain)
    cells, size = histogram.counts.nbytes, domain.size
    transformed = [n for n, axis in zip(domain.names, axes, strict=True) if not isinstance(axis, PlainAxis)]
    yield (
        f"cube {' × '.join(map(str, shape))} = {size / 1e6:.1f} million cells, {cells / 1e6:.0f} MB; "
        f"transformed: {', '.join(transformed)}; {mechanism.calibration} noise"
    )
    right = open_counts(histogram, 1)
    forget_peak()
    before = peak_memory()
    first = seconds(lambda: mechanism.estimate(right))
    more = peak_memory() - before
    yield f"memory beyond the counts: {more / 1e6:.0f} MB = {more / cells:.2f} × the cube (result included)"

    floor = pass_over(histogram.counts)
    totals = []
    for _ in range(3):
        clock = time.perf_counter()
        spent = seconds(partial(release, mechanism, histogram))
        totals.append((spent, time.perf_counter() - clock))
    total, wall = min(totals)
    parts = shares(axes, histogram.counts, Fraction(1))
    parts["the rest"] = max(0.0, total - sum(parts.values()))
    yield f"Privelet, end to end: {total:.3f} CPU s ({wall:.2f} s elapsed; first run {first:.3f} CPU s)"
    for name, part in {"one read-and-write pass": floor, "Privelet, end to end": total, **parts}.items():
        yield {
            "part": name,
            "CPU s": part,
            "share": part / total,
            "times a pass": part / floor,
            "ns a cell": part / size * 1e9,
        }


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
    noise = least(lambda: [source.add_laplace(slab, scale * weight, slab) for _ in range(slabs)])

    def invert() -> None:
        for _ in range(slabs):
            standard.sweep(slab, inner, lambda axis: axis.inverse, 1)

    transform = least(invert)
    flat, out = counts.reshape(-1), np.zeros(counts.size)
    out.fill(0.0)
    del out
    # Memory that the process has given back and takes again, as a second release does.
    out = np.empty(counts.size)
    touch = seconds(lambda: out.fill(0.0))
    step = prod(axis.size for axis in inner)

    def add() -> None:
        for i in range(0, counts.size, step):
            add_slab(slab, inner, flat[i : i + step], out[i : i + step])

    traffic = least(add)
    return {"noise": noise, "transform": transform, "adding the counts": traffic, "fresh memory": touch}


def against_numpy(shape: tuple[int, int, int, int]) -> Iterator[Line]:
    """Cells from noisy coefficients and counts, by these kernels and in plain NumPy."""
    domain = census_domain((min(shape[0], 16), *shape[1:]))
    axes = wavelet_axes(domain.shape, domain, (0, 1))
    noise = np.zeros(standard.slots(axes), dtype=np.int64)
    Noise.system().add_laplace(noise, Fraction(100), noise)
    counts, cells = np.ones(domain.size, dtype=np.int64), np.zeros(domain.size)
    slow = counts.reshape(domain.shape) + numpy_inverse(noise, axes)
    theirs = least(lambda: counts.reshape(domain.shape) + numpy_inverse(noise, axes))
    inner = axes[2:]
    slabs, step = noise.reshape(-1, *standard.slots(inner)), prod(axis.size for axis in inner)

    def transform() -> None:
        for i, slab in enumerate(slabs):
            standard.sweep(slab, inner, lambda axis: axis.inverse, 1)
            part = slice(i * step, (i + 1) * step)
            add_slab(slab, inner, counts[part], cells[part])

    once = seconds(transform)
    assert np.allclose(cells.reshape(domain.shape), slow)
    # Integers take the same time whatever they are, so the transform may be timed on what it has left.
    ours = min(once, least(transform))
    # The same with everything a release does around it, but for the sampler: slabs are filled from recorded draws,
    # handed to another thread, and the result's memory is fresh, as NumPy's is.
    drawn = np.zeros_like(noise)
    Noise.system().add_laplace(drawn, Fraction(100), drawn)
    layout = Layout(domain.shape, None, 1, domain)
    fast = WaveletCells((0, 1)).perturb(counts, layout, Recorded(drawn))
    around = least(lambda: WaveletCells((0, 1)).perturb(counts, layout, Recorded(drawn)))
    assert np.allclose(fast, counts.reshape(domain.shape) + numpy_inverse(drawn, axes))
    yield f"cells from {noise.size / 1e6:.1f} million coefficients, beside plain NumPy"
    ways = {
        "plain NumPy": theirs,
        "kernels alone, in memory held already": ours,
        "a whole release without its sampler": around,
    }
    for name, spent in ways.items():
        yield {"way": name, "CPU s": spent, "NumPy takes": theirs / spent}


class Recorded:
    """Noise that was drawn before, so that a release can be timed without the sampler."""

    def __init__(self, drawn: NDArray[np.int64]) -> None:
        self.drawn, self.used = drawn.reshape(-1), 0

    def add(
        self,
        values: NDArray[np.int64],
        scale: Fraction,
        variance: Fraction,
        out: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Add the next numbers."""
        return self.add_laplace(values, scale, out)

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
    standard.add_numerators(counts, slab.reshape(-1), rows * last.slots, last.size, denominator, 1 << 40, out)


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


def grown(sizes: list[int]) -> Iterator[Line]:
    """CPU time with every axis transformed, from a few million cells to a hundred million."""
    yield "growth with the number of cells, every axis transformed, two ordered and two nominal axes"
    mechanism = Privelet(plain=())
    for wanted in sizes:
        domain = square_domain(round(wanted**0.25))
        generator = np.random.default_rng(0)  # noqa: TID251 -- data only
        histogram = Histogram(domain, generator.integers(0, 3, domain.shape))
        spent = least(partial(release, mechanism, histogram), 2)
        yield {"cells": domain.size, "CPU s": spent, "ns a cell": spent / domain.size * 1e9}


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
    return least(lambda: np.copyto(out, counts))
