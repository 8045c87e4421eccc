"""Attack every mechanism for hours, and keep the score honestly.

A campaign is rounds of trials: every mechanism in every setting (ε and shape of the table), on neighbours found by
search before each trial. Each trial's p-value says how surprising its runs would be if the claim were true. Thousands
of trials would refute something by chance, so Holm's rule judges all trials of a round together, and round r may err
with probability alpha ÷ 2ʳ only: over all rounds, however long the campaign, some true claim is refuted with
probability at most alpha. Besides, no run may lose more than ε by formula; one that does shows a broken promise, and
no chance is in that.

Finished trials are lines of a file. A campaign that was stopped goes on where it was; half a line, as a crash may leave
it, is dropped.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from dphist.audit.neighbours import Pair, worst_pairs
from dphist.errors import OutputError
from dphist.mechanisms import MECHANISMS
from dphist.mechanisms.options import parse
from dphist.mechanisms.protocol import Mechanism
from dphist_bench.attacks.attack import collect, pursue
from dphist_bench.attacks.evidence import Evidence
from dphist_bench.audit.search import search_pair

ALPHA = 1e-3
Setting = tuple[str, tuple[int, ...]]
# What is claimed and the shape of the table; five cells are no power of any branching, so trees come out ragged.
SETTINGS: tuple[Setting, ...] = (("1", (5,)), ("3", (5,)), ("1", (3, 3)), ("1/2", (5,)))
# Where a mechanism's own defaults make a run too slow for thousands of them, or leave nothing to choose or to transform
# on few cells.
_INSTEAD = {
    "mwem": "mwem(rounds=2, passes=2)",
    "privelet": "privelet(plain=())",
    "structurefirst": "structurefirst(bins=2)",
}
_FIRST_SECONDS = 1.5
_FEWEST, _MOST = 1_500, 200_000
_TRIES = 16


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
    loss: float = 0.0
    """The largest loss of a run by formula."""
    formula: str = "all"
    """What the formula covers: "all", "but partitions", or "none" of what came out."""
    asked: tuple[str, ...] = ()
    """The questions' verbs, in every order that came up."""

    @property
    def key(self) -> tuple[int, str, str, tuple[int, ...]]:
        """What the trial is of; each is made once."""
        return self.round, self.mechanism, self.epsilon, self.shape

    @property
    def broken(self) -> bool:
        """Whether some run lost more than was claimed, by formula."""
        return self.loss > number(self.epsilon) * (1 + 1e-6)

    def to_line(self) -> str:
        """Write the trial down."""
        return json.dumps(self.__dict__)

    @staticmethod
    def from_line(line: str) -> Trial | None:
        """Read a trial back, or give None for half a line."""
        try:
            told: dict[str, Any] = json.loads(line)
            lists = ("shape", "counts", "asked")
            return Trial(**{**told, **{name: tuple(told[name]) for name in lists if name in told}})
        except (ValueError, TypeError):
            return None


def claims() -> list[str]:
    """Give every mechanism that may be released, each as text."""
    named = [_INSTEAD.get(name, name) for name in sorted(MECHANISMS)]
    return [
        text
        for text in named
        if not getattr(parse(text), "refused", False) and text not in ("spa", "gaussian")
    ]


def read_trials(path: Path) -> list[Trial]:
    """Read what a campaign has done so far."""
    if not path.exists():
        return []
    found = (Trial.from_line(line) for line in path.read_text(encoding="utf-8").splitlines())
    return [trial for trial in found if trial is not None]


def refuted(trials: Iterable[Trial]) -> list[Trial]:
    """Give the trials whose claims fall: by Holm's rule in every round, or because a promise was broken."""
    rounds: dict[int, list[Trial]] = {}
    for trial in trials:
        rounds.setdefault(trial.round, []).append(trial)
    fallen = []
    for place, held in rounds.items():
        allowed = ALPHA / 2 ** (place + 1)
        for i, trial in enumerate(sorted(held, key=lambda each: each.chance)):
            if trial.chance > allowed / (len(held) - i):
                break
            fallen.append(trial)
        fallen += [trial for trial in held if trial.broken and trial not in fallen]
    return fallen


