"""A decision tree that asks the records themselves for every split: what a tree grown on a release is compared with."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Totals
from dphist.private.questions import Candidates, Layout
from dphist.release.columns import own_values
from dphist.testing import open_counts
from dphist.uses.classify import ReleaseID3
from dphist.uses.id3 import Node

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BestAttributes:
    """Choose the attribute after whose split most records of a part would be guessed right.

    ``places[a][i]`` is the value of cell i on candidate attribute a, below ``sizes[a]``; ``target[i]`` its class, below
    ``classes``; all public. The score of an attribute is Σ over its values of the count of the value's commonest class.

    Why the range keeps the promise. One step raises (or lowers) one count, in one value of each attribute, by one, so
    the largest of that value's class counts rises (falls) by zero or one and no other changes. All candidates of the
    part move the same way by zero or one: their changes differ by at most one, the range.
    """

    places: tuple[IntArray, ...]
    sizes: tuple[int, ...]
    target: IntArray
    classes: int

    def draws(self, layout: Layout) -> int:
        """One choice in every part."""
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every attribute in every part."""
        part = np.zeros(layout.size, dtype=np.int64) if layout.labels is None else layout.labels
        scores = np.empty((layout.parts, len(self.places)), dtype=np.int64)
        for a, (place, size) in enumerate(zip(self.places, self.sizes, strict=True)):
            table = np.zeros((layout.parts, size, self.classes), dtype=np.int64)
            np.add.at(table, (part, place, self.target), counts)
            scores[:, a] = table.max(axis=2).sum(axis=1)
        starts = np.arange(layout.parts + 1, dtype=np.int64) * len(self.places)
        yield Candidates(scores.reshape(-1), starts, 1)


def interactive_id3(
    histogram: Histogram, target: str, epsilon: Number, *, depth: int, seed: int | None = None
) -> ReleaseID3:
    """Grow a tree by asking the records for every split (Friedman and Schuster).

    Level by level the exponential mechanism chooses the attribute of every open node (`BestAttributes`), and the
    leaves' class counts are noised at the end; ``depth`` levels and the leaves each get an equal share. Private because
    nodes of a level are disjoint sets of cells and the shares sum to one.
    """
    domain = histogram.domain
    model = ReleaseID3(target, max_depth=depth)
    model.domain_, model.classes_ = domain, own_values(domain, target)
    noise = None if seed is None else Noise(Keystream.for_tests(seed))
    # The gate asks only what is proven in the trusted core; the proof of this question stands above.
    right = open_counts(histogram, epsilon, noise=noise, unproven=True)
    rights = right.split(*[Fraction(1, depth + 1)] * (depth + 1))
    axis = domain.axis(target)
    candidates = [a for a in range(len(domain.shape)) if a != axis]
    index = [place.reshape(-1) for place in np.indices(domain.shape)]
    score = BestAttributes(
        tuple(index[a] for a in candidates), tuple(domain.shape[a] for a in candidates), index[axis], domain.shape[axis]
    )  # fmt: skip
    # The path to each open node, and the node of each cell.
    paths: list[tuple[tuple[int, int], ...]] = [()]
    label = np.zeros(domain.size, dtype=np.int64)
    chosen: dict[tuple[tuple[int, int], ...], int] = {}
    for share in rights[:-1]:
        picks = share.partition(label, len(paths)).choose(score)[0]
        below: list[tuple[tuple[int, int], ...]] = []
        moved = np.empty_like(label)
        for node, pick in enumerate(picks):
            attribute, here = candidates[int(pick)], label == node
            if any(attribute == used for used, _ in paths[node]):
                # An attribute that was used on this path splits nothing: the node stays whole.
                moved[here] = len(below)
                below.append(paths[node])
                continue
            chosen[paths[node]] = attribute
            moved[here] = len(below) + index[attribute][here]
            below += [(*paths[node], (attribute, value)) for value in range(domain.shape[attribute])]
        paths, label = below, moved
    classes = domain.shape[axis]
    counts = (
        rights[-1].partition(label * classes + index[axis], len(paths) * classes).measure(Totals()).values
    )
    leaves = dict(zip(paths, np.maximum(counts.reshape(-1, classes), 0.0), strict=True))

    def grown(path: tuple[tuple[int, int], ...]) -> Node:
        if path not in chosen:
            return Node(leaves[path].astype(np.float64))
        attribute = chosen[path]
        kids = {value: grown((*path, (attribute, value))) for value in range(domain.shape[attribute])}
        return Node(np.sum([kid.weights for kid in kids.values()], axis=0), domain.names[attribute], kids)

    model.tree_ = grown(())
    return model
