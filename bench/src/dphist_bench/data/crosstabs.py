"""Tables of two attributes drawn by number: pages and countries, wards and days, codes and ages.

The everyday release. At least one attribute has categories or few values, so that it is no plane; rows go by chance, or
each of them, or some, leans towards one of a few habits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Attribute, Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram

FloatArray = NDArray[np.float64]
Draws = np.random.Generator  # noqa: TID251 -- data only


def drawn_crosstab(number: int) -> tuple[str, Histogram, str]:
    """A table of 10 to 180,000 cells with 10³ to 10⁶ records.

    Args:
        number: Chooses it.

    Returns:
        A name, the counts, and an ε of 0.1 or 1.
    """
    draws = np.random.default_rng([7, 6, number])  # noqa: TID251 -- data only
    down, ranked = int(draws.choice([5, 12, 30, 60, 200, 500])), False
    ordered = bool(draws.random() < 0.6)
    across = int(draws.choice([7, 12, 24, 52, 100, 365] if ordered else [2, 5, 9, 20, 60]))
    if draws.random() < 0.15:
        down, ranked = int(draws.choice([7, 12])), True
    own = _habit(draws, across, ordered=ordered)
    rows, name, kind = np.broadcast_to(own, (down, across)), "chance", draws.random()
    if kind < 0.6:
        close, habits = float(draws.uniform(0.05, 1.0)), int(draws.choice([2, 3, 8]))
        kinds = np.stack([_habit(draws, across, ordered=ordered) for _ in range(habits)])
        each = kinds[draws.integers(habits, size=down)]
        some = draws.random(down) < draws.choice([0.2, 1.0, 1.0])
        rows, name = np.where(some[:, None], (1.0 - close) * own + close * each, rows), f"leans {close:.1f}"
    elif kind < 0.7:
        rows, name = draws.dirichlet(np.full(across, 0.3), down), "each its own"
    weights = _habit(draws, down, ordered=ranked)[:, None] * rows
    records, epsilon = round(10.0 ** draws.uniform(3.0, 6.0)), str(draws.choice(["0.1", "1"]))
    counts = draws.multinomial(records, (weights / weights.sum()).reshape(-1)).reshape(weights.shape)
    domain = Domain([_attribute("down", down, ranked), _attribute("across", across, ordered)])
    return f"{down}x{across}, {name}", Histogram(domain, counts.astype(np.int64)), epsilon


def _attribute(name: str, size: int, ordered: bool) -> Attribute:
    return Ordinal(name, range(size)) if ordered else Nominal(name, [f"v{value}" for value in range(size)])


def _habit(draws: Draws, size: int, *, ordered: bool) -> FloatArray:
    """How values are spread: a hill, seasons or weeks where they are ordered, a few common ones else."""
    made: FloatArray
    if ordered:
        place, form = np.arange(size) / size, draws.integers(3)
        if form == 0:
            made = np.exp(-0.5 * ((place - draws.random()) / draws.uniform(0.05, 0.3)) ** 2) + 1e-3
        elif form == 1:
            made = 1.0 + draws.uniform(0.1, 0.9) * np.sin(
                2.0 * np.pi * (place * draws.integers(1, 3) + draws.random())
            )
        else:
            made = np.where(np.arange(size) % 7 > 4, draws.uniform(0.4, 1.0), 1.0)
    elif draws.random() < 0.5:
        made = np.asarray(np.arange(1, size + 1) ** -draws.uniform(0.3, 1.5), dtype=np.float64)
        draws.shuffle(made)
    else:
        made = draws.dirichlet(np.full(size, draws.choice([0.5, 2.0]))) * 0.98 + 0.02 / size
    return np.asarray(made / made.sum())
