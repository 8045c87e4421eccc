"""Keys that were never declared: those that many people have are published, for a δ.

Every key that some record holds gets noise on its count, and those whose noisy count reaches a threshold t are
published with it. With known attributes beside, a key has M cells, all of them with noise, and is published whole if
any reaches t.

**Theorem.** Let a protected unit have rows under at most n keys that nobody else has, and at most j rows in one cell.
If for all such n, j

    n · (M · Pr[Z ≥ t − j])  ≤  δ,

then the release is δ-approximately ρ-zCDP (ε-private but for δ, with Laplace noise): there is an event of probability
at least 1 − δ given which it is ρ-zCDP.

*Proof.* Let D and D′ be neighbours, C the keys that both hold. In D the other keys are those that only the unit
brought: at most n of them, whose cells hold at most j. Let E be the event that none of their noisy cells reaches t.
There are at most nM such cells, so Pr[E] ≥ 1 − δ. The noise of different cells is independent, so given E the cells
of C still have their noise, and the output is a function f of the noisy cells of C alone: the keys of C with a cell
that reaches t, in the order of their texts. In D′ likewise, with its own E′ and the same f. So given E and E′ the
outputs are f of a Gaussian (Laplace) mechanism on the cells of C, which the unit moves as far as its norms say: ρα
bounds D_α, in both directions. ∎

How many keys, and how many rows in a cell: ``Unit(cells=k, per_cell=c)`` gives n = k, j = c. ``Unit(rows=L)`` alone
gives, for every n from 1 to L, j = L − n + 1 (each of the other n − 1 keys needs a row of its own); the threshold is
the largest of those. Who is replaced brings new keys on either side, but a bad event is counted in one of them at a
time: the same n.

A purely ε-private release cannot do this at all: a key that only one person has would have to appear with a positive
probability or never, and "never" cannot be told for it alone.

*What must not leave:* how many keys there were, or where a published one stood among them. The tails are exact bounds
(`dphist.private.noise.certified`), the noise is the gate's, and the price is that of `Identity` by the same budget.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dphist.errors import NotPrivate
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.law import Kind
from dphist.model.transcript import Transcript
from dphist.model.unit import Unit
from dphist.private.noise import Noise
from dphist.private.noise.certified import least_reach
from dphist.private.pricing import Price, UnitBudget
from dphist.private.queries import Identity
from dphist.private.questions import IntArray, Layout, describe
from dphist.private.transcript import Recorded


def threshold(kind: Kind, size: Fraction, unit: Unit, delta: Fraction, cells: int = 1) -> int:
    """The threshold t of the theorem: from which noisy count on a key of these ``cells`` may be published."""
    rows = unit.rows
    if unit.cells is not None:
        return (unit.per_cell or 1) + least_reach(kind, size, delta / (unit.cells * cells))
    furthest = least_reach(kind, size, delta / (rows * cells))
    if rows > 200:
        # The coarser rule needs no loop over them.
        return rows + furthest
    level = 0
    for keys in range(1, rows + 1):
        each = rows - keys + 1
        if each + furthest <= level:
            break
        level = max(level, each + least_reach(kind, size, delta / (keys * cells)))
    return level


def price_of(budget: Budget, unit: Unit) -> Price:
    """The noise of every cell: the gate's own price of asking for all of them."""
    return UnitBudget.of(budget, unit).price(Identity(), Layout((1,), None, 1, None))


def terms(
    epsilon: Number | None, delta: Fraction, unit: Unit, cells: int = 1, kind: Kind | None = None
) -> tuple[Budget, Fraction]:
    """How an (ε, δ) is best divided: what the noise costs, and the δ of the threshold; by what makes that lowest.

    Laplace noise takes all of δ for the threshold; Gaussian noise needs half of it to be worth its ε. All of it is
    arithmetic on public numbers.

    Example:
        >>> budget, delta = terms(1, Fraction(1, 10**9), Unit())
        >>> budget.pure, delta == Fraction(1, 10**9)
        (True, True)
    """
    ways: dict[Kind, tuple[Budget, Fraction]] = {}
    if kind != "gaussian":
        ways["laplace"] = Budget.of(epsilon), delta
    if kind != "laplace":
        ways["gaussian"] = Budget.of(epsilon, delta=delta / 2), delta / 2

    def level(way: tuple[Budget, Fraction]) -> int:
        price = price_of(way[0], unit)
        return threshold(price.kind, price.law.size, unit, way[1], cells)

    return min(ways.values(), key=level)


def discover(
    counts: IntArray,
    budget: Budget,
    unit: Unit,
    delta: Fraction,
    *,
    noise: Noise | None = None,
    pay: Callable[[], None] | None = None,
    sort: Callable[[IntArray], IntArray],
    arrange: Callable[[IntArray], IntArray] = lambda rows: rows,
) -> tuple[IntArray, Transcript]:
    """Find the keys that may be published: which rows of ``counts``, and the transcript of their noisy cells.

    ``counts`` has a row for every key that some record holds, in any order, with a column a known cell. ``sort`` puts
    the numbers of rows into the order of their keys' texts, so that no other order leaves; ``arrange`` brings the
    published rows into the shape of the release's cells. ``pay`` is called before the first draw.
    """
    if not 0 < delta < 1:
        raise NotPrivate("names cannot be discovered without a delta above zero and below one")
    price = price_of(budget, unit)
    price.check()
    level = threshold(price.kind, price.law.size, unit, delta, counts.shape[1])
    source = Noise.system() if noise is None else noise
    found: list[IntArray] = []

    def draw() -> Any:
        noisy = price.noise(source).add(
            np.ascontiguousarray(counts, dtype=np.int64), Fraction(1), Fraction(1)
        )
        kept = sort(np.flatnonzero((noisy >= level).any(axis=1)))
        found.append(kept)
        return np.ascontiguousarray(arrange(noisy[kept]))

    transcript = Recorded(pay=pay)
    said = describe(Identity()) | ({} if budget.pure else {"noise": price.kind})
    transcript.ask("root", "measure", said, budget.amount, draw)
    return found[0], transcript
