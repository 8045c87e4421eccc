"""A tree over the categories of a nominal attribute, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.errors import DomainError
from dphist.model.domain.ordinal import writable

IntArray = npt.NDArray[np.int64]
Category = str | int | bool

# Groups within groups: more than any classification has, and fewer than what reads and writes JSON can nest.
DEEPEST = 64


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """A tree in breadth-first order, root first, as arrays over its nodes.

    Leaves are numbered left to right, so each node covers a range of them.
    The children of node i are the nodes ``children[i]`` up to ``children[i + 1]``: breadth-first order keeps
    siblings together. Node i covers the cells ``start[i]`` up to ``stop[i]``.
    """

    names: tuple[str, ...]
    parent: IntArray
    start: IntArray
    stop: IntArray
    depth: IntArray
    children: IntArray

    @property
    def size(self) -> int:
        """How many nodes."""
        return len(self.names)

    @property
    def levels(self) -> int:
        """How many levels, the root's included; a plain list of categories has two."""
        return int(self.depth.max()) + 1

    @property
    def fanout(self) -> IntArray:
        """How many children each node has; none for a leaf."""
        return np.diff(self.children)

    @property
    def leaves(self) -> IntArray:
        """The node of each cell, in the order of the cells."""
        nodes = np.flatnonzero(self.fanout == 0)
        return nodes[np.argsort(self.start[nodes])]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.names == other.names and np.array_equal(self.parent, other.parent)

    def __hash__(self) -> int:
        return hash((self.names, self.parent.tobytes()))


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a tree as it is written: a leaf holds a category, any other node its children."""

    name: str
    value: Category | None
    children: tuple[Node, ...]

    @property
    def is_leaf(self) -> bool:
        """Whether this is a category rather than a group of them."""
        return not self.children

    def categories(self) -> Iterator[Category]:
        """The categories below, in the order of their cells."""
        if self.value is not None:
            yield self.value
        for child in self.children:
            yield from child.categories()


def read_tree(name: str, tree: Any) -> Node:
    """Read a nested mapping or list: keys name groups, items are categories or further mappings; None has none yet."""
    if isinstance(tree, list | tuple | Mapping) and not tree:
        raise DomainError("there are no categories; list at least one")
    return Node(name, None, () if tree is None else tuple(_children(tree)))


def _children(tree: Any, depth: int = 0) -> Iterable[Node]:
    if depth > DEEPEST:
        raise DomainError(f"groups lie within each other {DEEPEST} deep at most")
    if isinstance(tree, Mapping):
        for key, below in tree.items():
            yield _group(key, below, depth + 1)
    elif isinstance(tree, Iterable) and not isinstance(tree, str | bytes):
        items = list(tree)
        if not items:
            raise DomainError("a group has no categories in it")
        for item in items:
            if isinstance(item, Mapping):
                yield from _children(item, depth)
            else:
                yield leaf(item)
    else:
        raise DomainError("categories must be a list, or a mapping from a group's name to its categories")


def _group(key: Any, below: Any, depth: int) -> Node:
    if below is None:
        return leaf(key)
    if not isinstance(key, str) or not writable(key):
        raise DomainError("the name of a group of categories must be a text")
    node = Node(key, None, tuple(_children(below, depth)))
    if not node.children:
        raise DomainError("a group has no categories in it")
    return node


def leaf(value: Any) -> Node:
    """A category as a leaf: a text, an integer or a truth value."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, str | int):
        raise DomainError("a category must be a text, an integer or a truth value")
    if isinstance(value, str) and not writable(value):
        raise DomainError("a category must be text that UTF-8 can write")
    return Node(category_text(value), value, ())


def category_text(value: Category) -> str:
    """How a category is written in labels."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_tree(node: Node, *, ordered: bool) -> Any:
    """Write the tree back as nested lists and mappings.

    ``ordered`` keeps to lists of one-key mappings, which survive a JSON writer that sorts keys: the order of
    the categories is the order of the cells.
    """
    if not ordered and not any(child.is_leaf for child in node.children):
        return {child.name: write_tree(child, ordered=False) for child in node.children}
    return [
        child.value if child.is_leaf else {child.name: write_tree(child, ordered=ordered)}
        for child in node.children
    ]


def flatten(root: Node) -> Hierarchy:
    """Lay a tree out in arrays."""
    order, parent, depth, children = [root], [-1], [0], [1]
    # The list grows by the children of each node while it is gone through: breadth first.
    for place, node in enumerate(order):
        order += node.children
        parent += [place] * len(node.children)
        depth += [depth[place] + 1] * len(node.children)
        children.append(len(order))
    leaves = [int(node.is_leaf) for node in order]
    for place in range(len(order) - 1, 0, -1):
        leaves[parent[place]] += leaves[place]
    start = [0]
    for place in range(1, len(order)):
        first = parent[place] != parent[place - 1]
        start.append(start[parent[place]] if first else start[-1] + leaves[place - 1])
    stop = [begin + held for begin, held in zip(start, leaves, strict=True)]
    arrays = [np.array(each, dtype=np.int64) for each in (parent, start, stop, depth, children)]
    # In the memory of a Python ``bytes``: a flag that forbids writing could be switched back, and the noise of wavelets
    # is sized by one reading of a tree and used with another.
    sealed = [np.frombuffer(array.tobytes(), dtype=np.int64) for array in arrays]
    return Hierarchy(tuple(node.name for node in order), *sealed)
