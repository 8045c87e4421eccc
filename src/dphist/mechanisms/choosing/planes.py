"""Who measures a full plane, or a space, under ρ: wavelets of all axes at once, or a tree of boxes.

Gaussian noise pays for many overlapping questions with the root of their number. A rectangle ends in strips that are
long one way and narrow the other; a tree has only boxes of one form, of which a strip cuts many, while Privelet's
coefficients are products of halvings of one axis and of the other, of which it needs few. For ranges of all sizes of
64², 256² and 1,024² cells a tree with the best shares is off by 9.8, 22 and 46 deviations of a cell's noise, Privelet
by 7.3, 12.4 and 18.6 (the best shares of its levels would take 4 % off); of 64³ cells by 42 and 19.7. Under ε the best
blocks of all forms that overlap have 0.94 of a tree's error on 256² cells: not worth it.

Wavelets measure the same whatever the data; a tree leaves alone what is empty. How much of the plane is full decides,
which no total tells: so blocks of some 64 cells are counted for little (`crowded_look`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.linear.wavelets import WaveletNoise
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.glimpse import Crowd, Look
from dphist.mechanisms.choosing.words import BLOCKS, beside
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.model.workload import Kind, Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.wavelet import reference_law

FloatArray = NDArray[np.float64]

# What a look at the blocks costs: under two percent together, so under one of the error. They have about so many cells,
# and there are at most so many along an axis.
_TOTAL, _BLOCKS = Fraction(1, 256), Fraction(3, 256)
_CELLS, _SIDES = 64, 32
# A tree wins below this part of the wavelets' error. On 22 made-up planes with 10⁵ to 10⁷ records at two ρ and drawn
# ones (`dphist_bench.data.drawn` 1200 to 1259, two draws; 87 of 164 cases with 0.3 records a cell and deviation) these
# are so taken in 35, with 0.73 of a tree's error there, 1.7 at worst (an exactly level plane); with 0.9 and 1.1 instead
# in 47 and 26, with 0.78 and 0.74.
_TREE = 1.0
# Blocks are forecast together by their density, in so many steps to the double; of less than this part of a deviation
# a cell nothing can be told but the total.
_STEPS, _LEAST = 2, 2.0**-8


def crowded_look(shape: tuple[int, ...]) -> Look:
    """The look that tells how much of a plane is full.

    Args:
        shape: How many values each attribute has.

    Returns:
        What is asked, and for how much.

    Example:
        >>> crowded_look((256, 256)).sides, crowded_look((64, 64)).sides
        (32, 8)
    """
    # An even number, since neighbours are set beside each other.
    sides = 2 * round((math.prod(shape) / _CELLS) ** (1.0 / len(shape)) / 2.0)
    sides = min(max(sides, 2), _SIDES)
    return Look(total=_TOTAL, blocks=_BLOCKS, sides=sides, cells=sides ** len(shape))


def wavelets_if_better(
    data: PrivateCounts, kind: Kind | None, crowd: Crowd | None
) -> tuple[Mechanism, str] | None:
    """Wavelets and why, if they are expected to be off by less than a tree on the ranges that will be asked.

    Args:
        data: A right, of which only public facts are read.
        kind: The kind of questions that was announced.
        crowd: How full blocks of the plane are, or None to reckon with a full one.

    Returns:
        The mechanism and the reason, or None where a tree is better.
    """
    if data.domain is None:
        return None
    asked, law = asked_kinds(data.shape, data.domain, data.workload, kind), data.law()
    axes = Privelet().transformed(data.shape, data.domain, law.exponent)
    noise = WaveletNoise(axes, reference_law(axes, law), "")
    some = Workload(data.domain, *asked[0].some)
    waves = math.sqrt(float(noise.spread(some).variance.mean()))
    forecaster = Forecaster(data.shape, asked, law)
    tree = forecaster.tree().score if crowd is None else math.sqrt(_by_block(forecaster, crowd))
    if tree < _TREE * waves:
        return None
    return (
        Privelet(),
        f"ranges of many cells will be asked for{'' if crowd is None else ' and records are nearly everywhere'}, so "
        f"differences between halves, quarters and so on (wavelets) are measured (privelet): "
        f"{beside(waves, (BLOCKS, tree))}",
    )


def _by_block(forecaster: Forecaster, crowd: Crowd) -> float:
    """The mean squared error of a tree: of every part of a block as if all of the plane were as full."""
    deviation, cells = math.sqrt(float(forecaster.law.variance)), float(math.prod(forecaster.shape))
    parts, weight = within(crowd)
    bits = np.round(np.log2(np.maximum(parts / deviation, _LEAST)) * _STEPS)
    error = 0.0
    for each in sorted(set(bits.tolist())):
        records = deviation * cells * 2.0 ** (each / _STEPS)
        part = float(weight[bits == each].sum() / weight.sum())
        error += part * replace(forecaster, records=records).tree().errors[0] ** 2
    return error


def within(crowd: Crowd) -> tuple[FloatArray, FloatArray]:
    """How full parts of the blocks may be, and how much each weighs: blocks are as uneven inside as beside each other.

    Of two neighbours along an axis each has a part of their sum. Halves of a block are taken to have the same parts,
    along every axis.

    Args:
        crowd: How full blocks are.

    Returns:
        Densities and weights.

    Example:
        >>> within(Crowd(np.array([0.0, 2.0, 1.0, 1.0]), np.ones(4)))[0].tolist()
        [0.0, 0.0, 0.0, 4.0, 1.0, 1.0, 1.0, 1.0]
    """
    density = np.maximum(crowd.density, 0.0)
    parts, weight = density[..., None], crowd.cells[..., None].astype(np.float64)
    for axis, n in enumerate(density.shape):
        even = n - n % 2
        ratio = np.ones((n, *np.delete(density.shape, axis), 2))
        along = np.moveaxis(density, axis, 0)
        pairs = along[:even].reshape(even // 2, 2, *along.shape[1:])
        whole = pairs.sum(axis=1)
        shares = 2.0 * np.divide(
            pairs, whole[:, None], out=np.full_like(pairs, 0.5), where=whole[:, None] > 0.0
        )
        for half in range(2):
            ratio[:even, ..., half] = np.repeat(shares[:, half], 2, axis=0)
        ratio = np.moveaxis(ratio, 0, axis)
        parts = (parts[..., :, None] * ratio[..., None, :]).reshape(*density.shape, -1)
        weight = np.repeat(weight / 2.0, 2, axis=-1)
    return parts.reshape(-1), weight.reshape(-1)
