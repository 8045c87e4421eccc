"""What was asked of the records, at what price, and what came back: public, since all of it was paid for.

It is enough to replay a mechanism with no data behind it, and to show what a budget was spent on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.phrases import counted

Answer = NDArray[Any]

# What to do about a transcript that its mechanism does not fit.
OTHERWISE = "it was changed, or another version of dphist made it, which can replay it"


@dataclass(frozen=True, eq=False)
class Entry:
    """One question: where in the budget tree it was asked, its cost in the release's currency, and the answer."""

    path: str
    verb: str
    question: dict[str, Any]
    cost: Fraction
    answer: Answer

    @property
    def epsilon(self) -> Fraction:
        """What it cost, by the name that it has in releases of pure ε."""
        return self.cost


class Transcript(Sequence[Entry]):
    """The entries of one release, in the order they were asked."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __repr__(self) -> str:
        return f"Transcript({counted(len(self), 'question')}, spent {self.spent()})"

    def spent(self) -> Fraction:
        """Add the budget up from the questions themselves: sums along splits, the largest over disjoint cells."""
        return _spent(self.tree())

    def tree(self) -> dict[str, Any]:
        """Give the budget as a tree of splits and disjoint cells, for people to read."""
        root: dict[str, Any] = {"children": {}, "asked": []}
        for entry in self:
            node = root
            for step in entry.path.split("/")[1:]:
                node = node["children"].setdefault(step, {"children": {}, "asked": []})
            node["asked"].append(entry)
        return root


def same_answers(one: Transcript, other: Transcript) -> bool:
    """Tell whether two transcripts hold the same questions and answers, bit for bit."""
    return len(one) == len(other) and all(
        (a.path, a.verb, a.question, a.cost) == (b.path, b.verb, b.question, b.cost)
        and a.answer.dtype == b.answer.dtype
        and np.array_equal(a.answer, b.answer)
        for a, b in zip(one, other, strict=True)
    )


def _spent(node: dict[str, Any]) -> Fraction:
    here = sum((entry.cost for entry in node["asked"]), Fraction(0))
    children = {step: _spent(below) for step, below in node["children"].items()}
    # "s" children share the same cells and add up; "d" children hold disjoint cells and only the largest counts.
    along = sum((spent for step, spent in children.items() if step.startswith("s")), Fraction(0))
    beside = max((spent for step, spent in children.items() if step.startswith("d")), default=Fraction(0))
    return here + along + beside
