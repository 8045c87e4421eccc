"""Attack every mechanism for hours, and keep the score honestly.

A campaign is rounds of trials: every mechanism × ε × pair of neighbours, the pairs found by search before each trial.
Each trial's p-value says how surprising its runs would be if the claim were true. Thousands of trials would refute
something by chance, so Holm's rule judges all trials of a round together, and round r may err with probability
alpha ÷ 2ʳ only: over all rounds, however long the campaign, some true claim is refuted with probability at most alpha.

Finished trials are lines of a file. A campaign that was stopped goes on where it was; half a line, as a crash may leave
it, is dropped.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from dphist.audit.attack import collect
from dphist.audit.evidence import chance, events
from dphist.audit.neighbours import Pair, worst_pairs
from dphist.audit.search import search_pair
from dphist.errors import OutputError
from dphist.mechanisms import MECHANISMS
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse

ALPHA = 1e-3
EPSILONS = ("1", "1/2", "3")
SHAPES = ((8,), (3, 3))
# Where a mechanism's own defaults make a run too slow for thousands of them.
_BRISK = {"mwem": "mwem(rounds=2, passes=2)"}
_FIRST_SECONDS = 2.0
_FEWEST, _MOST = 150, 200_000


@dataclass(frozen=True)
class Trial:
    """One attack on one claim, with everything needed to repeat it and to judge it."""

    round: int
    mechanism: str
    epsilon: str
    shape: tuple[int, ...]
    pair: str
    counts: tuple[int, ...]
    cell: int
    runs: int
    bound: float
    chance: float

    @property
    def key(self) -> tuple[int, str, str, tuple[int, ...]]:
        """What the trial is of; each is made once."""
        return self.round, self.mechanism, self.epsilon, self.shape

    def to_line(self) -> str:
        """Write the trial down."""
        return json.dumps({**self.__dict__, "shape": list(self.shape), "counts": list(self.counts)})

    @staticmethod
    def from_line(line: str) -> Trial | None:
        """Read a trial back, or give None for half a line."""
        try:
            told: dict[str, Any] = json.loads(line)
            return Trial(**{**told, "shape": tuple(told["shape"]), "counts": tuple(told["counts"])})
        except (ValueError, TypeError, KeyError):
            return None


def claims() -> list[str]:
    """Give every mechanism that may be released, each as text."""
    named = [_BRISK.get(name, name) for name in sorted(MECHANISMS)]
    return [text for text in named if not getattr(parse(text), "refused", False) and text != "spa"]


def read_trials(path: Path) -> list[Trial]:
    """Read what a campaign has done so far."""
    if not path.exists():
        return []
    found = (Trial.from_line(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [trial for trial in found if trial is not None]


def refuted(trials: Iterable[Trial], alpha: float = ALPHA) -> list[Trial]:
    """Give the trials whose claims fall, by Holm's rule in every round."""
    rounds: dict[int, list[Trial]] = {}
    for trial in trials:
        rounds.setdefault(trial.round, []).append(trial)
    fallen = []
    for number, held in rounds.items():
        allowed = alpha / 2 ** (number + 1)
        for i, trial in enumerate(sorted(held, key=lambda each: each.chance)):
            if trial.chance > allowed / (len(held) - i):
                break
            fallen.append(trial)
    return fallen


def run_campaign(
    results: Path,
    hours: float,
    *,
    mechanisms: Sequence[str] | None = None,
    epsilons: Sequence[str] = EPSILONS,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Trial]:
    """Make trials until the time is over, going on from what ``results`` holds; give all of them.

    Every round gives each trial twice as much time as the round before. Time decides when to stop, results do not, so
    that stopping early cannot make a claim look worse or better than it is.
    """
    stop = clock() + 3600 * hours
    trials = read_trials(results)
    done = {trial.key for trial in trials}
    texts = claims() if mechanisms is None else list(mechanisms)
    with _Lines(results) as write:
        for key in _order(texts, epsilons, shapes):
            if key in done:
                continue
            if clock() >= stop:
                break
            say(f"round {key[0] + 1}: {key[1]} at ε = {key[2]}")
            trial = attempt(*key)
            write(trial.to_line())
            trials.append(trial)
    return trials


def attempt(number: int, text: str, epsilon: str, shape: tuple[int, ...]) -> Trial:
    """Search for a telling pair, then judge it by fresh runs."""
    mechanism = parse(text)
    seconds = _FIRST_SECONDS * 2**number
    cost = _seconds_a_run(mechanism, epsilon, shape)
    tries = 8 + 4 * number
    search = int(np.clip(seconds / 3 / cost / (2 * tries), _FEWEST, _MOST))
    found = search_pair(
        mechanism,
        epsilon=epsilon,
        shape=shape,
        tries=tries,
        runs=search,
        seed=_seed(number, text, epsilon, shape),
    )
    runs = int(np.clip(seconds * 2 / 3 / cost / 2, 2 * _FEWEST, _MOST))
    return judge(number, text, mechanism, epsilon, found, runs)


def judge(number: int, text: str, mechanism: Mechanism, epsilon: str, found: Pair, runs: int) -> Trial:
    """Attack one claim on one pair."""
    seen = events(
        collect(mechanism, found.one, epsilon, runs), collect(mechanism, found.other, epsilon, runs), ALPHA
    )
    counts = np.minimum(found.one.counts, found.other.counts).reshape(-1)
    cell = int(np.flatnonzero((found.one.counts != found.other.counts).reshape(-1))[0])
    bound = max(event.bound(ALPHA / 2) for event in seen)
    return Trial(
        round=number,
        mechanism=text,
        epsilon=epsilon,
        shape=found.one.domain.shape,
        pair=found.name,
        counts=tuple(counts.tolist()),
        cell=cell,
        runs=runs,
        bound=round(max(bound, -99.0), 4),
        chance=chance(seen, _float(epsilon)),
    )


def _float(epsilon: str) -> float:
    above, _, below = epsilon.partition("/")
    return float(above) / float(below or 1)


def _seconds_a_run(mechanism: Mechanism, epsilon: str, shape: tuple[int, ...]) -> float:
    some = worst_pairs(shape)[1].one
    collect(mechanism, some, epsilon, 2)
    begin = time.process_time()
    collect(mechanism, some, epsilon, 10)
    return max(2e-5, (time.process_time() - begin) / 10)


def _seed(number: int, text: str, epsilon: str, shape: tuple[int, ...]) -> int:
    return crc32(repr((number, text, epsilon, shape)).encode())


def _order(
    texts: Sequence[str], epsilons: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> Iterator[tuple[int, str, str, tuple[int, ...]]]:
    number = 0
    while texts:
        for epsilon in epsilons:
            for shape in shapes:
                for text in texts:
                    yield number, text, epsilon, shape
        number += 1


class _Lines:
    """Adds lines to a file, each on disk before the next trial starts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Callable[[str], None]:
        try:
            whole = not self._path.exists() or self._path.read_bytes()[-1:] in (b"", b"\n")
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"cannot write {self._path}: {error.strerror}; choose another --results"
            ) from None
        if not whole:
            self._file.write("\n")
        return self._write

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def __exit__(self, *_: object) -> None:
        self._file.close()
