"""What is asked of a release: counts of ranges and tables of fewer attributes, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, Unpack, overload

import numpy as np

from dphist.arguments import explained
from dphist.errors import QueryError
from dphist.inference.estimate import How, Words
from dphist.inference.intervals import read_confidence
from dphist.model.domain import Domain
from dphist.model.domain.ordinal import Stretch
from dphist.model.domain.space import pieces, stretches
from dphist.model.workload import Workload
from dphist.model.workload.questions import overlapping
from dphist.release.answers import Answer, Answers, Projection, spoken
from dphist.release.contents import Contents
from dphist.release.language import read_question, read_stretches

IntervalKind = Literal["calibrated", "guaranteed"]
BinsKind = Literal["whole", "spread"]

_MOST_BOXES = 100_000
_SPREAD = Words(
    "bounds: from none to all records of the bins that the question cuts; holds with {percent} %",
    "the number spreads a bin's records evenly over it, which is a guess",
)


@explained
class Asking(Contents):
    """The part of a `Release` that answers."""

    @overload
    def answer(
        self,
        workload: Workload,
        *,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        simultaneous: bool = False,
    ) -> Answers: ...

    @overload
    def answer(
        self,
        workload: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        bins: BinsKind = "whole",
    ) -> Answer: ...

    def answer(
        self,
        workload: Workload | str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        simultaneous: bool = False,
        bins: BinsKind = "whole",
    ) -> Answer | Answers:
        """Count the records in one range (``where``, or text) or in many (a workload), each with an interval.

        Args:
            workload: Many ranges at once, or one question as on the command line: ``"age between 30 and 40"``.
            where: Maps attributes to a value, an inclusive pair of bounds (where there is an order), a list of values
                or the name of a group or a bin, all in the attribute's own values; those left out are summed over.
            confidence: How sure the interval is to hold the true count.
            interval: "calibrated" holds as often as stated on average over such questions (exactly so where the noise
                is known exactly); "guaranteed" is a theorem for any data and a question fixed in advance.
            simultaneous: Whether all intervals of a workload hold together with that confidence.
            bins: "whole" refuses a question that cuts a bin, a week or a month; "spread" answers it by a guess, with
                bounds from none to all of the bin's records. Between edges that are all whole, whole bounds mean whole
                numbers: 40 to 44 is the bin [40, 45).

        Returns:
            An `Answer` for one question, `Answers` (arrays) for a workload.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 50)), epsilon=1, mechanism="laplace")
            >>> one = release.answer(where={"age": (30, 40)})
            >>> one.value == release.answer("age between 30 and 40").value
            True
            >>> len(release.answer(dphist.Workload.prefixes(domain)))
            100
        """
        if workload is not None and where is not None:
            raise QueryError("give a workload or where=, not both")
        if not isinstance(interval, str) or interval not in ("calibrated", "guaranteed"):
            raise QueryError("interval must be 'calibrated' or 'guaranteed'")
        if not isinstance(simultaneous, bool):
            raise QueryError("simultaneous must be True or False")
        if not isinstance(bins, str) or bins not in ("whole", "spread"):
            raise QueryError("bins must be 'whole' or 'spread'")
        kind: How = {"guaranteed": interval == "guaranteed", "simultaneous": simultaneous}
        if workload is not None and not isinstance(workload, Workload | str):
            raise QueryError(f"workload must be a dphist.Workload or text, not a {type(workload).__name__}")
        if where is not None and not isinstance(where, Mapping):
            raise QueryError("where must map attributes to what is asked of them")
        if bins == "spread":
            if isinstance(workload, Workload):
                raise QueryError("bins: a workload asks for whole bins only; bins= is for one question")
            return self._spread(workload if workload is not None else where or {}, confidence, **kind)
        if isinstance(workload, str):
            return self._answers(read_question(workload, self.domain), confidence, **kind)[0]
        asked = workload if workload is not None else Workload.where(self.domain, where or {})
        if asked.domain != self.domain:
            raise QueryError(
                "workload is about another domain than the release; build it from release.domain"
            )
        if asked.query is not None and overlapping(asked.low, asked.high, asked.query):
            # A cell that counts twice has its noise twice: no interval here knows of that.
            raise QueryError("workload: boxes of one question must not overlap; ask about each by itself")
        answers = self._answers(asked, confidence, **kind)
        return answers if workload is not None else answers[0]

    def _spread(self, asked: str | Mapping[str, Any], confidence: float, **how: Unpack[How]) -> Answer:
        """Answer one question that may cut bins."""
        chosen = (
            read_stretches(asked, self.domain)
            if isinstance(asked, str)
            else {name: stretches(self.domain.attribute(name), each) for name, each in asked.items()}
        )

        def ask(workload: Workload, at_once: bool) -> Answers:
            together: How = {**how, "simultaneous": True} if at_once else how
            return self._answers(workload, confidence, **together)

        return spread_answer(self.domain, chosen, ask, read_confidence(confidence))

    def _answers(self, workload: Workload, confidence: float, **how: Unpack[How]) -> Answers:
        return self.cells.answers(self, workload, read_confidence(confidence), **how)

    def project(self, *names: str | Sequence[str], confidence: float = 0.95) -> Projection:
        """Sum over all other attributes, with an interval for every cell that is left: a marginal.

        Args:
            names: The attributes to keep, as ``project("age", "sex")`` or ``project(["age", "sex"])``.
            confidence: How sure each interval is to hold the true count.

        Returns:
            Counts and intervals over the attributes that were kept.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full((9, 2), 50)), epsilon=1, mechanism="laplace")
            >>> release.project("sex").counts.shape, release.project("sex", "age").counts.shape
            ((2,), (2, 9))
        """
        listed = all(isinstance(each, str | Sequence) for each in names)
        kept = (
            [name for each in names for name in ([each] if isinstance(each, str) else each)] if listed else []
        )
        if not kept or not all(isinstance(name, str) for name in kept):
            raise QueryError("name the attributes to keep, such as project('age') or project('age', 'sex')")
        return self.cells.project(self, kept, read_confidence(confidence))


def spread_answer(
    domain: Domain,
    chosen: Mapping[str, Sequence[Stretch]],
    ask: Callable[[Workload, bool], Answers],
    confidence: float,
) -> Answer:
    """Answer one question that may cut bins; as any other if it cuts none.

    Of the records in a bin that a question cuts anything from none to all may be meant. So the answer lies between what
    the question holds whole and all that it touches, and bounds that hold for both hold for it. The guess spreads the
    records of a bin evenly over it.
    """
    axes = [pieces(chosen.get(each.name, [((0, 0.0), (each.size, 0.0))])) for each in domain.attributes]
    if math.prod(map(len, axes)) > _MOST_BOXES:
        raise QueryError("the question lists too many separate values; ask for ranges or groups instead")
    made = np.array(list(product(*axes))).reshape(-1, len(axes), 3)
    low, high = made[:, :, 0].astype(np.int64), made[:, :, 1].astype(np.int64)
    share = made[:, :, 2].prod(axis=1)
    whole = share == 1.0
    every, inside = np.zeros(len(low), dtype=np.int64), np.ones(int(whole.sum()), dtype=np.int64)
    if inside.size == every.size:
        return ask(Workload(domain, low, high, every), False)[0]
    value = ask(Workload(domain, low, high), False).value @ share
    lows, highs = np.concatenate([low, low[whole]]), np.concatenate([high, high[whole]])
    found = ask(Workload(domain, lows, highs, np.concatenate([every, inside])), bool(inside.size))
    most = float(found.high[0])
    least = min(float(found.low[1]), most) if inside.size else 0.0
    short, details = spoken(_SPREAD, confidence)
    return Answer(float(value), least, most, confidence, short, f"{details}; {found.details}", guess=True)
