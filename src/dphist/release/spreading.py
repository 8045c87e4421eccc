"""Questions that cut bins, answered on request: nothing looks inside a bin, so the answer is a guess between bounds.

Of the records in a bin that a question cuts anything from none to all may be meant. So the answer lies between what
the question holds whole and all that it touches, and bounds that hold for both hold for it. The guess spreads the
records of a bin evenly over it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from dphist.errors import QueryError
from dphist.inference.estimate import Words
from dphist.model.domain import Domain
from dphist.model.domain.conditions import pieces
from dphist.model.domain.ordinal import Stretch
from dphist.model.workload import Workload
from dphist.release.answers import Answer, Answers, spoken

_MOST_BOXES = 100_000
_SPREAD = Words(
    "bounds: from none to all records of the bins that the question cuts; holds with {percent} %",
    "the number spreads a bin's records evenly over it, which is a guess",
)


def spread_answer(
    domain: Domain,
    chosen: Mapping[str, Sequence[Stretch]],
    ask: Callable[[Workload, bool], Answers],
    confidence: float,
) -> Answer:
    """Answer one question that may cut bins; as any other if it cuts none."""
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
