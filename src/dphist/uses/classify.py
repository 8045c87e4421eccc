"""Learn to tell classes apart from a release: ID3 on its histogram, or any classifier on its weighted cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import InputError, MechanismError, NotPrivate, VerificationError
from dphist.extras import need
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import PrivateCounts, open_gate, open_replay
from dphist.private.noise import Noise
from dphist.private.queries import Totals
from dphist.private.scores.decisions import BestAttributes
from dphist.private.transcript import Transcript
from dphist.publishing.account import account
from dphist.publishing.preflight import empty, preflight
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.release.wide import TableCells
from dphist.uses.columns import column, column_names

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a decision tree: weights of the classes, and the children by the value of an attribute."""

    weights: FloatArray
    attribute: str | None = None
    children: Mapping[int, Node] = field(default_factory=dict)

    def size(self) -> int:
        """How many nodes the tree has."""
        return 1 + sum(child.size() for child in self.children.values())


@explained
class ReleaseID3:
    """A decision tree over the attributes of a domain, with scikit-learn's conventions.

    ``fit(release)`` reads released counts only, so the tree is as private as the release. Negative estimates count as
    zero. A node splits on the attribute with the largest information gain (ID3) while its records are at least
    ``least_records`` and the gain is at least ``least_gain`` bits; each attribute is used once on a path. Records are
    given to `predict` as a data frame or a mapping of columns, in the attributes' own values.

    Args:
        target: The attribute to guess.
        features: What to guess it from; everything else unless told.
        max_depth: How many attributes a path may ask.
        least_records: How many records a node must hold to be split.
        least_gain: How many bits a split must bring.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> from dphist.uses import ReleaseID3
        >>> guess = ReleaseID3("sex", max_depth=1).fit(release)
        >>> guess.predict({"age": [30, 40]}).shape
        (2,)
    """

    def __init__(
        self,
        target: str,
        *,
        features: Iterable[str] | None = None,
        max_depth: int | None = None,
        least_records: float = 2.0,
        least_gain: float = 1e-3,
    ) -> None:
        self.target = target
        self.features = None if features is None else tuple(features)
        self.max_depth = max_depth
        self.least_records = least_records
        self.least_gain = least_gain

    def fit(self, release: Release) -> ReleaseID3:
        """Grow the tree on the counts of a release. Records are refused: they would be published as they are.

        Args:
            release: What to learn from.

        Returns:
            Itself.
        """
        return self._fit(_released(release, "ReleaseID3.fit"))

    def fit_on_public_records(self, histogram: Histogram) -> ReleaseID3:
        """Grow the tree on true counts, which the tree then shows: for records that everybody may see, never others.

        Args:
            histogram: Public records, counted.

        Returns:
            Itself.
        """
        return self._fit(histogram)

    def _fit(self, release: Release | Histogram) -> ReleaseID3:
        self.domain_: Domain = release.domain
        names = self._features(release.domain)
        if isinstance(release, Release) and isinstance(release.cells, TableCells):
            # Tables of few attributes out of very many: the tree grows on records of the model fitted to them.
            codes = release.cells.codes(release)
            axes = [release.domain.axis(name) for name in (*names, self.target)]
            sizes = [release.domain.shape[axis] for axis in axes]
            self.classes_ = np.array(list(release.domain.attribute(self.target).labels), dtype=object)
            self.tree_ = self._grow_records(
                np.stack([codes[axis] for axis in axes], axis=1), sizes, list(range(len(names))), names, 0
            )
            return self
        axes = [release.domain.axis(name) for name in names] + [release.domain.axis(self.target)]
        counts = np.maximum(np.asarray(release.counts, dtype=np.float64), 0.0).reshape(release.domain.shape)
        others = tuple(a for a in range(counts.ndim) if a not in axes)
        counts = counts.sum(axis=others) if others else counts
        kept = [a for a in range(len(release.domain.shape)) if a not in others]
        counts = counts.transpose([kept.index(a) for a in axes])
        self.classes_ = np.array(list(release.domain.attribute(self.target).labels), dtype=object)
        self.tree_ = self._grow(counts, list(names), 0)
        return self

    def predict_proba(self, records: Any) -> FloatArray:
        """Give each class's share in the leaf of every record; unknown values stay at the node above.

        Args:
            records: A data frame or a mapping of columns.

        Returns:
            A row for each record, a column for each class.
        """
        if not hasattr(self, "tree_"):
            raise InputError("the tree has not been grown: call fit with a release first")
        names = [name for name in self._features(self.domain_) if name in set(column_names(records))]
        cells = {name: self.domain_.attribute(name).cells(column(records, name)) for name in names}
        count = len(column(records, names[0])) if names else 0
        out = np.empty((count, len(self.classes_)))
        stack: list[tuple[Node, IntArray]] = [(self.tree_, np.arange(count, dtype=np.int64))]
        while stack:
            node, rows = stack.pop()
            total = node.weights.sum()
            out[rows] = node.weights / total if total > 0 else 1.0 / len(self.classes_)
            if node.attribute is None or node.attribute not in cells:
                continue
            here = cells[node.attribute][rows]
            stack.extend((child, rows[here == value]) for value, child in node.children.items())
        return out

    def predict(self, records: Any) -> NDArray[Any]:
        """Give the commonest class in the leaf of every record.

        Args:
            records: A data frame or a mapping of columns.

        Returns:
            A class for each record.
        """
        shares = self.predict_proba(records)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])

    def score(self, records: Any, truth: Iterable[Any]) -> float:
        """Give the share of records that are guessed right.

        Args:
            records: A data frame or a mapping of columns.
            truth: The class of each.

        Returns:
            A share between 0 and 1.
        """
        wanted = np.array([str(value) for value in truth], dtype=object)
        guessed = self.predict(records)
        if len(guessed) != len(wanted):
            raise InputError("truth must name a class for each of the records")
        return float(np.mean(guessed == wanted)) if len(wanted) else 1.0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the options, as scikit-learn asks for them.

        Args:
            deep: Ignored.

        Returns:
            The options by name.
        """
        names = ("target", "features", "max_depth", "least_records", "least_gain")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **options: Any) -> ReleaseID3:
        """Change options, as scikit-learn does.

        Args:
            options: New values by name.

        Returns:
            Itself.
        """
        for name, value in options.items():
            if name not in self.get_params():
                raise InputError(f"there is no option {name}; there are {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def _features(self, domain: Domain) -> tuple[str, ...]:
        domain.axis(self.target)
        names = self.features or tuple(name for name in domain.names if name != self.target)
        for name in names:
            domain.axis(name)
        if not names or self.target in names:
            raise InputError("features must be attributes other than the target, at least one")
        return names

    def _grow(self, counts: FloatArray, names: list[str], depth: int) -> Node:
        weights = counts.reshape(-1, counts.shape[-1]).sum(axis=0)
        deep = self.max_depth is not None and depth >= self.max_depth
        if not names or deep or weights.sum() < self.least_records or np.count_nonzero(weights) < 2:
            return Node(weights)
        gains = [_gain(_fold(counts, axis)) for axis in range(len(names))]
        best = int(np.argmax(gains))
        if gains[best] < self.least_gain:
            return Node(weights)
        below = names[:best] + names[best + 1 :]
        pieces = np.moveaxis(counts, best, 0)
        children = {
            value: self._grow(piece, below, depth + 1)
            for value, piece in enumerate(pieces)
            if piece.sum() > 0
        }
        return Node(weights, names[best], children)

    def _grow_records(
        self, rows: IntArray, sizes: list[int], left: list[int], names: tuple[str, ...], depth: int
    ) -> Node:
        """Grow as `_grow` does, on records: a column for each feature, the class behind them."""
        classes = sizes[-1]
        weights = np.bincount(rows[:, -1], minlength=classes).astype(np.float64)
        deep = self.max_depth is not None and depth >= self.max_depth
        if not left or deep or len(rows) < self.least_records or np.count_nonzero(weights) < 2:
            return Node(weights)
        gains = [
            _gain(
                np.bincount(rows[:, place] * classes + rows[:, -1], minlength=sizes[place] * classes)
                .reshape(sizes[place], classes)
                .astype(np.float64)
            )
            for place in left
        ]
        best = int(np.argmax(gains))
        if gains[best] < self.least_gain:
            return Node(weights)
        place, below = left[best], left[:best] + left[best + 1 :]
        children = {
            int(value): self._grow_records(rows[rows[:, place] == value], sizes, below, names, depth + 1)
            for value in np.unique(rows[:, place])
        }
        return Node(weights, names[place], children)


@explained
def weighted_cells(release: Release, target: str) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Give ``X, y, weight`` for any classifier: a row for each cell that the release says is not empty.

    Attributes are one number each, the place of the cell; encode nominal ones (for example one-hot) if the classifier
    needs it. Use them as ``classifier.fit(X, y, sample_weight=weight)``. Of tables out of very many columns the rows
    are synthetic records, each of weight one.

    Args:
        release: What to learn from.
        target: The attribute to guess.

    Returns:
        Features, classes and weights, a row for each cell that is not empty.

    Example:
        >>> import dphist, numpy as np
        >>> domain = dphist.Domain([dphist.Ordinal("age", range(100)), dphist.Nominal("sex", ["F", "M"])])
        >>> histogram = dphist.Histogram(domain, np.full((100, 2), 50))
        >>> release = dphist.publish(histogram, epsilon=1, mechanism="laplace")
        >>> from dphist.uses import weighted_cells
        >>> X, y, weight = weighted_cells(release, "sex")
        >>> X.shape[1], len(y) == len(weight)
        (1, True)
    """
    domain = _released(release, "weighted_cells").domain
    axis = domain.axis(target)
    if isinstance(release.cells, TableCells):
        made = np.stack(release.cells.codes(release), axis=1)
        known = np.array(list(domain.attributes[axis].labels), dtype=object)
        return np.delete(made, axis, axis=1).astype(np.float64), known[made[:, axis]], np.ones(len(made))
    flat = np.maximum(release.counts.reshape(-1), 0.0)
    full = np.flatnonzero(flat > 0)
    places = np.stack(np.unravel_index(full, domain.shape), axis=1)
    labels = np.array(list(domain.attributes[axis].labels), dtype=object)
    return np.delete(places, axis, axis=1).astype(np.float64), labels[places[:, axis]], flat[full]


