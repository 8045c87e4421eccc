"""A decision tree that asks the records themselves for every split: what a tree grown on a release is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from dphist.errors import MechanismError, VerificationError
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.phrases import counted
from dphist.model.transcript import Transcript
from dphist.model.unit import Unit
from dphist.private.gate import PrivateCounts, open_gate, open_replay
from dphist.private.noise import Noise
from dphist.private.queries import Totals
from dphist.private.scores.counting import BestAttributes
from dphist.publishing.account import account
from dphist.publishing.making import empty, preflight
from dphist.release.columns import own_values
from dphist.release.guarantee import Guarantee, Receipt
from dphist.sources.count import pass_through
from dphist.uses.classify import FloatArray, Node, ReleaseID3

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger

# What was asked on the way to a node: attributes and the values that lead there.
Path = tuple[tuple[int, int], ...]


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
        if _said(tree) != _said(self.tree_):
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
    `dphist.private.scores.counting.BestAttributes`), and the leaves' class counts are noised at the end; ``depth``
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
    purpose = f"private_id3 on {target}, {counted(levels, 'level')}"
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
    candidates = [a for a in range(len(domain.shape)) if a != axis]
    score = BestAttributes(
        tuple(index[a] for a in candidates),
        tuple(domain.shape[a] for a in candidates),
        index[axis],
        domain.shape[axis],
    )
    label = np.zeros(domain.size, dtype=np.int64)  # which node of this level a cell is in
    paths: list[Path] = [()]
    for right in rights[:-1]:
        chosen = right.partition(label, len(paths)).choose(score)[0]
        below: list[Path] = []
        place = np.zeros(domain.size, dtype=np.int64)
        for node, (path, choice) in enumerate(zip(paths, chosen, strict=True)):
            here, attribute = label == node, candidates[int(choice)]
            place[here] = len(below)
            if any(attribute == asked for asked, _ in path):
                # An attribute already used on this path splits nothing: the node stays whole.
                below.append(path)
            else:
                place[here] += index[attribute][here]
                below.extend((*path, (attribute, value)) for value in range(domain.shape[attribute]))
        label, paths = place, below
    classes = domain.shape[axis]
    counts = (
        rights[-1].partition(label * classes + index[axis], len(paths) * classes).measure(Totals()).values
    )
    weights = np.maximum(counts.reshape(len(paths), classes).astype(np.float64), 0.0)
    return _put_together(domain.names, list(zip(paths, weights, strict=True)))


def _put_together(names: Sequence[str], leaves: Sequence[tuple[Path, FloatArray]], depth: int = 0) -> Node:
    """Make a tree of the leaves below a node, whose paths agree up to ``depth``."""
    total = np.sum([weights for _, weights in leaves], axis=0)
    first = leaves[0][0]
    if len(first) == depth:
        return Node(total)
    below: dict[int, list[tuple[Path, FloatArray]]] = {}
    for leaf in leaves:
        below.setdefault(leaf[0][depth][1], []).append(leaf)
    children = {value: _put_together(names, some, depth + 1) for value, some in below.items()}
    return Node(total, names[first[depth][0]], children)


def _said(node: Node) -> tuple[object, ...]:
    """Everything that a tree says, for comparing two."""
    below = [(value, _said(child)) for value, child in sorted(node.children.items())]
    return node.attribute, node.weights.tolist(), below
