"""What a cube tells apart: the groups of some attributes under some conditions, as boxes of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Nominal
from dphist.model.workload import Workload

IntArray = NDArray[np.int64]
# Cells (None), or a depth of the attribute's hierarchy.
Level = int | None
Groups = tuple[tuple[str, Level], ...]


def group_boxes(
    domain: Domain, where: Mapping[str, Any], groups: Groups
) -> tuple[dict[str, list[str]], IntArray, IntArray, IntArray]:
    """Labels of the groups, and the boxes of each: bounds, and which group they belong to.

    A group that a condition allows only parts of appears once, as several boxes.
    """
    names = [name for name, _ in groups]
    found = [_spans(domain, where, name, level) for name, level in groups]
    rest = Workload.where(domain, {n: value for n, value in where.items() if n not in names})
    if not found:
        return {}, rest.low, rest.high, np.zeros(len(rest.low), dtype=np.int64)
    pick = np.indices([len(labels) for labels, _ in found]).reshape(len(found), -1)
    boxes, combinations = len(rest.low), pick.shape[1]
    low, high = np.tile(rest.low, (combinations, 1)), np.tile(rest.high, (combinations, 1))
    for i, name in enumerate(names):
        spans = np.repeat(found[i][1][pick[i]], boxes, axis=0)
        low[:, domain.axis(name)], high[:, domain.axis(name)] = spans[:, 0], spans[:, 1]
    texts = list(zip(*([found[i][0][j] for j in pick[i]] for i in range(len(found))), strict=True))
    order = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    owner = np.repeat(np.array([order[text] for text in texts], dtype=np.int64), boxes)
    labels = {name: [text[i] for text in order] for i, name in enumerate(names)}
    return labels, low, high, owner


def _spans(domain: Domain, where: Mapping[str, Any], name: str, level: Level) -> tuple[list[str], IntArray]:
    """Labels and cells of an attribute's groups, as far as the condition on it allows: (start, stop) rows."""
    attribute = domain.attribute(name)
    if level is None or not isinstance(attribute, Nominal):
        start = np.arange(attribute.size)
        spans, labels = np.stack([start, start + 1], axis=1), list(attribute.labels)
    else:
        tree = attribute.hierarchy
        # A category that hangs higher up stands for itself further down.
        nodes = np.flatnonzero((tree.depth == level) | ((tree.depth < level) & (tree.fanout == 0)))
        nodes = nodes[np.argsort(tree.start[nodes])]
        spans = np.stack([tree.start[nodes], tree.stop[nodes]], axis=1)
        labels = [tree.names[node] for node in nodes]
    if name not in where:
        return labels, spans
    allowed = Workload.where(domain.project([name]), {name: where[name]})
    kept: list[tuple[str, int, int]] = []
    for label, (first, last) in zip(labels, spans, strict=True):
        for low, high in zip(allowed.low[:, 0], allowed.high[:, 0], strict=True):
            if max(first, low) < min(last, high):
                kept.append((label, max(first, low), min(last, high)))
    return [label for label, _, _ in kept], np.array([(a, b) for _, a, b in kept]).reshape(-1, 2)