def fit_classifier(classifier: Any, release: Release, target: str) -> Any:
    """Train a scikit-learn classifier on a release: one-hot for nominal attributes, places for ordered ones.

    Returns a fitted scikit-learn pipeline that takes what `encode` makes of records.
    """
    _released(release, "fit_classifier")
    need("sklearn", "learn")
    from sklearn.base import clone
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    X, y, weight = weighted_cells(release, target)
    rest = [attribute for attribute in release.domain.attributes if attribute.name != target]
    nominal = [place for place, attribute in enumerate(rest) if attribute.kind == "nominal"]
    every = [np.arange(rest[place].size, dtype=np.float64) for place in nominal]
    encode_nominal = OneHotEncoder(categories=every, handle_unknown="ignore") if nominal else "drop"
    columns = make_column_transformer((encode_nominal, nominal), remainder="passthrough")
    model = make_pipeline(columns, clone(classifier))
    step = model.steps[-1][0]
    return model.fit(X, y, **{f"{step}__sample_weight": weight})


def encode(records: Any, domain: Domain, target: str) -> FloatArray:
    """Turn records into the numbers that `weighted_cells` uses; values out of the domain become -1."""
    names = [name for name in domain.names if name != target]
    return np.stack(
        [domain.attribute(name).cells(column(records, name)).astype(np.float64) for name in names], axis=1
    )


