"""Values that only one of two neighbours can produce, looked for in everything that leaves a mechanism.

Statistics compare how often things happen; this looks for things that *never* happen on one side, as Mironov's attack
on porous floating-point noise does. Both neighbours are published many times, and every event that was seen `FREQUENT`
times on one side must have been seen on the other. Events are: which questions were asked with which types and
shapes; the value of each number in the transcript, and its remainder by 2, 3 and 10; a whole choice or partition; and
of each estimated cell the exact number, its fraction, and the lowest bits and trailing zeros of its mantissa.

By ε = 1 an event expected μ times on one side is expected at least μ/e times on the other, so a false alarm, 100 or
more times here and never there, has a probability below 10⁻¹⁴ (the worst μ is near 70).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dphist.audit.neighbours import Pair, worst_pairs
from dphist.mechanisms.options import parse
from dphist.mechanisms.protocol import Mechanism
from dphist.model.transcript import Transcript
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist_bench.audit.campaign import claims
from dphist_bench.measuring import Failure, Line

FREQUENT = 100
# A number that is always even on one side, or on the same third, would show here long before its values do.
_LATTICES = (2, 3, 10)
Ints = NDArray[np.int64]


def measure(
    *, quick: bool, seconds: Annotated[float, "of the processor's time for each mechanism at most"] = 20.0
) -> Iterator[Line]:
    """Give how much of each mechanism was looked at; nothing may be seen on one side only."""
    names, numbers = (("laplace", "s1"), 2_000) if quick else (claims(), 10**6)
    pair = worst_pairs((64,))[1]
    for name in names:
        once = look(parse(name), pair, 1)
        found = look(parse(name), pair, -(-numbers // max(1, once.drawn)), seconds=seconds)
        yield {
            "mechanism": name,
            "runs a side": found.runs,
            "numbers a side": found.drawn,
            "events": found.compared,
            "on one side only": len(found.telling),
        }
        if found.telling:
            yield Failure(f"{name} tells its neighbours apart")


@dataclass
class Side:
    """Everything that came out of one of the neighbours."""

    told: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    numbers: dict[tuple[Any, ...], list[Ints]] = field(default_factory=dict)
    estimates: list[NDArray[np.float64]] = field(default_factory=list)
    drawn: int = 0

    def hear(self, transcript: Transcript, estimate: NDArray[np.float64]) -> None:
        """Note one run."""
        kinds = tuple(
            (entry.path, entry.verb, entry.question["ask"], str(entry.answer.dtype), entry.answer.shape)
            for entry in transcript
        )
        self.told[kinds] += 1
        bits = [_bits(entry.answer) for entry in transcript]
        self.numbers.setdefault(kinds, []).append(np.concatenate(bits) if bits else np.empty(0, np.int64))
        self.drawn += sum(part.size for part in bits)
        self.estimates.append(estimate.reshape(-1))

    def events(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Give every event and how often it was seen."""
        yield from ((("asked", kinds), often) for kinds, often in self.told.items())
        for kinds, runs in self.numbers.items():
            table = np.stack(runs)
            yield from _values(("number", kinds), table)
            for lattice in _LATTICES:
                yield from _values(("lattice", lattice, kinds), table % lattice)
            start = 0
            for place, (_, verb, _, _, shape) in enumerate(kinds):
                width = int(np.prod(shape, dtype=np.int64))
                if verb != "measure" and width > 1:
                    whole, often = np.unique(table[:, start : start + width], axis=0, return_counts=True)
                    for row, times in zip(whole.tolist(), often.tolist(), strict=True):
                        yield ("whole", kinds, place, tuple(row)), times
                start += width
        cells = np.stack(self.estimates)
        bits = cells.view(np.int64)
        yield from _values(("cell",), bits)
        yield from _values(("fraction",), (cells - np.floor(cells)).view(np.int64))
        mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
        yield from _values(("lowest bits",), mantissa & 0xFF)
        # How often two divides the mantissa; the exponent tells how fine the grid is there.
        zeros = np.log2((mantissa & -mantissa).astype(np.float64)).astype(np.int64)
        yield from _values(("grid",), ((bits >> 52) & 0x7FF) * 64 + zeros)


@dataclass(frozen=True)
class Found:
    """What was compared, and the events that one side showed often and the other never."""

    runs: int
    drawn: int
    compared: int
    telling: list[tuple[Any, ...]]


def look(
    mechanism: Mechanism,
    pair: Pair,
    runs: int,
    *,
    frequent: int = FREQUENT,
    seconds: float = np.inf,
    seed: int = 0,
) -> Found:
    """Run both neighbours and compare; ``seconds`` of processor time end it early."""
    sides = Side(), Side()
    began, done = time.process_time(), 0
    noise = Noise(Keystream.for_tests(seed))
    while done < runs and (done < 2 * frequent or time.process_time() - began < seconds):
        for side, counts in zip(sides, (pair.one, pair.other), strict=True):
            right, transcript = open_gate(counts, 1, Unit(), noise=noise)
            side.hear(transcript, mechanism.estimate(right).counts)
        done += 1
    seen = [dict(side.events()) for side in sides]
    telling, compared = [], 0
    for mine, theirs in (seen, seen[::-1]):
        for event, often in mine.items():
            if often >= frequent:
                compared += 1
                if event not in theirs:
                    telling.append(event)
    return Found(done, sides[0].drawn, compared, telling)


def _bits(answer: NDArray[Any]) -> Ints:
    flat = np.ascontiguousarray(answer).reshape(-1)
    return flat.view(np.int64) if flat.dtype.itemsize == 8 else flat.astype(np.int64)


def _values(what: tuple[Any, ...], table: Ints) -> Iterator[tuple[tuple[Any, ...], int]]:
    for column in range(table.shape[1]):
        values, often = np.unique(table[:, column], return_counts=True)
        for value, times in zip(values.tolist(), often.tolist(), strict=True):
            yield (*what, column, value), times
