"""What a noisy look at the most dependent pairs tells of all pairs, and when to measure some of everything first.

Two ways to learn how dependent pairs are before the budget is gone (`dphist.mechanisms.wide.outlook` says what each
dependence means for what is done):

* **The strongest pairs** (`dphist.private.queries.dependence.TopDependence`): dependence is uneven, and the mean over
  the most dependent tenth of the pairs is known as well as the mean over all. It lies 1.2 times above that mean where
  all pairs depend alike, and up to eight times where few do; nobody knows which, so all are thought of.
* **A part of everything**, under ρ alone, where measuring twice costs nothing: the best plan of all wanted tables with
  a part t of what is left. If pairs are dependent, the rest goes the same way, and nothing is lost. If not, it goes to
  single columns, which then have all but the pairs' share of t. What is better is judged pair by pair from what each
  showed (empirical Bayes, as in `dphist.inference.tables.shrinking`): a mean would not do, since few pairs may hold it
  all.

Arithmetic on public numbers and on answers that were paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.inference.tables.residuals import Axes, TableResiduals, centred
from dphist.inference.tables.shrinking import departures
from dphist.mechanisms.wide.noise import cut
from dphist.mechanisms.wide.outlook import SAMPLING, UNEVEN, UNSURE, Outlook
from dphist.mechanisms.wide.singles import HALF_MEAN

FloatArray = NDArray[np.float64]

# One in 10 pairs is among the strongest.
_TENTH = 10
# What the strongest pairs have of dependence, in parts of its mean, each alike likely; more where few cells add up, as
# pairs of few values differ more in how far they can be from independence.
_STRONGER, _FEW_CELLS = np.array([0.6, 1.05, 1.7, 3.5]), 1.2
# How far sampling alone lets the strongest of pairs with one free cell stand out; less where more cells add up.
_STANDS_OUT = 1.5
# Shares that a look may cost: a small one first, and another if that left doubts; and a part of everything.
LOOKS = (Fraction(1, 256), Fraction(1, 128), Fraction(1, 64))
AGAIN = (Fraction(1, 128), Fraction(1, 64))
PARTS = (Fraction(3, 25), Fraction(1, 4), Fraction(2, 5))


def strongest(pairs: Sequence[Axes]) -> int:
    """How many pairs a look adds up.

    Args:
        pairs: All pairs.

    Returns:
        A tenth of them, at least one.

    Example:
        >>> strongest([(0, 1), (0, 2), (1, 2)])
        1
    """
    return max(1, len(pairs) // _TENTH)


def look(outlook: Outlook, *, again: bool = False) -> Fraction:
    """The share that a look at the strongest pairs is worth.

    Args:
        outlook: What is expected so far.
        again: Whether it is the second look.

    Returns:
        The share, none if nothing would be done otherwise, or if a part of everything is expected to lose less.
    """
    mean, shares = _top(outlook), AGAIN if again else LOOKS
    doubts = [2.0 * outlook.law.deviation_of(float(share)) / outlook.total for share in shares]
    spread = [np.full(mean.shape, doubt**2) for doubt in doubts]
    share, lost = outlook.best(shares, [mean] * len(shares), spread)
    return share if lost <= part(outlook)[1] else Fraction(0)


def seen(outlook: Outlook, dependence: float, doubt: float) -> Outlook:
    """The outlook after a noisy look at the strongest pairs.

    Args:
        outlook: What was expected before.
        dependence: Their mean dependence, with noise.
        doubt: Its deviation.

    Returns:
        What is expected now.
    """
    return given_strongest(outlook, _top(outlook), dependence, doubt)


def given_strongest(outlook: Outlook, expected: FloatArray, dependence: float, doubt: float) -> Outlook:
    """The outlook after a noisy look, where what it would show is known up to a guess.

    Args:
        outlook: What was expected before.
        expected: What would be seen without noise: a row for each guess, all alike likely, a column a dependence.
        dependence: What was seen.
        doubt: The deviation of its noise.

    Returns:
        What is expected now.
    """
    like = outlook.like((dependence - expected) / doubt)
    most = like.max(axis=0)
    return outlook.given(most + np.log(np.exp(like - most).mean(axis=0)))


def _top(outlook: Outlook) -> FloatArray:
    """What the strongest pairs are expected to have: a row for each guess how much more, a column a dependence."""
    free = np.array([(outlook.shape[a] - 1) * (outlook.shape[b] - 1) for a, b in outlook.pairs], dtype=float)
    uneven = 1.0 + _FEW_CELLS * float(np.mean(1.0 / np.sqrt(np.maximum(free, 1.0))))
    return of_strongest(
        outlook, np.clip(_STRONGER * uneven, 1.0, len(outlook.pairs) / strongest(outlook.pairs))
    )


def of_strongest(outlook: Outlook, more: FloatArray) -> FloatArray:
    """What the strongest pairs would show.

    Args:
        outlook: What is expected.
        more: How many times what is expected of all pairs they may have beyond sampling.

    Returns:
        A row for each of these, a column for each dependence.
    """
    top = strongest(outlook.pairs)
    free = np.array([(outlook.shape[a] - 1) * (outlook.shape[b] - 1) for a, b in outlook.pairs], dtype=float)
    by_chance = (
        SAMPLING * np.sqrt(free / outlook.total) * (1.0 + _STANDS_OUT / np.sqrt(np.maximum(free, 1.0)))
    )
    sampling = float(np.sort(by_chance)[-top:].mean()) if len(outlook.pairs) > 1 else outlook.sampling
    return np.asarray(np.minimum(np.hypot(sampling, more[:, None] * outlook.beyond), 1.0))


def part(outlook: Outlook) -> tuple[Fraction, float]:
    """The part of everything that it is worth to measure first, and what is expected to be lost with it.

    Args:
        outlook: What is expected so far.

    Returns:
        The part, none where budgets that are split are worth less, or if nothing would be done otherwise; the loss.
    """
    least = float(outlook.losses().min())
    if not outlook.law.gaussian:
        return Fraction(0), least
    whole, low = outlook.variances
    centre = np.array(
        [(1.0 - 1.0 / outlook.shape[a]) * (1.0 - 1.0 / outlook.shape[b]) for a, b in outlook.pairs]
    )
    found = Fraction(0)
    for share in PARTS:
        precise = float(share) * centre / np.maximum(whole - low, 1e-300)
        mean, variance = outlook.guessed(outlook.pairs, precise.tolist())
        ways = np.stack([outlook.together, after_part(outlook, float(share))])
        lost = outlook.preview(mean, variance, outlook.lost(ways))
        if lost < least:
            least, found = lost, share
    return found, least


def after_part(outlook: Outlook, share: float) -> FloatArray:
    """The error if a part of everything was measured and single columns get the rest, for each dependence.

    Args:
        outlook: What is expected.
        share: The part.

    Returns:
        The errors.
    """
    whole, low = outlook.variances
    scale = HALF_MEAN * outlook.cells / outlook.total
    single = _singles(outlook, share)
    noise = cut(scale * np.sqrt(whole / share))
    free = sum((outlook.shape[a] - 1) * (outlook.shape[b] - 1) for a, b in outlook.pairs)
    told = (UNEVEN * outlook.sizes[:, None] / noise) ** 2 + UNSURE / math.sqrt(free)
    pair = cut(scale * np.sqrt((whole - low) / share)) ** 2
    return outlook.mean(np.sqrt(single**2 + pair * told / (1.0 + told)))


def _singles(outlook: Outlook, share: float) -> FloatArray:
    """What single columns bring to the error of pairs if a part was measured of everything and they get the rest."""
    own = np.array([math.hypot(outlook.single_noise[a], outlook.single_noise[b]) for a, b in outlook.pairs])
    planned = HALF_MEAN * outlook.cells / outlook.total * np.sqrt(np.maximum(outlook.variances[1], 1e-300))
    return cut(1.0 / np.sqrt((1.0 - share) / own**2 + share / planned**2))


def goes_on(outlook: Outlook, measured: TableResiduals, share: float) -> bool:
    """Whether the rest is better spent on everything again than on single columns, by what a part of it showed.

    Args:
        outlook: What is expected.
        measured: A part of everything.
        share: Which part.

    Returns:
        Whether pairs, each by how far it departs from chance, are expected to be off by less so.
    """
    pairs = [pair for pair in outlook.pairs if pair in measured.residuals]
    total = max(1.0, float(measured.table(())))
    shape = outlook.shape
    ones = {axis: nonnegative(measured.table((axis,)), total) / total for pair in pairs for axis in pair}
    energy, free, more = [], [], []
    for a, b in pairs:
        own = 1.0 / measured.residuals[(a, b)].precision
        # The columns' own noise is in their product too.
        noise = own
        for one, other in ((a, b), (b, a)):
            uneven = float(np.mean((ones[other] - 1.0 / shape[other]) ** 2))
            noise += uneven / measured.residuals[(one,)].precision
        away = measured.residuals[(a, b)].values - centred(total * np.outer(ones[a], ones[b]))
        energy.append(float((away**2).sum()) / noise)
        free.append((shape[a] - 1) * (shape[b] - 1))
        more.append(noise / own)
    # How far each pair departs, in units of its noise in the part; and what is left of it with all and with a part.
    apart, likely = departures(np.array(energy), np.array(free, dtype=np.float64))
    apart = apart * np.array(more)
    whole, low = outlook.variances
    here = np.array([pair in measured.residuals for pair in outlook.pairs])
    scale = (HALF_MEAN * outlook.cells / outlook.total)[here]
    pair = (whole - low)[here]
    every = scale**2 * (low[here] + pair * (apart / share) / (1.0 + apart / share))
    rest = _singles(outlook, share)[here] ** 2 + scale**2 * pair / share * apart / (1.0 + apart)
    return bool((likely * np.sqrt(every)).sum() <= (likely * np.sqrt(rest)).sum())
