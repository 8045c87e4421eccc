"""A decision tree that asks the records themselves for every split: what a tree grown on a release is compared with."""

from __future__ import annotations

from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from dphist.errors import MechanismError, VerificationError
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.phrases import so_many
from dphist.model.transcript import Transcript
from dphist.model.unit import Unit
from dphist.private.gate import PrivateCounts, open_gate, open_replay
from dphist.private.noise import Noise
from dphist.private.queries import Totals
from dphist.private.scores.decisions import BestAttributes
from dphist.publishing.account import account
from dphist.publishing.preflight import empty, preflight
from dphist.release.columns import own_values
from dphist.release.guarantee import Guarantee, Receipt
from dphist.sources.count import pass_through
from dphist.uses.classify import ReleaseID3
from dphist.uses.id3 import Node

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger


class PrivateID3(ReleaseID3):
    """What `private_id3` grows: a tree, with what was promised for it, what was asked, and who paid."""

    guarantee_: Guarantee
    transcript_: Transcript
    receipt_: Receipt | None

    def verify(self) -> None:
        """Grow the tree again from its transcript, with no records, and insist that it is the same.

        Raises:
            VerificationError: if it is not, or if more was asked than the guarantee says.
        """
        if self.transcript_.spent() > self.guarantee_.budget.amount:
            raise VerificationError("the transcript spends more than the guarantee says")
        right, replay = open_replay(
            self.domain_, self.guarantee_.budget, self.guarantee_.unit, self.transcript_
        )
        tree = _grown(right, self.domain_, self.target, self.max_depth or 1)
        replay.finish()
        if tree.structure() != self.tree_.structure():
            raise VerificationError("replaying the transcript gives another tree than this one")


def private_id3(
    histogram: Histogram,
    target: str,
    epsilon: Number | Budget,
    *,
    depth: int | None = None,
    unit: Unit | None = None,
    ledger: Ledger | str | PathLike[str] | None = None,
    dataset: str | None = None,
    noise: Noise | None = None,
) -> PrivateID3:
    """Grow a tree by asking the records for every split (Friedman and Schuster): what a release is compared with.

    Level by level the exponential mechanism chooses the attribute of every open node (see
    `dphist.private.scores.decisions.BestAttributes`), and the leaves' class counts are noised at the end; ``depth``
    levels and the leaves each get an equal share. Private because nodes of a level are disjoint sets of cells and the
    shares sum to one; but all of ε is gone for this one tree.

    Args:
        histogram: The records, counted.
        target: The attribute to be guessed.
        epsilon: What the whole tree may cost; a `Budget` may be one of ρ.
        depth: How many levels of splits; three at most if it is not said.
        unit: Who is protected, without an id; one row if it is not said.
        ledger: Where the budget is kept; charged before the first choice. With ``dataset``, or neither.
        dataset: Which budget.
        noise: For tests: leave it out.

    Returns:
        The tree, with ``guarantee_``, ``transcript_`` and ``receipt_``; `PrivateID3.verify` replays it.

    Example:
        >>> import dphist, numpy as np
        >>> from dphist.uses.private_id3 import private_id3
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(3)), dphist.Nominal("y", ["no", "yes"])])
        >>> tree = private_id3(dphist.Histogram(domain, np.array([[40, 1], [30, 2], [0, 50]])), "y", epsilon=1)
        >>> tree.transcript_.spent()
        Fraction(1, 1)
        >>> tree.verify()
    """
    spend, protected = Budget.of(epsilon), unit or Unit()
    # A histogram has no ids: rows of a person that nobody bounded are not what such a unit promises.
    pass_through(histogram, None, protected)
    histogram.domain.axis(target)
    names = [name for name in histogram.domain.names if name != target]
    levels = min(len(names), 3 if depth is None else depth)
    if levels < 1:
        raise MechanismError(
            "private_id3: depth must be 1 or more, and an attribute besides the target is needed"
        )
    purpose = f"private_id3 on {target}, {so_many(levels, 'level')}"
    model = PrivateID3(target, features=names, max_depth=levels)
    with account(ledger, dataset, budget=spend, unit=protected, purpose=purpose) as payer:
        preflight(
            spend,
            protected,
            lambda dry: _grown(
                open_gate(empty(histogram.domain), spend, protected, noise=dry)[0],
                histogram.domain,
                target,
                levels,
            ),
        )
        right, model.transcript_ = open_gate(histogram, spend, protected, noise=noise, pay=payer.pay)
        model.domain_ = histogram.domain
        model.classes_ = own_values(histogram.domain, target)
        model.tree_ = _grown(right, histogram.domain, target, levels)
        model.guarantee_, model.receipt_ = Guarantee(spend, protected), payer.receipt
    return model


def _grown(right: PrivateCounts, domain: Domain, target: str, levels: int) -> Node:
    """Ask for the whole tree: a share for every level, one for the leaves."""
    rights = right.split(*[Fraction(1, levels + 1)] * (levels + 1))
    axis = domain.axis(target)
    index = [place.astype(np.int64) for place in np.unravel_index(np.arange(domain.size), domain.shape)]
    # Splits are chosen level by level, leaves counted, and the tree is put together from below.
    label = np.zeros(domain.size, dtype=np.int64)
    used: list[tuple[int, ...]] = [()]  # attributes on the path of each node
    splits: list[list[int]] = []  # attribute chosen in each node of a level
    offsets: list[list[int]] = []  # first child of each node
    for right in rights[:-1]:
        candidates = [a for a in range(len(domain.shape)) if a != axis]
        score = BestAttributes(
            tuple(index[a] for a in candidates),
            tuple(domain.shape[a] for a in candidates),
            index[axis],
            domain.shape[axis],
        )
        chosen = right.partition(label, len(used)).choose(score)[0]
        picks = [candidates[int(choice)] for choice in chosen]
        first, below, start = [], [], 0
        for node, attribute in enumerate(picks):
            # An attribute already used on this path splits nothing: the node stays whole.
            fan = 1 if attribute in used[node] else domain.shape[attribute]
            first.append(start)
            below.extend([(*used[node], attribute)] * fan)
            start += fan
        place = np.zeros(domain.size, dtype=np.int64)
        for attribute in set(picks):
            nodes = np.array([p == attribute and attribute not in used[n] for n, p in enumerate(picks)])
            here = nodes[label]
            place[here] = index[attribute][here]
        label = np.array(first)[label] + place
        splits.append(picks)
        offsets.append([*first, start])
        used = below
    classes = domain.shape[axis]
    counts = rights[-1].partition(label * classes + index[axis], len(used) * classes).measure(Totals()).values
    level = [Node(np.maximum(row, 0.0)) for row in counts.reshape(len(used), classes).astype(np.float64)]
    for picks, first in zip(reversed(splits), reversed(offsets), strict=True):
        above = []
        for node, attribute in enumerate(picks):
            kids = level[first[node] : first[node + 1]]
            weights = np.sum([kid.weights for kid in kids], axis=0)
            above.append(
                kids[0] if len(kids) == 1 else Node(weights, domain.names[attribute], dict(enumerate(kids)))
            )
        level = above
    return level[0]
