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

from dphist.inference.predictive.few import UNSEEN
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.cubes import two_digits
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.glimpse import FOR_LOW, Crowd, Glimpse, Look
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.privelet import Privelet, WaveletNoise
from dphist.mechanisms.protocol import Mechanism
from dphist.model.workload import Kind, Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries.wavelet import reference_law

FloatArray = NDArray[np.float64]

# ---- few tall cells ----
# A plane of which nearly all records are in few tall cells is better measured cell by cell, where `Posterior` believes
# what is tall and takes the rest for noise: each tall cell has its own noise only, and empty land none. What it does
# not believe is lost, at worst. So it is asked how much lies in cells below so many noise scales (`Heights`): for 1/48
# of what a total, which costs 1/256, has left, if there are enough records that it may be so.
_COUNT, _HEIGHTS = Fraction(1, 256), Fraction(1, 48)
_BELIEVED, _ENOUGH = 17, 3e5
# In noise scales, ranges that hold a part a of a plane's cells with k tall cells are off by √(2ak) cell by cell, beside
# which a^_SPREAD of what is low is lost, and from a tree by _TREES·√(ak), beside _PATHS of what a full plane has; by
# _FULL of that at most.
_SPREAD, _TREES, _PATHS, _FULL = 0.87, 2.0, 0.15, 0.4
# The noise of that look is as large as what it must tell apart, so what it showed is believed by a public prior: often
# nothing is low, else any size is alike likely, in noise scales; and so is any number of tall cells.
_NOTHING, _LOW, _GUESSES = 0.3, np.geomspace(4.0, 4e6, 40), 29
# Where the better way is then still expected to be off by so much more than the better of both would be, in logarithms,
# the same is asked once more, for so much.
_DOUBT, _AGAIN = 0.05, Fraction(1, 20)

# ---- heaps ----
# From so many noise scales of records on, but for tall cells, a heap is worth looking for, up to so many a cell: where
# all cells are full they are measured one by one, and a wall costs nothing. What it costs to ask for these; then so
# many nats tell all of them from none, for no less and no more than one part in so many of the budget.
_HEAPS, _FULLEST, _SPREAD_OUT = 500.0, 3.0, Fraction(1, 128)
_NATS, _CHEAPEST, _DEAREST = 100.0, 256, 32

# ---- full planes ----
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


def counted_look() -> Look:
    """The look that tells whether heights are worth asking for: a total.

    Returns:
        What is asked, and for how much.
    """
    return Look(total=_COUNT, blocks=Fraction(0))


def look_higher(
    look: Look, seen: Glimpse, data: PrivateCounts, kind: Kind | None
) -> tuple[Look, Glimpse, PrivateCounts]:
    """See how much lies in low cells too, if there are enough records for many tall ones; twice if that leaves doubt.

    Args:
        look: What was asked so far: a noisy total.
        seen: What that showed.
        data: What is left of the right.
        kind: The kind of questions that was announced.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    scale = data.law().scale
    if seen.records is None or seen.records < _ENOUGH * scale:
        return look, seen, data
    look = replace(look, heights=_HEIGHTS, height=math.ceil(_BELIEVED * scale))
    seen, data = look.higher(data, seen)
    likely, ways = _ways(data, kind, seen)
    if min((likely * (way - np.minimum(*ways))).sum() for way in ways) <= _DOUBT:
        return look, seen, data
    look = replace(look, again=_AGAIN)
    return look, *look.higher(data, seen)


def look_for_heaps(look: Look, seen: Glimpse, data: PrivateCounts) -> tuple[Look, Glimpse, PrivateCounts]:
    """See on which values records heap up too, if there are enough of them.

    Args:
        look: What was asked so far: a noisy total.
        seen: What that showed.
        data: What is left of the right.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    scale = float(data.unit_scale)
    if (seen.records or 0.0) < _HEAPS * scale:
        return look, seen, data
    look = replace(look, spread=_SPREAD_OUT)
    seen, data = look.lower(data, seen)
    spread = (seen.spread or 0.0) / scale
    if not _HEAPS <= spread < _FULLEST * data.size:
        return look, seen, data
    look = replace(look, heap=Fraction(1, min(max(round(spread / _NATS), _DEAREST), _CHEAPEST)))
    return look, *look.heaped(data, seen)


def cells_if_few(data: PrivateCounts, kind: Kind | None, seen: Glimpse) -> tuple[Mechanism, str] | None:
    """Every cell by itself and why, if few are tall and little lies in the others.

    Args:
        data: A right, of which only public facts are read.
        kind: The kind of questions that was announced.
        seen: What a first look showed.

    Returns:
        The mechanism and the reason, or None where a tree is better.
    """
    if seen.low is None or seen.tall is None:
        return None
    likely, ways = _ways(data, kind, seen)
    # Geometric means: whoever's is less is expected to lose by a smaller factor against the better of both.
    scale = float(data.law().scale)
    cells, tree = (scale * math.exp(float((likely * way).sum())) for way in ways)
    if cells >= tree:
        return None
    return (
        Posterior(elsewhere=UNSEEN + round(max(seen.low, 0.0) / scale)),
        f"nearly all records are in about {two_digits(max(seen.tall, 1.0)):,} cells, so every cell is measured by "
        f"itself (posterior): ranges are expected to be off by {cells:,.3g}, from a tree by {tree:,.3g}",
    )


def _ways(
    data: PrivateCounts, kind: Kind | None, seen: Glimpse
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """How likely each amount in low cells and number of tall ones is, and the logarithms of both ways' errors there.

    Errors are in noise scales: cell by cell, and from a tree.
    """
    asked, law = asked_kinds(data.shape, data.domain, data.workload, kind), data.law()
    first, last = asked[0].some
    part = float(np.prod((last - first) / np.array(data.shape), axis=1).mean())
    scale = float(law.scale)
    low, tall = np.append(0.0, _LOW), np.geomspace(1.0, data.size, _GUESSES)
    is_low = np.append(_NOTHING, np.full(_LOW.size, (1.0 - _NOTHING) / _LOW.size))
    is_low *= _likely(low, (seen.low or 0.0) / scale, seen.blur / scale)
    is_tall = _likely(
        tall, seen.tall or 0.0, seen.blur * float(FOR_LOW / (1 - FOR_LOW)) / (_BELIEVED * scale)
    )
    likely = np.outer(is_low, is_tall) / (is_low.sum() * is_tall.sum())
    held, full = part * tall, Forecaster(data.shape, asked, law).tree().score / scale
    cells = np.hypot.outer(part**_SPREAD * low, np.sqrt(2.0 * held))
    boxes = np.minimum(np.hypot(_PATHS * full, _TREES * np.sqrt(held)), _FULL * full)
    return likely, (np.log(cells), np.broadcast_to(np.log(boxes), cells.shape))


def _likely(sizes: FloatArray, shown: float, noise: float) -> FloatArray:
    """How likely a noisy answer is for every true one, beside the likeliest: Laplace noise of this scale."""
    apart = np.abs(sizes - shown) / noise
    return np.asarray(np.exp(apart.min() - apart))


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
        f"ranges of many cells will be asked for{'' if crowd is None else ' and most of the blocks are full'}, so "
        f"wavelets are measured (privelet): ranges are expected to be off by {waves:,.3g}, from a tree by {tree:,.3g}",
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
