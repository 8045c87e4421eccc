"""Learn to tell classes apart from a release: ID3 on its histogram, or any classifier on its weighted cells.

ID3 grows a decision tree by the largest information gain, from rows of codes that have weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import InputError, NotPrivate
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram, sum_others
from dphist.release.cells import TableCells
from dphist.release.columns import own_values
from dphist.release.release import Release

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a decision tree: weights of the classes, and the children by the value of an attribute."""

    weights: FloatArray
    attribute: str | None = None
    children: Mapping[int, Node] = field(default_factory=dict)


@explained
class ReleaseID3:
    """A decision tree over the attributes of a domain, asked by the names that scikit-learn has.

    ``fit(release)`` reads released counts only, so the tree is as private as the release. Negative estimates count as
    zero. A node splits on the attribute with the largest information gain (ID3) while its records are at least
    ``least_records`` and the gain is at least ``least_gain`` bits; each attribute is used once on a path. Records are
    given to `predict` as a data frame or a mapping of columns, in the attributes' own values.

    Args:
        target: The attribute to guess.
        features: What to guess it from; everything else by default.
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
        domain = release.domain
        names = self._features(domain)
        axes = [domain.axis(name) for name in (*names, self.target)]
        self.domain_: Domain = domain
        self.classes_ = own_values(domain, self.target)
        self.tree_ = self._grow(*_weighted(release, axes), tuple(domain.shape[axis] for axis in axes), names)
        return self

    def _grow(
        self,
        rows: IntArray,
        weight: FloatArray,
        sizes: tuple[int, ...],
        names: tuple[str, ...],
        depth: int = 0,
    ) -> Node:
        """Grow a tree; each attribute is used once on a path.

        ``rows`` has a column of codes below ``sizes`` for each attribute that is left, by ``names``; the class last.
        """
        held = _sums(rows[:, -1], weight, sizes[-1])
        deep = self.max_depth is not None and depth >= self.max_depth
        if not names or deep or held.sum() < self.least_records or np.count_nonzero(held) < 2:
            return Node(held)
        gains = []
        for size, codes in zip(sizes, rows.T[:-1], strict=False):
            both = _sums(codes * sizes[-1] + rows[:, -1], weight, size * sizes[-1])
            gains.append(gain(both.reshape(size, sizes[-1])))
        best = int(np.argmax(gains))
        if gains[best] < self.least_gain:
            return Node(held)
        left = tuple(place for place in range(len(sizes)) if place != best)
        children = {}
        for value in np.unique(rows[:, best]):
            here = rows[:, best] == value
            children[int(value)] = self._grow(
                rows[here][:, left], weight[here], tuple(sizes[i] for i in left), tuple(names[i] for i in left[:-1]),
                depth + 1,
            )  # fmt: skip
        return Node(held, names[best], children)

    def predict_proba(self, records: Any) -> FloatArray:
        """Give each class's share in the leaf of every record; unknown values stay at the node above.

        Args:
            records: A data frame or a mapping of columns.

        Returns:
            A row for each record, a column for each class.
        """
        if not hasattr(self, "tree_"):
            raise InputError("the tree has not been grown: call fit with a release first")
        known = self._features(self.domain_)
        names = [name for name in known if name in set(column_names(records))]
        if not names:
            raise InputError(f"records must have a column of what the tree asks for: {', '.join(known)}")
        cells = {name: self.domain_.attribute(name).cells(column(records, name)) for name in names}
        count = len(column(records, names[0]))
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
            A class for each record, in the attribute's own values: a whole number, yes or no, a day, or a text.
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
        guessed = np.argmax(self.predict_proba(records), axis=1)
        wanted = self._class_of(list(truth))
        if len(guessed) != len(wanted):
            raise InputError("truth must name a class for each of the records")
        return float(np.mean(guessed == wanted)) if len(wanted) else 1.0

    def _class_of(self, truth: list[Any]) -> IntArray:
        """The place of every class, named by its label as `predict` does or in the attribute's own values."""
        places = {label: place for place, label in enumerate(self.domain_.attribute(self.target).labels)}
        cells = self.domain_.attribute(self.target).cells(truth) if truth else np.zeros(0, dtype=np.int64)
        named = [places.get(value, -1) if isinstance(value, str) else -1 for value in truth]
        return np.where(np.array(named, dtype=np.int64) >= 0, named, cells)

    def _features(self, domain: Domain) -> tuple[str, ...]:
        domain.axis(self.target)
        names = self.features or tuple(name for name in domain.names if name != self.target)
        for name in names:
            domain.axis(name)
        if not names or self.target in names:
            raise InputError("features must be attributes other than the target, at least one")
        return names


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
    others = [each for each in range(len(domain.shape)) if each != axis]
    rows, weight = _weighted(release, [*others, axis])
    return rows[:, :-1].astype(np.float64), own_values(domain, target)[rows[:, -1]], weight


def _weighted(release: Release | Histogram, axes: list[int]) -> tuple[IntArray, FloatArray]:
    """Codes of these axes: of every cell that is not empty, with what it holds, or of records of weight one."""
    if isinstance(release, Release) and isinstance(release.cells, TableCells):
        # Tables of few attributes out of very many: records of the model that is fitted to them.
        codes = release.cells.codes(release)
        return np.stack([codes[axis] for axis in axes], axis=1), np.ones(len(codes[0]))
    counts = np.maximum(np.asarray(release.counts, dtype=np.float64), 0.0).reshape(release.domain.shape)
    counts = sum_others(counts, axes)
    return np.argwhere(counts > 0), counts[counts > 0]


def _released(release: Release | Histogram, asked: str) -> Release:
    """Refuse true counts where released ones are meant: what is made of them would show them to everybody."""
    if isinstance(release, Histogram):
        raise NotPrivate(
            f"{asked}: these are true counts, not a release, and what is learned from them shows them; publish first"
        )
    return release


def _sums(codes: IntArray, weight: FloatArray, size: int) -> FloatArray:
    return np.bincount(codes, weight, size).astype(np.float64)


def gain(table: FloatArray) -> float:
    """Information gain, in bits, of knowing the row about the column."""
    parts = table[table.sum(axis=1) > 0]
    left = sum(row.sum() / table.sum() * _entropy(row) for row in parts)
    return _entropy(table.sum(axis=0)) - float(left)


def _entropy(weights: FloatArray) -> float:
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())


def column_names(records: Any) -> list[str]:
    """The names of all columns."""
    columns = getattr(records, "column_names", getattr(records, "columns", None))
    names = records if isinstance(records, Mapping) else columns
    if names is None:
        raise InputError("records must be a data frame or a mapping of columns")
    return [str(name) for name in names]


def column(records: Any, name: str) -> list[Any]:
    """The values of one column."""
    if name not in column_names(records):
        raise InputError(f"the records have no column {name}")
    try:
        values = list(records[name])
    except Exception:
        # What a frame of any maker, or a mapping to anything, may raise cannot be listed.
        raise InputError(f"the column {name} of the records cannot be read as a list of values") from None
    return [value.as_py() if hasattr(value, "as_py") else value for value in values]
