"""Where answers come from: drawn and written down, or read back with no data behind the gate.

Everything in a transcript has already passed the gate, so it may be published. What must not be in it is not
recorded anywhere: noisy segment costs, selection scores, unrounded values, seeds, durations, clip counts.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import Any

import numpy as np

from dphist.errors import VerificationError
from dphist.model.transcript import OTHERWISE, Answer, Entry, Transcript


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


class Recorded(Transcript):
    """A transcript that is being written: whoever asks first pays for all of it."""

    def __init__(self, pay: Callable[[], None] | None = None) -> None:
        super().__init__()
        self._pay = None if pay is None else Payment(pay)

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


Book = Recorded | Replay
