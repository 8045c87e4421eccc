"""What was asked, at what price, and what came back: enough to replay a mechanism with no data behind it.

Everything in a transcript has already passed the gate, so it may be published. What must not be in it is not
recorded anywhere: noisy segment costs, selection scores, unrounded values, seeds, durations, clip counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.errors import VerificationError
from dphist.model.phrases import so_many

Answer = NDArray[Any]


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


class Book(Protocol):
    """Where answers come from: drawn and written down, or read back."""

    def ask(
        self,
        path: str,
        verb: str,
        question: dict[str, Any],
        cost: Fraction,
        draw: Callable[[], Answer] | None,
    ) -> Answer:
        """Answer a question and account for it."""
        ...


class Payment:
    """Pays once. Whoever asks while another thread pays waits for it; a payment that failed is owed still."""

    def __init__(self, pay: Callable[[], None]) -> None:
        self._pay, self._lock, self._done = pay, Lock(), False

    def __call__(self) -> None:
        """Pay, if nobody has."""
        with self._lock:
            if not self._done:
                self._pay()
                self._done = True


class Transcript(Sequence[Entry]):
    """The entries of one release, in the order they were asked."""

    def __init__(self, entries: Sequence[Entry] = (), pay: Callable[[], None] | None = None) -> None:
        self._entries = list(entries)
        self._pay = None if pay is None else Payment(pay)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        return self._entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __repr__(self) -> str:
        return f"Transcript({so_many(len(self), 'question')}, spent {self.spent()})"

    def ask(
        self,
        path: str,
        verb: str,
        question: dict[str, Any],
        cost: Fraction,
        draw: Callable[[], Answer] | None,
    ) -> Answer:
        """Draw an answer and write it down."""
        if draw is None:
            raise VerificationError("there are no counts behind this gate to answer from")
        if (pay := self._pay) is not None:
            # Durable before the first bit of noise, and once: a crash from here on leaves the budget spent.
            pay()
            self._pay = None
        answer = draw()
        # The release and the transcript share this array, and the memory it may be a view of; nobody may edit history.
        memory: Any = answer
        while isinstance(memory, np.ndarray):
            memory.setflags(write=False)
            memory = memory.base
        self._entries.append(Entry(path, verb, question, cost, answer))
        return answer

    def spent(self) -> Fraction:
        """Add the budget up from the questions themselves: sums along splits, the largest over disjoint cells."""
        return _spent([(tuple(entry.path.split("/")[1:]), entry.cost) for entry in self])

    def tree(self) -> dict[str, Any]:
        """Give the budget as a tree of splits and disjoint cells, for people to read."""
        root: dict[str, Any] = {"children": {}, "asked": []}
        for entry in self:
            node = root
            for step in entry.path.split("/")[1:]:
                node = node["children"].setdefault(step, {"children": {}, "asked": []})
            node["asked"].append(entry)
        return root


# What to do about a transcript that its mechanism does not fit.
OTHERWISE = "it was changed, or another version of dphist made it, which can replay it"


class Replay:
    """Answers read back in order; a different question than the recorded one is a failed verification."""

    def __init__(self, transcript: Transcript) -> None:
        self._entries = iter(transcript)

    def ask(
        self,
        path: str,
        verb: str,
        question: dict[str, Any],
        cost: Fraction,
        draw: Callable[[], Answer] | None,
    ) -> Answer:
        """Return the recorded answer to the same question."""
        entry = next(self._entries, None)
        if entry is None:
            raise VerificationError(
                f"the mechanism asks more questions than the transcript holds: {OTHERWISE}"
            )
        if (entry.path, entry.verb, entry.question, entry.cost) != (path, verb, question, cost):
            raise VerificationError(
                f"the mechanism asks {question['ask']!r} where the transcript has another question: {OTHERWISE}"
            )
        return entry.answer

    def finish(self) -> None:
        """Insist that every recorded answer was used."""
        if next(self._entries, None) is not None:
            raise VerificationError(
                f"the transcript holds answers that the mechanism did not ask for: {OTHERWISE}"
            )


def same_answers(one: Transcript, other: Transcript) -> bool:
    """Tell whether two transcripts hold the same questions and answers, bit for bit."""
    return len(one) == len(other) and all(
        (a.path, a.verb, a.question, a.cost) == (b.path, b.verb, b.question, b.cost)
        and a.answer.dtype == b.answer.dtype
        and np.array_equal(a.answer, b.answer)
        for a, b in zip(one, other, strict=True)
    )


def _spent(asked: list[tuple[tuple[str, ...], Fraction]]) -> Fraction:
    here = sum((cost for path, cost in asked if not path), Fraction(0))
    below: dict[str, list[tuple[tuple[str, ...], Fraction]]] = {}
    for path, cost in asked:
        if path:
            below.setdefault(path[0], []).append((path[1:], cost))
    children = {step: _spent(entries) for step, entries in below.items()}
    # "s" children share the same cells and add up; "d" children hold disjoint cells and only the largest counts.
    along = sum((spent for step, spent in children.items() if step.startswith("s")), Fraction(0))
    beside = max((spent for step, spent in children.items() if step.startswith("d")), default=Fraction(0))
    return here + along + beside