def run_campaign(
    results: Path,
    hours: float,
    *,
    mechanisms: Sequence[str] | None = None,
    settings: Sequence[Setting] = SETTINGS,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Trial]:
    """Make trials until the time is over, going on from what ``results`` holds; give all of them.

    Every round gives each trial twice as much time as the round before, and begins with the mechanisms of which the
    rounds before saw least. Time decides when to stop, results do not, so that stopping early cannot make a claim look
    worse or better than it is.
    """
    stop = clock() + 3600 * hours
    trials = read_trials(results)
    done = {trial.key for trial in trials}
    texts = claims() if mechanisms is None else list(mechanisms)
    # Said before time is spent; and half a line that a crash left is ended.
    _append(results, "")
    if results.read_bytes()[-1:] not in (b"", b"\n"):
        _append(results, "\n")
    for key in _order(texts, settings, trials):
        if key in done:
            continue
        if clock() >= stop:
            break
        say(f"round {key[0] + 1}: {key[1]} at ε = {key[2]}")
        trial = attempt(*key)
        _append(results, trial.to_line() + "\n")
        trials.append(trial)
    return trials


def attempt(place: int, text: str, epsilon: str, shape: tuple[int, ...]) -> Trial:
    """Search for a telling pair, then judge it by fresh runs."""
    mechanism = parse(text)
    seconds = _FIRST_SECONDS * 2**place
    cost = _seconds_a_run(mechanism, epsilon, shape)
    tries = _TRIES + 4 * place
    found = search_pair(
        mechanism,
        epsilon=epsilon,
        shape=shape,
        tries=tries,
        runs=int(np.clip(seconds / 3 / cost / (2 * tries), 30, 300)),
        seed=_seed(place, text, epsilon, shape),
    )
    runs = int(np.clip(seconds * 2 / 3 / cost / 2, _FEWEST * 2**place, _MOST))
    return judge(place, text, mechanism, epsilon, found, runs)


def judge(place: int, text: str, mechanism: Mechanism, epsilon: str, found: Pair, runs: int) -> Trial:
    """Attack one claim on one pair."""
    evidence = pursue(mechanism, found, epsilon, runs, stop_early=True)
    counts = np.minimum(found.one.counts, found.other.counts).reshape(-1)
    cell = int(np.flatnonzero((found.one.counts != found.other.counts).reshape(-1))[0])
    return Trial(
        round=place,
        mechanism=text,
        epsilon=epsilon,
        shape=found.one.domain.shape,
        pair=found.name,
        counts=tuple(counts.tolist()),
        cell=cell,
        runs=runs,
        bound=round(evidence.contest.bound(ALPHA), 4),
        chance=evidence.contest.chance,
        loss=round(evidence.largest_loss(), 6),
        formula=_formula(evidence),
        asked=tuple(
            sorted({" ".join(verb for verb, _ in shape) for shape in {run.shape for run in evidence.one}})
        ),
    )


def number(text: str) -> float:
    """Read ``1/2`` as a number."""
    return float(Fraction(text))


def _formula(evidence: Evidence) -> str:
    if not all(run.covered for run in evidence.one):
        return "none"
    return "but partitions" if any(run.choices for run in evidence.one) else "all"


def _seconds_a_run(mechanism: Mechanism, epsilon: str, shape: tuple[int, ...]) -> float:
    some = worst_pairs(shape)[1]
    collect(mechanism, some, epsilon, 2, 0, stop_early=True)
    begin = time.process_time()
    collect(mechanism, some, epsilon, 20, 0, stop_early=True)
    return max(2e-5, (time.process_time() - begin) / 20)


def _seed(place: int, text: str, epsilon: str, shape: tuple[int, ...]) -> int:
    return crc32(repr((place, text, epsilon, shape)).encode())


def _order(
    texts: Sequence[str], settings: Sequence[Setting], trials: Sequence[Trial]
) -> Iterator[tuple[int, str, str, tuple[int, ...]]]:
    """Give what to try next; from the second round on, first what the rounds before saw least of."""

    def seen(text: str) -> float:
        return max((t.bound / number(t.epsilon) for t in trials if t.mechanism == text), default=0.0)

    place = 0
    while texts:
        ranked = sorted(texts, key=seen) if place else texts
        for epsilon, shape in settings:
            for text in ranked:
                yield place, text, epsilon, shape
        place += 1


def _append(path: Path, text: str) -> None:
    """Put text on disk before anything else is done."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}; choose another --results") from None