class PrivateID3(ReleaseID3):
    """What `private_id3` grows: a tree, with what was promised for it, what was asked, and who paid."""

    guarantee_: Guarantee
    transcript_: Transcript
    receipt_: tuple[str, int] | None

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
        if _told(tree) != _told(self.tree_):
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
        unit: Who is protected; one row if it is not said.
        ledger: Where the budget is kept; charged before the first choice. With ``dataset``, or neither.
        dataset: Which budget.
        noise: For tests: leave it out.

    Returns:
        The tree, with ``guarantee_``, ``transcript_`` and ``receipt_``; `PrivateID3.verify` replays it.

    Example:
        >>> import dphist, numpy as np
        >>> from dphist.uses.classify import private_id3
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(3)), dphist.Nominal("y", ["no", "yes"])])
        >>> tree = private_id3(dphist.Histogram(domain, np.array([[40, 1], [30, 2], [0, 50]])), "y", epsilon=1)
        >>> tree.transcript_.spent()
        Fraction(1, 1)
        >>> tree.verify()
    """
    histogram.domain.axis(target)
    names = [name for name in histogram.domain.names if name != target]
    levels = min(len(names), 3 if depth is None else depth)
    if levels < 1:
        raise MechanismError(
            "private_id3: depth must be 1 or more, and an attribute besides the target is needed"
        )
    spend, protected = Budget.of(epsilon), unit or Unit()
    purpose = f"private_id3 on {target}, {levels} levels"
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
        model.classes_ = np.array(list(histogram.domain.attribute(target).labels), dtype=object)
        model.tree_ = _grown(right, histogram.domain, target, levels)
        model.guarantee_, model.receipt_ = Guarantee(spend, protected), payer.receipt
    return model


def _grown(right: PrivateCounts, domain: Domain, target: str, levels: int) -> Node:
    """Ask for the whole tree: a share for every level, one for the leaves."""
    rights = right.split(*[Fraction(1, levels + 1)] * (levels + 1))
    index = [place.astype(np.int64) for place in np.unravel_index(np.arange(domain.size), domain.shape)]
    return _ask_tree(rights, domain, domain.axis(target), index)


def _told(node: Node) -> tuple[object, ...]:
    """Everything that a tree says, for comparing two."""
    below = tuple((value, _told(child)) for value, child in sorted(node.children.items()))
    return node.attribute, tuple(node.weights.tolist()), below


def _released(release: Release | Histogram, asked: str) -> Release:
    """Refuse true counts where released ones are meant: what is made of them would show them to everybody."""
    if isinstance(release, Histogram):
        raise NotPrivate(
            f"{asked}: these are true counts, not a release, and what is learned from them shows them; publish first"
        )
    return release


def _ask_tree(rights: tuple[PrivateCounts, ...], domain: Domain, axis: int, index: list[IntArray]) -> Node:
    """Choose the splits level by level, count the leaves, and put the tree together from below."""
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


def _fold(counts: FloatArray, axis: int) -> FloatArray:
    """Counts by one attribute and the class."""
    others = tuple(a for a in range(counts.ndim - 1) if a != axis)
    return np.asarray(counts.sum(axis=others) if others else counts, dtype=np.float64)


def _gain(table: FloatArray) -> float:
    """Information gain, in bits, of knowing the row about the column."""
    total = table.sum()
    if total <= 0:
        return 0.0
    return _entropy(table.sum(axis=0)) - float(
        sum(row.sum() / total * _entropy(row) for row in table if row.sum() > 0)
    )


def _entropy(weights: FloatArray) -> float:
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())
