"""Whether few tall cells of a plane have nearly all records: then every cell is measured by itself.

`Posterior` believes what is tall and takes the rest for noise, so each tall cell has its own noise only, and empty land
none; what it does not believe is lost, at worst. So it is asked how much lies in cells below so many noise scales
(`Heights`), if there are enough records that it may be so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.glimpse import FOR_LOW, Glimpse, Look
from dphist.mechanisms.choosing.words import ALONE, BLOCKS, beside, two_digits
from dphist.mechanisms.posterior import UNSEEN, Posterior
from dphist.mechanisms.protocol import Mechanism
from dphist.model.workload import Kind
from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]

# What a total costs, and a look at heights of what it has left; what is believed; how many records are enough.
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
        kind: The kind of questions that was announced, if it is one.

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


def cells_if_few(data: PrivateCounts, kind: Kind | None, seen: Glimpse) -> tuple[Mechanism, str] | None:
    """Every cell by itself and why, if few are tall and little lies in the others.

    Args:
        data: A right, of which only public facts are read.
        kind: The kind of questions that was announced, if it is one.
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
        f"nearly all records are in about {two_digits(max(seen.tall, 1.0)):,} cells, so {ALONE}: "
        f"{beside(cells, (BLOCKS, tree))}",
    )


def _ways(
    data: PrivateCounts, kind: Kind | None, seen: Glimpse
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """How likely each amount in low cells and number of tall ones is, and the logarithms of both ways' errors there.

    Errors are in noise scales: cell by cell, and from a tree.
    """
    # Where nothing was announced by what a tree is worst at, ranges.
    asked, law = asked_kinds(data.shape, data.domain, data.workload, kind or "ranges"), data.law()
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
